/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeding a body to a scanner in pieces: whole, at every place in two, in
 * steps, at random.  Each piece is a copy of its own of exactly its size, so
 * that a sanitizer or valgrind sees a read outside it, and dies before the
 * next one is fed, so that nothing can be kept by pointer.
 */
#ifndef AIGW_TEST_PIECES_H
#define AIGW_TEST_PIECES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>

/** Bodies up to this size are cut at every place. */
#define PIECES_EVERY 16384

typedef struct {
    int phase;        /* 0 whole, 1 in two, 2 in steps, 3 at random, 4 end */
    size_t at;        /* where it is cut, or the size of a step */
    uint32_t random;  /* seed of phase 3; 0 at first */
} pieces_t;

typedef void pieces_fn(void *ctx, const char *p, size_t n);

static inline uint32_t pieces_random(uint32_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 17;
    *x ^= *x << 5;
    return *x;
}

/** The next way to cut a body of @a n bytes; 0 if there is none. Begin with
 * a zeroed *s, which is the body in one piece. */
static inline int pieces_next(pieces_t *s, size_t n)
{
    ++s->at;
    if (s->phase == 0 || (s->phase == 1 && n > PIECES_EVERY)) {
        s->phase = n > PIECES_EVERY ? 2 : 1;
        s->at = 1;
    }
    if (s->phase == 1 && s->at >= n) {
        s->phase = 2;
        s->at = 1;
    }
    if (s->phase == 2 && s->at > 20) {
        s->phase = 3;
        s->at = 0;
    }
    s->random = 2463534242u + (uint32_t)s->at * 977;
    return s->phase < 3 || s->at < (n > PIECES_EVERY ? 40 : 200);
}

static inline size_t pieces_size(pieces_t *s, size_t done)
{
    switch (s->phase) {
    case 1:
        return done == 0 ? s->at : (size_t)-1;
    case 2:
        return s->at;
    case 3:
        return 1 + pieces_random(&s->random) % (1u << (s->at % 12));
    default:
        return (size_t)-1;
    }
}

/** Feed a body, cut as *s says. */
static inline void pieces_feed(const pieces_t *s, const char *body, size_t n,
                               pieces_fn *fn, void *ctx)
{
    pieces_t way = *s;
    size_t done = 0;

    while (done < n) {
        size_t size = pieces_size(&way, done);
        char *copy;

        size = size > n - done ? n - done : size;
        copy = malloc(size);
        memcpy(copy, body + done, size);
        fn(ctx, copy, size);
        free(copy);
        done += size;
    }
}

/** A file of the test data; the caller frees it. NULL if it can't be read. */
static inline char *pieces_file(const char *folder, const char *name,
                                size_t *n)
{
    char path[1024];
    char *body;
    long size;
    FILE *f;

    *n = 0;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "rb");
    if (f == NULL) {
        return NULL;
    }
    fseek(f, 0, SEEK_END);
    size = ftell(f);
    rewind(f);
    body = malloc((size_t)size + 1);
    *n = fread(body, 1, (size_t)size, f);
    body[*n] = '\0';
    fclose(f);
    return body;
}

#endif
