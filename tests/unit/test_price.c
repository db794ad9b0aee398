/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prices: what a file may hold and how each fault is named, which row is in
 * force, what counts cost.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
#include <apr_general.h>
#include <apr_strings.h>
#include "price.h"
#include "record.h"

static apr_pool_t *pool;
static char path[] = "price-test-XXXXXX";

static int set_up(void **state)
{
    int fd = mkstemp(path);

    (void)state;
    if (fd >= 0) {
        close(fd);
    }
    return fd < 0 || apr_pool_create(&pool, NULL) != APR_SUCCESS;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    apr_pool_destroy(pool);
    return 0;
}

static void write_file(const char *text, size_t n)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static aigw_catalog_t *load(const char *text)
{
    aigw_catalog_t *cat;
    const char *err;

    write_file(text, strlen(text));
    if (aigw_catalog_load(&cat, path, pool, &err) != APR_SUCCESS) {
        fail_msg("%s", err);
    }
    assert_non_null(cat);
    return cat;
}

/* The error's text behind the file's name. */
static void assert_load_fails(const char *text, const char *want)
{
    aigw_catalog_t *cat;
    const char *err;

    write_file(text, strlen(text));
    assert_int_equal(aigw_catalog_load(&cat, path, pool, &err), APR_EINVAL);
    assert_null(cat);
    assert_int_equal(strncmp(err, path, strlen(path)), 0);
    assert_string_equal(err + strlen(path), want);
}

/* jansson's words and columns are its own: the line and the gist count. */
static void assert_not_json(const char *text, int line, const char *gist)
{
    aigw_catalog_t *cat;
    const char *err;

    write_file(text, strlen(text));
    assert_int_equal(aigw_catalog_load(&cat, path, pool, &err), APR_EINVAL);
    assert_non_null(strstr(err, apr_psprintf(pool, "%s:%d:", path, line)));
    assert_non_null(strstr(err, ": not JSON as it must be: "));
    assert_non_null(strstr(err, gist));
}

#define FILE_OF(rows)                                          \
    "{\"format\":1,\"version\":\"t1\",\"currency\":\"USD\",\n" \
    "\"prices\":[\n" rows "]}"
#define ROW(rest) "{\"model\":\"m\"," rest "}\n"
#define PRICED(input) ROW("\"per_mtok\":{\"input\":" input "}")

static apr_time_t at(const char *text)
{
    apr_time_t t = 0;

    assert_int_equal(aigw_record_time(text, &t), AIGW_OK);
    return t;
}

static void assert_money(aigw_money_t m, const char *want)
{
    char buf[AIGW_MONEY_TEXT];

    aigw_money_text(m, buf);
    assert_string_equal(buf, want);
}

/* -- loading ------------------------------------------------------------- */

static void a_row_is_read_whole(void **state)
{
    aigw_catalog_t *cat = load(FILE_OF(
        "{\"model\":\"gpt-4.1\",\"from\":\"2025-04-14\","
        "\"to\":\"2026-01-01T12:00:00Z\",\"currency\":\"EUR\","
        "\"source\":\"https://example.org/p\",\"checked\":\"2026-11-30\","
        "\"note\":\"n\",\"per_mtok\":{\"input\":\"2.00\",\"output\":\"8\","
        "\"cache_read\":\"0.123456789\"},"
        "\"per_item\":{\"searches\":\"0.01\"}}"));
    const aigw_price_t *row = aigw_catalog_row(cat, 0);

    (void)state;
    assert_string_equal(aigw_catalog_version(cat), "t1");
    assert_string_equal(row->model, "gpt-4.1");
    assert_string_equal(row->currency, "EUR");
    assert_string_equal(row->source, "https://example.org/p");
    assert_string_equal(row->checked, "2026-11-30");
    assert_true(row->from == at("2025-04-14T00:00:00Z"));
    assert_true(row->to == at("2026-01-01T12:00:00Z"));
    assert_int_equal(row->known,
                     1u << AIGW_U_INPUT_UNCACHED | 1u << AIGW_U_OUTPUT
                         | 1u << AIGW_U_CACHE_READ | 1u << AIGW_U_SEARCHES);
    assert_money(row->per_mtok[AIGW_U_OUTPUT], "8");
    assert_money(row->per_mtok[AIGW_U_CACHE_READ], "0.123456789");
    assert_money(row->per_mtok[AIGW_U_SEARCHES], "0.01");
    assert_null(aigw_catalog_row(cat, 1));
    assert_null(aigw_catalog_row(cat, -1));
}

