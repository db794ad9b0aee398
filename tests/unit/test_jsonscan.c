/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON tokenizer: what it reports, what it refuses and where, and that
 * neither the splits of the bytes nor the memory of earlier documents change
 * a thing.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "jsonscan.h"
#include "jsonmemo.h"
#include "pieces.h"

enum {
    F_ROOT = 0,
    F_A,
    F_B,
    F_ITEM,
    F_DEEP
};

#define ITEM(LEAF, WITH) LEAF("b", F_DEEP)
AIGW_JSONSCAN_TABLE(item, ITEM);
#define ITEMS(LEAF, WITH) WITH("*", F_ITEM, item)
AIGW_JSONSCAN_TABLE(items, ITEMS);
#define ROOT(LEAF, WITH)                                                      \
    LEAF("a", F_A)                                                            \
    LEAF("b\n", F_B)                                                          \
    WITH("items", -1, items)
AIGW_JSONSCAN_TABLE(root, ROOT);
static const aigw_jsonscan_node_t document = {"", 0, F_ROOT, &root_table};

/* Reports as text: field, kind and text, "~" if it was cut, and the place. */
typedef struct {
    aigw_jsonscan_t js;
    char seen[4096];
    size_t n;
    int places;
} reader_t;

static void take(void *ctx, int field, const aigw_jsonscan_value_t *v)
{
    reader_t *r = ctx;

    r->n += (size_t)snprintf(r->seen + r->n, sizeof(r->seen) - r->n,
                             "%c%c%.*s%s", "rABid"[field],
                             "NFT#\"{[}"[v->kind], (int)v->text.n,
                             v->text.p, v->cut ? "~" : "");
    if (r->places) {
        r->n += (size_t)snprintf(r->seen + r->n, sizeof(r->seen) - r->n,
                                 "@%d-%d", (int)v->at, (int)v->end);
    }
    r->n += (size_t)snprintf(r->seen + r->n, sizeof(r->seen) - r->n, " ");
    assert_true(r->n < sizeof(r->seen));
}

static void feed(void *ctx, const char *p, size_t n)
{
    reader_t *r = ctx;

    aigw_jsonscan_feed(&r->js, p, n, take, r);
}

static void start(reader_t *r, int places)
{
    memset(r, 0, sizeof(*r));
    r->places = places;
    aigw_jsonscan_init(&r->js, &document);
    r->js.nulls = 1;
}

static void assert_reports(const char *json, int places, const char *want)
{
    pieces_t way = {0, 0, 0};

    do {
        reader_t r;

        start(&r, places);
        pieces_feed(&way, json, strlen(json), feed, &r);
        assert_int_equal(aigw_jsonscan_finish(&r.js, take, &r),
                         AIGW_JSONSCAN_WHOLE);
        assert_string_equal(r.seen, want);
    } while (pieces_next(&way, strlen(json)));
}

static void assert_end(const char *json, size_t n, aigw_jsonscan_end_t want,
                       long bad_at)
{
    pieces_t way = {0, 0, 0};

    do {
        reader_t r;
        aigw_jsonscan_end_t end;

        start(&r, 0);
        pieces_feed(&way, json, n, feed, &r);
        end = aigw_jsonscan_finish(&r.js, take, &r);
        if (end != want || (bad_at >= 0 && r.js.bad_at != (unsigned)bad_at)) {
            fail_msg("%.60s: end %d (wanted %d) at %d (wanted %ld)", json,
                     (int)end, (int)want, (int)r.js.bad_at, bad_at);
        }
    } while (pieces_next(&way, n));
}

static void values_are_reported_at_their_paths_only(void **state)
{
    (void)state;
    assert_reports("{\"a\":1,\"x\":{\"a\":2},\"y\":[{\"a\":3}]}", 0,
                   "r{ A#1 r} ");
    assert_reports("{\"items\":[{\"b\":\"x\",\"a\":9},{\"c\":{\"b\":1}},7]}",
                   0, "r{ i{ d\"x i} i{ i} i#7 r} ");
    assert_reports("{\"items\":{\"b\":1,\"*\":{\"b\":2}},\"a\":[1]}", 0,
                   "r{ A[ r} ");
    assert_reports("{\"items\":[[{\"b\":1}],{\"b\":[{\"b\":2}]}]}", 0,
                   "r{ i[ i{ d[ i} r} ");
    assert_reports("[{\"a\":1}]", 0, "r[ ");
    assert_reports("\"a\"", 0, "r\"a ");
    assert_reports(" -12.5e3 ", 0, "r#-12.5e3 ");
    assert_reports("12", 0, "r#12 ");
    assert_reports("null", 0, "rNnull ");
}

