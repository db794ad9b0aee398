/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A view of bytes that somebody else owns, and the word in which floor 0
 * answers.  A slice never owns and never ends with a NUL; it dies with the
 * buffer that it points into.
 */
#ifndef AIGW_SLICE_H
#define AIGW_SLICE_H

#include <string.h>
#include <apr.h>

typedef struct {
    const char *p;
    apr_size_t n;
} aigw_slice_t;

/**
 * What a function of ours decided.  System errors are apr_status_t, HTTP
 * statuses live in reason.c: the three are never mixed.
 */
typedef enum {
    AIGW_OK = 0,     /* done what was asked */
    AIGW_AGAIN,      /* nothing wrong: more bytes (or readiness) are needed */
    AIGW_DONE,       /* nothing more will come */
    AIGW_MALFORMED,  /* the input breaks its grammar */
    AIGW_TOO_BIG,    /* the input passes a bound */
    AIGW_TRUNCATED,  /* the input ended before its end */
    AIGW_REFUSED,    /* our rules say no: the reason is in the exchange */
    AIGW_FAILED      /* the peer or the system failed */
} aigw_rc_t;

static inline aigw_slice_t aigw_slice(const char *p, apr_size_t n)
{
    aigw_slice_t s;
    s.p = p;
    s.n = n;
    return s;
}

/** 1 if the slice holds exactly the bytes of the C string @a text. */
static inline int aigw_slice_is(aigw_slice_t s, const char *text)
{
    apr_size_t n = strlen(text);
    return s.n == n && memcmp(s.p, text, n) == 0;
}

/** As aigw_slice_is(), ASCII letters compared without case. */
int aigw_slice_is_nocase(aigw_slice_t s, const char *text);

/**
 * Read an unsigned decimal that fills the whole slice: digits only.
 * @return AIGW_OK, AIGW_MALFORMED (empty, or another byte), AIGW_TOO_BIG
 */
aigw_rc_t aigw_slice_u64(aigw_slice_t s, apr_uint64_t *value);

#endif