static void a_price_that_is_not_exact_text_is_refused(void **state)
{
    (void)state;
    assert_load_fails(FILE_OF(PRICED("2.5")),
                      ":3: prices[0].per_mtok.input: a price is decimal text "
                      "in quotes such as \"2.50\"; read the number 2.5");
    assert_load_fails(FILE_OF(PRICED("null")),
                      ":3: prices[0].per_mtok.input: a price is decimal text "
                      "in quotes such as \"2.50\"; read null");
    assert_load_fails(FILE_OF(PRICED("\"$2\"")),
                      ":3: prices[0].per_mtok.input: a price is a decimal "
                      "number from 0 up such as \"2.50\"; read \"$2\"");
    assert_load_fails(FILE_OF(PRICED("\"-2\"")),
                      ":3: prices[0].per_mtok.input: a price is a decimal "
                      "number from 0 up such as \"2.50\"; read \"-2\"");
    assert_load_fails(FILE_OF(PRICED("\"-0\"")),
                      ":3: prices[0].per_mtok.input: a price is a decimal "
                      "number from 0 up such as \"2.50\"; read \"-0\"");
    assert_load_fails(FILE_OF(PRICED("\"1e30\"")),
                      ":3: prices[0].per_mtok.input: a price has at most 9 "
                      "decimals and must be below 10^23; read \"1e30\"");
}

static void a_price_too_fine_for_one_exact_token_is_refused(void **state)
{
    (void)state;
    assert_load_fails(FILE_OF(PRICED("\"0.0000000001\"")),
                      ":3: prices[0].per_mtok.input: a price per million "
                      "tokens has at most 9 decimals, so that one token has "
                      "an exact price; read \"0.0000000001\"");
    load(FILE_OF(PRICED("\"0.0000000010\"")));
    load(FILE_OF(ROW("\"per_item\":{\"images\":\"0.000000000000001\"}")));
}

static void keys_that_are_unknown_or_stand_twice_are_refused(void **state)
{
    (void)state;
    assert_load_fails(FILE_OF(PRICED("\"1\",\n\"inptu\":\"2\"")),
                      ":4: prices[0].per_mtok.inptu: unknown key \"inptu\"; "
                      "allowed: input, cache_read, cache_write_5m, "
                      "cache_write_1h, cache_write_other, output, reasoning, "
                      "input_audio, input_image, output_audio, output_image");
    assert_load_fails(FILE_OF(PRICED("\"1\",\n\"searches\":\"2\"")),
                      ":4: prices[0].per_mtok.searches: unknown key "
                      "\"searches\"; allowed: input, cache_read, "
                      "cache_write_5m, cache_write_1h, cache_write_other, "
                      "output, reasoning, input_audio, input_image, "
                      "output_audio, output_image");
    assert_load_fails(FILE_OF(ROW("\n\"tier\":1")),
                      ":4: prices[0].tier: unknown key \"tier\"; allowed: "
                      "model, from, to, currency, source, checked, note, "
                      "per_mtok, per_item");
    assert_not_json(FILE_OF(PRICED("\"1\",\"input\":\"2\"")), 3,
                    "duplicate object key");
    assert_load_fails("{\"format\":1,\n\"version\":\"1\",\n\"x\":1}",
                      ":3: x: unknown key \"x\"; allowed: format, version, "
                      "currency, note, prices");
}

static void a_key_cannot_write_control_characters_into_a_log(void **state)
{
    (void)state;
    assert_load_fails("{\"format\":1,\"\\u001b[2J\\n\xc3\xa9\":1}",
                      ":1: ?[2J???: unknown key \"?[2J???\"; allowed: "
                      "format, version, currency, note, prices");
}

