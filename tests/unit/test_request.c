/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read of a request, by its endpoint: the model and whether a stream
 * is wanted, wherever they stand, and how much text was asked.  The JSON
 * scan itself and its faults are test_reqbody's.  Estimates are here too, as
 * they are made of such bytes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "estimate.h"
#include "reqbody.h"
#include "pieces.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define FORM "multipart/form-data; boundary=b"
#define PART(name, value)                                                    \
    "--b\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n" value \
    "\r\n"

static aigw_body_fault_t read_at(const char *path, const char *type,
                                 const char *body, aigw_reqbody_t *rb)
{
    size_t n = strlen(body);
    char *copy = malloc(n ? n : 1);
    aigw_body_fault_t fault;
    aigw_match_t match;

    memcpy(copy, body, n);
    assert_int_equal(aigw_endpoint_match(path, NULL, &match), AIGW_OK);
    fault = aigw_reqbody_read(&match, type, copy, n, rb);
    assert_true(rb->fault_at <= n);
    free(copy);
    return fault;
}

typedef struct {
    const char *path, *type, *body;
    aigw_body_fault_t fault;
    const char *model;
    int stream;
    unsigned long text;
} request_t;

#define SPEECH "/audio/speech"
#define EDITS "/images/edits"
#define SCRIPTS "/audio/transcriptions"
#define JSON "application/json"
#define GENERATE "/models/g-2:generateContent"

