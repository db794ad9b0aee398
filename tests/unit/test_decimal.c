/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Money: what is read, what is refused, what is printed, at the edges.  Many
 * random values are compared with Python's decimal by tests/calc, through
 * decimal_tool.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "decimal.h"

#define MAX_TEXT "170141183460469231731687.303715884105727"
#define MIN_TEXT "-170141183460469231731687.303715884105728"

static aigw_money_t money(const char *text)
{
    aigw_money_t m = -1;

    assert_int_equal(aigw_money_parse(aigw_slice(text, strlen(text)), &m),
                     AIGW_OK);
    return m;
}

static aigw_rc_t fails(const char *text)
{
    aigw_money_t m = 77;
    aigw_rc_t rc = aigw_money_parse(aigw_slice(text, strlen(text)), &m);

    assert_true(m == 77);
    return rc;
}

static void assert_text(aigw_money_t m, const char *want)
{
    char buf[AIGW_MONEY_TEXT];

    assert_int_equal(aigw_money_text(m, buf), strlen(want));
    assert_string_equal(buf, want);
}

static void assert_round(const char *text, int digits, aigw_round_t mode,
                         const char *want)
{
    char buf[AIGW_MONEY_TEXT];
    apr_size_t n = aigw_money_round_text(money(text), digits, mode, buf);

    assert_string_equal(buf, want);
    assert_int_equal(n, strlen(want));
}

static void parse_gives_the_exact_count_of_units(void **state)
{
    (void)state;
    assert_true(money("0") == 0);
    assert_true(money("-0.000") == 0);
    assert_true(money("1") == (aigw_money_t)1000000000000000);
    assert_true(money("0.000000000000001") == 1);
    assert_true(money("-0.000000000000001") == -1);
    assert_true(money("2.50") == (aigw_money_t)2500000000000000);
    assert_true(money("5.46875e-07") == 546875000);
    assert_true(money("3E+2") == (aigw_money_t)300000000000000000);
    assert_true(money("100e-2") == money("1"));
}

static void parse_ignores_zeros_below_the_last_unit(void **state)
{
    (void)state;
    assert_true(money("0.0000000000000010000000000000000000000000000") == 1);
    assert_true(money("0e999999999999999999999") == 0);
    assert_true(money("0.0e-999999999999999999999") == 0);
    assert_true(money("1000000000000000000000000000000e-30") == money("1"));
}

static void parse_refuses_what_is_not_a_json_number(void **state)
{
    static const char *const bad[] = {"",    "-",   "+1",    ".5",    "1.",
                                      "01",  "1e",  "1e+",   "1.e5",  "1 ",
                                      " 1",  "1,5", "0x10",  "1_000", "nan",
                                      "inf", "--1", "1.2.3", "1e5.",  "$1",
                                      "-01", "1e-", "e5",    "1ee5"};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(fails(bad[i]), AIGW_MALFORMED);
    }
}

static void parse_refuses_a_digit_below_the_last_unit(void **state)
{
    (void)state;
    assert_int_equal(fails("0.0000000000000001"), AIGW_TOO_BIG);
    assert_int_equal(fails("1e-16"), AIGW_TOO_BIG);
    assert_int_equal(fails("1e-99999999999999999999"), AIGW_TOO_BIG);
    assert_int_equal(fails(
                         "0.00000000000000000000000000000000000000000000001"),
                     AIGW_TOO_BIG);
}

static void parse_knows_the_largest_and_smallest_value(void **state)
{
    (void)state;
    assert_text(money(MAX_TEXT), MAX_TEXT);
    assert_text(money(MIN_TEXT), MIN_TEXT);
    assert_int_equal(fails("170141183460469231731687.303715884105728"),
                     AIGW_TOO_BIG);
    assert_int_equal(fails("-170141183460469231731687.303715884105729"),
                     AIGW_TOO_BIG);
    assert_int_equal(fails("1e24"), AIGW_TOO_BIG);
    assert_int_equal(fails("340282366920938463463374607431768211456"),
                     AIGW_TOO_BIG);
    assert_int_equal(fails("1e99999999999999999999"), AIGW_TOO_BIG);
}

static void parse_looks_at_its_slice_only(void **state)
{
    aigw_money_t m;

    (void)state;
    assert_int_equal(aigw_money_parse(aigw_slice("12345", 2), &m), AIGW_OK);
    assert_true(m == money("12"));
    assert_int_equal(aigw_money_parse(aigw_slice("1.5", 2), &m),
                     AIGW_MALFORMED);
    assert_int_equal(aigw_money_parse(aigw_slice("1e5", 2), &m),
                     AIGW_MALFORMED);
    assert_int_equal(aigw_money_parse(aigw_slice("-5", 1), &m),
                     AIGW_MALFORMED);
    assert_int_equal(aigw_money_parse(aigw_slice(NULL, 0), &m),
                     AIGW_MALFORMED);
}

