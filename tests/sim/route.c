/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Endpoints, the key check, overrides and files.  Every request gets an
 * answer; what is wrong with it is said in OpenAI's form.
 */
#include "route.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ledger.h"

static int ends_with(sim_slice_t s, const char *text)
{
    size_t n = strlen(text);

    return s.n >= n && memcmp(s.p + s.n - n, text, n) == 0;
}

int sim_route_own(const sim_conn_t *c)
{
    const sim_slice_t *path = &c->req.path;

    return path->n > 5 && memcmp(path->p, "/sim/", 5) == 0;
}

static int hex(char ch)
{
    if (isdigit((unsigned char)ch)) {
        return ch - '0';
    }
    ch = (char)tolower((unsigned char)ch);
    return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

static void unescape(sim_slice_t q, sim_buf_t *b)
{
    size_t i;

    for (i = 0; i < q.n; i++) {
        char ch = q.p[i];

        if (ch == '%' && i + 2 < q.n && hex(q.p[i + 1]) >= 0
            && hex(q.p[i + 2]) >= 0) {
            ch = (char)(hex(q.p[i + 1]) * 16 + hex(q.p[i + 2]));
            i += 2;
        }
        sim_buf_add(b, &ch, 1);
    }
}

static int overrides(sim_conn_t *c, sim_buf_t *err)
{
    sim_buf_t q = {0};
    sim_slice_t s;
    int rc = 0;

    c->par = c->sim->par;
    unescape(c->req.query, &q);
    s.p = SIM_BUF_AT(&q);
    s.n = SIM_BUF_SIZE(&q);
    rc = sim_params_scan(&c->par, s, err);
    sim_buf_free(&q);
    if (rc == 0) {
        s.p = SIM_BUF_AT(&c->req.body);
        s.n = SIM_BUF_SIZE(&c->req.body);
        rc = sim_params_scan(&c->par, s, err);
    }
    if (c->par.fault == SIM_FAULT_ONE_BYTE) {
        c->par.split = 1;
    }
    return rc;
}

static int key_ok(const sim_conn_t *c)
{
    sim_slice_t v;

    if (!c->sim->key) {
        return 1;
    }
    if (!sim_request_find(&c->req, "authorization", &v) || v.n < 7
        || memcmp(v.p, "Bearer ", 7) != 0) {
        return 0;
    }
    v.p += 7;
    v.n -= 7;
    return sim_slice_is(v, c->sim->key);
}

static const char *type_of(const char *name)
{
    const char *dot = strrchr(name, '.');

    if (dot && strcmp(dot, ".sse") == 0) {
        return "text/event-stream; charset=utf-8";
    }
    if (dot && (!strcmp(dot, ".json") || !strcmp(dot, ".body"))) {
        return "application/json";
    }
    if (dot && strcmp(dot, ".ndjson") == 0) {
        return "application/x-ndjson";
    }
    if (dot && strcmp(dot, ".http") == 0) {
        return "";
    }
    return "application/octet-stream";
}

static int load(const char *dir, const char *name, sim_buf_t *b)
{
    char path[4096], part[65536];
    size_t n;
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "rb");
    if (!f) {
        return -1;
    }
    while ((n = fread(part, 1, sizeof(part), f)) > 0) {
        sim_buf_add(b, part, n);
    }
    n = (size_t)ferror(f);
    fclose(f);
    return n ? -1 : 0;
}

static int raw_status(const sim_buf_t *b)
{
    const char *p = SIM_BUF_AT(b);

    if (SIM_BUF_SIZE(b) < 12 || !isdigit((unsigned char)p[9])
        || !isdigit((unsigned char)p[10]) || !isdigit((unsigned char)p[11])) {
        return 0;
    }
    return (p[9] - '0') * 100 + (p[10] - '0') * 10 + (p[11] - '0');
}

static void play(sim_conn_t *c)
{
    const char *type = type_of(c->par.file), *dir = c->sim->files;
    sim_buf_t body = {0};
    char why[256];

    if (!dir || load(dir, c->par.file, &body) != 0) {
        snprintf(why, sizeof(why), "sim:file=%s: %s", c->par.file,
                 dir ? strerror(errno) : "no --files folder was given");
        sim_answer_error(&c->ans, 400, why);
        sim_buf_free(&body);
        return;
    }
    sim_answer_document(&c->ans, (int)c->par.status, type, &body);
    if (!*type) {
        c->ans.raw = 1;
        c->ans.status = raw_status(&c->ans.body);
    }
    /* a provider chunks its event streams, from whatever they come */
    if (c->par.framing == SIM_FRAME_AUTO && !strncmp(type, "text/event", 10)) {
        c->par.framing = SIM_FRAME_CHUNKED;
    }
}