static void the_top_of_the_file_is_checked(void **state)
{
    (void)state;
    assert_not_json("", 1, "end of file");
    assert_not_json("{\n\n\"format\":.5}", 3, "invalid token");
    assert_not_json("{\"version\":\"\xff\"}", 1, "decode byte 0xff");
    assert_load_fails("[]", ":1: the file must hold one JSON object {...}; "
                            "read a list");
    assert_load_fails("{}", ":1: the file: \"format\" must be 1: this "
                            "version reads no other");
    assert_load_fails("\n{\"format\":\n2}",
                      ":3: format: \"format\" must be 1: this version reads "
                      "no other");
    assert_load_fails("{\"format\":1}",
                      ":1: the file: \"version\" is missing");
    assert_load_fails("{\"format\":1,\"version\":\"\"}",
                      ":1: version: must be text of 1 to 256 bytes without "
                      "control characters; read \"\"");
    assert_load_fails("{\"format\":1,\"version\":\"1\"}",
                      ":1: the file: \"prices\" must be a list [...] of "
                      "rows");
    assert_load_fails("{\"format\":1,\"version\":\"1\",\"prices\":{}}",
                      ":1: prices: \"prices\" must be a list [...] of rows");
    assert_load_fails("{\"format\":1,\"version\":\"1\",\"currency\":"
                      "\"usd\"}",
                      ":1: currency: must be three capital letters such as "
                      "\"USD\"; read \"usd\"");
}

static void a_line_is_found_behind_values_of_every_kind(void **state)
{
    (void)state;
    assert_load_fails("{\"a\":[1,-2.5e3,true],\"b\":{\"c\":null},\"d\":123,"
                      "\"e\":false,\n\"format\":\n12}",
                      ":3: format: \"format\" must be 1: this version reads "
                      "no other");
    assert_load_fails(FILE_OF(PRICED("{}")),
                      ":3: prices[0].per_mtok.input: a price is decimal text "
                      "in quotes such as \"2.50\"; read an object");
}

static void a_file_of_more_than_16_mib_is_not_read(void **state)
{
    aigw_catalog_t *cat;
    const char *err;

    (void)state;
    write_file("{}", 2);
    assert_int_equal(truncate(path, 16 * 1024 * 1024 + 1), 0);
    assert_int_equal(aigw_catalog_load(&cat, path, pool, &err), APR_EINVAL);
    assert_string_equal(err + strlen(path), ": larger than 16777216 bytes");
}

static void rows_are_checked(void **state)
{
    (void)state;
    assert_load_fails(FILE_OF("7"),
                      ":3: prices[0]: a row is an object {...}; read the "
                      "number 7");
    assert_load_fails(FILE_OF(PRICED("\"1\"") ",\n{\"per_mtok\":{}}"),
                      ":5: prices[1]: \"model\" is missing");
    assert_load_fails(FILE_OF("{\"model\":\"a*b\"}"),
                      ":3: prices[0].model: '*' may stand at the end of a "
                      "name only; read \"a*b\"");
    assert_load_fails(FILE_OF("{\"model\":\"a\\nb\"}"),
                      ":3: prices[0].model: must be text of 1 to 256 bytes "
                      "without control characters; read \"a?b\"");
    assert_load_fails(FILE_OF(ROW("\"note\":\"x\"")),
                      ":3: prices[0]: has no price: \"per_mtok\" or "
                      "\"per_item\" must hold one");
    assert_load_fails(FILE_OF(ROW("\"per_mtok\":[]")),
                      ":3: prices[0].per_mtok: must be an object {...}; read "
                      "a list");
    assert_load_fails("{\"format\":1,\"version\":\"1\",\"prices\":["
                      "{\"model\":\"m\",\"per_mtok\":{\"input\":\"1\"}}]}",
                      ":1: prices[0]: \"currency\" is missing, here and at "
                      "the top of the file");
}