/* clang-format off */
static const request_t requests[] = {
    {"/chat/completions", JSON, "{\"model\":\"m\",\"messages\":[{\"role\":"
     "\"user\",\"content\":\"a\\n\\u00e9\"},{\"content\":[{\"type\":\"text\","
     "\"text\":\"xyz\"},{\"image_url\":{\"url\":\"data:\"}}]}],"
     "\"stream\":true}", AIGW_BODY_OK, "m", 1, 7},
    {"/responses", JSON, "{\"input\":\"abc\",\"instructions\":\"de\","
     "\"model\":\"m\",\"stream\":null}", AIGW_BODY_OK, "m", 0, 5},
    {"/responses", JSON, "{\"input\":[{\"content\":[{\"text\":\"abc\"}]},"
     "{\"type\":\"function_call_output\",\"output\":\"de\"},\"f\"],"
     "\"model\":\"m\"}", AIGW_BODY_OK, "m", 0, 6},
    {"/responses", JSON, "{\"prompt\":{\"id\":\"p\"}}", AIGW_BODY_NO_MODEL,
     "", 0, 0},
    {"/completions", JSON, "{\"model\":\"m\",\"prompt\":[\"ab\",\"c\"]}",
     AIGW_BODY_OK, "m", 0, 3},
    {"/embeddings", NULL, "{\"model\":\"m\",\"input\":[\"ab\",\"c\"]}",
     AIGW_BODY_OK, "m", 0, 3},
    {"/messages", JSON, "{\"model\":\"m\",\"system\":[{\"text\":\"ab\"}],"
     "\"messages\":[{\"content\":\"c\"}],\"stream\":true}", AIGW_BODY_OK,
     "m", 1, 3},
    {SPEECH, JSON, "{\"model\":\"m\",\"input\":\"Hi\","
     "\"stream_format\":\"sse\"}", AIGW_BODY_OK, "m", 1, 2},
    {SPEECH, JSON, "{\"model\":\"m\",\"stream_format\":\"audio\"}",
     AIGW_BODY_OK, "m", 0, 0},
    {"/chat/completions", JSON, "{\"model\":\"m\","
     "\"stream_format\":\"sse\"}", AIGW_BODY_OK, "m", 0, 0},
    /* forms */
    {SCRIPTS, FORM, PART("model", "wh-1") PART("stream", "true")
     PART("prompt", "names") "--b--", AIGW_BODY_OK, "wh-1", 1, 5},
    {EDITS, FORM, PART("prompt", "a hat") PART("image[]", "\x89PNG")
     PART("stream", "false") PART("model", "im-1") "--b--\r\n", AIGW_BODY_OK,
     "im-1", 0, 5},
    {EDITS, JSON, "{\"model\":\"im-1\",\"stream\":true,\"prompt\":\"x\"}",
     AIGW_BODY_OK, "im-1", 1, 1},
    {EDITS, FORM, PART("prompt", "x") "--b--", AIGW_BODY_NO_MODEL, "", 0, 1},
    {EDITS, FORM, PART("model", "") "--b--", AIGW_BODY_BAD_MODEL, "", 0, 0},
    {EDITS, FORM, PART("model", "a\nb") "--b--", AIGW_BODY_BAD_MODEL, "", 0,
     0},
    {EDITS, FORM, PART("model", "a") PART("model", "b") "--b--",
     AIGW_BODY_DUPLICATE, "a", 0, 0},
    {EDITS, FORM, PART("model", "a") PART("stream", "yes") "--b--",
     AIGW_BODY_BAD_STREAM, "a", 0, 0},
    {EDITS, FORM, PART("stream", "true") PART("stream", "true")
     PART("model", "a") "--b--", AIGW_BODY_DUPLICATE, "a", 1, 0},
    {EDITS, FORM, "--b\r\nContent-Disposition: form-data; name=\"model\"; "
     "filename=\"m\"\r\n\r\nm\r\n--b--", AIGW_BODY_BAD_MODEL, "", 0, 0},
    {EDITS, FORM, PART("model", "a"), AIGW_BODY_NOT_FORM, "", 0, 0},
    {EDITS, FORM, "{\"model\":\"a\"}", AIGW_BODY_NOT_FORM, "", 0, 0},
    {EDITS, "multipart/form-data", "--b--", AIGW_BODY_NOT_FORM, "", 0, 0},
    {EDITS, NULL, PART("model", "a") "--b--", AIGW_BODY_NOT_JSON, "", 0, 0},
    {"/chat/completions", FORM, PART("model", "a") "--b--",
     AIGW_BODY_NOT_JSON, "", 0, 0},
    /* the path says it */
    {GENERATE, JSON, "{\"contents\":[{\"parts\":[{\"text\":\"ab\"}]}],"
     "\"systemInstruction\":{\"parts\":[{\"text\":\"c\"}]},"
     "\"model\":7,\"stream\":\"odd\",\"stream_options\":1}", AIGW_BODY_OK,
     "g-2", 0, 3},
    {"/models/g-2:streamGenerateContent", JSON, "{}", AIGW_BODY_OK, "g-2", 1,
     0},
    {"/models/g-2:embedContent", JSON, "{\"content\":{\"parts\":[{\"text\":"
     "\"ab\"}]}}", AIGW_BODY_OK, "g-2", 0, 2},
    {GENERATE, JSON, "[]", AIGW_BODY_NOT_JSON, "g-2", 0, 0},
    {GENERATE, JSON, "", AIGW_BODY_NOT_JSON, "g-2", 0, 0},
    {GENERATE, JSON, "{} x", AIGW_BODY_NOT_JSON, "g-2", 0, 0},
    /* nothing says it */
    {"/models", NULL, "whatever", AIGW_BODY_OK, "", 0, 0},
    /* a stream unless told otherwise */
    {"/chat", JSON, "{\"model\":\"m\"}", AIGW_BODY_OK, "m", 1, 0},
    {"/chat", JSON, "{\"model\":\"m\",\"stream\":null}", AIGW_BODY_OK, "m",
     1, 0},
    {"/chat", JSON, "{\"model\":\"m\",\"stream\":false}", AIGW_BODY_OK, "m",
     0, 0},
};
/* clang-format on */

static void a_request_is_read_where_its_endpoint_says(void **state)
{
    aigw_reqbody_t rb;
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(requests); ++i) {
        const request_t *r = &requests[i];
        aigw_body_fault_t fault = read_at(r->path, r->type, r->body, &rb);

        if (fault != r->fault || strcmp(rb.model, r->model) != 0
            || rb.stream != r->stream
            || (fault == AIGW_BODY_OK && rb.text_bytes != r->text)) {
            fail_msg("%s %s: fault %d model %s stream %d text %lu", r->path,
                     r->body, (int)fault, rb.model, rb.stream,
                     (unsigned long)rb.text_bytes);
        }
    }
}

static void the_name_in_a_form_can_be_replaced(void **state)
{
    static const char body[] =
        PART("stream", "true") PART("model", "im-1") "--b--";
    aigw_edit_t edits[AIGW_REQBODY_EDITS];
    aigw_reqbody_t rb;

    (void)state;
    assert_int_equal(read_at(EDITS, FORM, body, &rb), AIGW_BODY_OK);
    assert_int_equal(aigw_reqbody_edits(&rb, 0, aigw_slice("im-2", 4), edits),
                     1);
    assert_int_equal(edits[0].cut, 4);
    assert_memory_equal(body + edits[0].at, "im-1", 4);
}

/* ---- estimates ---------------------------------------------------------- */

