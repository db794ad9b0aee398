/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of parameters and the table of faults, and the reading of values
 * for both.  Nothing here acts on a value.
 */
#define _GNU_SOURCE 1
#include "params.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

typedef enum kind_t {
    KIND_NUMBER = 0,
    KIND_RATE,
    KIND_FRAMING,
    KIND_FAULT,
    KIND_TEXT,
    KIND_FILE
} kind_t;

typedef struct row_t {
    const char *name;
    kind_t kind;
    size_t at;
    uint64_t min, max; /* for text: max is the field's size */
    const char *arg, *help;
} row_t;

#define AT(f) offsetof(sim_params_t, f)
#define SIZE(f) sizeof(((sim_params_t *)0)->f)

/* clang-format off */
static const row_t rows[] = {
    {"events", KIND_NUMBER, AT(events), 0, 1000000000, "N",
     "content events of a stream (default: the built-in text once)"},
    {"rate", KIND_RATE, AT(period_ns), 0, 0, "R",
     "events a second and stream, decimals allowed; 0 = as fast as it goes"
     " (default 30)"},
    {"first-byte-ms", KIND_NUMBER, AT(first_byte_ms), 0, 86400000, "MS",
     "from the end of the request to the head (default 200)"},
    {"event-bytes", KIND_NUMBER, AT(event_bytes), 0, 64 << 20, "N",
     "approximate size of a content event; 0 = one word (default 0)"},
    {"json-bytes", KIND_NUMBER, AT(json_bytes), 0, 256 << 20, "N",
     "approximate size of a JSON answer; 0 = `events` words (default 0)"},
    {"burst", KIND_NUMBER, AT(burst), 1, 100000, "N",
     "events a write when unpaced (default 16)"},
    {"status", KIND_NUMBER, AT(status), 200, 599, "N",
     "status of the answer; from 300 on with an error body (default 200)"},
    {"retry-after", KIND_NUMBER, AT(retry_after), 0, 86400, "S",
     "Retry-After (default: 2 with 429, 503 and 529)"},
    {"framing", KIND_FRAMING, AT(framing), 0, 0, "HOW",
     "chunked, length or close (default: chunked streams, length for JSON)"},
    {"split", KIND_NUMBER, AT(split), 0, 1 << 30, "N",
     "write the answer N bytes a write (default 0: whole)"},
    {"split-us", KIND_NUMBER, AT(split_us), 0, 1000000, "US",
     "pause between two such writes (default 100)"},
    {"chunk", KIND_NUMBER, AT(chunk), 0, 1 << 30, "N",
     "largest HTTP chunk (default 0: one chunk an event)"},
    {"prompt", KIND_NUMBER, AT(prompt), 0, UINT64_C(1) << 53, "N",
     "prompt_tokens (default: request body bytes / 4, rounded up)"},
    {"completion", KIND_NUMBER, AT(completion), 0, UINT64_C(1) << 53, "N",
     "completion_tokens (default: number of content events)"},
    {"cached", KIND_NUMBER, AT(cached), 0, UINT64_C(1) << 53, "N",
     "prompt_tokens_details.cached_tokens (default 0)"},
    {"reasoning", KIND_NUMBER, AT(reasoning), 0, UINT64_C(1) << 53, "N",
     "completion_tokens_details.reasoning_tokens (default 0)"},
    {"model-suffix", KIND_TEXT, AT(suffix), 0, SIZE(suffix), "TEXT",
     "appended to the echoed model, -2026-08-06 say (default: nothing)"},
    {"stamp", KIND_NUMBER, AT(stamp), 0, 1, "0|1",
     "1: content carries ~T=<CLOCK_MONOTONIC ns> (default 0)"},
    {"file", KIND_FILE, AT(file), 0, SIZE(file), "NAME",
     "play this file of the --files folder as the body; NAME.http is the"
     " whole answer"},
    {"tag", KIND_TEXT, AT(tag), 0, SIZE(tag), "TEXT",
     "goes into the ledger"},
    {"echo", KIND_TEXT, AT(echo), 0, SIZE(echo), "TEXT",
     "content carries ~E=TEXT#N; with the event's number N from 0 on"},
    {"fault", KIND_FAULT, AT(fault), 0, 0, "NAME",
     "what goes wrong, see below (default: none)"},
    {"fault-at", KIND_NUMBER, AT(fault_at), 0, 1000000000, "N",
     "content events before a fault in the middle (default: half)"},
    {"fault-n", KIND_NUMBER, AT(fault_n), 0, 1 << 24, "N",
     "how much of the fault, where it has an amount"},
};

