/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Endpoints, targets, profiles, statuses and error bodies of each dialect.
 * How answers are read is not looked at here.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>
#include "dialect.h"
#include "meter.h"

/* ---- endpoints ---------------------------------------------------------- */

typedef struct {
    const char *path, *api, *method, *language;
    aigw_model_place_t model;
} row_t;

/* clang-format off */
static const row_t rows[] = {
    {"/chat/completions", "openai.chat", "POST", "openai", AIGW_MODEL_JSON},
    {"/completions", "openai.completions", "POST", "openai", AIGW_MODEL_JSON},
    {"/responses", "openai.responses", "POST", "openai", AIGW_MODEL_JSON},
    {"/embeddings", "openai.embeddings", "POST", "openai", AIGW_MODEL_JSON},
    {"/moderations", "openai.moderations", "POST", "openai", AIGW_MODEL_JSON},
    {"/images/generations", "openai.images", "POST", "openai",
     AIGW_MODEL_JSON},
    {"/images/edits", "openai.images", "POST", "openai", AIGW_MODEL_FORM},
    {"/audio/speech", "openai.audio", "POST", "openai", AIGW_MODEL_JSON},
    {"/audio/transcriptions", "openai.audio", "POST", "openai",
     AIGW_MODEL_FORM},
    {"/audio/translations", "openai.audio", "POST", "openai",
     AIGW_MODEL_FORM},
    {"/models", "openai.models", "GET", "openai", AIGW_MODEL_NONE},
    {"/messages", "anthropic.messages", "POST", "anthropic",
     AIGW_MODEL_JSON},
    {"/messages/count_tokens", "anthropic.count_tokens", "POST", "anthropic",
     AIGW_MODEL_JSON},
    {"/models/g-1.5@2:generateContent", "gemini.generate", "POST", "gemini",
     AIGW_MODEL_PATH},
    {"/models/g-1.5@2:streamGenerateContent", "gemini.generate", "POST",
     "gemini", AIGW_MODEL_PATH},
    {"/models/g-1.5@2:countTokens", "gemini.count_tokens", "POST", "gemini",
     AIGW_MODEL_PATH},
    {"/models/g-1.5@2:embedContent", "gemini.embed", "POST", "gemini",
     AIGW_MODEL_PATH},
    {"/models/g-1.5@2:batchEmbedContents", "gemini.embed", "POST", "gemini",
     AIGW_MODEL_PATH},
    {"/chat", "ollama.chat", "POST", "ollama", AIGW_MODEL_JSON},
    {"/generate", "ollama.chat", "POST", "ollama", AIGW_MODEL_JSON},
};
/* clang-format on */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void every_endpoint_is_found_by_its_whole_path(void **state)
{
    char longer[100], target[AIGW_TARGET_MAX];
    aigw_match_t m;
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(rows); ++i) {
        const row_t *r = &rows[i];

        assert_int_equal(aigw_endpoint_match(r->path, NULL, &m), AIGW_OK);
        assert_string_equal(aigw_api_name(m.endpoint->api), r->api);
        assert_string_equal(m.endpoint->method, r->method);
        assert_string_equal(m.dialect->language, r->language);
        assert_int_equal(m.endpoint->model, r->model);
        assert_int_equal(m.model.n, r->model == AIGW_MODEL_PATH ? 7 : 0);
        assert_non_null(m.endpoint->answer);
        assert_int_equal(aigw_endpoint_target(&m, NULL, target),
                         strlen(r->path));
        assert_string_equal(target, r->path);

        snprintf(longer, sizeof(longer), "%s/", r->path);
        assert_int_equal(aigw_endpoint_match(longer, NULL, &m), AIGW_REFUSED);
        snprintf(longer, sizeof(longer), "/x%s", r->path);
        assert_int_equal(aigw_endpoint_match(longer, NULL, &m), AIGW_REFUSED);
        assert_null(m.endpoint);
    }
}

