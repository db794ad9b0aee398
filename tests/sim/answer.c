/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stages of an answer: head, content events, tail; or head and document.
 * Faults are struck at three places: before the head, in the middle (strike)
 * and at the end of the framing (close_body).  Invariant: once `then` is not
 * MORE, no further byte is made.
 */
#define _GNU_SOURCE 1
#include "answer.h"

#include <string.h>

#include "clock.h"
#include "head.h"

enum { STAGE_HEAD = 0, STAGE_CONTENT, STAGE_TAIL };

#define LENGTH_EVENTS_MAX 1000000 /* more are not counted out in advance */
#define OUT_MAX (1 << 20)         /* a burst ends when it has grown so large */

const char sim_answer_extra[] =
    "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"
    "content-length: 12\r\n\r\nnot for you\n";

void sim_answer_begin(sim_answer_t *a, const sim_params_t *par,
                      const sim_request_t *req, uint64_t serial)
{
    memset(a, 0, sizeof(*a));
    a->par = par;
    a->req = req;
    a->serial = serial;
    a->status = (int)par->status;
    a->events = par->fault == SIM_FAULT_ENDLESS ? UINT64_MAX : par->events;
    sim_chat_init(&a->chat, par, req, serial);
}

void sim_answer_document(sim_answer_t *a, int status, const char *ctype,
                         sim_buf_t *body)
{
    a->live = 0;
    a->status = status;
    a->ctype = ctype;
    sim_buf_free(&a->body);
    a->body = *body;
    memset(body, 0, sizeof(*body));
}

void sim_answer_error(sim_answer_t *a, int status, const char *message)
{
    sim_buf_t b = {0};

    sim_chat_error(&b, status, message);
    sim_answer_document(a, status, "application/json", &b);
}

void sim_answer_done(sim_answer_t *a)
{
    sim_chat_done(&a->chat);
    sim_buf_free(&a->body);
}

static void add_hex(sim_buf_t *out, uint64_t n)
{
    char hex[16];
    int i = 16;

    do {
        hex[--i] = "0123456789abcdef"[n & 15];
        n >>= 4;
    } while (n);
    sim_buf_add(out, hex + i, (size_t)(16 - i));
}

static void chunk_line(const sim_answer_t *a, sim_buf_t *out, uint64_t n)
{
    add_hex(out, n);
    if (a->par->fault == SIM_FAULT_CHUNK_EXT) {
        sim_buf_str(out, ";sim=\"a;b\";x");
    }
    sim_buf_add(out, "\r\n", 2);
}

static void emit(sim_answer_t *a, sim_buf_t *out, const char *p, size_t n)
{
    size_t part = a->par->chunk ? (size_t)a->par->chunk : n;

    a->emitted += n;
    if (a->framing != SIM_FRAME_CHUNKED) {
        sim_buf_add(out, p, n);
        return;
    }
    while (n) {
        if (part > n) {
            part = n;
        }
        chunk_line(a, out, part);
        sim_buf_add(out, p, part);
        sim_buf_add(out, "\r\n", 2);
        p += part;
        n -= part;
    }
}

static void end(sim_answer_t *a, sim_then_t then, int cut)
{
    a->then = then;
    a->cut = cut;
}

/* The framing's proper end, unless the fault is that there is none. */
static void close_body(sim_answer_t *a, sim_buf_t *out)
{
    uint64_t fault = a->par->fault;
    int keep = a->req->keep && a->framing != SIM_FRAME_CLOSE;

    if (fault == SIM_FAULT_CUT_BEFORE_LAST_CHUNK) {
        end(a, SIM_THEN_FIN, 1);
        return;
    }
    if (a->framing == SIM_FRAME_LENGTH && a->emitted < a->declared) {
        end(a, SIM_THEN_FIN, 1);
        return;
    }
    if (a->framing == SIM_FRAME_CHUNKED) {
        sim_buf_str(out, "0\r\n");
        if (fault == SIM_FAULT_TRAILERS) {
            sim_buf_str(out, "x-sim-trailer: yes\r\n"
                             "set-cookie: late=1\r\n");
        }
        sim_buf_str(out, "\r\n");
    }
    if (fault == SIM_FAULT_EXTRA_BYTES) {
        sim_buf_str(out, sim_answer_extra);
    }
    end(a, keep ? SIM_THEN_KEEP : SIM_THEN_FIN, 0);
}

static int is_mid(uint64_t fault)
{
    switch (fault) {
    case SIM_FAULT_SILENCE_MID_STREAM:
    case SIM_FAULT_RESET_MID_STREAM:
    case SIM_FAULT_CUT_MID_CHUNK:
    case SIM_FAULT_CUT_MID_EVENT:
    case SIM_FAULT_END_MID_EVENT:
    case SIM_FAULT_BAD_CHUNK_SIZE:
    case SIM_FAULT_ERROR_EVENT_MID:
        return 1;
    default:
        return 0;
    }
}

