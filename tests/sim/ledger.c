/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ledger lines and counters as JSON.  Keys stand in a fixed order; bytes
 * from 0x80 on in heads are written as \u00XX, so that none is lost.
 */
#include "ledger.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"

static void add_text(sim_buf_t *b, const char *key, sim_slice_t v)
{
    sim_buf_fmt(b, ",\"%s\":\"", key);
    sim_buf_json(b, v.p, v.n, 0);
    sim_buf_add(b, "\"", 1);
}

static void add_string(sim_buf_t *b, const char *key, const char *v)
{
    sim_slice_t s = {v, strlen(v)};

    add_text(b, key, s);
}

static void add_number(sim_buf_t *b, const char *key, uint64_t n)
{
    sim_buf_fmt(b, ",\"%s\":%" PRIu64, key, n);
}

static void add_quoted(sim_buf_t *b, sim_slice_t v)
{
    sim_buf_add(b, "\"", 1);
    sim_buf_json(b, v.p, v.n, 0);
    sim_buf_add(b, "\"", 1);
}

static char lower(char ch)
{
    return ch >= 'A' && ch <= 'Z' ? (char)(ch - 'A' + 'a') : ch;
}

/* A refused request may have a NUL in a name: no C strings here. */
static int same_name(sim_slice_t a, sim_slice_t b)
{
    size_t i;

    for (i = 0; a.n == b.n && i < a.n && lower(a.p[i]) == lower(b.p[i]);) {
        i++;
    }
    return a.n == b.n && i == a.n;
}

/* All values of one name: a string, or an array when it came repeatedly. */
static void add_values(const sim_request_t *r, sim_slice_t name, sim_buf_t *b)
{
    sim_buf_t list = {0};
    sim_slice_t n, v;
    size_t at = 0, count = 0;

    while (sim_request_field(r, &at, &n, &v)) {
        if (same_name(n, name)) {
            if (count++) {
                sim_buf_add(&list, ",", 1);
            }
            add_quoted(&list, v);
        }
    }
    sim_buf_str(b, count > 1 ? "[" : "");
    sim_buf_add(b, SIM_BUF_AT(&list), SIM_BUF_SIZE(&list));
    sim_buf_str(b, count > 1 ? "]" : "");
    sim_buf_free(&list);
}

static int seen_before(const sim_request_t *r, size_t upto, sim_slice_t name)
{
    sim_slice_t n, v;
    size_t at = 0;

    while (sim_request_field(r, &at, &n, &v) && at < upto) {
        if (same_name(n, name)) {
            return 1;
        }
    }
    return 0;
}

static void add_headers(const sim_request_t *r, sim_buf_t *b)
{
    sim_slice_t n, v;
    size_t at = 0, i, count = 0;

    sim_buf_str(b, ",\"headers\":{");
    while (sim_request_field(r, &at, &n, &v)) {
        if (seen_before(r, at, n)) {
            continue;
        }
        sim_buf_str(b, count++ ? ",\"" : "\"");
        for (i = 0; i < n.n; i++) {
            char ch = lower(n.p[i]);

            sim_buf_json(b, &ch, 1, 0);
        }
        sim_buf_str(b, "\":");
        add_values(r, n, b);
    }
    sim_buf_str(b, "}");
}

static void add_body(const sim_request_t *r, sim_buf_t *b)
{
    add_string(b, "body_sha256", r->sha256);
    if (r->body_shown) {
        sim_buf_str(b, ",\"body\":\"");
        sim_buf_json(b, SIM_BUF_AT(&r->body), SIM_BUF_SIZE(&r->body), 1);
        sim_buf_add(b, "\"", 1);
    }
}

static void add_asked(const sim_conn_t *c, sim_buf_t *b)
{
    const sim_request_t *r = &c->req;
    static const char *const tri[] = {"null", "false", "true"};

    add_number(b, "conn", c->no);
    add_number(b, "nth", c->nth);
    sim_buf_fmt(b, ",\"model\":\"%.*s\"", (int)SIM_BUF_SIZE(&r->model),
                r->model.p ? SIM_BUF_AT(&r->model) : "");
    sim_buf_fmt(b, ",\"include_usage\":%s", tri[r->include_usage + 1]);
    add_number(b, "request_bytes", r->body_bytes);
    add_headers(r, b);
    add_body(r, b);
    add_text(b, "query", r->query);
}

