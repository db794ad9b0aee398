/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer side of HTTP/1.1 (RFC 9112): one response head, and its body
 * decoded in place.  Strict where laxness would let two readers disagree
 * (smuggling): CR, LF or NUL inside a field, Transfer-Encoding with
 * Content-Length, two different lengths, obs-fold, a bad status line or
 * chunk size are all malformed.  It never copies and never allocates; it
 * does not read sockets and knows no limits but those given to it.
 */
#ifndef AIGW_HTTP1_H
#define AIGW_HTTP1_H

#include "slice.h"

#define AIGW_HTTP1_FIELDS 128

typedef enum {
    AIGW_FRAME_NONE = 0, /* no body: 204, 304, 1xx, Content-Length: 0 */
    AIGW_FRAME_CHUNKED,
    AIGW_FRAME_LENGTH,
    AIGW_FRAME_CLOSE     /* until the connection closes */
} aigw_frame_t;

typedef struct {
    int status;              /* 100..599 (three digits) */
    int minor;               /* HTTP/1.minor */
    aigw_frame_t frame;
    apr_uint64_t length;     /* of AIGW_FRAME_LENGTH */
    int keep_alive;          /* the connection may carry another request */
    apr_size_t size;         /* bytes of the head, blank line included */
    int n_fields;
    struct {
        aigw_slice_t name, value; /* value without outer white space */
    } field[AIGW_HTTP1_FIELDS];
} aigw_http1_head_t;

/**
 * Parse a response head at the start of @a buf.
 * @param scanned in/out: how far an earlier call has already looked for the
 *        blank line (0 at first), so that a head that comes byte by byte
 *        costs linear time
 * @param head slices point into @a buf
 * @return AIGW_OK       parsed; head->size says where the body starts
 *         AIGW_AGAIN    the blank line is not there yet; the caller bounds
 *                       how much it collects
 *         AIGW_MALFORMED not HTTP/1.x, or against the rules above
 *         AIGW_TOO_BIG  more than AIGW_HTTP1_FIELDS fields
 */
aigw_rc_t aigw_http1_head(const char *buf, apr_size_t n, apr_size_t *scanned,
                          aigw_http1_head_t *head);

/** The value of the first field of that name (any case); p NULL if absent. */
aigw_slice_t aigw_http1_field(const aigw_http1_head_t *head,
                              const char *name);

/** Body decoder; lives in the exchange, a few dozen bytes. */
typedef struct {
    aigw_frame_t frame;
    int state;               /* of the chunk grammar */
    apr_uint64_t left;       /* of the chunk or of the length */
    unsigned line;           /* bytes of the current size or trailer line */
} aigw_http1_body_t;

/** Start decoding the body that @a head announced. */
void aigw_http1_body_init(aigw_http1_body_t *b,
                          const aigw_http1_head_t *head);

/**
 * Take the next run of body bytes out of [*p, end). Chunk extensions and
 * trailers are read over (a line over 4096 bytes is malformed).
 * @param run on AIGW_OK a slice of the input, never empty
 * @return AIGW_OK        run is set, *p moved past it: call again
 *         AIGW_AGAIN     *p == end, more to come
 *         AIGW_DONE      the body ended at *p exactly; bytes from there on
 *                        are not part of this answer
 *         AIGW_MALFORMED the framing is broken at *p
 */
aigw_rc_t aigw_http1_body_next(aigw_http1_body_t *b, const char **p,
                               const char *end, aigw_slice_t *run);

/**
 * The connection has ended.
 * @return AIGW_DONE if that ends the body rightly (close-delimited, or
 *         already complete), else AIGW_TRUNCATED
 */
aigw_rc_t aigw_http1_body_eof(const aigw_http1_body_t *b);

#endif