static void a_key_that_comes_twice_is_reported_twice(void **state)
{
    (void)state;
    assert_reports("{\"a\":1,\"a\":null,\"a\":true,\"a\":false}", 0,
                   "r{ A#1 ANnull ATtrue AFfalse r} ");
}

static void keys_are_compared_after_unescaping(void **state)
{
    (void)state;
    assert_reports("{\"\\u0061\":1,\"b\\n\":2,\"\\u0062\\u000A\":3,"
                   "\"b\\\\n\":4,\"\\u0061\\u0000\":5}",
                   0, "r{ A#1 B#2 B#3 r} ");
    assert_reports("{\"it\\u0065ms\":[{\"\\u0062\":4}]}", 0,
                   "r{ i{ d#4 i} r} ");
    assert_reports("{\"\":1,\"aa\":2,\"A\":3,\" a\":4,\"a \":5}", 0,
                   "r{ r} ");
}

static void strings_are_unescaped(void **state)
{
    (void)state;
    assert_reports("{\"a\":\"q\\\"b\\\\s\\/n\\nt\\tr\\rb\\bf\\f\"}", 0,
                   "r{ A\"q\"b\\s/n\nt\tr\rb\bf\f r} ");
    assert_reports("{\"a\":\"\\u00e9\\u20AC\\ud83d\\ude00z\"}", 0,
                   "r{ A\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z r} ");
    assert_reports("{\"a\":\"\\ud83dx\\ude00\\ud83d\\ud83d\\ude00\"}", 0,
                   "r{ A\"\xef\xbf\xbdx\xef\xbf\xbd\xef\xbf\xbd"
                   "\xf0\x9f\x98\x80 r} ");
    assert_reports("{\"a\":\"\\ud83d\\n\\ud83d\"}", 0,
                   "r{ A\"\xef\xbf\xbd\n\xef\xbf\xbd r} ");
    assert_reports("{\"a\":\"\xff\xfe\"}", 0, "r{ A\"\xff\xfe r} ");
    assert_reports("{\"a\":\"\"}", 0, "r{ A\" r} ");
}

static void places_are_offsets_of_the_values(void **state)
{
    (void)state;
    assert_reports(" { \"a\" : \"x\\n\" , \"items\":[{ }, 12 ]} ", 1,
                   "r{@1-2 A\"x\n@9-14 i{@26-27 i}@28-29 i#12@31-33 "
                   "r}@35-36 ");
    assert_reports("{\"a\":true,\"a\":-1}", 1,
                   "r{@0-1 ATtrue@5-9 A#-1@14-16 r}@16-17 ");
}

static void what_is_too_long_is_cut_and_says_so(void **state)
{
    char json[1200], want[1200];
    int n;

    (void)state;
    for (n = 250; n < 262; ++n) {
        snprintf(json, sizeof(json), "{\"a\":\"%0*d\"}", n, 7);
        snprintf(want, sizeof(want), "r{ A\"%.*s%s r} ",
                 n < 256 ? n : 256, json + 6, n > 256 ? "~" : "");
        assert_reports(json, 0, want);
        snprintf(json, sizeof(json), "{\"a\":\"\\u0030%0*d\"}", n - 1, 7);
        assert_reports(json, 0, want);
    }
    for (n = 60; n < 70; ++n) {
        snprintf(json, sizeof(json), "{\"a\":1%0*d}", n - 1, 7);
        snprintf(want, sizeof(want), "r{ A#%.*s%s r} ", n < 64 ? n : 64,
                 json + 5, n > 64 ? "~" : "");
        assert_reports(json, 0, want);
    }
    /* a long key is none of the short ones */
    snprintf(json, sizeof(json), "{\"a%0300d\":1,\"\\u0061%0300d\":2}", 0, 0);
    assert_reports(json, 0, "r{ r} ");
}

