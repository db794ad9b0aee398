/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the load generator is told, and what it counts.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <stdint.h>
#include <stdio.h>

/* What a kind of request is meant to come to. */
typedef enum fate_t {
    FATE_WHOLE = 0, /* status 200 and every event */
    FATE_SLOW,      /* the same, read slowly */
    FATE_ANY,       /* whatever: only a foreign answer is wrong */
    FATE_ABORT      /* the client leaves at a random moment */
} fate_t;

typedef struct kind_t {
    uint64_t weight;
    fate_t fate;
    int stream;
    uint64_t events; /* contents of a whole stream */
    uint64_t after;  /* ms within which an abort comes */
    char text[400];  /* sim:NAME=VALUE ... */
} kind_t;

#define KINDS_MAX 64

typedef struct options_t {
    int port;
    const char *path, *key, *tag, *model;
    uint64_t connections, requests, spread_ms, seed;
    uint64_t window_ms, warmup_ms, timeout_ms;
    FILE *log;
    kind_t kinds[KINDS_MAX];
    size_t n_kinds;
    uint64_t weights; /* of all kinds */
} options_t;

/* Microseconds, in 64 steps an octave: 1.6 % wide at most. */
typedef struct histogram_t {
    uint64_t n, max;
    uint32_t at[64 * 40];
} histogram_t;

void histogram_add(histogram_t *h, uint64_t us);

/** @return the value below which percent of the values lie; 0 when empty */
uint64_t histogram_percentile(const histogram_t *h, double percent);

/** Read the command line; ends the program when it is wrong. */
void options_read(options_t *o, int argc, char **argv);

#endif