static void only_what_openai_documents_is_asked_for_usage(void **state)
{
    aigw_match_t m;
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(rows); ++i) {
        assert_int_equal(aigw_endpoint_match(rows[i].path, NULL, &m), AIGW_OK);
        assert_int_equal(m.endpoint->ask_usage,
                         strcmp(rows[i].path, "/chat/completions") == 0
                             || strcmp(rows[i].path, "/completions") == 0);
        assert_int_equal(m.endpoint->local,
                         strcmp(rows[i].path, "/models") == 0);
    }
}

static void what_is_no_endpoint_has_the_language_that_it_looks_like(void **s)
{
    static const struct {
        const char *path, *language;
    } paths[] = {
        {"", "openai"},
        {"/", "openai"},
        {"/files", "openai"},
        {"/models/gpt-4.1", "openai"},
        {"/messages/batches", "anthropic"},
        {"/models/g:predict", "gemini"},
        {"/models/:generateContent", "gemini"},
        {"/models/a/b:generateContent", "gemini"},
        {"/models/..:generateContent", "gemini"},
        {"/models/a%2fb:generateContent", "gemini"},
        {"/models/a b:generateContent", "gemini"},
        {"/models/a?b:generateContent", "gemini"},
        {"/models/\xc3\xa9:generateContent", "gemini"},
        {"/models/g:generateContent:generateContent", "gemini"},
    };
    aigw_match_t m;
    size_t i;

    (void)s;
    for (i = 0; i < COUNT(paths); ++i) {
        assert_int_equal(aigw_endpoint_match(paths[i].path, NULL, &m),
                         AIGW_REFUSED);
        assert_null(m.endpoint);
        assert_int_equal(m.model.n, 0);
        assert_string_equal(m.dialect->language, paths[i].language);
    }
}

static void a_model_in_a_path_is_at_most_128_bytes(void **state)
{
    char path[200];
    aigw_match_t m;

    (void)state;
    snprintf(path, sizeof(path), "/models/%0128d:countTokens", 0);
    assert_int_equal(aigw_endpoint_match(path, NULL, &m), AIGW_OK);
    snprintf(path, sizeof(path), "/models/%0129d:countTokens", 0);
    assert_int_equal(aigw_endpoint_match(path, NULL, &m), AIGW_REFUSED);
}

static void a_stream_of_gemini_is_one_of_events_only_if_asked(void **state)
{
    static const struct {
        const char *args;
        int sse;
    } queries[] = {
        {NULL, 0},           {"", 0},
        {"alt=sse", 1},      {"key=k&alt=sse", 1},
        {"alt=sse&key=", 1}, {"alt=json", 0},
        {"xalt=sse", 0},     {"alt=sse2", 0},
        {"alt=SSE", 0},      {"&&alt=sse", 1},
    };
    static const char path[] = "/models/g:streamGenerateContent";
    char target[AIGW_TARGET_MAX];
    aigw_match_t m;
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(queries); ++i) {
        assert_int_equal(aigw_endpoint_match(path, queries[i].args, &m),
                         AIGW_OK);
        assert_true(m.endpoint->streams);
        assert_ptr_equal(m.dialect, queries[i].sse
                                        ? &aigw_dialect_gemini
                                        : &aigw_dialect_gemini_array);
        aigw_endpoint_target(&m, NULL, target);
        assert_string_equal(target,
                            queries[i].sse
                                ? "/models/g:streamGenerateContent?alt=sse"
                                : "/models/g:streamGenerateContent");
    }
    assert_int_equal(aigw_endpoint_match("/models/g:generateContent",
                                         "alt=sse", &m),
                     AIGW_OK);
    assert_string_equal(m.query, "");
}

