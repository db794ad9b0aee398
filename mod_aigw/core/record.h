/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request's usage record and its one line of JSON.  The module fills and
 * writes it, aigw-calc reads it back: this is the only place that knows the
 * form.  docs/usage-log.md is its specification.
 *
 * Strings are escaped so that a request is one line and nothing in it can
 * forge another: bytes under 0x20, 0x7f, quote, backslash and invalid UTF-8
 * never leave as they came.  No key, no prompt, no answer text has a field.
 */
#ifndef AIGW_RECORD_H
#define AIGW_RECORD_H

#include <apr_time.h>
#include "slice.h"
#include "usage.h"
#include "decimal.h"
#include "reason.h"

/** A line never passes this (PIPE_BUF on Linux): one write(2) is atomic. */
#define AIGW_RECORD_MAX 4096

typedef enum {
    AIGW_END_NONE = 0,  /* not yet known */
    AIGW_END_COMPLETE,
    AIGW_END_TRUNCATED,
    AIGW_END_ERROR,
    AIGW_END_CLIENT_ABORT,
    AIGW_END_TIMEOUT,
    AIGW_END_REFUSED
} aigw_end_t;

/** Anomalies, as bits; names in record.c. */
#define AIGW_FLAG_BAD_JSON      (1u << 0)  /* "bad_json" */
#define AIGW_FLAG_BAD_NUMBER    (1u << 1)  /* "bad_number" */
#define AIGW_FLAG_CACHE_OUTSIDE (1u << 2)  /* "cache_outside_prompt" */
#define AIGW_FLAG_ODD_TOTAL     (1u << 3)  /* "odd_total" */
#define AIGW_FLAG_NO_END        (1u << 4)  /* "no_end_marker" */
#define AIGW_FLAG_ENCODED       (1u << 5)  /* "encoded_answer" */
#define AIGW_FLAG_SYNC          (1u << 6)  /* "sync": a worker drove it */
#define AIGW_FLAG_USAGE_HIDDEN  (1u << 7)  /* "usage_hidden" */
#define AIGW_FLAG_REUSED        (1u << 8)  /* "reused": pooled connection */
#define AIGW_FLAG_CUT           (1u << 9)  /* "cut": a string was shortened;
                                              the writer sets it itself */
#define AIGW_FLAG_DRAINED       (1u << 10) /* "drained": read on after the
                                              client had left */
#define AIGW_FLAG_OTHER_MODEL   (1u << 11) /* "other_model": passes of
                                              another model are not counted */
#define AIGW_FLAG_MAX           12

/** Strings are borrowed: NULL or "" = absent; valid UTF-8 is not required.
 * Times are microseconds; -1 = absent for the counters that may be so.
 * reason is AIGW_REASON_MAX after reading a word this version does not
 * know; it is never written. */
typedef struct {
    apr_time_t ts;           /* 0 absent */
    const char *id, *host, *tenant, *key, *client, *api;
    int stream;              /* -1 absent, 0, 1 */
    const char *model, *served, *upstream;
    int tries;               /* 0 absent */
    int status;              /* what the client got; 0 absent */
    int upstream_status;     /* 0 absent */
    const char *upstream_id;
    aigw_end_t end;
    const char *finish;
    aigw_reason_t reason;
    const char *error;
    aigw_usage_t usage;
    const char *tier;
    int has_cost;
    aigw_money_t cost;       /* in units of 10^-15 currency */
    const char *currency, *cost_stated, *prices;
    apr_int64_t first_us, total_us, own_us; /* -1 absent */
    apr_int64_t events, bytes_in, bytes_out; /* -1 absent */
    apr_uint32_t flags;
} aigw_record_t;

/** All fields absent. */
void aigw_record_init(aigw_record_t *rec);

/** "complete", "truncated", ...; "" for none. Static text. */
const char *aigw_end_name(aigw_end_t end);

/**
 * Write the line, its newline included, keys in the documented order, absent
 * fields left out. Long strings are cut (at a whole character, and with the
 * flag "cut") so that the line fits; the numbers are never lost. Nothing is
 * allocated; any thread may call it.
 * @param buf room for AIGW_RECORD_MAX bytes; no NUL is written
 * @return length
 */
apr_size_t aigw_record_write(const aigw_record_t *rec, char *buf);

/**
 * Call @a fn with each present field as text ("tenant", "acme"), in the
 * order of the line: the notes for LogFormat are made of it. Strings come as
 * they are in @a rec, unescaped and whole; flags come as one text with commas;
 * "v" does not come. @a value dies with the call.
 */
void aigw_record_each(const aigw_record_t *rec,
                      void (*fn)(void *ctx, const char *name,
                                 const char *value), void *ctx);

/**
 * Read "2026-11-30T17:02:03.123456Z" (UTC; 0 to 6 digits of a second; from
 * 1970 on).
 * @return AIGW_OK, or AIGW_MALFORMED (*when untouched)
 */
aigw_rc_t aigw_record_time(const char *text, apr_time_t *when);

/**
 * Read one line back (any key order; unknown keys are read over, null is
 * absent). "v":1 and "ts" must be there; a key that stands twice, a count
 * that is not a whole number of 0 to 2^53, a negative cost and a cost without
 * its currency are malformed.
 * @param line without its newline
 * @param pool strings of @a rec are allocated from it
 * @param why  on failure a phrase that names the key or the column; static
 *             or from @a pool; may quote bytes of the line
 * @return AIGW_OK, or AIGW_MALFORMED
 */
aigw_rc_t aigw_record_read(aigw_slice_t line, aigw_record_t *rec,
                           apr_pool_t *pool, const char **why);

#endif
