/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A byte buffer that grows at the end and is consumed at the front.  It
 * knows nothing of what the bytes mean, except how to write them inside a
 * JSON string.  Running out of memory ends the program: a simulator that
 * goes on with half an answer would make tests lie.
 */
#ifndef SIM_BUF_H
#define SIM_BUF_H

#include <stddef.h>

typedef struct sim_buf_t {
    char *p;    /* malloc'd, owned; NULL while cap is 0 */
    size_t off; /* consumed up to here */
    size_t len; /* filled up to here */
    size_t cap;
} sim_buf_t;

/** A view of bytes that somebody else owns. */
typedef struct sim_slice_t {
    const char *p;
    size_t n;
} sim_slice_t;

#define SIM_BUF_AT(b) ((b)->p + (b)->off)
#define SIM_BUF_SIZE(b) ((b)->len - (b)->off)

/** Append n bytes. */
void sim_buf_add(sim_buf_t *b, const void *data, size_t n);

/** Append a C string. */
void sim_buf_str(sim_buf_t *b, const char *s);

/** Append formatted text; one call adds at most 1 KiB. */
void sim_buf_fmt(sim_buf_t *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/**
 * Append bytes as the inside of a JSON string, without the quotes.
 * @param utf8 nonzero: bytes from 0x80 on are UTF-8 and copied;
 *             0: each of them becomes \u00XX, so that no byte is lost
 */
void sim_buf_json(sim_buf_t *b, const char *p, size_t n, int utf8);

/** Consume n bytes at the front; an emptied buffer that had grown large
 *  gives its memory back, so that ten thousand idle streams stay small. */
void sim_buf_drop(sim_buf_t *b, size_t n);

/** Give the memory back; the buffer is empty and usable afterwards. */
void sim_buf_free(sim_buf_t *b);

/** @return 1 when the slice equals the C string, else 0 */
int sim_slice_is(sim_slice_t s, const char *text);

/** As sim_slice_is, without regard to ASCII case. */
int sim_slice_case(sim_slice_t s, const char *text);

#endif
