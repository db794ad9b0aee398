/* SPDX-License-Identifier: Apache-2.0 */
/* The one clock of the simulator: CLOCK_MONOTONIC in nanoseconds. */
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

#include <stdint.h>
#include <time.h>

#define SIM_MS UINT64_C(1000000) /* a millisecond in nanoseconds */

static inline uint64_t sim_clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#endif