static void add_times(const sim_conn_t *c, sim_buf_t *b)
{
    uint64_t now = sim_clock_ns();
    uint64_t from = c->last_write ? c->last_write : c->began;
    const char *fault = sim_fault_name(c->par.fault);

    add_string(b, "fault", fault ? fault : "");
    sim_buf_fmt(b, ",\"tls\":%s", c->ssl ? "true" : "false");
    add_number(b, "total_us", (now - c->began) / 1000);
    add_number(b, "since_write_us", (now - from) / 1000);
    add_number(b, "ended_ns", now);
}

static void add_tokens(const sim_answer_t *a, sim_buf_t *b)
{
    if (!a->counted) {
        sim_buf_str(b, ",\"prompt_tokens\":null,\"completion_tokens\":null");
        return;
    }
    add_number(b, "prompt_tokens", sim_chat_prompt_tokens(&a->chat));
    add_number(b, "completion_tokens", sim_chat_completion_tokens(&a->chat));
}

static void add_sent(const sim_conn_t *c, sim_buf_t *b, sim_end_t end)
{
    static const char *const ends[] = {"complete", "aborted", "fault"};
    const sim_answer_t *a = &c->ans;

    add_number(b, "status", (uint64_t)a->status);
    sim_buf_fmt(b, ",\"stream\":%s", c->req.stream ? "true" : "false");
    add_number(b, "events", c->events_sent);
    add_tokens(a, b);
    add_number(b, "bytes_sent", c->bytes_sent);
    add_string(b, "end", ends[end]);
}

void sim_ledger_write(const sim_conn_t *c, sim_end_t end)
{
    sim_buf_t b = {0};

    if (c->sim->ledger < 0) {
        return;
    }
    sim_buf_str(&b, "{\"tag\":\"");
    sim_buf_json(&b, c->par.tag, strlen(c->par.tag), 0);
    sim_buf_add(&b, "\"", 1);
    add_text(&b, "path", c->req.path);
    add_text(&b, "method", c->req.method);
    add_sent(c, &b, end);
    add_asked(c, &b);
    add_times(c, &b);
    sim_buf_str(&b, "}\n");
    if (write(c->sim->ledger, SIM_BUF_AT(&b), SIM_BUF_SIZE(&b))
        != (ssize_t)SIM_BUF_SIZE(&b)) {
        fprintf(stderr, "aigw-sim: ledger: %s\n", strerror(errno));
    }
    sim_buf_free(&b);
}

void sim_ledger_stats(const sim_t *sim, sim_buf_t *b)
{
    const sim_stats_t *s = &sim->stats;

    sim_buf_fmt(b, "{\"connections_accepted\":%" PRIu64, s->accepted);
    add_number(b, "connections_open", s->open);
    add_number(b, "requests", s->requests);
    add_number(b, "requests_per_connection_max", s->nth_max);
    add_number(b, "streams", s->streams);
    add_number(b, "streams_active", s->streams_active);
    add_number(b, "streams_active_max", s->streams_active_max);
    add_number(b, "complete", s->complete);
    add_number(b, "aborted_by_peer", s->aborted);
    add_number(b, "faults", s->faults);
    add_number(b, "refused", s->refused);
    sim_buf_fmt(b, ",\"abort_ms_last\":%" PRIu64 ".%03" PRIu64,
                s->abort_us_last / 1000, s->abort_us_last % 1000);
    sim_buf_fmt(b, ",\"abort_ms_max\":%" PRIu64 ".%03" PRIu64,
                s->abort_us_max / 1000, s->abort_us_max % 1000);
    add_number(b, "events_sent", s->events);
    add_number(b, "bytes_read", s->bytes_read);
    add_number(b, "bytes_sent", s->bytes_sent);
    add_number(b, "writes", s->writes);
    add_number(b, "late_us_max", s->late_us_max);
    add_number(b, "tls_full", s->tls_full);
    add_number(b, "tls_resumed", s->tls_resumed);
    add_number(b, "tls_failed", s->tls_failed);
    add_string(b, "tls_sni", s->tls_sni);
    add_number(b, "clock_ns", sim_clock_ns());
    sim_buf_str(b, "}\n");
}