static void dates_are_checked(void **state)
{
    (void)state;
    assert_load_fails(FILE_OF(ROW("\"from\":\"2026-02-30\"")),
                      ":3: prices[0].from: must be a date such as "
                      "\"2026-11-30\" (00:00 UTC) or a UTC time such as "
                      "\"2026-11-30T12:00:00Z\"; read \"2026-02-30\"");
    assert_load_fails(FILE_OF(ROW("\"from\":\"2026-02-02\",\n"
                                  "\"to\":\"2026-02-02\"")),
                      ":4: prices[0].to: must be later than \"from\": it is "
                      "the first moment at which the price is no longer in "
                      "force");
    assert_load_fails(FILE_OF(ROW("\"checked\":\"today\"")),
                      ":3: prices[0].checked: must be a date such as "
                      "\"2026-11-30\" (00:00 UTC) or a UTC time such as "
                      "\"2026-11-30T12:00:00Z\"; read \"today\"");
}

#define DATED(model, from, to) \
    "{\"model\":\"" model "\"," from to "\"per_mtok\":{\"input\":\"1\"}}\n"

static void two_rows_in_force_at_once_are_refused(void **state)
{
    (void)state;
    assert_load_fails(FILE_OF(DATED("m", "", "") "," DATED("m", "", "")),
                      ":4: prices[1]: is in force at the same time as "
                      "prices[0] on line 3 for \"m\": end one with \"to\" "
                      "where the other begins");
    assert_load_fails(
        FILE_OF(DATED("m*", "\"from\":\"2026-03-01\",",
                      "") "," DATED("m*", "", "\"to\":\"2026-03-02\",")),
        ":3: prices[0]: is in force at the same time as prices[1] on line 4 "
        "for \"m*\": end one with \"to\" where the other begins");
    load(FILE_OF(
        DATED("m", "\"from\":\"2026-03-01\",",
              "") "," DATED("m", "", "\"to\":\"2026-03-01\",") "," DATED("m*",
                                                                         "",
                                                                         "")));
}

static void a_file_that_cannot_be_read_is_named(void **state)
{
    aigw_catalog_t *cat;
    const char *err;

    (void)state;
    assert_true(APR_STATUS_IS_ENOENT(
        aigw_catalog_load(&cat, "no/such/file", pool, &err)));
    assert_string_equal(err, "no/such/file: No such file or directory");
    assert_int_equal(aigw_catalog_load(&cat, ".", pool, &err), APR_EINVAL);
    assert_string_equal(err, ".: not a regular file");
}

static void a_line_is_found_behind_strings_that_look_like_json(void **state)
{
    (void)state;
    assert_load_fails(FILE_OF("{\"model\":\"x\",\"note\":\"]}\\\"{[,\",\n"
                              "\"per_mtok\":{\"output\":\"1\"}},\n"
                              "{\"model\":\"y\",\n\"per_mtok\":\n"
                              "{\"output\":\"1\",\n\"input\":true}}"),
                      ":8: prices[1].per_mtok.input: a price is decimal "
                      "text in quotes such as \"2.50\"; read true");
}

/* -- finding ------------------------------------------------------------- */

#define NAMED(model, price) \
    "{\"model\":\"" model "\",\"per_mtok\":{\"input\":\"" price "\"}}"

static void assert_found(const aigw_catalog_t *cat, const char *model,
                         const char *when, const char *price)
{
    const aigw_price_t *row = aigw_catalog_find(cat, model, at(when));

    assert_non_null(row);
    assert_money(row->per_mtok[AIGW_U_INPUT_UNCACHED], price);
}

#define DAY "2026-11-30T00:00:00Z"

static void the_exact_name_wins_then_the_longest_prefix(void **state)
{
    aigw_catalog_t *cat =
        load(FILE_OF(NAMED("gpt-*", "1") "," NAMED("gpt-4.1", "2") "," NAMED(
            "gpt-4.1-*", "3") "," NAMED("a", "4") "," NAMED("z", "5")));

    (void)state;
    assert_found(cat, "gpt-4.1", DAY, "2");
    assert_found(cat, "gpt-4.1-mini", DAY, "3");
    assert_found(cat, "gpt-4", DAY, "1");
    assert_found(cat, "gpt-", DAY, "1");
    assert_found(cat, "a", DAY, "4");
    assert_found(cat, "z", DAY, "5");
    assert_null(aigw_catalog_find(cat, "gpt", at(DAY)));
    assert_null(aigw_catalog_find(cat, "GPT-4.1", at(DAY)));
    assert_null(aigw_catalog_find(cat, "", at(DAY)));
    assert_null(aigw_catalog_find(cat, "zz", at(DAY)));
    assert_null(aigw_catalog_find(cat, NULL, at(DAY)));
}

