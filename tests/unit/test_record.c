/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The usage record: the line byte by byte, what hostile strings become in
 * it, that it fits, and that reading gives back what was written.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <jansson.h>
#include <apr_general.h>
#include <apr_strings.h>
#include "record.h"

static apr_pool_t *pool;

static int set_up(void **state)
{
    (void)state;
    return apr_pool_create(&pool, NULL) != APR_SUCCESS;
}

static int tear_down(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    return 0;
}

/* The line as a string, its newline checked and taken off. */
static const char *line_of(const aigw_record_t *rec)
{
    char *buf = apr_palloc(pool, AIGW_RECORD_MAX + 1);
    apr_size_t n = aigw_record_write(rec, buf);

    assert_true(n > 1 && n <= AIGW_RECORD_MAX);
    assert_int_equal(buf[n - 1], '\n');
    assert_null(memchr(buf, '\n', n - 1));
    buf[n - 1] = '\0';
    return buf;
}

static aigw_rc_t read_line(const char *line, aigw_record_t *rec,
                           const char **why)
{
    return aigw_record_read(aigw_slice(line, strlen(line)), rec, pool, why);
}

static void assert_bad(const char *line, const char *want)
{
    aigw_record_t rec;
    const char *why = NULL;

    assert_int_equal(read_line(line, &rec, &why), AIGW_MALFORMED);
    assert_string_equal(why, want);
}

static void fill(aigw_record_t *rec)
{
    aigw_record_init(rec);
    assert_int_equal(aigw_record_time("2026-11-30T17:02:03.123456Z", &rec->ts),
                     AIGW_OK);
    rec->id = "aigw-1";
    rec->host = "ai.example.org";
    rec->tenant = "acme";
    rec->key = "k1";
    rec->client = "192.0.2.7";
    rec->api = "openai.chat";
    rec->stream = 1;
    rec->model = "gpt-4.1";
    rec->served = "gpt-4.1-2025-04-14";
    rec->upstream = "openai";
    rec->tries = 1;
    rec->status = rec->upstream_status = 200;
    rec->upstream_id = "req_9";
    rec->end = AIGW_END_COMPLETE;
    rec->finish = "stop";
    rec->usage.source = AIGW_USAGE_REPORTED;
    aigw_usage_set(&rec->usage, AIGW_U_INPUT_UNCACHED, 24);
    aigw_usage_set(&rec->usage, AIGW_U_CACHE_READ, 0);
    aigw_usage_set(&rec->usage, AIGW_U_OUTPUT, 7);
    rec->tier = "default";
    rec->has_cost = 1;
    rec->cost = (aigw_money_t)104000000000;
    rec->currency = "USD";
    rec->cost_stated = "0.0001";
    rec->prices = "2026-11-30";
    rec->first_us = 41250;
    rec->total_us = 803122;
    rec->own_us = 95;
    rec->events = 9;
    rec->bytes_in = 412;
    rec->bytes_out = 2210;
    rec->flags = AIGW_FLAG_NO_END | AIGW_FLAG_REUSED;
}

static void the_line_has_the_documented_order(void **state)
{
    aigw_record_t rec;

    (void)state;
    fill(&rec);
    assert_string_equal(
        line_of(&rec),
        "{\"v\":1,\"ts\":\"2026-11-30T17:02:03.123456Z\",\"id\":\"aigw-1\","
        "\"host\":\"ai.example.org\",\"tenant\":\"acme\",\"key\":\"k1\","
        "\"client\":\"192.0.2.7\",\"api\":\"openai.chat\",\"stream\":true,"
        "\"model\":\"gpt-4.1\",\"served\":\"gpt-4.1-2025-04-14\","
        "\"upstream\":\"openai\",\"tries\":1,\"status\":200,"
        "\"upstream_status\":200,\"upstream_id\":\"req_9\","
        "\"end\":\"complete\",\"finish\":\"stop\",\"usage\":\"reported\","
        "\"input_uncached\":24,\"cache_read\":0,\"output\":7,"
        "\"tier\":\"default\",\"cost\":\"0.000104\",\"currency\":\"USD\","
        "\"cost_stated\":\"0.0001\",\"prices\":\"2026-11-30\","
        "\"first_us\":41250,\"total_us\":803122,\"own_us\":95,\"events\":9,"
        "\"bytes_in\":412,\"bytes_out\":2210,"
        "\"flags\":[\"no_end_marker\",\"reused\"]}");
}

