/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices, and the small tables that every floor uses: usage fields, reasons,
 * endpoints, error bodies.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <cmocka.h>
#include <jansson.h>
#include "slice.h"
#include "usage.h"
#include "dialect.h"

static aigw_slice_t text(const char *s)
{
    return aigw_slice(s, strlen(s));
}

static void a_slice_is_compared_as_a_whole(void **state)
{
    (void)state;
    assert_true(aigw_slice_is(text("abc"), "abc"));
    assert_false(aigw_slice_is(text("abc"), "abcd"));
    assert_false(aigw_slice_is(text("abcd"), "abc"));
    assert_false(aigw_slice_is(text("Abc"), "abc"));
    assert_true(aigw_slice_is(aigw_slice("abcd", 3), "abc"));
    assert_false(aigw_slice_is(aigw_slice("ab\0", 3), "ab"));
}

static void case_is_ignored_for_ascii_letters_only(void **state)
{
    (void)state;
    assert_true(aigw_slice_is_nocase(text("Content-LENGTH"),
                                     "content-length"));
    assert_false(aigw_slice_is_nocase(text("content_length"),
                                      "content-length"));
    assert_false(aigw_slice_is_nocase(text("a[b"), "a{b"));
    assert_false(aigw_slice_is_nocase(text("\xc4"), "\xe4"));
    assert_false(aigw_slice_is_nocase(text("abc"), "ab"));
}

static void a_number_is_digits_only_and_fits(void **state)
{
    static const char *const bad[] = {"",   " 1",  "1 ",  "+1", "-1",
                                      "1.", "0x1", "1e2", "a",  ":"};
    apr_uint64_t n = 7;
    size_t i;

    (void)state;
    assert_int_equal(aigw_slice_u64(text("0"), &n), AIGW_OK);
    assert_true(n == 0);
    assert_int_equal(aigw_slice_u64(text("00042"), &n), AIGW_OK);
    assert_true(n == 42);
    assert_int_equal(aigw_slice_u64(text("18446744073709551615"), &n),
                     AIGW_OK);
    assert_true(n == APR_UINT64_MAX);
    n = 7;
    assert_int_equal(aigw_slice_u64(text("18446744073709551616"), &n),
                     AIGW_TOO_BIG);
    assert_int_equal(aigw_slice_u64(text("99999999999999999999"), &n),
                     AIGW_TOO_BIG);
    assert_int_equal(aigw_slice_u64(text("99999999999999999999x"), &n),
                     AIGW_MALFORMED);
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        assert_int_equal(aigw_slice_u64(text(bad[i]), &n), AIGW_MALFORMED);
    }
    assert_true(n == 7);
}

static void a_count_is_known_only_once_it_was_stated(void **state)
{
    aigw_usage_t u;
    apr_uint64_t n = 9;

    (void)state;
    memset(&u, 0, sizeof(u));
    assert_false(aigw_usage_get(&u, AIGW_U_OUTPUT, &n));
    assert_true(n == 0);
    aigw_usage_set(&u, AIGW_U_OUTPUT, 0);
    assert_true(aigw_usage_get(&u, AIGW_U_OUTPUT, &n));
    assert_true(n == 0);
    aigw_usage_set(&u, AIGW_U_OUTPUT, 12);
    assert_true(aigw_usage_get(&u, AIGW_U_OUTPUT, &n));
    assert_true(n == 12);
    assert_false(aigw_usage_get(&u, AIGW_U_REASONING, &n));
}

static void every_field_and_source_has_its_own_name(void **state)
{
    int i, k;

    (void)state;
    for (i = 0; i < AIGW_U_MAX; ++i) {
        assert_non_null(aigw_usage_field_name((aigw_usage_field_t)i));
        for (k = 0; k < i; ++k) {
            assert_string_not_equal(
                aigw_usage_field_name((aigw_usage_field_t)i),
                aigw_usage_field_name((aigw_usage_field_t)k));
        }
    }
    assert_string_equal(aigw_usage_field_name(AIGW_U_INPUT_UNCACHED),
                        "input_uncached");
    assert_string_equal(aigw_usage_field_name(AIGW_U_AUDIO_SECONDS),
                        "audio_seconds");
    assert_string_equal(aigw_usage_field_name(AIGW_U_MAX), "");
    assert_string_equal(aigw_usage_source_name(AIGW_USAGE_NONE), "none");
    assert_string_equal(aigw_usage_source_name(AIGW_USAGE_REPORTED),
                        "reported");
    assert_string_equal(aigw_usage_source_name(AIGW_USAGE_PARTIAL),
                        "partial");
    assert_string_equal(aigw_usage_source_name(AIGW_USAGE_ESTIMATED),
                        "estimated");
}