static void the_price_in_force_at_the_moment_is_taken(void **state)
{
    aigw_catalog_t *cat = load(FILE_OF(
        "{\"model\":\"m\",\"from\":\"2026-03-01\",\"to\":\"2026-06-01\","
        "\"per_mtok\":{\"input\":\"2\"}},"
        "{\"model\":\"m\",\"from\":\"2025-01-01\",\"to\":\"2026-03-01\","
        "\"per_mtok\":{\"input\":\"1\"}},"
        "{\"model\":\"m*\",\"from\":\"2026-07-01\","
        "\"per_mtok\":{\"input\":\"3\"}}"));

    (void)state;
    assert_null(aigw_catalog_find(cat, "m", at("2024-12-31T23:59:59.9Z")));
    assert_found(cat, "m", "2025-01-01T00:00:00Z", "1");
    assert_found(cat, "m", "2026-02-28T23:59:59.999999Z", "1");
    assert_found(cat, "m", "2026-03-01T00:00:00Z", "2");
    assert_null(aigw_catalog_find(cat, "m", at("2026-06-01T00:00:00Z")));
    assert_found(cat, "m", "2026-07-01T00:00:00Z", "3");
}

static void the_served_model_is_priced_before_the_asked_one(void **state)
{
    aigw_catalog_t *cat =
        load(FILE_OF(NAMED("asked", "1") "," NAMED("served", "2")));
    apr_time_t when = at(DAY);

    (void)state;
    assert_ptr_equal(aigw_catalog_price(cat, "served", "asked", when),
                     aigw_catalog_row(cat, 1));
    assert_ptr_equal(aigw_catalog_price(cat, "served-2", "asked", when),
                     aigw_catalog_row(cat, 0));
    assert_ptr_equal(aigw_catalog_price(cat, NULL, "asked", when),
                     aigw_catalog_row(cat, 0));
    assert_null(aigw_catalog_price(cat, "x", NULL, when));
}

/* -- costing ------------------------------------------------------------- */

static const aigw_price_t *price_of(const char *prices)
{
    aigw_catalog_t *cat = load(
        apr_psprintf(pool,
                     "{\"format\":1,\"version\":\"1\",\"currency\":\"USD\","
                     "\"prices\":[{\"model\":\"m\",%s}]}",
                     prices));

    return aigw_catalog_row(cat, 0);
}

/* counts: field, value, ..., -1 */
static aigw_usage_t counts(int field, ...)
{
    aigw_usage_t u;
    va_list ap;

    memset(&u, 0, sizeof(u));
    va_start(ap, field);
    for (; field >= 0; field = va_arg(ap, int)) {
        aigw_usage_set(&u, (aigw_usage_field_t)field,
                       va_arg(ap, apr_uint64_t));
    }
    va_end(ap);
    return u;
}

#define N(n) APR_UINT64_C(n)

static void assert_cost(const aigw_price_t *p, aigw_usage_t u,
                        const char *want)
{
    aigw_money_t m = -1;

    assert_int_equal(aigw_price_cost(p, &u, &m), AIGW_OK);
    assert_money(m, want);
}

static void assert_no_cost(const aigw_price_t *p, aigw_usage_t u,
                           aigw_rc_t want)
{
    aigw_money_t m = 77;

    assert_int_equal(aigw_price_cost(p, &u, &m), want);
    assert_true(m == 77);
}

