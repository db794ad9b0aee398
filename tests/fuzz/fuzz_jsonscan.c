/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON of any bytes.  What must hold: each cut of the bytes gives the same
 * reports and the same verdict; what jansson takes is whole, and the values
 * found are jansson's; what jansson refuses is refused, but for what is left
 * alone here (UTF-8, the range of numbers); and documents that come one after
 * another are reported alike with a memory of the earlier ones and without.
 * The first byte of the input tells how the rest is cut; RS (0x1e) parts it
 * into documents.
 */
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <jansson.h>
#include "jsonscan.h"
#include "jsonmemo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { F_ROOT = 0, F_A, F_ITEM, F_B };

#define ITEM(LEAF, WITH) LEAF("b", F_B)
AIGW_JSONSCAN_TABLE(item, ITEM);
#define ITEMS(LEAF, WITH) WITH("*", F_ITEM, item)
AIGW_JSONSCAN_TABLE(items, ITEMS);
#define ROOT(LEAF, WITH) LEAF("a", F_A) WITH("i", -1, items)
AIGW_JSONSCAN_TABLE(root, ROOT);
static const aigw_jsonscan_node_t document = {"", 0, F_ROOT, &root_table};

static void must(int holds)
{
    if (!holds) {
        abort();
    }
}

/* The reports as a hash, and the last value of $.a. */
typedef struct {
    aigw_jsonscan_t js;
    aigw_jsonmemo_t memo;
    int use_memo;
    uint64_t hash;
    unsigned reports;
    aigw_json_kind_t kind; /* CLOSE: none */
    int cut;
    size_t n;
    char text[AIGW_JSONSCAN_TEXT];
} reader_t;

static void mix(reader_t *r, const void *data, size_t n)
{
    const unsigned char *p = data;
    size_t i;

    for (i = 0; i < n; i++) {
        r->hash = (r->hash ^ p[i]) * 1099511628211u;
    }
}

static void take(void *ctx, int field, const aigw_jsonscan_value_t *v)
{
    reader_t *r = ctx;
    aigw_jsonscan_value_t copy = *v;

    must(v->text.n <= AIGW_JSONSCAN_TEXT && v->end > v->at);
    must(v->kind != AIGW_JSON_NUMBER || v->text.n <= AIGW_JSONSCAN_NUMBER);
    r->reports++;
    mix(r, &field, sizeof(field));
    mix(r, &copy.kind, sizeof(copy.kind));
    mix(r, &copy.cut, sizeof(copy.cut));
    mix(r, &copy.at, sizeof(copy.at));
    mix(r, &copy.end, sizeof(copy.end));
    mix(r, v->text.p, v->text.n);
    if (field == F_A && v->kind != AIGW_JSON_CLOSE) {
        r->kind = v->kind;
        r->cut = v->cut;
        r->n = v->text.n;
        memcpy(r->text, v->text.p, v->text.n);
    }
}

static size_t piece(uint32_t *x, unsigned how, size_t left)
{
    size_t n = left;

    if (how > 0 && how < 32) {
        n = how;
    }
    else if (how >= 32) {
        *x ^= *x << 13;
        *x ^= *x >> 17;
        *x ^= *x << 5;
        n = 1 + *x % how;
    }
    return n < left ? n : left;
}

static aigw_jsonscan_end_t scan(reader_t *r, const char *p, size_t n,
                                unsigned how)
{
    uint32_t x = 2463534242u;
    size_t at = 0;

    aigw_jsonscan_reset(&r->js);
    r->hash = 14695981039346656037u;
    r->reports = 0;
    r->kind = AIGW_JSON_CLOSE;
    while (at < n) {
        size_t size = piece(&x, how, n - at);
        char *copy = malloc(size);

        memcpy(copy, p + at, size);
        if (at == 0 && r->use_memo) {
            aigw_jsonmemo_feed(&r->memo, &r->js, copy, size, take, r);
        }
        else {
            aigw_jsonscan_feed(&r->js, copy, size, take, r);
        }
        free(copy);
        at += size;
    }
    return aigw_jsonscan_finish(&r->js, take, r);
}

static void start(reader_t *r, int use_memo, int nulls)
{
    aigw_jsonscan_init(&r->js, &document);
    aigw_jsonmemo_init(&r->memo);
    r->js.nulls = (unsigned char)nulls;
    r->use_memo = use_memo;
}

