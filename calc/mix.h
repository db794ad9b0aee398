/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashes for tables in memory: two multiplications for 16 bytes.  Not for
 * anything that is kept or that an enemy may aim at without knowing the
 * seed; what they are is no part of any file format but that of the state
 * file, whose hashes start from a fixed seed.
 */
#ifndef AIGW_CALC_MIX_H
#define AIGW_CALC_MIX_H

#include <string.h>
#include <apr.h>

/** Both halves of the product, folded. */
static inline apr_uint64_t aigw_mix(apr_uint64_t a, apr_uint64_t b)
{
    unsigned __int128 product =
        (unsigned __int128)(a ^ APR_UINT64_C(0x9e3779b97f4a7c15))
        * (b ^ APR_UINT64_C(0xd1b54a32d192ed03));

    return (apr_uint64_t)product ^ (apr_uint64_t)(product >> 64);
}

/** @a n bytes at @a p as a number, n of 0 to 8; not a byte more is read. */
static inline apr_uint64_t aigw_mix_load(const char *p, apr_size_t n)
{
    apr_uint64_t word = 0, high = 0;

    if (n >= 8) {
        memcpy(&word, p, 8);
    }
    else if (n >= 4) {
        memcpy(&word, p, 4);
        memcpy(&high, p + n - 4, 4);
        word |= high << 32;
    }
    else if (n > 0) {
        word = (apr_uint64_t)(unsigned char)p[0]
               | (apr_uint64_t)(unsigned char)p[n / 2] << 8
               | (apr_uint64_t)(unsigned char)p[n - 1] << 16;
    }
    return word;
}

/** A hash of @a n bytes that goes on from @a seed. */
static inline apr_uint64_t aigw_mix_text(const char *p, apr_size_t n,
                                         apr_uint64_t seed)
{
    apr_size_t whole = n;

    for (; n > 16; n -= 16, p += 16) {
        seed = aigw_mix(aigw_mix_load(p, 8) ^ seed, aigw_mix_load(p + 8, 8));
    }
    return aigw_mix(aigw_mix_load(p, n > 8 ? 8 : n) ^ seed,
                    (n > 8 ? aigw_mix_load(p + n - 8, 8) : 0) ^ whole << 56
                        ^ whole);
}

#endif