static void each_bucket_is_priced_once(void **state)
{
    const aigw_price_t *p =
        price_of("\"per_mtok\":{\"input\":\"3\",\"output\":\"15\","
                 "\"cache_read\":\"0.30\",\"cache_write_5m\":\"3.75\","
                 "\"cache_write_1h\":\"6\",\"cache_write_other\":\"4\"}");

    (void)state;
    assert_cost(p, counts(AIGW_U_INPUT_UNCACHED, N(1), -1), "0.000003");
    assert_cost(p,
                counts(AIGW_U_INPUT_UNCACHED, N(1000000), AIGW_U_CACHE_READ,
                       N(1000000), AIGW_U_CACHE_WRITE_5M, N(1000000),
                       AIGW_U_CACHE_WRITE_1H, N(1000000),
                       AIGW_U_CACHE_WRITE_OTHER, N(1000000), AIGW_U_OUTPUT,
                       N(1000000), AIGW_U_REASONING, N(900000), -1),
                "32.05");
    assert_cost(p, counts(AIGW_U_INPUT_UNCACHED, N(0), -1), "0");
}

static void a_cache_without_a_price_costs_the_input_rate(void **state)
{
    const aigw_price_t *p = price_of("\"per_mtok\":{\"input\":\"2\"}");

    (void)state;
    assert_cost(p,
                counts(AIGW_U_INPUT_UNCACHED, N(10), AIGW_U_CACHE_READ, N(20),
                       AIGW_U_CACHE_WRITE_OTHER, N(30), -1),
                "0.00012");
}

static void a_part_with_a_price_leaves_its_bucket(void **state)
{
    const aigw_price_t *p =
        price_of("\"per_mtok\":{\"input\":\"1\",\"input_audio\":\"10\","
                 "\"cache_read\":\"0.1\",\"output\":\"2\",\"reasoning\":\"3\","
                 "\"output_audio\":\"20\"}");

    (void)state;
    assert_cost(p,
                counts(AIGW_U_INPUT_UNCACHED, N(100), AIGW_U_INPUT_AUDIO,
                       N(40), AIGW_U_OUTPUT, N(100), AIGW_U_REASONING, N(30),
                       AIGW_U_OUTPUT_AUDIO, N(20), -1),
                /* 60*1 + 40*10 + 50*2 + 30*3 + 20*20 */
                "0.00105");
    assert_cost(p,
                counts(AIGW_U_INPUT_UNCACHED, N(10), AIGW_U_CACHE_READ, N(90),
                       AIGW_U_INPUT_AUDIO, N(100), -1),
                /* 10*10 + 90*0.1: what was cached costs what a cache does */
                "0.000109");
    assert_cost(p,
                counts(AIGW_U_INPUT_UNCACHED, N(10), AIGW_U_INPUT_IMAGE, N(10),
                       -1),
                "0.00001");
}

static void parts_of_the_output_above_the_output_have_no_cost(void **state)
{
    const aigw_price_t *p =
        price_of("\"per_mtok\":{\"output\":\"2\",\"reasoning\":\"3\"}");

    (void)state;
    assert_no_cost(p, counts(AIGW_U_OUTPUT, N(5), AIGW_U_REASONING, N(6), -1),
                   AIGW_MALFORMED);
    assert_cost(p, counts(AIGW_U_OUTPUT, N(5), AIGW_U_REASONING, N(5), -1),
                "0.000015");
}

static void a_count_without_a_price_has_no_cost(void **state)
{
    const aigw_price_t *input = price_of("\"per_mtok\":{\"input\":\"2\"}");
    const aigw_price_t *output = price_of("\"per_mtok\":{\"output\":\"2\"}");

    (void)state;
    assert_no_cost(input, counts(AIGW_U_OUTPUT, N(1), -1), AIGW_AGAIN);
    assert_cost(input, counts(AIGW_U_OUTPUT, N(0), -1), "0");
    assert_no_cost(output, counts(AIGW_U_CACHE_READ, N(1), -1), AIGW_AGAIN);
    assert_no_cost(input,
                   counts(AIGW_U_INPUT_UNCACHED, N(1), AIGW_U_SEARCHES, N(1),
                          -1),
                   AIGW_AGAIN);
}

static void nothing_known_is_not_a_cost_of_nothing(void **state)
{
    (void)state;
    assert_no_cost(price_of("\"per_mtok\":{\"input\":\"2\"}"), counts(-1),
                   AIGW_AGAIN);
}

