/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A multipart/form-data body, part by part, as slices of it.  Whoever reads
 * it behind the gateway must find the same parts in it: what readers are
 * known to take differently (preambles, folded or doubled fields, bare LF,
 * escapes in names, a boundary that is only the beginning of a line) is
 * malformed here.  Nothing is allocated or copied; each part's head is
 * bounded, and so is their number.
 */
#ifndef AIGW_MULTIPART_H
#define AIGW_MULTIPART_H

#include "slice.h"

#define AIGW_MULTIPART_PARTS 256 /* in a body */
#define AIGW_MULTIPART_HEAD 4096 /* bytes of a part's head */

typedef struct {
    aigw_slice_t name;
    aigw_slice_t value;
    int file; /* it has a file name */
} aigw_multipart_part_t;

typedef struct {
    const char *p; /* behind the boundary that was read last */
    const char *end;
    aigw_slice_t boundary;
    int parts;
} aigw_multipart_t;

/** 1 if a Content-Type is that of a form with parts; NULL is none. */
int aigw_multipart_is(const char *type);

/**
 * @param type the request's Content-Type; its boundary is borrowed
 * @param body borrowed
 * @return AIGW_OK, or AIGW_MALFORMED: no or a bad boundary, or the body does
 *         not begin with it
 */
aigw_rc_t aigw_multipart_start(aigw_multipart_t *mp, const char *type,
                               const char *body, apr_size_t n);

/**
 * @param part set on AIGW_OK
 * @return AIGW_OK a part; AIGW_DONE the form ended, and the body with it;
 *         AIGW_MALFORMED; AIGW_TOO_BIG a bound was passed
 */
aigw_rc_t aigw_multipart_next(aigw_multipart_t *mp,
                              aigw_multipart_part_t *part);

#endif
