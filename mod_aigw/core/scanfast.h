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

/* Both searches go by 16 bytes from the front; the last step reads the last
 * 16 bytes of the range, of which those before p have been seen. */
static inline __m128i aigw_load(const char *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* Bit per byte that is a quote, a backslash or a control character. */
static inline unsigned aigw_string_bits(__m128i v)
{
    __m128i ends = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')),
                                _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
    __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1f)), v);

    return (unsigned)_mm_movemask_epi8(_mm_or_si128(ends, low));
}

/* Bit per byte that is CR or LF. */
static inline unsigned aigw_line_bits(__m128i v)
{
    return (unsigned)_mm_movemask_epi8(
        _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('\r')),
                     _mm_cmpeq_epi8(v, _mm_set1_epi8('\n'))));
}
#endif

/** The first quote, backslash or control character, or @a end. */
static inline const char *aigw_scan_string(const char *p, const char *end)
{
#ifdef __SSE2__
    const char *start = p;
    unsigned bits;

    for (; end - p >= 16; p += 16) {
        bits = aigw_string_bits(aigw_load(p));
        if (bits != 0) {
            return p + __builtin_ctz(bits);
        }
    }
    if (p < end && end - start >= 16) {
        bits = aigw_string_bits(aigw_load(end - 16)) >> (16 - (end - p));
        return bits != 0 ? p + __builtin_ctz(bits) : end;
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
    const char *start = p;
    const __m128i cr = _mm_set1_epi8('\r');
    unsigned bits;

    /* Bytes up to CR are rare in text: one comparison for 64 of them. */
    for (; end - p >= 64; p += 64) {
        __m128i low =
            _mm_min_epu8(_mm_min_epu8(aigw_load(p), aigw_load(p + 16)),
                         _mm_min_epu8(aigw_load(p + 32), aigw_load(p + 48)));

        if (_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(low, cr), low))) {
            break;
        }
    }
    for (; end - p >= 16; p += 16) {
        bits = aigw_line_bits(aigw_load(p));
        if (bits != 0) {
            return p + __builtin_ctz(bits);
        }
    }
    if (p < end && end - start >= 16) {
        bits = aigw_line_bits(aigw_load(end - 16)) >> (16 - (end - p));
        return bits != 0 ? p + __builtin_ctz(bits) : end;
    }
#endif
    while (p < end && *p != '\n' && *p != '\r') {
        ++p;
    }
    return p;
}

#endif