static void items_are_priced_by_the_piece(void **state)
{
    const aigw_price_t *both =
        price_of("\"per_mtok\":{\"input\":\"1\",\"output\":\"1\"},"
                 "\"per_item\":{\"searches\":\"0.01\",\"images\":\"0.04\"}");
    const aigw_price_t *tokens =
        price_of("\"per_mtok\":{\"input\":\"1\",\"output\":\"1\"}");

    (void)state;
    assert_cost(both,
                counts(AIGW_U_INPUT_UNCACHED, N(1), AIGW_U_SEARCHES, N(3),
                       AIGW_U_IMAGES, N(2), -1),
                "0.110001");
    assert_cost(tokens, counts(AIGW_U_OUTPUT, N(7), AIGW_U_IMAGES, N(2), -1),
                "0.000007");
    assert_no_cost(tokens, counts(AIGW_U_IMAGES, N(2), -1), AIGW_AGAIN);
    assert_no_cost(tokens,
                   counts(AIGW_U_OUTPUT, N(0), AIGW_U_AUDIO_SECONDS, N(2), -1),
                   AIGW_AGAIN);
}

static void the_largest_counts_and_prices_are_exact_or_an_error(void **state)
{
    const aigw_price_t *fine =
        price_of("\"per_mtok\":{\"input\":\"999.999999999\"}");
    const aigw_price_t *huge =
        price_of("\"per_mtok\":{\"input\":\"1e22\",\"output\":\"1e22\"}");
    aigw_usage_t most =
        counts(AIGW_U_INPUT_UNCACHED, APR_UINT64_C(9007199254740992), -1);

    (void)state;
    assert_cost(fine, most, "9007199254731.984800745259008");
    assert_no_cost(huge, most, AIGW_TOO_BIG);
    assert_no_cost(huge,
                   counts(AIGW_U_INPUT_UNCACHED, N(10000000), AIGW_U_OUTPUT,
                          N(10000000), -1),
                   AIGW_TOO_BIG);
    assert_no_cost(fine, counts(AIGW_U_INPUT_UNCACHED, APR_UINT64_MAX, -1),
                   AIGW_TOO_BIG);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_read_whole),
        cmocka_unit_test(a_price_that_is_not_exact_text_is_refused),
        cmocka_unit_test(a_price_too_fine_for_one_exact_token_is_refused),
        cmocka_unit_test(keys_that_are_unknown_or_stand_twice_are_refused),
        cmocka_unit_test(a_key_cannot_write_control_characters_into_a_log),
        cmocka_unit_test(the_top_of_the_file_is_checked),
        cmocka_unit_test(a_line_is_found_behind_values_of_every_kind),
        cmocka_unit_test(a_file_of_more_than_16_mib_is_not_read),
        cmocka_unit_test(rows_are_checked),
        cmocka_unit_test(dates_are_checked),
        cmocka_unit_test(two_rows_in_force_at_once_are_refused),
        cmocka_unit_test(a_file_that_cannot_be_read_is_named),
        cmocka_unit_test(a_line_is_found_behind_strings_that_look_like_json),
        cmocka_unit_test(the_exact_name_wins_then_the_longest_prefix),
        cmocka_unit_test(the_price_in_force_at_the_moment_is_taken),
        cmocka_unit_test(the_served_model_is_priced_before_the_asked_one),
        cmocka_unit_test(each_bucket_is_priced_once),
        cmocka_unit_test(a_cache_without_a_price_costs_the_input_rate),
        cmocka_unit_test(a_part_with_a_price_leaves_its_bucket),
        cmocka_unit_test(parts_of_the_output_above_the_output_have_no_cost),
        cmocka_unit_test(a_count_without_a_price_has_no_cost),
        cmocka_unit_test(nothing_known_is_not_a_cost_of_nothing),
        cmocka_unit_test(items_are_priced_by_the_piece),
        cmocka_unit_test(the_largest_counts_and_prices_are_exact_or_an_error),
    };
    int failed;

    apr_initialize();
    failed = cmocka_run_group_tests(tests, set_up, tear_down);
    apr_terminate();
    return failed;
}
