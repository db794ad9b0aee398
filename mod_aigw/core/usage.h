/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The normalised token counts of one answer: five disjoint input buckets and
 * one output bucket, each priced once; what lies inside a bucket (reasoning,
 * audio, image) only changes its rate.  Unknown is not zero: a field counts
 * only when its bit in `known` is set.
 */
#ifndef AIGW_USAGE_H
#define AIGW_USAGE_H

#include <apr.h>

typedef enum {
    AIGW_U_INPUT_UNCACHED = 0,
    AIGW_U_CACHE_READ,
    AIGW_U_CACHE_WRITE_5M,
    AIGW_U_CACHE_WRITE_1H,
    AIGW_U_CACHE_WRITE_OTHER,
    AIGW_U_OUTPUT,
    AIGW_U_REASONING,    /* part of output */
    AIGW_U_INPUT_AUDIO,  /* parts of the input */
    AIGW_U_INPUT_IMAGE,
    AIGW_U_OUTPUT_AUDIO, /* parts of output */
    AIGW_U_OUTPUT_IMAGE,
    AIGW_U_SEARCHES,     /* not tokens */
    AIGW_U_IMAGES,
    AIGW_U_AUDIO_SECONDS,
    AIGW_U_MAX
} aigw_usage_field_t;

typedef enum {
    AIGW_USAGE_NONE = 0,  /* the upstream stated nothing */
    AIGW_USAGE_REPORTED,  /* final numbers of the upstream */
    AIGW_USAGE_PARTIAL,   /* a snapshot before the end: a lower bound */
    AIGW_USAGE_ESTIMATED  /* ours, never mixed with reported numbers */
} aigw_usage_source_t;

typedef struct {
    apr_uint64_t n[AIGW_U_MAX]; /* each 0..2^53 */
    apr_uint32_t known;         /* bit (1 << field) */
    aigw_usage_source_t source;
} aigw_usage_t;

/** The record's key for a field ("input_uncached", ...): static text. */
const char *aigw_usage_field_name(aigw_usage_field_t field);

/** "none", "reported", "partial", "estimated": static text. */
const char *aigw_usage_source_name(aigw_usage_source_t source);

/** 1 if the field is known; its value goes to *value (0 if unknown). */
int aigw_usage_get(const aigw_usage_t *u, aigw_usage_field_t field,
                   apr_uint64_t *value);

/** State a field. Values over 2^53 are the caller's to reject before. */
void aigw_usage_set(aigw_usage_t *u, aigw_usage_field_t field,
                    apr_uint64_t value);

#endif
