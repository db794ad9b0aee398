/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads of answers: status line, a provider's fields, framing, and the
 * faults that lie in a head.
 */
#include "head.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

static const char *reason(int status)
{
    /* clang-format off */
    static const struct {
        int status;
        const char *text;
    } rows[] = {
        {200, "OK"}, {201, "Created"}, {204, "No Content"},
        {301, "Moved Permanently"}, {302, "Found"}, {304, "Not Modified"},
        {307, "Temporary Redirect"}, {308, "Permanent Redirect"},
        {400, "Bad Request"}, {401, "Unauthorized"}, {403, "Forbidden"},
        {404, "Not Found"}, {405, "Method Not Allowed"},
        {408, "Request Timeout"}, {409, "Conflict"},
        {413, "Content Too Large"}, {415, "Unsupported Media Type"},
        {422, "Unprocessable Content"}, {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"}, {501, "Not Implemented"},
        {502, "Bad Gateway"}, {503, "Service Unavailable"},
        {504, "Gateway Timeout"}, {529, "Overloaded"},
    };
    /* clang-format on */
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].status == status) {
            return rows[i].text;
        }
    }
    return "Status";
}

static void date(sim_buf_t *out)
{
    static char text[64];
    static time_t at;
    time_t now = time(NULL);
    struct tm tm;

    if (now != at && gmtime_r(&now, &tm)) {
        strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm);
        at = now;
    }
    sim_buf_fmt(out, "Date: %s\r\n", text);
}

static void interim(const sim_answer_t *a, sim_buf_t *out)
{
    uint64_t n = a->par->fault_n == SIM_UNSET ? 10000 : a->par->fault_n;

    if (a->par->fault == SIM_FAULT_ONE_1XX) {
        sim_buf_str(out, "HTTP/1.1 103 Early Hints\r\n"
                         "Link: </sim>; rel=preconnect\r\n\r\n");
    }
    while (a->par->fault == SIM_FAULT_FLOOD_1XX && n--) {
        sim_buf_str(out, "HTTP/1.1 102 Processing\r\n\r\n");
    }
}

/* The account's own numbers and cookies: no business of a gateway's client. */
static void provider_fields(const sim_answer_t *a, sim_buf_t *out)
{
    uint64_t id = a->serial * UINT64_C(0x9e3779b97f4a7c15);

    sim_buf_fmt(out,
                "x-request-id: req_%016" PRIx64 "%016" PRIx64 "\r\n"
                "openai-organization: sim-organisation\r\n"
                "openai-project: proj_sim\r\n"
                "openai-processing-ms: %" PRIu64 "\r\n"
                "openai-version: 2020-10-01\r\n",
                id, id * UINT64_C(0xd1342543de82ef95) + 1,
                a->par->first_byte_ms);
    sim_buf_str(out, "x-ratelimit-limit-requests: 10000\r\n"
                     "x-ratelimit-limit-tokens: 30000000\r\n"
                     "x-ratelimit-remaining-requests: 9999\r\n"
                     "x-ratelimit-remaining-tokens: 29999988\r\n"
                     "x-ratelimit-reset-requests: 6ms\r\n"
                     "x-ratelimit-reset-tokens: 0s\r\n");
    sim_buf_str(out, "strict-transport-security: max-age=31536000; "
                     "includeSubDomains; preload\r\n"
                     "set-cookie: __sim_bm=2f6c; path=/; HttpOnly; Secure\r\n"
                     "set-cookie: _simuvid=91ab; path=/; HttpOnly\r\n"
                     "alt-svc: h3=\":443\"; ma=86400\r\n"
                     "x-content-type-options: nosniff\r\n"
                     "cf-ray: 9a1b2c3d4e5f6071-SIM\r\n"
                     "cf-cache-status: DYNAMIC\r\n"
                     "server: aigw-sim\r\n");
}

static void status_fields(const sim_answer_t *a, sim_buf_t *out)
{
    uint64_t after = a->par->retry_after;

    if (after == SIM_UNSET
        && (a->status == 429 || a->status == 503 || a->status == 529)) {
        after = 2;
    }
    if (after != SIM_UNSET) {
        sim_buf_fmt(out,
                    "retry-after: %" PRIu64 "\r\n"
                    "retry-after-ms: %" PRIu64 "\r\n",
                    after, after * 1000);
    }
    if (a->allow) {
        sim_buf_fmt(out, "allow: %s\r\n", a->allow);
    }
    if (a->status >= 300 && a->status < 400) {
        sim_buf_str(out, "location: http://127.0.0.1:9/elsewhere\r\n");
    }
}

static void framing_fields(const sim_answer_t *a, sim_buf_t *out)
{
    uint64_t fault = a->par->fault;

    if (a->status == 204 || a->status == 304) {
        return;
    }
    if (a->framing == SIM_FRAME_CHUNKED) {
        sim_buf_str(out, "Transfer-Encoding: chunked\r\n");
    }
    if (fault == SIM_FAULT_TE_AND_CL) {
        sim_buf_str(out, "Content-Length: 5\r\n");
    }
    if (fault == SIM_FAULT_TRAILERS) {
        sim_buf_str(out, "Trailer: x-sim-trailer\r\n");
    }
    if (a->framing == SIM_FRAME_LENGTH) {
        sim_buf_fmt(out, "Content-Length: %" PRIu64 "\r\n", a->declared);
    }
    if (fault == SIM_FAULT_TWO_LENGTHS) {
        sim_buf_fmt(out, "Content-Length: %" PRIu64 "\r\n", a->declared + 7);
    }
}

static void faulty_fields(const sim_answer_t *a, sim_buf_t *out)
{
    uint64_t n = a->par->fault_n == SIM_UNSET ? 131072 : a->par->fault_n;
    uint64_t i, k;

    if (a->par->fault == SIM_FAULT_CTL_IN_FIELD) {
        sim_buf_add(out, "x-sim-ctl: a\rb\0c\r\n", 18);
    }
    for (i = 0; a->par->fault == SIM_FAULT_HEAD_TOO_LARGE && n; i++) {
        sim_buf_fmt(out, "x-sim-filler-%05" PRIu64 ": ", i);
        for (k = 0; k < 98; k++) {
            sim_buf_str(out, "0123456789");
        }
        sim_buf_str(out, "\r\n");
        n -= n < 1002 ? n : 1002;
    }
}

void sim_head_build(const sim_answer_t *a, sim_buf_t *out)
{
    int keep = a->req->keep && a->framing != SIM_FRAME_CLOSE;

    interim(a, out);
    sim_buf_fmt(out, "HTTP/%s %d %s\r\n",
                a->par->fault == SIM_FAULT_BAD_STATUS_LINE ? "banana" : "1.1",
                a->status, reason(a->status));
    date(out);
    if (a->status != 204 && a->status != 304) {
        sim_buf_fmt(out, "Content-Type: %s\r\n", a->ctype);
    }
    framing_fields(a, out);
    sim_buf_fmt(out, "Connection: %s\r\n", keep ? "keep-alive" : "close");
    faulty_fields(a, out);
    status_fields(a, out);
    provider_fields(a, out);
    sim_buf_str(out, "\r\n");
}