static void add_refuses_to_wrap(void **state)
{
    aigw_money_t max = money(MAX_TEXT), min = money(MIN_TEXT), sum = 5;

    (void)state;
    assert_int_equal(aigw_money_add(max, 1, &sum), AIGW_TOO_BIG);
    assert_int_equal(aigw_money_add(min, -1, &sum), AIGW_TOO_BIG);
    assert_int_equal(aigw_money_add(min, min, &sum), AIGW_TOO_BIG);
    assert_true(sum == 5);
    assert_int_equal(aigw_money_add(max, min, &sum), AIGW_OK);
    assert_true(sum == -1);
    assert_int_equal(aigw_money_add(max, 0, &sum), AIGW_OK);
    assert_true(sum == max);
}

static void multiply_refuses_to_wrap(void **state)
{
    aigw_money_t max = money(MAX_TEXT), min = money(MIN_TEXT), out = 5;

    (void)state;
    assert_int_equal(aigw_money_mul(max, 2, &out), AIGW_TOO_BIG);
    assert_int_equal(aigw_money_mul(min, -1, &out), AIGW_TOO_BIG);
    assert_int_equal(aigw_money_mul(money("1e9"), INT64_MAX, &out),
                     AIGW_TOO_BIG);
    assert_true(out == 5);
    assert_int_equal(aigw_money_mul(max, -1, &out), AIGW_OK);
    assert_true(out == -max);
    assert_int_equal(aigw_money_mul(min, 1, &out), AIGW_OK);
    assert_true(out == min);
    assert_int_equal(aigw_money_mul(-1, INT64_MIN, &out), AIGW_OK);
    assert_text(out, "9223.372036854775808");
    assert_int_equal(aigw_money_mul(min, 0, &out), AIGW_OK);
    assert_true(out == 0);
}

static void text_has_no_exponent_and_no_zeros_behind(void **state)
{
    (void)state;
    assert_text(0, "0");
    assert_text(money("104e-6"), "0.000104");
    assert_text(money("-1500"), "-1500");
    assert_text(money("25.000000000000004"), "25.000000000000004");
    assert_text(money("-0.10"), "-0.1");
}

static void rounding_modes_differ_at_the_half(void **state)
{
    (void)state;
    assert_round("0.125", 2, AIGW_ROUND_HALF_EVEN, "0.12");
    assert_round("0.125", 2, AIGW_ROUND_HALF_UP, "0.13");
    assert_round("0.125", 2, AIGW_ROUND_TRUNC, "0.12");
    assert_round("0.135", 2, AIGW_ROUND_HALF_EVEN, "0.14");
    assert_round("0.135", 2, AIGW_ROUND_TRUNC, "0.13");
    assert_round("-0.125", 2, AIGW_ROUND_HALF_UP, "-0.13");
    assert_round("0.125000000000001", 2, AIGW_ROUND_HALF_EVEN, "0.13");
    assert_round("9.995", 2, AIGW_ROUND_HALF_UP, "10.00");
    assert_round("92.857", 1, AIGW_ROUND_TRUNC, "92.8");
    assert_round("2.5", 0, AIGW_ROUND_HALF_EVEN, "2");
    assert_round("3.5", 0, AIGW_ROUND_HALF_EVEN, "4");
}

static void rounding_keeps_fifteen_digits_as_they_are(void **state)
{
    (void)state;
    assert_round("0.000000000000001", 15, AIGW_ROUND_HALF_EVEN,
                 "0.000000000000001");
    assert_round(MIN_TEXT, 15, AIGW_ROUND_HALF_UP, MIN_TEXT);
    assert_round("1", 99, AIGW_ROUND_TRUNC, "1.000000000000000");
    assert_round("1.9", -3, AIGW_ROUND_TRUNC, "1");
}

static void rounding_at_the_edge_does_not_wrap(void **state)
{
    (void)state;
    assert_round(MAX_TEXT, 0, AIGW_ROUND_HALF_UP, "170141183460469231731687");
    assert_round(MIN_TEXT, 14, AIGW_ROUND_HALF_UP,
                 "-170141183460469231731687.30371588410573");
}

static void a_value_rounded_to_zero_has_no_sign(void **state)
{
    (void)state;
    assert_round("-0.001", 2, AIGW_ROUND_HALF_EVEN, "0.00");
    assert_round("-0.4", 0, AIGW_ROUND_TRUNC, "0");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_gives_the_exact_count_of_units),
        cmocka_unit_test(parse_ignores_zeros_below_the_last_unit),
        cmocka_unit_test(parse_refuses_what_is_not_a_json_number),
        cmocka_unit_test(parse_refuses_a_digit_below_the_last_unit),
        cmocka_unit_test(parse_knows_the_largest_and_smallest_value),
        cmocka_unit_test(parse_looks_at_its_slice_only),
        cmocka_unit_test(add_refuses_to_wrap),
        cmocka_unit_test(multiply_refuses_to_wrap),
        cmocka_unit_test(text_has_no_exponent_and_no_zeros_behind),
        cmocka_unit_test(rounding_modes_differ_at_the_half),
        cmocka_unit_test(rounding_keeps_fifteen_digits_as_they_are),
        cmocka_unit_test(rounding_at_the_edge_does_not_wrap),
        cmocka_unit_test(a_value_rounded_to_zero_has_no_sign),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