static const struct fault_t {
    sim_fault_t fault;
    const char *name;
    int flags;
    const char *help;
} faults[] = {
    {SIM_FAULT_REFUSE_RESET, "refuse-reset", 0,
     "RST instead of an answer"},
    {SIM_FAULT_CLOSE_BEFORE_HEAD, "close-before-head", 0,
     "FIN instead of an answer"},
    {SIM_FAULT_SILENCE_BEFORE_HEAD, "silence-before-head", 0,
     "no byte, connection held until the peer leaves"},
    {SIM_FAULT_SILENCE_MID_STREAM, "silence-mid-stream", 0,
     "half the answer, then silence until the peer leaves"},
    {SIM_FAULT_CUT_MID_HEAD, "cut-mid-head", 0,
     "half the head, then FIN"},
    {SIM_FAULT_CUT_MID_CHUNK, "cut-mid-chunk", SIM_FAULT_F_CHUNKED,
     "half a chunk, then FIN"},
    {SIM_FAULT_CUT_MID_EVENT, "cut-mid-event", 0,
     "half an event in a whole chunk, then FIN without last chunk"},
    {SIM_FAULT_END_MID_EVENT, "end-mid-event", SIM_FAULT_F_STREAM,
     "half an event, then the framing's proper end"},
    {SIM_FAULT_CUT_BEFORE_LAST_CHUNK, "cut-before-last-chunk",
     SIM_FAULT_F_CHUNKED, "the whole body, then FIN without last chunk"},
    {SIM_FAULT_RESET_MID_STREAM, "reset-mid-stream", 0,
     "half the answer, then RST"},
    {SIM_FAULT_BAD_CHUNK_SIZE, "bad-chunk-size", SIM_FAULT_F_CHUNKED,
     "a chunk size that is no number, half-way; then FIN"},
    {SIM_FAULT_HEAD_TOO_LARGE, "head-too-large", 0,
     "fault-n bytes of header fields (default 131072)"},
    {SIM_FAULT_BAD_STATUS_LINE, "bad-status-line", 0,
     "HTTP/banana instead of HTTP/1.1"},
    {SIM_FAULT_CTL_IN_FIELD, "ctl-in-field", 0,
     "a field value with a bare CR and a NUL"},
    {SIM_FAULT_TE_AND_CL, "te-and-cl", SIM_FAULT_F_CHUNKED,
     "Transfer-Encoding and Content-Length; body chunked"},
    {SIM_FAULT_TWO_LENGTHS, "two-lengths", SIM_FAULT_F_LENGTH,
     "the right Content-Length, then another one"},
    {SIM_FAULT_SHORT_LENGTH, "short-length", SIM_FAULT_F_LENGTH,
     "Content-Length fault-n below the truth (default: half)"},
    {SIM_FAULT_LONG_LENGTH, "long-length", SIM_FAULT_F_LENGTH,
     "Content-Length fault-n above the truth (default 100), then FIN"},
    {SIM_FAULT_ONE_1XX, "one-1xx", 0,
     "one 103 before the answer"},
    {SIM_FAULT_FLOOD_1XX, "flood-1xx", 0,
     "fault-n times 102 before the answer (default 10000)"},
    {SIM_FAULT_ERROR_EVENT_FIRST, "error-event-first", SIM_FAULT_F_STREAM,
     "an error event instead of all content; clean end, no [DONE]"},
    {SIM_FAULT_ERROR_EVENT_MID, "error-event-mid", SIM_FAULT_F_STREAM,
     "an error event half-way; clean end, no [DONE]"},
    {SIM_FAULT_EXTRA_BYTES, "extra-bytes", 0,
     "a second answer nobody asked for, in the last write"},
    {SIM_FAULT_EXTRA_BYTES_LATE, "extra-bytes-late", 0,
     "the same, fault-n ms later (default 20)"},
    {SIM_FAULT_CLOSE_WHEN_IDLE, "close-when-idle", 0,
     "FIN fault-n ms after a whole answer (default 50)"},
    {SIM_FAULT_CLOSE_ON_REUSE, "close-on-reuse", 0,
     "a whole answer; FIN at the next request on that connection"},
    {SIM_FAULT_CHUNK_EXT, "chunk-ext", SIM_FAULT_F_CHUNKED,
     "each chunk has an extension (allowed by the RFC)"},
    {SIM_FAULT_TRAILERS, "trailers", SIM_FAULT_F_CHUNKED,
     "trailer fields after the last chunk (allowed by the RFC)"},
    {SIM_FAULT_ONE_BYTE, "one-byte", 0, "the same as split=1"},
    {SIM_FAULT_NO_DONE, "no-done", SIM_FAULT_F_STREAM,
     "no [DONE]; clean end"},
    {SIM_FAULT_ENDLESS, "endless", SIM_FAULT_F_STREAM,
     "content without end"},
};
/* clang-format on */

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

void sim_params_init(sim_params_t *p)
{
    memset(p, 0, sizeof(*p));
    p->events = sim_text_words();
    p->period_ns = 1000000000 / 30;
    p->first_byte_ms = 200;
    p->burst = 16;
    p->status = 200;
    p->split_us = 100;
    p->retry_after = p->prompt = p->completion = SIM_UNSET;
    p->fault_at = p->fault_n = SIM_UNSET;
}

static const row_t *find_row(sim_slice_t name)
{
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        if (sim_slice_is(name, rows[i].name)) {
            return &rows[i];
        }
    }
    return NULL;
}

