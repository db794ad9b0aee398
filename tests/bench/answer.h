/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One answer of a gateway as its bytes come in: framing, events, and whether
 * each of them belongs to the request that was asked.  Strict where a client
 * would be harmed: a wrong frame, a foreign mark and a mark out of order are
 * all wrong.  It knows no socket and no clock.
 */
#ifndef BENCH_ANSWER_H
#define BENCH_ANSWER_H

#include <stddef.h>
#include <stdint.h>

typedef enum answer_state_t {
    ANSWER_HEAD = 0,
    ANSWER_COUNTED,
    ANSWER_CHUNK_SIZE,
    ANSWER_CHUNK,
    ANSWER_CHUNK_END,
    ANSWER_TRAILER,
    ANSWER_UNTIL_CLOSE,
    ANSWER_WHOLE,
    ANSWER_BAD
} answer_state_t;

typedef struct answer_t {
    answer_state_t state;
    int status;          /* 0: no head yet */
    int keep;            /* the connection may be used again */
    uint64_t left;       /* of the body, or of the chunk */
    const char *mark;    /* what ~E= must name; borrowed */
    uint64_t marks;      /* right ones, in order */
    uint64_t foreign;    /* those of another request, or out of order */
    uint64_t events;     /* lines that begin with "data: {" */
    uint64_t body_bytes; /* after the framing was taken away */
    int ended;           /* data: [DONE] came */
    char id[72];         /* x-request-id */
    void (*stamp)(void *ctx, uint64_t ns); /* for each ~T=; may be NULL */
    void *ctx;
    int framing;
    char line[4096]; /* of the protocol */
    size_t line_n;
    char *text; /* malloc'd: the body's unended line */
    size_t n, size;
} answer_t;

/** Forget the last answer and wait for one that carries mark. */
void answer_begin(answer_t *a, const char *mark);

/**
 * Take what was read.
 * @return how many bytes belong to this answer; what is behind them was sent
 *         unasked.  a->state says where it stands.
 */
size_t answer_feed(answer_t *a, const char *p, size_t n);

/** The peer has closed: ANSWER_UNTIL_CLOSE becomes ANSWER_WHOLE. */
void answer_eof(answer_t *a);

/** Free what the answer holds. */
void answer_free(answer_t *a);

#endif