static void what_is_unknown_is_absent_and_zero_is_not(void **state)
{
    aigw_record_t rec;

    (void)state;
    aigw_record_init(&rec);
    assert_string_equal(line_of(&rec), "{\"v\":1,\"usage\":\"none\"}");
    rec.first_us = 0;
    rec.stream = 0;
    rec.model = "";
    rec.reason = AIGW_REASON_BAD_KEY;
    rec.end = AIGW_END_REFUSED;
    assert_string_equal(line_of(&rec),
                        "{\"v\":1,\"stream\":false,\"end\":\"refused\","
                        "\"reason\":\"bad_key\",\"usage\":\"none\","
                        "\"first_us\":0}");
}

static void assert_escaped(const char *raw, const char *want)
{
    aigw_record_t rec;

    aigw_record_init(&rec);
    rec.model = raw;
    assert_string_equal(line_of(&rec),
                        apr_psprintf(pool,
                                     "{\"v\":1,\"model\":\"%s\","
                                     "\"usage\":\"none\"}",
                                     want));
}

static void hostile_bytes_cannot_end_a_string_or_a_line(void **state)
{
    (void)state;
    assert_escaped("a\"b\\c", "a\\\"b\\\\c");
    assert_escaped("\",\"cost\":\"0", "\\\",\\\"cost\\\":\\\"0");
    assert_escaped("a\nb\r\tc", "a\\u000ab\\u000d\\u0009c");
    assert_escaped("\x1b[2J\x01\x7f", "\\u001b[2J\\u0001\\u007f");
    assert_escaped("\xc2\x9b"
                   "31m",
                   "\\u009b31m");
    assert_escaped("\xe2\x80\xa8\xe2\x80\xa9\xc2\x85",
                   "\\u2028\\u2029\\u0085");
}

static void whole_utf8_passes_and_broken_utf8_is_replaced(void **state)
{
    (void)state;
    assert_escaped("\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80",
                   "\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80");
    assert_escaped("\xff", "\\ufffd");
    assert_escaped("\xc0\xaf", "\\ufffd\\ufffd");            /* overlong */
    assert_escaped("\xe0\x80\xa2", "\\ufffd\\ufffd\\ufffd"); /* a quote */
    assert_escaped("\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"); /* surrogate */
    assert_escaped("\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd");
    assert_escaped("\xe4\xb8", "\\ufffd\\ufffd"); /* cut short */
    assert_escaped("\xc3", "\\ufffd");
}

static const char *repeat(const char *piece, int times)
{
    apr_size_t n = strlen(piece);
    char *out = apr_palloc(pool, n * (apr_size_t)times + 1);
    int i;

    for (i = 0; i < times; i++) {
        memcpy(out + n * (apr_size_t)i, piece, n);
    }
    out[n * (apr_size_t)times] = '\0';
    return out;
}

static void fill_largest(aigw_record_t *rec, const char *s)
{
    int f;

    rec->ts = APR_INT64_MAX;
    rec->id = rec->host = rec->tenant = rec->key = rec->client = s;
    rec->api = rec->model = rec->served = rec->upstream = s;
    rec->upstream_id = rec->finish = rec->error = rec->tier = s;
    rec->currency = rec->cost_stated = rec->prices = s;
    rec->stream = 0;
    rec->tries = rec->status = rec->upstream_status = INT32_MAX;
    rec->end = AIGW_END_CLIENT_ABORT;
    rec->reason = AIGW_REASON_CONNECT_TIMEOUT;
    rec->usage.source = AIGW_USAGE_ESTIMATED;
    for (f = 0; f < AIGW_U_MAX; f++) {
        aigw_usage_set(&rec->usage, (aigw_usage_field_t)f,
                       APR_UINT64_C(1) << 53);
    }
    rec->has_cost = 1;
    rec->cost = (aigw_money_t)(~(unsigned __int128)0 >> 1);
    rec->first_us = rec->total_us = rec->own_us = APR_INT64_MAX;
    rec->events = rec->bytes_in = rec->bytes_out = APR_INT64_MAX;
    rec->flags = (1u << AIGW_FLAG_MAX) - 1;
}