int sim_params_known(const char *name)
{
    sim_slice_t s = {name, strlen(name)};

    return find_row(s) != NULL;
}

static int read_number(const row_t *row, const char *v, uint64_t *out)
{
    char *end;
    unsigned long long n;

    errno = 0;
    n = strtoull(v, &end, 10);
    if (!isdigit((unsigned char)*v) || *end || errno || n < row->min
        || n > row->max) {
        return -1;
    }
    *out = n;
    return 0;
}

static int read_rate(const char *v, uint64_t *out)
{
    char *end;
    double r;

    if (strspn(v, "0123456789.") != strlen(v) || !*v) {
        return -1;
    }
    r = strtod(v, &end);
    if (*end || r > 1e6 || (r > 0 && r < 0.001)) {
        return -1;
    }
    *out = r > 0 ? (uint64_t)(1e9 / r) : 0;
    return 0;
}

static int read_framing(const char *v, uint64_t *out)
{
    static const char *const names[] = {"auto", "chunked", "length", "close"};
    size_t i;

    for (i = 0; i < COUNT(names); i++) {
        if (strcmp(v, names[i]) == 0) {
            *out = i;
            return 0;
        }
    }
    return -1;
}

static int read_fault(const char *v, uint64_t *out)
{
    size_t i;

    for (i = 0; i < COUNT(faults); i++) {
        if (strcmp(v, faults[i].name) == 0) {
            *out = faults[i].fault;
            return 0;
        }
    }
    *out = SIM_FAULT_NONE;
    return strcmp(v, "none") == 0 ? 0 : -1;
}

static int read_value(const row_t *row, const char *v, void *field)
{
    switch (row->kind) {
    case KIND_NUMBER:
        return read_number(row, v, field);
    case KIND_RATE:
        return read_rate(v, field);
    case KIND_FRAMING:
        return read_framing(v, field);
    case KIND_FAULT:
        return read_fault(v, field);
    case KIND_FILE:
        if (strchr(v, '/') || strstr(v, "..") || !*v) {
            return -1;
        }
        /* fall through */
    case KIND_TEXT:
        if (strlen(v) >= row->max) {
            return -1;
        }
        memcpy(field, v, strlen(v) + 1);
        return 0;
    }
    return -1;
}

int sim_params_set(sim_params_t *p, sim_slice_t name, sim_slice_t value,
                   sim_buf_t *err)
{
    const row_t *row = find_row(name);
    char v[256];
    int n = (int)(name.n < 64 ? name.n : 64);

    if (!row) {
        sim_buf_fmt(err, "no parameter is called '%.*s'", n, name.p);
        return -1;
    }
    snprintf(v, sizeof(v), "%.*s", (int)(value.n < 250 ? value.n : 250),
             value.p);
    if (read_value(row, v, (char *)p + row->at) != 0) {
        sim_buf_fmt(err, "'%s' is not allowed for '%s': %s", v, row->name,
                    row->help);
        return -1;
    }
    return 0;
}

static size_t span(const char *p, const char *end, const char *extra)
{
    const char *s = p;

    while (s < end && (isalnum((unsigned char)*s) || strchr(extra, *s))
           && *s) {
        s++;
    }
    return (size_t)(s - p);
}

int sim_params_scan(sim_params_t *p, sim_slice_t text, sim_buf_t *err)
{
    const char *s = text.p, *end = text.p + text.n;

    while (s && s < end && (s = memmem(s, (size_t)(end - s), "sim:", 4))) {
        sim_slice_t name, value;

        name.p = s + 4;
        name.n = span(name.p, end, "-");
        s = name.p + name.n;
        if (!name.n || s == end || *s != '=') {
            continue;
        }
        value.p = s + 1;
        value.n = span(value.p, end, "._-+~/");
        s = value.p + value.n;
        /* a full stop that ends the sentence is not part of the value */
        while (value.n && value.p[value.n - 1] == '.') {
            value.n--;
        }
        if (sim_params_set(p, name, value, err) != 0) {
            return -1;
        }
    }
    return 0;
}

const char *sim_fault_name(uint64_t fault)
{
    size_t i;

    for (i = 0; i < COUNT(faults); i++) {
        if (faults[i].fault == fault) {
            return faults[i].name;
        }
    }
    return NULL;
}

int sim_fault_flags(uint64_t fault)
{
    size_t i;

    for (i = 0; i < COUNT(faults); i++) {
        if (faults[i].fault == fault) {
            return faults[i].flags;
        }
    }
    return 0;
}

void sim_params_help(FILE *to)
{
    size_t i;

    fputs("\nParameters, as --NAME VALUE for all requests, or as"
          " sim:NAME=VALUE in the query\nor anywhere in the body of one"
          " request:\n",
          to);
    for (i = 0; i < COUNT(rows); i++) {
        fprintf(to, "  %-13s %-5s %s\n", rows[i].name, rows[i].arg,
                rows[i].help);
    }
    fputs("\nFaults:\n", to);
    for (i = 0; i < COUNT(faults); i++) {
        fprintf(to, "  %-22s %s\n", faults[i].name, faults[i].help);
    }
}
