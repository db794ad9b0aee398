/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two searches that a memchr() cannot do, 16 bytes a step where SSE2 is
 * there: they carry the cost of metering.  Neither reads a byte outside
 * [p, end).
 */
#ifndef AIGW_SCANFAST_H
#define AIGW_SCANFAST_H

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/** The first quote, backslash or control character, or @a end. */
static inline const char *aigw_scan_string(const char *p, const char *end)
{
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i slash = _mm_set1_epi8('\\');
    const __m128i last = _mm_set1_epi8(0x1f);

    for (; end - p >= 16; p += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i hit = _mm_or_si128(
            _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)),
            _mm_cmpeq_epi8(_mm_min_epu8(v, last), v));
        unsigned bits = (unsigned)_mm_movemask_epi8(hit);

        if (bits != 0) {
            return p + __builtin_ctz(bits);
        }
    }
#endif
    while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p > 0x1f) {
        ++p;
    }
    return p;
}

/** The first CR or LF, or @a end. */
static inline const char *aigw_scan_line(const char *p, const char *end)
{
#ifdef __SSE2__
    const __m128i cr = _mm_set1_epi8('\r');
    const __m128i lf = _mm_set1_epi8('\n');

    /* Bytes up to CR are rare in text: one comparison for 64 of them. */
    for (; end - p >= 64; p += 64) {
        const __m128i *at = (const __m128i *)(const void *)p;
        __m128i low = _mm_min_epu8(
            _mm_min_epu8(_mm_loadu_si128(at), _mm_loadu_si128(at + 1)),
            _mm_min_epu8(_mm_loadu_si128(at + 2), _mm_loadu_si128(at + 3)));

        if (_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(low, cr), low))) {
            break;
        }
    }
    for (; end - p >= 16; p += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        unsigned bits = (unsigned)_mm_movemask_epi8(
            _mm_or_si128(_mm_cmpeq_epi8(v, cr), _mm_cmpeq_epi8(v, lf)));

        if (bits != 0) {
            return p + __builtin_ctz(bits);
        }
    }
#endif
    while (p < end && *p != '\n' && *p != '\r') {
        ++p;
    }
    return p;
}

#endif