static void broken_json_is_noticed_where_it_breaks(void **state)
{
    static const struct {
        const char *json;
        long at;
    } rows[] = {
        {"x", 0},          {"{\"a\"}", 4},     {"{\"a\":}", 5},
        {"{\"a\":1,}", 7}, {"{,}", 1},         {"{\"a\" 1}", 5},
        {"[1 2]", 3},      {"[1,]", 3},        {"[,1]", 1},
        {"{1:2}", 1},      {"[1}", 2},         {"{\"a\":1]", 6},
        {"]", 0},          {"{}}", 2},         {"{} {}", 3},
        {"1 2", 2},        {"01", 1},          {"-", -1},
        {"-a", 1},         {"1.", -1},         {"1.x", 2},
        {"1e", -1},        {"1e+", -1},        {"1e+x", 3},
        {".5", 0},         {"+1", 0},          {"1.5.5", 3},
        {"[1e5e]", 4},     {"nul", -1},        {"nulx", 3},
        {"[truE]", 4},     {"fals\"", 4},      {"tru\n", 3},
        {"nullx", 4},      {"\"\\x\"", 2},     {"\"\\u12g4\"", 5},
        {"\"a\nb\"", 2},   {"[\"\t\"]", 2},    {"\"\\\n\"", 2},
        {"{\"a\nb\":1}", 3}, {"{\"a\":'x'}", 5}, {"[NaN]", 1},
        {"[Infinity]", 1}, {"// x\n1", 0},     {"[1,/**/2]", 3},
        {"{\"a\":1;\"b\":2}", 6},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        assert_end(rows[i].json, strlen(rows[i].json),
                   rows[i].at < 0 ? AIGW_JSONSCAN_OPEN : AIGW_JSONSCAN_BAD,
                   rows[i].at);
    }
    assert_end("\"a\0b\"", 5, AIGW_JSONSCAN_BAD, 2);
    assert_end("\0", 1, AIGW_JSONSCAN_BAD, 0);
    assert_end("1\0", 2, AIGW_JSONSCAN_BAD, 1);
    assert_end("\xef\xbb\xbf{}", 5, AIGW_JSONSCAN_BAD, 0);
}

static void a_document_is_open_until_its_last_byte(void **state)
{
    static const char json[] =
        "{\"a\":[1,2.5e-3,{\"b\":\"\\u00e9\\\\\"}],\"c\":null,\"d\":false}";
    size_t n;

    (void)state;
    for (n = 1; n < sizeof(json) - 1; ++n) {
        assert_end(json, n, AIGW_JSONSCAN_OPEN, -1);
    }
    assert_end(json, n, AIGW_JSONSCAN_WHOLE, -1);
    assert_end("", 0, AIGW_JSONSCAN_EMPTY, -1);
    assert_end(" \n\r\t", 4, AIGW_JSONSCAN_EMPTY, -1);
    assert_end("0", 1, AIGW_JSONSCAN_WHOLE, -1);
    assert_end("-0.0E-00 \n", 10, AIGW_JSONSCAN_WHOLE, -1);
    assert_end("\"\x7f\xff\"", 4, AIGW_JSONSCAN_WHOLE, -1);
}

static void nesting_is_taken_to_64_and_no_deeper(void **state)
{
    char json[200];
    int depth, object;

    (void)state;
    for (depth = 60; depth <= 66; ++depth) {
        for (object = 0; object < 2; ++object) {
            size_t n = 0;
            int i;

            for (i = 0; i < depth; ++i) {
                json[n++] = '[';
            }
            if (object) {
                memcpy(json + n - 1, "{}", 2);
                n += 1;
            }
            else {
                json[n++] = ']';
            }
            for (i = 1; i < depth; ++i) {
                json[n++] = ']';
            }
            if (depth <= 64) {
                assert_end(json, n, AIGW_JSONSCAN_WHOLE, -1);
            }
            else {
                assert_end(json, n, AIGW_JSONSCAN_DEEP, 64);
            }
        }
    }
}