static void bad_chunk(sim_answer_t *a, sim_buf_t *out, sim_slice_t piece)
{
    sim_buf_str(out, "zz\r\n");
    sim_buf_add(out, piece.p, piece.n);
    sim_buf_str(out, "\r\n");
    end(a, SIM_THEN_FIN, 1);
}

static void error_event(sim_answer_t *a, sim_buf_t *out)
{
    sim_buf_t b = {0};

    sim_chat_error_event(&b);
    emit(a, out, SIM_BUF_AT(&b), SIM_BUF_SIZE(&b));
    sim_buf_free(&b);
    close_body(a, out);
}

/* A fault in the middle, at the piece that would come next. */
static void strike(sim_answer_t *a, sim_buf_t *out, sim_slice_t piece)
{
    switch (a->par->fault) {
    case SIM_FAULT_SILENCE_MID_STREAM:
        end(a, SIM_THEN_HOLD, 0);
        break;
    case SIM_FAULT_RESET_MID_STREAM:
        end(a, SIM_THEN_RST, 1);
        break;
    case SIM_FAULT_CUT_MID_CHUNK:
        chunk_line(a, out, piece.n);
        sim_buf_add(out, piece.p, piece.n / 2);
        end(a, SIM_THEN_FIN, 1);
        break;
    case SIM_FAULT_CUT_MID_EVENT:
        emit(a, out, piece.p, piece.n / 2);
        end(a, SIM_THEN_FIN, 1);
        break;
    case SIM_FAULT_END_MID_EVENT:
        emit(a, out, piece.p, piece.n / 2);
        close_body(a, out);
        break;
    case SIM_FAULT_BAD_CHUNK_SIZE:
        bad_chunk(a, out, piece);
        break;
    default:
        error_event(a, out);
        break;
    }
}

static uint64_t mid(const sim_answer_t *a, uint64_t whole)
{
    uint64_t at = a->par->fault_at;

    return at == SIM_UNSET ? whole / 2 : at < whole ? at : whole;
}

static void document(sim_answer_t *a, sim_buf_t *out)
{
    const char *p = SIM_BUF_AT(&a->body);
    size_t n = SIM_BUF_SIZE(&a->body), half;
    sim_slice_t rest;

    if (!is_mid(a->par->fault)) {
        emit(a, out, p, n);
        close_body(a, out);
        return;
    }
    half = (size_t)mid(a, n);
    emit(a, out, p, half);
    rest.p = p + half;
    rest.n = n - half;
    strike(a, out, rest);
}

static void tail(sim_answer_t *a, sim_buf_t *b)
{
    sim_chat_finish(&a->chat, b);
    if (a->req->include_usage == 1) {
        sim_chat_usage(&a->chat, b);
    }
    if (a->par->fault != SIM_FAULT_NO_DONE) {
        sim_chat_end(b);
    }
}

/* The tail's events as chunks of their own. */
static void emit_tail(sim_answer_t *a, sim_buf_t *out)
{
    sim_buf_t b = {0};
    const char *p, *eoe;

    tail(a, &b);
    while (SIM_BUF_SIZE(&b)) {
        p = SIM_BUF_AT(&b);
        eoe = memmem(p, SIM_BUF_SIZE(&b), "\n\n", 2);
        emit(a, out, p, (size_t)(eoe - p) + 2);
        sim_buf_drop(&b, (size_t)(eoe - p) + 2);
    }
    sim_buf_free(&b);
    close_body(a, out);
}

static void content(sim_answer_t *a, sim_buf_t *out)
{
    static sim_buf_t piece; /* kept: one for all streams, never shared */
    uint64_t left = a->par->period_ns ? 1 : a->par->burst;
    uint64_t at = is_mid(a->par->fault) ? mid(a, a->events) : UINT64_MAX;

    for (; left && a->made < a->events && out->len < OUT_MAX; left--) {
        sim_slice_t s;

        piece.off = piece.len = 0;
        sim_chat_content(&a->chat, &piece);
        s.p = SIM_BUF_AT(&piece);
        s.n = SIM_BUF_SIZE(&piece);
        if (a->made >= at) {
            strike(a, out, s);
            return;
        }
        emit(a, out, s.p, s.n);
        a->made++;
    }
    a->due += a->par->period_ns;
    if (a->made == a->events) {
        a->stage = STAGE_TAIL;
        a->due = 0;
    }
}

/* Streams that began in the same moment must not all speak in the same
 * moment later on: each gets its own place within the period. */
