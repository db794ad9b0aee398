/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event-stream grammar of the WHATWG HTML standard, as far as a meter
 * needs it: which bytes are data of which event, and where events end.  It
 * takes LF, CRLF and bare CR, a leading byte order mark, comments, unknown
 * fields, several data lines, and lines of any length, with a state of a few
 * bytes; it never collects an event and never decodes a character.
 *
 * One thing differs from the standard on purpose: an event that the end of
 * the stream cuts off is reported, because its tokens were spent.
 */
#ifndef AIGW_SSE_H
#define AIGW_SSE_H

#include "slice.h"

typedef enum {
    AIGW_SSE_MORE = 0, /* *p == end: more bytes are needed */
    AIGW_SSE_START,    /* if asked for: *p stands on the first byte of an
                          event's first field; comments and blank lines
                          before it are over */
    AIGW_SSE_DATA,     /* run holds bytes of the event's data */
    AIGW_SSE_END       /* the event ended; *p is after its blank line */
} aigw_sse_token_t;

typedef struct {
    unsigned char state;
    unsigned char name;     /* bytes of "data" matched, or of the mark */
    unsigned char after_cr; /* an LF that comes next belongs to that CR */
    unsigned char in_event; /* 1: a field of an event was seen; 2: a bare
                               object was */
    unsigned char lines;    /* data lines of this event: 0, 1, 2 = more */
    unsigned char tell_start;
    unsigned char bare_json; /* 1: a line that begins like an object where no
                                event is open begins one, whose data is all
                                lines up to a blank one; the user sets it */
} aigw_sse_t;

/** @param tell_start 1 if AIGW_SSE_START is wanted */
void aigw_sse_init(aigw_sse_t *s, int tell_start);

/**
 * Take the next token out of [*p, end) and move *p past it.
 * @param run set on AIGW_SSE_DATA: a slice of the input, or of a static LF
 *            where two data lines join; never empty
 */
aigw_sse_token_t aigw_sse_next(aigw_sse_t *s, const char **p, const char *end,
                               aigw_slice_t *run);

/** The stream has ended: AIGW_SSE_END if that ends an event, else MORE. */
aigw_sse_token_t aigw_sse_finish(aigw_sse_t *s);

/** 1 between events: no line and no event is open. */
int aigw_sse_at_boundary(const aigw_sse_t *s);

#endif