static void the_target_has_the_name_at_the_upstream(void **state)
{
    char target[AIGW_TARGET_MAX], name[300];
    aigw_match_t m;

    (void)state;
    aigw_endpoint_match("/models/g:generateContent", NULL, &m);
    assert_int_equal(aigw_endpoint_target(&m, "tuned-2", target), 31);
    assert_string_equal(target, "/models/tuned-2:generateContent");
    assert_int_equal(aigw_endpoint_target(&m, "a/b", target), 0);
    assert_int_equal(aigw_endpoint_target(&m, "a\r\nb", target), 0);
    assert_int_equal(aigw_endpoint_target(&m, "", target), 0);
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(aigw_endpoint_target(&m, name, target), 0);
    aigw_endpoint_match("/messages", NULL, &m);
    assert_int_equal(aigw_endpoint_target(&m, "a/b", target), 9);
    assert_string_equal(target, "/messages");
}

/* ---- names -------------------------------------------------------------- */

static void a_profile_is_a_row_of_its_own_only_if_it_counts_otherwise(void **s)
{
    const aigw_dialect_t *openai = aigw_dialect_find("openai");
    int i;

    (void)s;
    for (i = 0; aigw_dialect_profiles[i] != NULL; ++i) {
        const char *name = aigw_dialect_profiles[i];
        const aigw_dialect_t *d = aigw_dialect_profile(openai, name);
        int own = strcmp(name, "xai") == 0 || strcmp(name, "gemini") == 0
                  || strcmp(name, "perplexity") == 0;

        assert_non_null(d);
        assert_int_equal(d != openai, own);
        assert_true(aigw_dialect_speaks(d, openai));
        assert_ptr_equal(aigw_dialect_profile(&aigw_dialect_anthropic, name),
                         &aigw_dialect_anthropic);
    }
    assert_int_equal(i, 15);
    assert_ptr_equal(aigw_dialect_profile(openai, NULL), openai);
    assert_null(aigw_dialect_profile(openai, "acme"));
    assert_string_equal(aigw_dialect_profile(openai, "xai")->name, "xai");
    assert_false(aigw_dialect_speaks(openai, &aigw_dialect_anthropic));
    assert_true(
        aigw_dialect_speaks(&aigw_dialect_gemini, &aigw_dialect_gemini_array));
}

static void names_are_found_and_others_are_not(void **state)
{
    int api;

    (void)state;
    assert_ptr_equal(aigw_dialect_find("anthropic"), &aigw_dialect_anthropic);
    assert_ptr_equal(aigw_dialect_find("gemini"), &aigw_dialect_gemini);
    assert_ptr_equal(aigw_dialect_find("ollama"), &aigw_dialect_ollama);
    assert_null(aigw_dialect_find("Anthropic"));
    assert_null(aigw_dialect_find(""));
    for (api = 0; api < AIGW_API_MAX; ++api) {
        assert_non_null(aigw_api_name((aigw_api_t)api));
    }
    assert_string_equal(aigw_api_name(AIGW_API_OTHER), "other");
    assert_string_equal(aigw_api_name(AIGW_API_MAX), "other");
}

static void the_old_question_knows_the_chat_only(void **state)
{
    const aigw_dialect_t *openai = aigw_dialect_find("openai");

    (void)state;
    assert_int_equal(aigw_dialect_endpoint(openai, "/chat/completions")->api,
                     AIGW_API_OPENAI_CHAT);
    assert_null(aigw_dialect_endpoint(openai, "/responses"));
    assert_null(aigw_dialect_endpoint(&aigw_dialect_anthropic, "/messages"));
}

/* ---- errors ------------------------------------------------------------- */

static const aigw_dialect_t *const all[] = {
    &aigw_dialect_openai,       &aigw_dialect_anthropic, &aigw_dialect_gemini,
    &aigw_dialect_gemini_array, &aigw_dialect_ollama,
};