static void what_follows_a_fault_is_not_looked_at(void **state)
{
    reader_t r;

    (void)state;
    start(&r, 0);
    feed(&r, "{\"a\":1 x \"a\":2}", 15);
    feed(&r, "{\"a\":3}", 7);
    assert_int_equal(aigw_jsonscan_finish(&r.js, take, &r),
                     AIGW_JSONSCAN_BAD);
    assert_string_equal(r.seen, "r{ A#1 ");
    aigw_jsonscan_reset(&r.js);
    feed(&r, "{\"a\":4}", 7);
    assert_int_equal(aigw_jsonscan_finish(&r.js, take, &r),
                     AIGW_JSONSCAN_WHOLE);
    assert_string_equal(r.seen, "r{ A#1 r{ A#4 r} ");
}

static void a_null_member_is_reported_only_if_asked_for(void **state)
{
    static const char json[] =
        "{\"a\":null,\"items\":[null,null,{\"b\":null},null]}";
    pieces_t way = {0, 0, 0};

    (void)state;
    do {
        reader_t r;

        start(&r, 0);
        r.js.nulls = 0;
        pieces_feed(&way, json, sizeof(json) - 1, feed, &r);
        assert_string_equal(r.seen, "r{ iNnull iNnull i{ i} iNnull r} ");
    } while (pieces_next(&way, sizeof(json) - 1));
}

/* ---- counts ------------------------------------------------------------- */

static aigw_rc_t count(const char *text, aigw_json_kind_t kind,
                       apr_uint64_t *n)
{
    aigw_jsonscan_value_t v;

    memset(&v, 0, sizeof(v));
    v.kind = kind;
    v.text = aigw_slice(text, strlen(text));
    return aigw_jsonscan_count(&v, n);
}

static void assert_count(const char *text, apr_uint64_t want)
{
    apr_uint64_t n = want + 1;

    assert_int_equal(count(text, AIGW_JSON_NUMBER, &n), AIGW_OK);
    assert_true(n == want);
}

static void a_count_is_an_integer_however_it_is_written(void **state)
{
    apr_uint64_t n = 0;

    (void)state;
    assert_count("0", 0);
    assert_count("7", 7);
    assert_count("0.0", 0);
    assert_count("0e99999999999999999999", 0);
    assert_count("12", 12);
    assert_count("12.0", 12);
    assert_count("12.000000000000000000000000000000000000", 12);
    assert_count("1.5e2", 150);
    assert_count("1.5E+2", 150);
    assert_count("1200e-2", 12);
    assert_count("0.00012e5", 12);
    assert_count("120000000000000000000000000e-25", 12);
    assert_count("1e15", 1000000000000000);
    assert_count("9007199254740992", 9007199254740992);
    assert_count("9007199254740992.0", 9007199254740992);
    assert_count("900719925474099.2e1", 9007199254740992);
    assert_int_equal(count("0042", AIGW_JSON_STRING, &n), AIGW_OK);
    assert_true(n == 42);
    assert_int_equal(count("5", AIGW_JSON_STRING, &n), AIGW_OK);
    assert_true(n == 5);
}

static void what_is_no_count_changes_nothing(void **state)
{
    static const char *const numbers[] = {
        "-1",  "-0", "0.5",   "1.5",  "12.01",    "15e-1",
        "1e-1", "1e-99999999999999999999", "-1e5", "1.00000000000000000001",
    };
    static const char *const big[] = {
        "9007199254740993", "1e16", "99999999999999999999", "1e30",
        "1e99999999999999999999999999", "18446744073709551617",
        "123456789012345678901234567890", "90071992547409920",
    };
    static const char *const strings[] = {"",    "n/a", "1.0", "1e2", " 1",
                                          "1 ", "-1",  "0x1", "+1"};
    apr_uint64_t n = 77;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i) {
        assert_int_equal(count(numbers[i], AIGW_JSON_NUMBER, &n),
                         AIGW_MALFORMED);
    }
    for (i = 0; i < sizeof(big) / sizeof(big[0]); ++i) {
        assert_int_equal(count(big[i], AIGW_JSON_NUMBER, &n), AIGW_TOO_BIG);
    }
    for (i = 0; i < sizeof(strings) / sizeof(strings[0]); ++i) {
        assert_int_equal(count(strings[i], AIGW_JSON_STRING, &n),
                         AIGW_MALFORMED);
    }
    assert_int_equal(count("true", AIGW_JSON_TRUE, &n), AIGW_MALFORMED);
    assert_int_equal(count("false", AIGW_JSON_FALSE, &n), AIGW_MALFORMED);
    assert_int_equal(count("", AIGW_JSON_OBJECT, &n), AIGW_MALFORMED);
    assert_int_equal(count("", AIGW_JSON_ARRAY, &n), AIGW_MALFORMED);
    assert_int_equal(count("null", AIGW_JSON_NULL, &n), AIGW_DONE);
    assert_true(n == 77);
}

