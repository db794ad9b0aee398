/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight decimal digits at once, without a branch for each: how many there are
 * is what no processor guesses.  Only where the first byte in memory is the
 * lowest; elsewhere callers go digit by digit.
 */
#ifndef AIGW_CALC_DIGITS_H
#define AIGW_CALC_DIGITS_H

#include <string.h>
#include <apr.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define AIGW_DIGITS_8

/** Digits at the beginning of 8 bytes: how many (0 to 8; at 8 there may be
 * more), and their value. */
static inline unsigned aigw_digits_8(const char *p, apr_uint64_t *value)
{
    const apr_uint64_t ones = APR_UINT64_C(0x0101010101010101);
    apr_uint64_t x, other;
    unsigned n;

    memcpy(&x, p, 8);
    x ^= ones * 0x30;
    other = (x | (x + ones * 0x76)) & ones * 0x80;
    n = other ? (unsigned)__builtin_ctzll(other) / 8 : 8;
    if (n == 0) {
        return 0;
    }
    x <<= (8 - n) * 8;
    x = x * 10 + (x >> 8); /* pairs, in every other byte */
    *value = ((x & APR_UINT64_C(0x000000ff000000ff))
                  * APR_UINT64_C(0x000f424000000064)
              + (x >> 16 & APR_UINT64_C(0x000000ff000000ff))
                    * APR_UINT64_C(0x0000271000000001))
             >> 32;
    *value &= 0xffffffff;
    return n;
}
#endif

#endif