static void an_estimate_is_made_of_bytes_and_rounded_up(void **state)
{
    const aigw_dialect_t *d = aigw_dialect_find("openai");
    aigw_usage_t u;

    (void)state;
    memset(&u, 0, sizeof(u));
    assert_int_equal(aigw_estimate(d, 401, 7, &u), 1);
    assert_int_equal(u.source, AIGW_USAGE_ESTIMATED);
    assert_int_equal(u.known,
                     1u << AIGW_U_INPUT_UNCACHED | 1u << AIGW_U_OUTPUT);
    assert_int_equal(u.n[AIGW_U_INPUT_UNCACHED],
                     (401 * 100 + d->text_factor - 1) / d->text_factor);
    assert_int_equal(u.n[AIGW_U_OUTPUT], 2);
}

/* Tokens of the texts of tests/data/estimates as public tokenizers count
 * them: o200k_base for openai, Claude's older one for anthropic, Gemma 3's
 * for gemini, cl100k_base for what ollama mostly runs. */
static const struct {
    const char *file;
    int openai, anthropic, gemini, ollama;
} texts[] = {
    {"chinese.txt", 159, 219, 144, 229},  {"code.txt", 184, 193, 221, 186},
    {"english.txt", 127, 132, 128, 129},  {"french.txt", 137, 177, 146, 159},
    {"german.txt", 138, 176, 138, 161},   {"hindi.txt", 123, 378, 104, 356},
    {"japanese.txt", 173, 236, 140, 239}, {"json.txt", 144, 148, 172, 142},
    {"korean.txt", 165, 272, 147, 248},   {"russian.txt", 151, 268, 150, 242},
};

/* The bounds that docs/metering.md states, in percent of the real count. */
static void check_estimate(const char *dialect, size_t bytes, int tokens,
                           int low, int high)
{
    int guess = (int)aigw_estimate_tokens(aigw_dialect_find(dialect), bytes);

    assert_true(guess * 100 >= tokens * low);
    assert_true(guess * 100 <= tokens * high);
}

static void an_estimate_is_as_near_as_the_manual_says(void **state)
{
    size_t i, n;

    (void)state;
    for (i = 0; i < COUNT(texts); ++i) {
        char *text = pieces_file(TEST_DATA "/estimates", texts[i].file, &n);

        assert_non_null(text);
        check_estimate("openai", n, texts[i].openai, 62, 191);
        check_estimate("anthropic", n, texts[i].anthropic, 70, 133);
        check_estimate("gemini", n, texts[i].gemini, 52, 225);
        check_estimate("ollama", n, texts[i].ollama, 76, 136);
        free(text);
    }
}

static void an_estimate_never_joins_a_reported_number(void **state)
{
    const aigw_dialect_t *d = aigw_dialect_find("openai");
    aigw_usage_t u;

    (void)state;
    memset(&u, 0, sizeof(u));
    aigw_usage_set(&u, AIGW_U_OUTPUT, 0);
    u.source = AIGW_USAGE_PARTIAL;
    assert_int_equal(aigw_estimate(d, 400, 400, &u), 0);
    assert_int_equal(u.known, 1u << AIGW_U_OUTPUT);
    assert_int_equal(u.source, AIGW_USAGE_PARTIAL);
}

static void without_text_there_is_no_estimate(void **state)
{
    const aigw_dialect_t *d = aigw_dialect_find("openai");
    aigw_usage_t u;

    (void)state;
    memset(&u, 0, sizeof(u));
    aigw_usage_set(&u, AIGW_U_IMAGES, 2);
    assert_int_equal(aigw_estimate(d, 0, 0, &u), 0);
    assert_int_equal(u.source, AIGW_USAGE_NONE);
    assert_int_equal(aigw_estimate(d, 0, 1, &u), 1);
    assert_int_equal(u.known, 1u << AIGW_U_IMAGES | 1u << AIGW_U_OUTPUT);
    assert_true(aigw_estimate_tokens(d, (apr_uint64_t)-1) <= (apr_uint64_t)1
                                                                 << 53);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_read_where_its_endpoint_says),
        cmocka_unit_test(the_name_in_a_form_can_be_replaced),
        cmocka_unit_test(an_estimate_is_made_of_bytes_and_rounded_up),
        cmocka_unit_test(an_estimate_is_as_near_as_the_manual_says),
        cmocka_unit_test(an_estimate_never_joins_a_reported_number),
        cmocka_unit_test(without_text_there_is_no_estimate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