static uint64_t phase(const sim_answer_t *a)
{
    uint64_t part = a->serial * UINT64_C(0x9e3779b97f4a7c15) >> 48;

    return a->par->period_ns / 65536 * part;
}

static uint64_t stream_length(sim_answer_t *a)
{
    sim_buf_t b = {0};
    uint64_t i, n = 0;

    sim_chat_role(&a->chat, &b);
    for (i = 0; i < a->events; i++) {
        sim_chat_content(&a->chat, &b);
        n += SIM_BUF_SIZE(&b);
        b.off = b.len = 0;
    }
    a->chat.word = 0;
    tail(a, &b);
    n += SIM_BUF_SIZE(&b);
    sim_buf_free(&b);
    return n;
}

static uint64_t declare(sim_answer_t *a)
{
    uint64_t n = a->live ? stream_length(a) : SIM_BUF_SIZE(&a->body);
    uint64_t by = a->par->fault_n;

    if (a->par->fault == SIM_FAULT_SHORT_LENGTH) {
        by = by == SIM_UNSET ? n - n / 2 : by;
        return by < n ? n - by : 0;
    }
    if (a->par->fault == SIM_FAULT_LONG_LENGTH) {
        return n + (by == SIM_UNSET ? 100 : by);
    }
    return n;
}

static void choose_framing(sim_answer_t *a)
{
    int flags = sim_fault_flags(a->par->fault);

    a->framing = (sim_framing_t)a->par->framing;
    if (flags & SIM_FAULT_F_LENGTH) {
        a->framing = SIM_FRAME_LENGTH;
    }
    else if (flags & SIM_FAULT_F_CHUNKED) {
        a->framing = SIM_FRAME_CHUNKED;
    }
    else if (a->framing == SIM_FRAME_AUTO) {
        a->framing = a->live ? SIM_FRAME_CHUNKED : SIM_FRAME_LENGTH;
    }
    if (a->req->minor == 0 && a->framing == SIM_FRAME_CHUNKED) {
        a->framing = SIM_FRAME_CLOSE;
    }
    if (a->framing == SIM_FRAME_LENGTH && a->live
        && a->events > LENGTH_EVENTS_MAX) {
        a->framing = SIM_FRAME_CLOSE;
    }
}

static int before_head(sim_answer_t *a)
{
    switch (a->par->fault) {
    case SIM_FAULT_REFUSE_RESET:
        end(a, SIM_THEN_RST, 1);
        return 1;
    case SIM_FAULT_CLOSE_BEFORE_HEAD:
        end(a, SIM_THEN_FIN, 1);
        return 1;
    case SIM_FAULT_SILENCE_BEFORE_HEAD:
        end(a, SIM_THEN_HOLD, 0);
        return 1;
    default:
        return 0;
    }
}

static int start(sim_answer_t *a, sim_buf_t *out)
{
    choose_framing(a);
    if (a->framing == SIM_FRAME_LENGTH) {
        a->declared = declare(a);
    }
    sim_head_build(a, out);
    if (a->par->fault == SIM_FAULT_CUT_MID_HEAD) {
        out->len = out->off + SIM_BUF_SIZE(out) / 2;
        end(a, SIM_THEN_FIN, 1);
        return 0;
    }
    if (a->status == 204 || a->status == 304) {
        end(a, a->req->keep ? SIM_THEN_KEEP : SIM_THEN_FIN, 0);
        return 0;
    }
    return 1;
}

static void first(sim_answer_t *a, sim_buf_t *out, uint64_t now)
{
    sim_buf_t b = {0};

    if (before_head(a)) {
        return;
    }
    if (a->raw) {
        sim_buf_add(out, SIM_BUF_AT(&a->body), SIM_BUF_SIZE(&a->body));
        end(a, SIM_THEN_FIN, 0);
        return;
    }
    if (!start(a, out)) {
        return;
    }
    if (!a->live) {
        document(a, out);
        return;
    }
    if (a->par->fault == SIM_FAULT_ERROR_EVENT_FIRST) {
        error_event(a, out);
        return;
    }
    sim_chat_role(&a->chat, &b);
    emit(a, out, SIM_BUF_AT(&b), SIM_BUF_SIZE(&b));
    sim_buf_free(&b);
    a->stage = a->events ? STAGE_CONTENT : STAGE_TAIL;
    a->due = a->par->period_ns ? now + phase(a) : 0;
}

void sim_answer_step(sim_answer_t *a, sim_buf_t *out, uint64_t now)
{
    if (a->stage == STAGE_HEAD) {
        first(a, out, now);
    }
    else if (a->stage == STAGE_CONTENT) {
        content(a, out);
    }
    else {
        emit_tail(a, out);
    }
}
