/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenAI's chat documents.  Token counts follow two rules that a test can
 * compute: a prompt token for every four bytes of request body, rounded up,
 * and a completion token for every content event.
 */
#include "chat.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "text.h"

#define FINGERPRINT "fp_51a0c7e2d9"

static void make_id(sim_chat_t *c, uint64_t serial)
{
    static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "abcdefghijklmnopqrstuvwxyz0123456789";
    uint64_t x = serial * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)c->created;
    size_t i, n = strlen("chatcmpl-");

    memcpy(c->id, "chatcmpl-", n);
    for (i = 0; i < 29; i++) {
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        c->id[n + i] = set[(x * UINT64_C(0x2545f4914f6cdd1d) >> 32) % 62];
    }
    c->id[n + i] = '\0';
}

void sim_chat_init(sim_chat_t *c, const sim_params_t *par,
                   const sim_request_t *req, uint64_t serial)
{
    memset(c, 0, sizeof(*c));
    c->par = par;
    c->req = req;
    c->created = (long)time(NULL);
    make_id(c, serial + 1);
}

void sim_chat_done(sim_chat_t *c)
{
    sim_buf_free(&c->prefix);
}

static void add_model(const sim_chat_t *c, sim_buf_t *b)
{
    sim_buf_add(b, SIM_BUF_AT(&c->req->model), SIM_BUF_SIZE(&c->req->model));
    sim_buf_str(b, c->par->suffix);
}

static void open_chunk(sim_chat_t *c, sim_buf_t *b)
{
    sim_buf_t *p = &c->prefix;

    if (!SIM_BUF_SIZE(p)) {
        sim_buf_fmt(p,
                    "data: {\"id\":\"%s\",\"object\":"
                    "\"chat.completion.chunk\",\"created\":%ld,"
                    "\"model\":\"",
                    c->id, c->created);
        add_model(c, p);
        sim_buf_str(p, "\",\"service_tier\":\"default\","
                       "\"system_fingerprint\":\"" FINGERPRINT "\","
                       "\"choices\":[");
    }
    sim_buf_add(b, SIM_BUF_AT(p), SIM_BUF_SIZE(p));
}

static void close_chunk(sim_chat_t *c, sim_buf_t *b)
{
    sim_buf_str(b, c->req->include_usage == 1 ? "],\"usage\":null}\n\n"
                                              : "]}\n\n");
}

void sim_chat_role(sim_chat_t *c, sim_buf_t *b)
{
    open_chunk(c, b);
    sim_buf_str(b, "{\"index\":0,\"delta\":{\"role\":\"assistant\","
                   "\"content\":\"\",\"refusal\":null},\"logprobs\":null,"
                   "\"finish_reason\":null}");
    close_chunk(c, b);
}

static void add_marks(sim_chat_t *c, sim_buf_t *b)
{
    if (*c->par->echo) {
        sim_buf_fmt(b, "~E=%s#%" PRIu64 ";", c->par->echo, c->marked++);
    }
    if (c->par->stamp) {
        sim_buf_fmt(b, "~T=%" PRIu64, sim_clock_ns());
    }
}

void sim_chat_content(sim_chat_t *c, sim_buf_t *b)
{
    static const char tail[] = "\"},\"logprobs\":null,\"finish_reason\":null}";
    size_t from = SIM_BUF_SIZE(b);

    open_chunk(c, b);
    sim_buf_str(b, "{\"index\":0,\"delta\":{\"content\":\"");
    add_marks(c, b);
    do {
        sim_text_word(b, c->word++);
    } while (SIM_BUF_SIZE(b) - from + sizeof(tail) + 3 < c->par->event_bytes);
    sim_buf_add(b, tail, sizeof(tail) - 1);
    close_chunk(c, b);
}

void sim_chat_finish(sim_chat_t *c, sim_buf_t *b)
{
    open_chunk(c, b);
    sim_buf_str(b, "{\"index\":0,\"delta\":{},\"logprobs\":null,"
                   "\"finish_reason\":\"stop\"}");
    close_chunk(c, b);
}

uint64_t sim_chat_prompt_tokens(const sim_chat_t *c)
{
    return c->par->prompt != SIM_UNSET ? c->par->prompt
                                       : (c->req->body_bytes + 3) / 4;
}

uint64_t sim_chat_completion_tokens(const sim_chat_t *c)
{
    return c->par->completion != SIM_UNSET ? c->par->completion
                                           : c->par->events;
}