static void chat(sim_conn_t *c)
{
    sim_buf_t b = {0};

    c->ans.counted = 1;
    if (c->req.stream) {
        c->ans.live = 1;
        c->ans.ctype = "text/event-stream; charset=utf-8";
        return;
    }
    sim_chat_json(&c->ans.chat, &b);
    sim_answer_document(&c->ans, c->ans.status, "application/json", &b);
}

static void post(sim_conn_t *c)
{
    int is_chat = ends_with(c->req.path, "/chat/completions");

    if (c->par.status >= 300) {
        sim_answer_error(&c->ans, (int)c->par.status, NULL);
    }
    else if (!is_chat) {
        sim_answer_error(&c->ans, 404, "Invalid URL");
    }
    else if (!c->req.json) {
        sim_answer_error(&c->ans, 400,
                         "We could not parse the JSON body of "
                         "your request.");
    }
    else if (!SIM_BUF_SIZE(&c->req.model)) {
        sim_answer_error(&c->ans, 400, "you must provide a model parameter");
    }
    else if (!c->req.stream
             && sim_fault_flags(c->par.fault) & SIM_FAULT_F_STREAM) {
        sim_answer_error(&c->ans, 400, "this sim:fault needs a stream");
    }
    else if (!c->req.stream && c->par.events > 10000000) {
        sim_answer_error(&c->ans, 400, "sim:events is too much for JSON");
    }
    else {
        chat(c);
    }
}

static void own(sim_conn_t *c)
{
    sim_buf_t b = {0};
    sim_stats_t *st = &c->sim->stats;

    if (sim_slice_is(c->req.path, "/sim/reset")) {
        uint64_t open = st->open, active = st->streams_active;

        memset(st, 0, sizeof(*st));
        st->open = open;
        st->streams_active = active;
    }
    else if (!sim_slice_is(c->req.path, "/sim/stats")) {
        sim_answer_error(&c->ans, 404, "only /sim/stats and /sim/reset");
        return;
    }
    sim_ledger_stats(c->sim, &b);
    sim_answer_document(&c->ans, 200, "application/json", &b);
}

static void wrong_method(sim_conn_t *c, const char *allow)
{
    sim_answer_error(&c->ans, 405, "Not allowed to use this method here.");
    c->ans.allow = allow;
}

static void pick(sim_conn_t *c)
{
    sim_buf_t b = {0};
    int get = sim_slice_is(c->req.method, "GET");

    if (ends_with(c->req.path, "/models")) {
        if (!get) {
            wrong_method(c, "GET");
            return;
        }
        sim_chat_models(&b);
        sim_answer_document(&c->ans, 200, "application/json", &b);
    }
    else if (!sim_slice_is(c->req.method, "POST")) {
        if (ends_with(c->req.path, "/chat/completions")) {
            wrong_method(c, "POST");
            return;
        }
        sim_answer_error(&c->ans, 404, "Invalid URL");
    }
    else if (*c->par.file) {
        play(c);
    }
    else {
        post(c);
    }
}

void sim_route(sim_conn_t *c)
{
    sim_buf_t err = {0};
    int bad = 0;

    if (sim_route_own(c)) {
        sim_params_init(&c->par);
        c->par.first_byte_ms = 0;
    }
    else {
        bad = overrides(c, &err);
    }
    sim_buf_add(&err, "", 1);
    sim_answer_begin(&c->ans, &c->par, &c->req, c->sim->serial++);
    if (c->req.error) {
        c->req.keep = 0;
        sim_answer_error(&c->ans, c->req.error_status, c->req.error);
    }
    else if (bad) {
        sim_params_init(&c->par);
        sim_answer_error(&c->ans, 400, SIM_BUF_AT(&err));
    }
    else if (sim_route_own(c)) {
        own(c);
    }
    else if (!key_ok(c)) {
        sim_answer_error(&c->ans, 401, NULL);
    }
    else {
        pick(c);
    }
    sim_buf_free(&err);
}