static json_t *error_of(const aigw_dialect_t *d,
                        const aigw_reason_info_t *info, size_t size,
                        const char *message, const char *id)
{
    char *buf = malloc(size);
    apr_size_t n = d->error_body(buf, size, info, message, id);
    json_t *json;

    assert_true(n > 0 && n < size);
    assert_int_equal(strlen(buf), n);
    assert_int_equal(buf[n - 1], '\n');
    json = json_loadb(buf, n, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    free(buf);
    return json;
}

static void every_error_body_is_whole_json_however_small_its_room(void **s)
{
    static const char odd[] = "a \"quote\", a \\, a\n\x01\x7f and \xc3\xa9 ";
    char message[700], id[600];
    size_t d;
    int r;

    (void)s;
    for (r = 0; r < (int)sizeof(message) - 1; ++r) {
        message[r] = odd[(size_t)r % (sizeof(odd) - 1)];
    }
    message[sizeof(message) - 1] = '\0';
    memset(id, '"', sizeof(id) - 1);
    id[sizeof(id) - 1] = '\0';
    for (r = AIGW_REASON_NO_KEY; r < AIGW_REASON_MAX; ++r) {
        aigw_reason_info_t info = *aigw_reason_info((aigw_reason_t)r);

        info.code = "co\"de";
        for (d = 0; d < COUNT(all); ++d) {
            json_decref(error_of(all[d], &info, 4096, NULL, NULL));
            json_decref(error_of(all[d], &info, 512, message, "req-1"));
            json_decref(error_of(all[d], &info, 512, message, NULL));
            json_decref(error_of(all[d], &info, 512, NULL, id));
        }
    }
}

static const char *text_at(json_t *json, const char *a, const char *b)
{
    json_t *v = json_object_get(json, a);

    return json_string_value(b != NULL ? json_object_get(v, b) : v);
}

static void anthropic_errors_have_a_type_by_their_status(void **state)
{
    static const struct {
        aigw_reason_t reason;
        int status;
        const char *type;
    } errors[] = {
        {AIGW_REASON_NO_KEY, 401, "authentication_error"},
        {AIGW_REASON_NOT_JSON, 400, "invalid_request_error"},
        {AIGW_REASON_METHOD, 405, "invalid_request_error"},
        {AIGW_REASON_MODEL_UNKNOWN, 404, "not_found_error"},
        {AIGW_REASON_BODY_TOO_LARGE, 413, "request_too_large"},
        {AIGW_REASON_OVERLOADED, 529, "overloaded_error"},
        {AIGW_REASON_UPSTREAM_FULL, 529, "overloaded_error"},
        {AIGW_REASON_CONNECT, 502, "api_error"},
        {AIGW_REASON_FIRST_TIMEOUT, 504, "timeout_error"},
        {AIGW_REASON_INTERNAL, 500, "api_error"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(errors); ++i) {
        const aigw_reason_info_t *info = aigw_reason_info(errors[i].reason);
        json_t *json =
            error_of(&aigw_dialect_anthropic, info, 2048, "So.", "req-9");

        assert_int_equal(aigw_dialect_status(&aigw_dialect_anthropic, info),
                         errors[i].status);
        assert_int_equal(aigw_dialect_status(&aigw_dialect_openai, info),
                         info->status);
        assert_string_equal(text_at(json, "type", NULL), "error");
        assert_string_equal(text_at(json, "error", "type"), errors[i].type);
        assert_string_equal(text_at(json, "error", "message"), "So.");
        assert_string_equal(text_at(json, "request_id", NULL), "req-9");
        json_decref(json);
    }
}

static void anthropic_statuses_of_an_account_have_their_types(void **state)
{
    static const struct {
        int status;
        const char *type;
    } errors[] = {
        {402, "billing_error"},
        {403, "permission_error"},
        {429, "rate_limit_error"},
        {529, "overloaded_error"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(errors); ++i) {
        aigw_reason_info_t info =
            *aigw_reason_info(AIGW_REASON_UPSTREAM_ERROR);
        json_t *json;

        info.status = errors[i].status;
        json = error_of(&aigw_dialect_anthropic, &info, 2048, NULL, NULL);
        assert_string_equal(text_at(json, "error", "type"), errors[i].type);
        assert_null(json_object_get(json, "request_id"));
        json_decref(json);
    }
}

static void gemini_errors_say_their_status_and_the_wait(void **state)
{
    static const struct {
        int status;
        const char *word;
    } errors[] = {
        {400, "INVALID_ARGUMENT"},   {401, "UNAUTHENTICATED"},
        {403, "PERMISSION_DENIED"},  {404, "NOT_FOUND"},
        {408, "DEADLINE_EXCEEDED"},  {413, "INVALID_ARGUMENT"},
        {429, "RESOURCE_EXHAUSTED"}, {499, "CANCELLED"},
        {500, "INTERNAL"},           {502, "UNAVAILABLE"},
        {503, "UNAVAILABLE"},        {504, "DEADLINE_EXCEEDED"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(errors); ++i) {
        aigw_reason_info_t info = *aigw_reason_info(AIGW_REASON_OVERLOADED);
        json_t *json, *error, *details;

        info.status = errors[i].status;
        info.retry_after = 34;
        json = error_of(&aigw_dialect_gemini, &info, 2048, "So.", "req-9");
        error = json_object_get(json, "error");
        details = json_object_get(error, "details");
        assert_int_equal(json_integer_value(json_object_get(error, "code")),
                         errors[i].status);
        assert_string_equal(text_at(error, "status", NULL), errors[i].word);
        assert_string_equal(text_at(error, "message", NULL), "So.");
        assert_int_equal(json_array_size(details), 2);
        assert_string_equal(text_at(json_array_get(details, 0), "retryDelay",
                                    NULL),
                            "34s");
        assert_string_equal(text_at(json_array_get(details, 1), "requestId",
                                    NULL),
                            "req-9");
        json_decref(json);
    }
}

static void gemini_errors_are_in_an_array_where_answers_are(void **state)
{
    const aigw_reason_info_t *info = aigw_reason_info(AIGW_REASON_OVERLOADED);
    json_t *json =
        error_of(&aigw_dialect_gemini_array, info, 2048, NULL, NULL);
    json_t *error = json_object_get(json_array_get(json, 0), "error");

    (void)state;
    assert_int_equal(json_array_size(json), 1);
    assert_int_equal(json_integer_value(json_object_get(error, "code")), 503);
    json_decref(json);
}

static void ollama_errors_are_a_sentence(void **state)
{
    const aigw_reason_info_t *info = aigw_reason_info(AIGW_REASON_INTERNAL);
    json_t *json = error_of(&aigw_dialect_ollama, info, 512, "So.", "req-9");

    (void)state;
    assert_string_equal(text_at(json, "error", NULL), "So.");
    json_decref(json);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_endpoint_is_found_by_its_whole_path),
        cmocka_unit_test(only_what_openai_documents_is_asked_for_usage),
        cmocka_unit_test(
            what_is_no_endpoint_has_the_language_that_it_looks_like),
        cmocka_unit_test(a_model_in_a_path_is_at_most_128_bytes),
        cmocka_unit_test(a_stream_of_gemini_is_one_of_events_only_if_asked),
        cmocka_unit_test(the_target_has_the_name_at_the_upstream),
        cmocka_unit_test(
            a_profile_is_a_row_of_its_own_only_if_it_counts_otherwise),
        cmocka_unit_test(names_are_found_and_others_are_not),
        cmocka_unit_test(the_old_question_knows_the_chat_only),
        cmocka_unit_test(
            every_error_body_is_whole_json_however_small_its_room),
        cmocka_unit_test(anthropic_errors_have_a_type_by_their_status),
        cmocka_unit_test(anthropic_statuses_of_an_account_have_their_types),
        cmocka_unit_test(gemini_errors_say_their_status_and_the_wait),
        cmocka_unit_test(gemini_errors_are_in_an_array_where_answers_are),
        cmocka_unit_test(ollama_errors_are_a_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