static void add_usage(const sim_chat_t *c, sim_buf_t *b)
{
    uint64_t in = sim_chat_prompt_tokens(c);
    uint64_t out = sim_chat_completion_tokens(c);

    sim_buf_fmt(b,
                "{\"prompt_tokens\":%" PRIu64 ",\"completion_tokens\":%" PRIu64
                ",\"total_tokens\":%" PRIu64
                ",\"prompt_tokens_details\":{\"cached_tokens\":%" PRIu64
                ",\"audio_tokens\":0}",
                in, out, in + out, c->par->cached);
    sim_buf_fmt(b,
                ",\"completion_tokens_details\":{"
                "\"reasoning_tokens\":%" PRIu64 ",\"audio_tokens\":0,"
                "\"accepted_prediction_tokens\":0,"
                "\"rejected_prediction_tokens\":0}}",
                c->par->reasoning);
}

void sim_chat_usage(sim_chat_t *c, sim_buf_t *b)
{
    open_chunk(c, b);
    sim_buf_str(b, "],\"usage\":");
    add_usage(c, b);
    sim_buf_str(b, "}\n\n");
}

void sim_chat_end(sim_buf_t *b)
{
    sim_buf_str(b, "data: [DONE]\n\n");
}

void sim_chat_error_event(sim_buf_t *b)
{
    sim_buf_str(b, "data: {\"error\":{\"message\":\"The server had an error "
                   "while processing your request.\",\"type\":"
                   "\"server_error\",\"param\":null,\"code\":null}}\n\n");
}

void sim_chat_json(sim_chat_t *c, sim_buf_t *b)
{
    size_t from = SIM_BUF_SIZE(b);
    uint64_t i;

    sim_buf_fmt(b,
                "{\n  \"id\": \"%s\",\n  \"object\": \"chat.completion\","
                "\n  \"created\": %ld,\n  \"model\": \"",
                c->id, c->created);
    add_model(c, b);
    sim_buf_str(b, "\",\n  \"choices\": [\n    {\n      \"index\": 0,\n"
                   "      \"message\": {\n        \"role\": \"assistant\",\n"
                   "        \"content\": \"");
    add_marks(c, b);
    for (i = 0; i < c->par->events && !c->par->json_bytes; i++) {
        sim_text_word(b, c->word++);
    }
    while (SIM_BUF_SIZE(b) - from + 465 < c->par->json_bytes) {
        sim_text_word(b, c->word++);
    }
    sim_buf_str(b, "\",\n        \"refusal\": null,\n"
                   "        \"annotations\": []\n      },\n"
                   "      \"logprobs\": null,\n"
                   "      \"finish_reason\": \"stop\"\n    }\n  ],\n"
                   "  \"usage\": ");
    add_usage(c, b);
    sim_buf_str(b, ",\n  \"service_tier\": \"default\",\n"
                   "  \"system_fingerprint\": \"" FINGERPRINT "\"\n}\n");
}

typedef struct error_row_t {
    int status;
    const char *type, *code, *message; /* code as JSON */
} error_row_t;

/* clang-format off */
static const error_row_t error_rows[] = {
    {400, "invalid_request_error", "null", "The request was not valid."},
    {401, "invalid_request_error", "\"invalid_api_key\"",
     "Incorrect API key provided."},
    {403, "invalid_request_error", "\"unsupported_country\"",
     "Access to this model is not allowed."},
    {404, "invalid_request_error", "\"model_not_found\"",
     "The model does not exist or you do not have access to it."},
    {429, "requests", "\"rate_limit_exceeded\"",
     "Rate limit reached. Please try again in 2s."},
    {503, "server_error", "null",
     "The engine is currently overloaded, please try again later."},
    {529, "overloaded_error", "null", "Overloaded"},
    {0, "server_error", "null",
     "The server had an error while processing your request."},
};
/* clang-format on */

void sim_chat_error(sim_buf_t *b, int status, const char *message)
{
    const error_row_t *row = error_rows;

    while (row->status && row->status != status) {
        row++;
    }
    if (!row->status && status < 500) {
        row = error_rows;
    }
    sim_buf_str(b, "{\n  \"error\": {\n    \"message\": \"");
    message = message ? message : row->message;
    sim_buf_json(b, message, strlen(message), 0);
    sim_buf_fmt(b,
                "\",\n    \"type\": \"%s\",\n    \"param\": null,\n"
                "    \"code\": %s\n  }\n}\n",
                row->type, row->code);
}

void sim_chat_models(sim_buf_t *b)
{
    static const char *const names[] = {"gpt-4.1", "gpt-4.1-mini", "gpt-4o",
                                        "gpt-4o-mini", "o4-mini"};
    size_t i;

    sim_buf_str(b, "{\n  \"object\": \"list\",\n  \"data\": [");
    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        sim_buf_fmt(b,
                    "%s\n    {\n      \"id\": \"%s\",\n"
                    "      \"object\": \"model\",\n"
                    "      \"created\": 1744316542,\n"
                    "      \"owned_by\": \"system\"\n    }",
                    i ? "," : "", names[i]);
    }
    sim_buf_str(b, "\n  ]\n}\n");
}