static void the_largest_record_fits_and_keeps_its_numbers(void **state)
{
    static const char *const pieces[] = {"x", "\x01", "\xe4\xb8\xad", "\"",
                                         "\xff"};
    aigw_record_t rec;
    const char *line;
    json_t *v;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        aigw_record_init(&rec);
        fill_largest(&rec, repeat(pieces[i], 70000));
        line = line_of(&rec);
        v = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(v);
        assert_int_equal(json_object_size(v), 47);
        assert_int_equal(json_integer_value(
                             json_object_get(v, "audio_seconds")),
                         (json_int_t)1 << 53);
        assert_int_equal(json_integer_value(json_object_get(v, "bytes_out")),
                         APR_INT64_MAX);
        assert_int_equal(json_array_size(json_object_get(v, "flags")),
                         AIGW_FLAG_MAX);
        json_decref(v);
    }
}

static void one_long_string_is_cut_at_a_character_and_flagged(void **state)
{
    aigw_record_t rec;
    const char *line;
    json_t *v;

    (void)state;
    fill(&rec);
    rec.model = repeat("\xe4\xb8\xad", 2000);
    line = line_of(&rec);
    v = json_loads(line, 0, NULL);
    assert_non_null(v); /* jansson refuses broken UTF-8 */
    assert_int_equal(json_string_length(json_object_get(v, "model")), 1023);
    assert_string_equal(json_string_value(json_object_get(v, "host")),
                        "ai.example.org");
    assert_non_null(strstr(line, "\"reused\",\"cut\"]"));
    json_decref(v);
}

static void a_string_that_fits_is_never_cut(void **state)
{
    aigw_record_t rec;

    (void)state;
    fill(&rec);
    rec.model = repeat("m", 3000);
    assert_null(strstr(line_of(&rec), "\"cut\""));
    assert_non_null(strstr(line_of(&rec), rec.model));
}

static void times_are_utc_with_six_digits(void **state)
{
    static const struct {
        apr_int64_t seconds;
        const char *text;
    } rows[] = {{1, "1970-01-01T00:00:01.000007Z"},
                {951782399, "2000-02-28T23:59:59.000007Z"},
                {951782400, "2000-02-29T00:00:00.000007Z"},
                {951868800, "2000-03-01T00:00:00.000007Z"},
                {1709164800, "2024-02-29T00:00:00.000007Z"},
                {1798761599, "2026-12-31T23:59:59.000007Z"},
                {4107542400, "2100-03-01T00:00:00.000007Z"},
                {253402300799, "9999-12-31T23:59:59.000007Z"}};
    aigw_record_t rec;
    apr_time_t back;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        aigw_record_init(&rec);
        rec.ts = apr_time_make(rows[i].seconds, 7);
        assert_string_equal(line_of(&rec),
                            apr_psprintf(pool,
                                         "{\"v\":1,\"ts\":\"%s\","
                                         "\"usage\":\"none\"}",
                                         rows[i].text));
        assert_int_equal(aigw_record_time(rows[i].text, &back), AIGW_OK);
        assert_true(back == rec.ts);
    }
}

static void a_time_outside_the_calendar_is_its_nearest_end(void **state)
{
    aigw_record_t rec;

    (void)state;
    aigw_record_init(&rec);
    rec.ts = -5;
    assert_string_equal(line_of(&rec),
                        "{\"v\":1,\"ts\":\"1970-01-01T00:00:00.000000Z\","
                        "\"usage\":\"none\"}");
    rec.ts = apr_time_make(253402300800, 0);
    assert_non_null(strstr(line_of(&rec), "\"9999-12-31T23:59:59.000000Z\""));
}

static void a_time_that_is_none_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "2026-11-30",
                                      "2026-11-30T17:02:03",
                                      "2026-11-30 17:02:03Z",
                                      "2026-13-01T00:00:00Z",
                                      "2026-02-29T00:00:00Z",
                                      "2026-11-31T00:00:00Z",
                                      "2026-11-30T24:00:00Z",
                                      "2026-11-30T17:60:00Z",
                                      "2026-11-30T17:02:60Z",
                                      "2026-11-30T17:02:03.Z",
                                      "2026-11-30T17:02:03.1234567Z",
                                      "2026-11-30T17:02:03+01:00",
                                      "1969-12-31T23:59:59Z",
                                      "2026-00-10T00:00:00Z",
                                      "2026-11-00T00:00:00Z",
                                      "2026-11-30T17:02:03ZZ",
                                      "202x-11-30T17:02:03Z"};
    apr_time_t t = 9;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(aigw_record_time(bad[i], &t), AIGW_MALFORMED);
        assert_true(t == 9);
    }
    assert_int_equal(aigw_record_time("2026-11-30T17:02:03.5Z", &t), AIGW_OK);
    assert_int_equal(apr_time_usec(t), 500000);
}