/* ---- the memory of earlier documents ------------------------------------ */

/* Feed documents one after another, with a memo and without. */
typedef struct {
    reader_t plain, memo;
    aigw_jsonmemo_t mem;
    int first;
} pair_t;

static void pair_feed(void *ctx, const char *p, size_t n)
{
    pair_t *pair = ctx;

    aigw_jsonscan_feed(&pair->plain.js, p, n, take, &pair->plain);
    if (pair->first) {
        aigw_jsonmemo_feed(&pair->mem, &pair->memo.js, p, n, take,
                           &pair->memo);
        pair->first = 0;
    }
    else {
        aigw_jsonscan_feed(&pair->memo.js, p, n, take, &pair->memo);
    }
}

static void pair_document(pair_t *pair, const pieces_t *way, const char *json)
{
    pair->plain.n = pair->memo.n = 0;
    pair->plain.seen[0] = pair->memo.seen[0] = '\0';
    aigw_jsonscan_reset(&pair->plain.js);
    aigw_jsonscan_reset(&pair->memo.js);
    pair->first = 1;
    pieces_feed(way, json, strlen(json), pair_feed, pair);
    assert_int_equal(
        aigw_jsonscan_finish(&pair->plain.js, take, &pair->plain),
        aigw_jsonscan_finish(&pair->memo.js, take, &pair->memo));
    assert_string_equal(pair->plain.seen, pair->memo.seen);
    assert_true(pair->plain.js.bad_at == pair->memo.js.bad_at);
    assert_true(pair->plain.js.base == pair->memo.js.base);
}

static void pair_start(pair_t *pair)
{
    memset(pair, 0, sizeof(*pair));
    start(&pair->plain, 1);
    start(&pair->memo, 1);
    aigw_jsonmemo_init(&pair->mem);
}

