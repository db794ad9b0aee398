/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reasons and what becomes of them: each has a row that can be told to a
 * caller, and the providers' words for errors have the right statuses.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "reason.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void every_reason_has_a_row_of_its_own(void **state)
{
    int i, j;

    (void)state;
    for (i = AIGW_REASON_NONE; i < AIGW_REASON_MAX; ++i) {
        const aigw_reason_info_t *info = aigw_reason_info((aigw_reason_t)i);

        assert_int_equal(info->reason, i);
        assert_true(info->word[0] != '\0');
        assert_true(i == AIGW_REASON_NONE
                    || (info->status >= 400 && info->status < 600
                        && info->type[0] != '\0' && info->message[0] != '\0'));
        for (j = AIGW_REASON_NONE; j < i; ++j) {
            assert_string_not_equal(info->word,
                                    aigw_reason_info((aigw_reason_t)j)->word);
        }
    }
    assert_int_equal(aigw_reason_info(AIGW_REASON_MAX)->reason,
                     AIGW_REASON_INTERNAL);
}

static void an_error_inside_an_answer_has_the_status_that_fits(void **state)
{
    static const struct {
        const char *word;
        int status;
    } words[] = {
        {"429", 429},
        {"504", 504},
        {"399", 502},
        {"600", 502},
        {"1302", 502},
        {"rate_limit_exceeded", 429},
        {"rate_limit_error", 429},
        {"insufficient_quota", 429},
        {"overloaded_error", 503},
        {"engine_overloaded", 503},
        {"timeout_error", 504},
        {"invalid_request_error", 400},
        {"context_length_exceeded", 400},
        {"not_found_error", 404},
        {"request_too_large", 413},
        {"moderation_blocked", 400},
        {"RESOURCE_EXHAUSTED", 429},
        {"UNAVAILABLE", 503},
        {"DEADLINE_EXCEEDED", 504},
        {"INVALID_ARGUMENT", 400},
        {"NOT_FOUND", 404},
        {"INTERNAL", 502},
        {"api_error", 502},
        {"authentication_error", 502}, /* the caller's key is right */
        {"", 502},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(words); ++i) {
        assert_int_equal(aigw_reason_error_status(words[i].word),
                         words[i].status);
    }
}

static void what_may_pass_is_tried_elsewhere(void **state)
{
    static const int yes[] = {408, 409, 429, 500, 502, 529, 599};
    static const int no[] = {200, 400, 401, 404, 413, 422, 600};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(yes); ++i) {
        assert_true(aigw_reason_status_retry(yes[i]));
        assert_false(aigw_reason_status_retry(no[i]));
    }
    assert_true(aigw_reason_retry(AIGW_REASON_CONNECT));
    assert_true(aigw_reason_retry(AIGW_REASON_TRUNCATED));
    assert_false(aigw_reason_retry(AIGW_REASON_NOT_JSON));
    assert_false(aigw_reason_retry(AIGW_REASON_CLIENT_GONE));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reason_has_a_row_of_its_own),
        cmocka_unit_test(an_error_inside_an_answer_has_the_status_that_fits),
        cmocka_unit_test(what_may_pass_is_tried_elsewhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