/* -- reading ------------------------------------------------------------- */

static void reading_gives_back_every_field(void **state)
{
    aigw_record_t rec, back;
    const char *why = "", *line;

    (void)state;
    fill(&rec);
    rec.reason = AIGW_REASON_UPSTREAM_ERROR;
    rec.error = "server_error";
    line = line_of(&rec);
    assert_int_equal(read_line(line, &back, &why), AIGW_OK);
    assert_null(why);
    assert_true(back.cost == rec.cost && back.has_cost);
    assert_int_equal(back.reason, AIGW_REASON_UPSTREAM_ERROR);
    assert_int_equal(back.usage.known, rec.usage.known);
    assert_int_equal(back.flags, rec.flags);
    assert_string_equal(line_of(&back), line);
}

static void reading_takes_any_order_and_unknown_keys(void **state)
{
    aigw_record_t rec;
    const char *why;

    (void)state;
    assert_int_equal(
        read_line("{\"output\":7,\"later\":{\"a\":[1.5]},\"flags\":[\"new\","
                  "\"sync\"],\"end\":null,\"ts\":\"2026-11-30T00:00:00Z\","
                  " \"v\" : 1, \"reason\":\"of_a_later_version\"}",
                  &rec, &why),
        AIGW_OK);
    assert_int_equal(rec.usage.n[AIGW_U_OUTPUT], 7);
    assert_int_equal(rec.usage.known, 1u << AIGW_U_OUTPUT);
    assert_int_equal(rec.flags, AIGW_FLAG_SYNC);
    assert_int_equal(rec.end, AIGW_END_NONE);
    assert_int_equal(rec.reason, AIGW_REASON_MAX);
    assert_int_equal(rec.stream, -1);
    assert_int_equal(rec.first_us, -1);
    assert_false(rec.has_cost);
    assert_null(strstr(line_of(&rec), "reason"));
}

#define HEAD "{\"v\":1,\"ts\":\"2026-11-30T00:00:00Z\","

static void reading_names_what_is_wrong(void **state)
{
    (void)state;
    assert_bad("[]", "not a JSON object");
    assert_bad("{}", "\"v\" is not 1: this is not a usage record that this "
                     "version can read");
    assert_bad("{\"v\":1}", "\"ts\" is missing");
    assert_bad("{\"v\":1,\"ts\":5}", "\"ts\" is not a string");
    assert_bad("{\"v\":1,\"ts\":\"now\"}", "\"ts\" is not a UTC time such as "
                                           "2026-11-30T17:02:03.123456Z");
    assert_bad(HEAD "\"output\":-1}",
               "\"output\" is not a whole number in its range");
    assert_bad(HEAD "\"output\":1.0}",
               "\"output\" is not a whole number in its range");
    assert_bad(HEAD "\"output\":\"7\"}",
               "\"output\" is not a whole number in its range");
    assert_bad(HEAD "\"output\":9007199254740993}",
               "\"output\" is not a whole number in its range");
    assert_bad(HEAD "\"model\":7}", "\"model\" is not a string");
    assert_bad(HEAD "\"stream\":1}", "\"stream\" is neither true nor false");
    assert_bad(HEAD "\"end\":\"ended\"}",
               "\"end\" is not a word of this format");
    assert_bad(HEAD "\"usage\":\"some\"}",
               "\"usage\" is not a word of this format");
    assert_bad(HEAD "\"flags\":\"sync\"}", "\"flags\" is not a list");
    assert_bad(HEAD "\"cost\":\"-1\",\"currency\":\"USD\"}",
               "\"cost\" is not a decimal number in its range");
    assert_bad(HEAD "\"cost\":\"1e99\",\"currency\":\"USD\"}",
               "\"cost\" is not a decimal number in its range");
    assert_bad(HEAD "\"cost\":0.5,\"currency\":\"USD\"}",
               "\"cost\" is not a string");
    assert_bad(HEAD "\"cost\":\"1\"}",
               "\"currency\" is missing beside \"cost\"");
}