static void every_reason_has_a_row_of_its_own(void **state)
{
    int i, k;

    (void)state;
    for (i = 0; i < AIGW_REASON_MAX; ++i) {
        const aigw_reason_info_t *row = aigw_reason_info((aigw_reason_t)i);

        assert_int_equal(row->reason, i);
        assert_non_null(row->word);
        assert_non_null(row->type);
        assert_in_range(row->status, 200, 599);
        if (i > 0) {
            assert_in_range(row->status, 400, 599);
            assert_true(strlen(row->message) > 20);
            assert_true(strlen(row->type) > 0);
        }
        for (k = 0; k < i; ++k) {
            assert_string_not_equal(
                row->word, aigw_reason_info((aigw_reason_t)k)->word);
        }
        assert_int_equal(row->retry_after > 0, row->status == 503);
    }
    assert_int_equal(aigw_reason_info(AIGW_REASON_MAX)->reason,
                     AIGW_REASON_INTERNAL);
}

static void body_of(aigw_reason_t reason, const char *message, char *buf,
                    size_t size)
{
    apr_size_t n = aigw_dialect_openai.error_body(
        buf, size, aigw_reason_info(reason), message, "req-1");

    assert_true(n < size);
    assert_int_equal(n, strlen(buf));
}

static void no_caller_can_tell_an_unknown_key_from_an_expired_one(void **state)
{
    char none[1024], unknown[1024], expired[1024];
    json_t *body;

    (void)state;
    body_of(AIGW_REASON_NO_KEY, NULL, none, sizeof(none));
    body_of(AIGW_REASON_BAD_KEY, NULL, unknown, sizeof(unknown));
    body_of(AIGW_REASON_KEY_EXPIRED, NULL, expired, sizeof(expired));
    assert_string_equal(none, unknown);
    assert_string_equal(none, expired);
    assert_int_equal(aigw_reason_info(AIGW_REASON_NO_KEY)->status, 401);
    assert_int_equal(aigw_reason_info(AIGW_REASON_BAD_KEY)->status, 401);
    assert_int_equal(aigw_reason_info(AIGW_REASON_KEY_EXPIRED)->status, 401);

    body = json_loads(none, 0, NULL);
    assert_non_null(body);
    assert_string_equal(json_string_value(json_object_get(
                            json_object_get(body, "error"), "type")),
                        "invalid_request_error");
    assert_string_equal(json_string_value(json_object_get(
                            json_object_get(body, "error"), "code")),
                        "invalid_api_key");
    assert_true(json_is_null(
        json_object_get(json_object_get(body, "error"), "param")));
    json_decref(body);
}

static void an_error_body_is_whole_json_whatever_the_message(void **state)
{
    char message[4096], buf[512];
    size_t i, n;

    (void)state;
    for (i = 0; i < AIGW_REASON_MAX; ++i) {
        json_t *body;

        body_of((aigw_reason_t)i, NULL, buf, sizeof(buf));
        body = json_loads(buf, 0, NULL);
        assert_non_null(body);
        assert_string_equal(
            json_string_value(json_object_get(
                json_object_get(body, "error"), "message")),
            aigw_reason_info((aigw_reason_t)i)->message);
        json_decref(body);
    }
    for (n = 0; n < sizeof(message); n = n * 2 + 1) {
        json_t *body;

        for (i = 0; i < n; ++i) {
            message[i] = (char)(i % 255 + 1);
        }
        message[n] = '\0';
        body_of(AIGW_REASON_FIRST_TIMEOUT, message, buf, sizeof(buf));
        body = json_loads(buf, 0, NULL);
        assert_non_null(body);
        json_decref(body);
    }
}

static void only_the_endpoint_with_exactly_that_path_is_found(void **state)
{
    const aigw_dialect_t *d = aigw_dialect_find("openai");
    const aigw_endpoint_t *e;

    (void)state;
    assert_ptr_equal(d, &aigw_dialect_openai);
    assert_null(aigw_dialect_find("OpenAI"));
    assert_null(aigw_dialect_find(""));
    e = aigw_dialect_endpoint(d, "/chat/completions");
    assert_non_null(e);
    assert_int_equal(e->api, AIGW_API_OPENAI_CHAT);
    assert_string_equal(e->method, "POST");
    assert_true(e->ask_usage);
    assert_string_equal(aigw_api_name(e->api), "openai.chat");
    assert_string_equal(aigw_api_name(AIGW_API_OTHER), "other");
    assert_null(aigw_dialect_endpoint(d, "/chat/completions/"));
    assert_null(aigw_dialect_endpoint(d, "/chat/completion"));
    assert_null(aigw_dialect_endpoint(d, "chat/completions"));
    assert_null(aigw_dialect_endpoint(d, "/chat/completions/x"));
    assert_null(aigw_dialect_endpoint(d, ""));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slice_is_compared_as_a_whole),
        cmocka_unit_test(case_is_ignored_for_ascii_letters_only),
        cmocka_unit_test(a_number_is_digits_only_and_fits),
        cmocka_unit_test(a_count_is_known_only_once_it_was_stated),
        cmocka_unit_test(every_field_and_source_has_its_own_name),
        cmocka_unit_test(every_reason_has_a_row_of_its_own),
        cmocka_unit_test(
            no_caller_can_tell_an_unknown_key_from_an_expired_one),
        cmocka_unit_test(an_error_body_is_whole_json_whatever_the_message),
        cmocka_unit_test(only_the_endpoint_with_exactly_that_path_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
