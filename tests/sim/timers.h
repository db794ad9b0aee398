/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlines in nanoseconds of CLOCK_MONOTONIC, kept in a binary heap.  The
 * timer is embedded in what it belongs to; the heap only points at it, and
 * a timer must be cleared before its owner is freed.
 */
#ifndef SIM_TIMERS_H
#define SIM_TIMERS_H

#include <stddef.h>
#include <stdint.h>

typedef struct sim_timer_t {
    uint64_t due;
    size_t pos; /* place in the heap, counted from 1; 0 = not armed */
} sim_timer_t;

typedef struct sim_timers_t {
    sim_timer_t **at; /* at[1..n] is the heap; malloc'd */
    size_t n, cap;
} sim_timers_t;

/** Arm the timer, or move it when it is armed. */
void sim_timers_set(sim_timers_t *h, sim_timer_t *t, uint64_t due);

/** Disarm the timer; no effect when it is not armed. */
void sim_timers_clear(sim_timers_t *h, sim_timer_t *t);

/** @return the timer that is due first, still armed, or NULL */
sim_timer_t *sim_timers_first(const sim_timers_t *h);

/** Give the heap's memory back. */
void sim_timers_free(sim_timers_t *h);

#endif