static void reading_refuses_what_is_not_one_object(void **state)
{
    static const char *const bad[] = {"",
                                      " ",
                                      "{",
                                      HEAD "\"id\":\"a",
                                      HEAD "\"id\":\"a\"} x",
                                      HEAD "\"id\":\"a\",\"id\":\"b\"}",
                                      "\xff",
                                      HEAD "\"id\":\"\xff\"}",
                                      HEAD "\"id\":\"\\u0000\"}",
                                      HEAD "\"output\":99999999999999999999}"};
    aigw_record_t rec;
    const char *why;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(read_line(bad[i], &rec, &why), AIGW_MALFORMED);
        assert_int_equal(strncmp(why, "not JSON at column ", 19), 0);
    }
}

/* A string of random bytes, NUL left out. */
static const char *noise(unsigned *seed)
{
    unsigned n, i;
    char *s;

    *seed = *seed * 1103515245u + 12345u;
    n = *seed >> 16 & 63;
    s = apr_palloc(pool, n + 1);
    for (i = 0; i < n; i++) {
        *seed = *seed * 1103515245u + 12345u;
        s[i] = (char)(*seed >> 16 & 0xff);
        s[i] = s[i] ? s[i] : 'x';
    }
    s[n] = '\0';
    return s;
}

static void whatever_the_strings_hold_one_request_is_one_line(void **state)
{
    aigw_record_t rec, back;
    unsigned seed = 7, i;
    const char *why, *line;

    (void)state;
    for (i = 0; i < 2000; i++) {
        apr_pool_clear(pool);
        fill(&rec);
        rec.id = noise(&seed);
        rec.tenant = noise(&seed);
        rec.model = noise(&seed);
        rec.error = noise(&seed);
        line = line_of(&rec);
        assert_int_equal(read_line(line, &back, &why), AIGW_OK);
        assert_string_equal(line_of(&back), line);
        assert_true(back.cost == rec.cost);
        assert_string_equal(back.host, "ai.example.org");
    }
}

/* -- notes --------------------------------------------------------------- */

static void join(void *ctx, const char *name, const char *value)
{
    char **all = ctx;

    *all = apr_pstrcat(pool, *all, name, "=", value, ";", NULL);
}

static void each_gives_the_fields_in_the_order_of_the_line(void **state)
{
    aigw_record_t rec;
    char *all = "";

    (void)state;
    aigw_record_init(&rec);
    rec.ts = apr_time_from_sec(1);
    rec.tenant = "a\"b\n";
    rec.stream = 1;
    rec.has_cost = 1;
    rec.cost = 1;
    rec.currency = "USD";
    rec.flags = AIGW_FLAG_SYNC | AIGW_FLAG_REUSED;
    aigw_usage_set(&rec.usage, AIGW_U_OUTPUT, 0);
    aigw_record_each(&rec, join, &all);
    assert_string_equal(all, "ts=1970-01-01T00:00:01.000000Z;tenant=a\"b\n;"
                             "stream=true;usage=none;output=0;"
                             "cost=0.000000000000001;currency=USD;"
                             "flags=sync,reused;");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line_has_the_documented_order),
        cmocka_unit_test(what_is_unknown_is_absent_and_zero_is_not),
        cmocka_unit_test(hostile_bytes_cannot_end_a_string_or_a_line),
        cmocka_unit_test(whole_utf8_passes_and_broken_utf8_is_replaced),
        cmocka_unit_test(the_largest_record_fits_and_keeps_its_numbers),
        cmocka_unit_test(one_long_string_is_cut_at_a_character_and_flagged),
        cmocka_unit_test(a_string_that_fits_is_never_cut),
        cmocka_unit_test(times_are_utc_with_six_digits),
        cmocka_unit_test(a_time_outside_the_calendar_is_its_nearest_end),
        cmocka_unit_test(a_time_that_is_none_is_refused),
        cmocka_unit_test(reading_gives_back_every_field),
        cmocka_unit_test(reading_takes_any_order_and_unknown_keys),
        cmocka_unit_test(reading_names_what_is_wrong),
        cmocka_unit_test(reading_refuses_what_is_not_one_object),
        cmocka_unit_test(whatever_the_strings_hold_one_request_is_one_line),
        cmocka_unit_test(each_gives_the_fields_in_the_order_of_the_line),
    };
    int failed;

    apr_initialize();
    failed = cmocka_run_group_tests(tests, set_up, tear_down);
    apr_terminate();
    return failed;
}