static void what_was_seen_before_is_reported_alike(void **state)
{
    static const char *const docs[] = {
        "{\"id\":\"0123456789012345\",\"a\":\"m-1\",\"items\":[{\"b\":0,"
        "\"t\":\"one\"}],\"a\":\"x\"}",
        "{\"id\":\"0123456789012345\",\"a\":\"m-1\",\"items\":[{\"b\":0,"
        "\"t\":\"two and \\n more\"}],\"a\":\"x\"}",
        "{\"id\":\"0123456789012345\",\"a\":\"m-1\",\"items\":[{\"b\":0,"
        "\"t\":\"\"}],\"a\":\"x\"}",
        "{\"id\":\"0123456789012345\",\"a\":\"m-1\",\"items\":[{\"b\":0,"
        "\"t\":\"\\u00e9\"}],\"a\":\"x\"}",
        "{\"id\":\"0123456789012345\",\"a\":\"m-1\",\"items\":[{\"b\":0,"
        "\"t\":\"x\"}],\"a\":\"y\"}",
        "{\"id\":\"0123456789012345\",\"a\":\"m-1\",\"items\":[{\"b\":0,"
        "\"t\":\"x\"}],\"a\":\"y\",\"more\":[1,2]} ",
        "{\"id\":\"0123456789012345\",\"a\":\"m-1\",\"items\":[{\"b\":0,"
        "\"t\":\"x\"}}",
        "{\"id\":\"0123456789012345\",\"a\":\"m-1\",\"items\":[{\"b\":0,"
        "\"t\":\"never closed",
        "{\"id\":\"0123456789012345\",\"a\":\"m-2\",\"items\":[{\"b\":0,"
        "\"t\":\"x\"}],\"a\":\"x\"}",
        "{\"id\":\"0123456789012345\",\"a\":\"m-2\",\"items\":[{\"b\":0,"
        "\"t\":\"y\"}],\"a\":\"x\"}",
        "{\"id\":\"0123456789012345\",\"a\":\"m-2\",\"items\":[{\"b\":0,"
        "\"t\":\"y\"}],\"a\":\"x\"}",
        "{\"id\":\"0123456789012345\",\"a\":\"m-2\",\"items\":[{\"b\":0,"
        "\"t\":\"y\"}],\"a\":\"x\"} ",
        "{\"id\":\"0123456789012345\",\"a\":\"m-2\",\"items\":[{\"b\":0,"
        "\"t\":\"y\"}],\"a\":\"x\"}}",
        "{\"id\":\"0123456789012345\",\"a\":\"m-2\",\"items\":[{\"b\":0,"
        "\"t\":\"y\"}],\"b\":\"x\"}",
        "{\"id\":\"0123456789012345\",\"a\":\"m-2\",\"items\":[{\"b\":0,"
        "\"t\":\"y\"}],\"a\": 12}",
        "{\"id\":\"0123456789012345\",\"a\":\"m\\u002d2\",\"items\":[{\"b\":"
        "0,\"t\":\"y\"}],\"a\": 12}",
        "{\"id\":\"0123456789012345\",\"a\":\"m\\u002d2\",\"items\":[{\"b\":"
        "0,\"t\":\"z\"}],\"a\":\"\\n\"}",
        "{\"id\":\"0123456789012345\",\"a\":\"m-2\",\"t\":\"x\",\"a\":"
        "\"\\u0030\"}",
        "{\"id\":\"0123456789012345\",\"a\":\"m-2\",\"t\":\"y\",\"a\":"
        "\"\\u0030\"}",
        "{\"a\":1}",
    };
    enum { N = sizeof(docs) / sizeof(docs[0]) };
    pair_t pair;
    uint32_t x = 88172645;
    int round, used = 0;

    (void)state;
    pair_start(&pair);
    for (round = 0; round < 20000; ++round) {
        /* runs of the same few, so that it learns, forgets and gives up */
        uint32_t span = 1 + (uint32_t)round / 40 % N;
        uint32_t base = (uint32_t)round / 160 % N;
        pieces_t way = {0, 0, 0};

        if (round % 2000 == 0) {
            pair_start(&pair);
        }
        if (pieces_random(&x) % 8 == 0) {
            way.phase = 1;
            way.at = 1 + pieces_random(&x) % 60;
        }
        pair_document(&pair, &way,
                      docs[(base + pieces_random(&x) % span) % N]);
        used += pair.mem.n_tail > 0;
    }
    assert_true(used > 1000);
}

static void documents_that_are_not_alike_are_given_up_on(void **state)
{
    pair_t pair;
    pieces_t way = {0, 0, 0};
    char json[200];
    int i, k;

    (void)state;
    pair_start(&pair);
    for (i = 0; i < 100; ++i) {
        unsigned char phase = pair.mem.phase;

        snprintf(json, sizeof(json),
                 "{\"id\":%d,\"a\":\"%d\",\"filler\":\"%030d\"}", i, i, i);
        pair_document(&pair, &way, json);
        if (i > 50) {
            assert_int_equal(pair.mem.phase, phase);
        }
    }
    for (k = 0; k < 3; ++k) {
        char before[AIGW_JSONMEMO_HEAD];

        memcpy(before, pair.mem.bytes, sizeof(before));
        pair_document(&pair, &way,
                      "{\"a\":1,\"x\":\"0123456789abcdef0123456789\"}");
        assert_memory_equal(before, pair.mem.bytes, sizeof(before));
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_reported_at_their_paths_only),
        cmocka_unit_test(a_key_that_comes_twice_is_reported_twice),
        cmocka_unit_test(keys_are_compared_after_unescaping),
        cmocka_unit_test(strings_are_unescaped),
        cmocka_unit_test(places_are_offsets_of_the_values),
        cmocka_unit_test(what_is_too_long_is_cut_and_says_so),
        cmocka_unit_test(broken_json_is_noticed_where_it_breaks),
        cmocka_unit_test(a_document_is_open_until_its_last_byte),
        cmocka_unit_test(nesting_is_taken_to_64_and_no_deeper),
        cmocka_unit_test(what_follows_a_fault_is_not_looked_at),
        cmocka_unit_test(a_null_member_is_reported_only_if_asked_for),
        cmocka_unit_test(a_count_is_an_integer_however_it_is_written),
        cmocka_unit_test(what_is_no_count_changes_nothing),
        cmocka_unit_test(what_was_seen_before_is_reported_alike),
        cmocka_unit_test(documents_that_are_not_alike_are_given_up_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