/* jansson's reasons that are none here. */
static int left_alone(const json_error_t *err)
{
    switch (json_error_code(err)) {
    case json_error_invalid_utf8:
    case json_error_null_character:
    case json_error_null_byte_in_key:
    case json_error_numeric_overflow:
        return 1;
    default:
        return strstr(err->text, "Unicode") != NULL
               || strstr(err->text, "too big") != NULL
               || strstr(err->text, "overflow") != NULL;
    }
}

static void compare_number(const reader_t *r, const json_t *a)
{
    char text[AIGW_JSONSCAN_NUMBER + 1];

    must(json_is_number(a));
    if (r->cut) {
        return;
    }
    memcpy(text, r->text, r->n);
    text[r->n] = '\0';
    if (json_is_integer(a)) {
        must(strtoll(text, NULL, 10) == json_integer_value(a));
    }
    else {
        must(strtod(text, NULL) == json_real_value(a));
    }
}

/* The last $.a that was reported is jansson's. */
static void compare_value(const reader_t *r, const json_t *json)
{
    const json_t *a = json_object_get(json, "a");

    switch (r->kind) {
    case AIGW_JSON_CLOSE:
        must(a == NULL);
        break;
    case AIGW_JSON_NULL:
        must(json_is_null(a));
        break;
    case AIGW_JSON_FALSE:
        must(json_is_false(a));
        break;
    case AIGW_JSON_TRUE:
        must(json_is_true(a));
        break;
    case AIGW_JSON_NUMBER:
        compare_number(r, a);
        break;
    case AIGW_JSON_STRING:
        must(json_is_string(a));
        must(r->cut ? json_string_length(a) > r->n
                    : json_string_length(a) == r->n);
        /* a cut may fall inside a character */
        must(memcmp(json_string_value(a), r->text, r->n) == 0);
        break;
    case AIGW_JSON_OBJECT:
        must(json_is_object(a));
        break;
    case AIGW_JSON_ARRAY:
        must(json_is_array(a));
        break;
    }
}

static void check_document(const char *p, size_t n, unsigned how)
{
    static reader_t whole, cut;
    aigw_jsonscan_end_t end;
    json_error_t err;
    json_t *json;

    start(&whole, 0, 1);
    start(&cut, 0, 1);
    end = scan(&whole, p, n, 0);
    must(scan(&cut, p, n, how) == end);
    must(whole.reports == cut.reports && whole.hash == cut.hash);
    must(whole.js.bad_at == cut.js.bad_at);
    must(whole.js.bad_at <= n);
    if (memchr(p, '\0', n) != NULL) {
        return; /* jansson reads over a NUL behind a number or a word */
    }
    json = json_loadb(p, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &err);
    if (json != NULL) {
        must(end == AIGW_JSONSCAN_WHOLE || end == AIGW_JSONSCAN_DEEP);
        if (end == AIGW_JSONSCAN_WHOLE) {
            compare_value(&whole, json);
        }
        json_decref(json);
    }
    else if (end == AIGW_JSONSCAN_WHOLE) {
        must(left_alone(&err));
    }
}

/* Twice over, so that what was learned is also used. */
static void check_memo(const char *p, size_t n, unsigned how)
{
    static reader_t plain, memo;
    const char *end = p + n;
    int round;

    start(&plain, 0, 0);
    start(&memo, 1, 0);
    for (round = 0; round < 3; round++) {
        const char *at = p;

        while (at <= end) {
            const char *rs = memchr(at, 0x1e, (size_t)(end - at));
            size_t size = (size_t)((rs ? rs : end) - at);

            must(scan(&plain, at, size, round < 2 ? 0 : how)
                 == scan(&memo, at, size, round < 2 ? 0 : how));
            must(plain.reports == memo.reports && plain.hash == memo.hash);
            must(plain.js.base == memo.js.base);
            at += size + 1;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned how = size > 0 ? data[0] : 0;
    const char *p = (const char *)data + (size > 0);
    size_t n = size - (size > 0);

    if (memchr(p, 0x1e, n) == NULL) {
        check_document(p, n, how);
    }
    check_memo(p, n, how);
    return 0;
}
