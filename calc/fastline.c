/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast reader of usage records.  A key is first compared with the one
 * that followed the key before it in an earlier line, three words at once; a
 * log of one writer thus never looks up a key.  Only where that fails the
 * key's end is searched and its name hashed.  What has its own form (a nested
 * value of an unknown key, a number with an exponent, a key with an escape)
 * is given up, as is everything that is wrong: the other reader knows how to
 * say what.
 */
#include <stddef.h>
#include <apr_strings.h>
#include "digits.h"
#include "fastline.h"
#include "mix.h"
#include "scanfast.h"

#define COUNT_MAX (APR_UINT64_C(1) << 53)
#define KEYS_MAX 64
#define SLOTS 256
#define UNKNOWN_MAX 8
#define ENDS_MAX 64
#define WORDS_MAX 48

typedef enum {
    KIND_UNKNOWN = 0,
    KIND_V,
    KIND_TIME,
    KIND_STRING,
    KIND_BOOL,
    KIND_INT,   /* a member of type int */
    KIND_INT64, /* of apr_int64_t */
    KIND_USAGE, /* a count of aigw_usage_t */
    KIND_END,
    KIND_REASON,
    KIND_SOURCE,
    KIND_COST,
    KIND_FLAGS
} kind_t;

typedef struct {
    apr_uint64_t word[3], mask[3]; /* the name and its closing quote */
    const char *name;
    apr_size_t n;
    kind_t kind;
    apr_size_t at; /* offset in the record; field of a usage */
    apr_uint64_t max;
} fast_key_t;

typedef struct {
    const char *word;
    apr_size_t n;
} word_t;

struct aigw_fast_t {
    fast_key_t keys[KEYS_MAX];
    int n_keys;
    unsigned char slots[SLOTS];       /* index + 1 */
    unsigned char next[KEYS_MAX + 1]; /* what followed; last: the first */
    word_t ends[AIGW_END_REFUSED + 1], reasons[AIGW_REASON_MAX],
        flags[AIGW_FLAG_MAX];
    char minute[17]; /* 2026-11-30T17:02: */
    apr_time_t minute_at;
};

/* A line in hand. */
typedef struct {
    const aigw_fast_t *fast;
    char *p, *end;
    char *ends[ENDS_MAX]; /* quotes that become NULs */
    int n_ends;
    char *spare;
    aigw_slice_t unknown[UNKNOWN_MAX];
    int n_unknown;
    aigw_record_t *rec;
} fast_line_t;

/* -- the table of keys --------------------------------------------------- */

/* Of the first eight bytes, the last two and the length: enough
 * to tell our names apart. */
static inline apr_uint32_t slot_of(const char *name, apr_size_t n)
{
    apr_uint64_t word = 0;

    if (n < 2) {
        return n ? (apr_uint32_t)(unsigned char)*name : 0;
    }
    if (n >= 8) {
        memcpy(&word, name, 8);
    }
    else {
        word = aigw_mix_load(name, n);
    }
    word ^= (apr_uint64_t)(unsigned char)name[n - 1] << 17
            ^ (apr_uint64_t)(unsigned char)name[n - 2] << 41 ^ n << 50;
    return (apr_uint32_t)(word * APR_UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static void add_key(aigw_fast_t *f, const char *name, kind_t kind,
                    apr_size_t at, apr_uint64_t max)
{
    fast_key_t *k = &f->keys[f->n_keys++];
    apr_size_t n = strlen(name);
    unsigned char text[24], mask[24];
    apr_uint32_t slot = slot_of(name, n);

    memset(text, 0, sizeof(text));
    memset(mask, 0, sizeof(mask));
    memcpy(text, name, n);
    text[n] = '"';
    memset(mask, 0xff, n + 1);
    memcpy(k->word, text, sizeof(text));
    memcpy(k->mask, mask, sizeof(mask));
    k->name = name;
    k->n = n;
    k->kind = kind;
    k->at = at;
    k->max = max;
    while (f->slots[slot]) {
        slot = (slot + 1) % SLOTS;
    }
    f->slots[slot] = (unsigned char)f->n_keys;
}

#define AT(member) offsetof(aigw_record_t, member)

static void add_strings(aigw_fast_t *f)
{
    static const struct {
        const char *name;
        apr_size_t at;
    } rows[] = {{"id", AT(id)},
                {"host", AT(host)},
                {"tenant", AT(tenant)},
                {"key", AT(key)},
                {"client", AT(client)},
                {"api", AT(api)},
                {"model", AT(model)},
                {"served", AT(served)},
                {"upstream", AT(upstream)},
                {"upstream_id", AT(upstream_id)},
                {"finish", AT(finish)},
                {"error", AT(error)},
                {"tier", AT(tier)},
                {"currency", AT(currency)},
                {"cost_stated", AT(cost_stated)},
                {"prices", AT(prices)}};
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        add_key(f, rows[i].name, KIND_STRING, rows[i].at, 0);
    }
}

static void add_numbers(aigw_fast_t *f)
{
    int i;

    add_key(f, "tries", KIND_INT, AT(tries), APR_INT32_MAX);
    add_key(f, "status", KIND_INT, AT(status), 999);
    add_key(f, "upstream_status", KIND_INT, AT(upstream_status), 999);
    add_key(f, "first_us", KIND_INT64, AT(first_us), APR_INT64_MAX);
    add_key(f, "total_us", KIND_INT64, AT(total_us), APR_INT64_MAX);
    add_key(f, "own_us", KIND_INT64, AT(own_us), APR_INT64_MAX);
    add_key(f, "events", KIND_INT64, AT(events), APR_INT64_MAX);
    add_key(f, "bytes_in", KIND_INT64, AT(bytes_in), APR_INT64_MAX);
    add_key(f, "bytes_out", KIND_INT64, AT(bytes_out), APR_INT64_MAX);
    for (i = 0; i < AIGW_U_MAX; i++) {
        add_key(f, aigw_usage_field_name((aigw_usage_field_t)i), KIND_USAGE,
                (apr_size_t)i, COUNT_MAX);
    }
}

static void set_word(word_t *w, const char *text)
{
    w->word = text;
    w->n = strlen(text);
}

typedef struct {
    word_t *to;
    apr_pool_t *pool;
} flag_ctx_t;

static void take_flag(void *ctx, const char *name, const char *value)
{
    flag_ctx_t *c = ctx;

    if (strcmp(name, "flags") == 0) {
        set_word(c->to, apr_pstrdup(c->pool, value));
    }
}

/* The names of flags are the record's own business: it is asked for them. */
static void add_words(aigw_fast_t *f, apr_pool_t *pool)
{
    aigw_record_t rec;
    flag_ctx_t c;
    int i;

    for (i = 0; i <= AIGW_END_REFUSED; i++) {
        set_word(&f->ends[i], aigw_end_name((aigw_end_t)i));
    }
    for (i = 0; i < AIGW_REASON_MAX; i++) {
        set_word(&f->reasons[i], aigw_reason_info((aigw_reason_t)i)->word);
    }
    c.pool = pool;
    for (i = 0; i < AIGW_FLAG_MAX; i++) {
        aigw_record_init(&rec);
        rec.flags = 1u << i;
        c.to = &f->flags[i];
        aigw_record_each(&rec, take_flag, &c);
    }
}

aigw_fast_t *aigw_fast_make(apr_pool_t *pool)
{
    aigw_fast_t *f = apr_pcalloc(pool, sizeof(*f));

    add_key(f, "v", KIND_V, 0, 1);
    add_key(f, "ts", KIND_TIME, 0, 0);
    add_strings(f);
    add_key(f, "stream", KIND_BOOL, 0, 0);
    add_numbers(f);
    add_key(f, "end", KIND_END, 0, 0);
    add_key(f, "reason", KIND_REASON, 0, 0);
    add_key(f, "usage", KIND_SOURCE, 0, 0);
    add_key(f, "cost", KIND_COST, 0, 0);
    add_key(f, "flags", KIND_FLAGS, 0, 0);
    add_words(f, pool);
    return f;
}

/* -- strings ------------------------------------------------------------- */

static int is_tail(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* Length of the well-formed character of 2 to 4 bytes at s, 0 if it is none.
 * It may end behind the line: the caller looks. */
int aigw_fast_utf8(const unsigned char *s)
{
    unsigned code;

    if (s[0] >= 0xc2 && s[0] <= 0xdf) {
        return is_tail(s[1]) ? 2 : 0;
    }
    if ((s[0] & 0xf0) == 0xe0 && is_tail(s[1]) && is_tail(s[2])) {
        code = (s[0] & 0x0fu) << 12 | (s[1] & 0x3fu) << 6;
        return code < 0x800 || (code & 0xf800) == 0xd800 ? 0 : 3;
    }
    if (s[0] >= 0xf0 && s[0] <= 0xf4 && is_tail(s[1]) && is_tail(s[2])
        && is_tail(s[3])) {
        code = (s[0] & 0x07u) << 18 | (s[1] & 0x3fu) << 12;
        return code < 0x10000 || code > 0x10ffff ? 0 : 4;
    }
    return 0;
}

/* The first byte that is not plain ASCII text of a string, at most the end.
 * Reads up to 15 bytes behind it. */
static inline char *scan_plain(char *p, const char *end)
{
#ifdef __SSE2__
    while (p < end) {
        __m128i v = aigw_load(p);
        unsigned bits = aigw_string_bits(v) | (unsigned)_mm_movemask_epi8(v);

        if (bits) {
            return p + __builtin_ctz(bits);
        }
        p += 16;
    }
    return (char *)end;
#else
    while (p < end && *p != '"' && *p != '\\' && *p >= 0x20) {
        p++;
    }
    return p;
#endif
}

static int hex4(const char *p, unsigned *code)
{
    int i;

    *code = 0;
    for (i = 0; i < 4; i++) {
        unsigned c = (unsigned char)p[i], low = c | 0x20;

        if (c >= '0' && c <= '9') {
            *code = *code << 4 | (c - '0');
        }
        else if (low >= 'a' && low <= 'f') {
            *code = *code << 4 | (low - 'a' + 10);
        }
        else {
            return 0;
        }
    }
    return 1;
}

static char *put_utf8(char *to, unsigned code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    }
    else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

/* \uXXXX at *p (behind the u); a pair of them is one character. U+0000 and
 * halves of pairs are given up. */
static char *unescape_code(char **p, const char *end, char *to)
{
    unsigned code, low;

    if (end - *p < 4 || !hex4(*p, &code)) {
        return NULL;
    }
    *p += 4;
    if ((code & 0xfc00) == 0xd800) {
        if (end - *p < 6 || (*p)[0] != '\\' || (*p)[1] != 'u'
            || !hex4(*p + 2, &low) || (low & 0xfc00) != 0xdc00) {
            return NULL;
        }
        *p += 6;
        code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
    }
    if (code == 0 || (code & 0xfffff800) == 0xd800) {
        return NULL;
    }
    return put_utf8(to, code);
}

/* What stands behind a backslash. */
static char *unescape(char **p, const char *end, char *to)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    const char *hit;
    char c;

    if (*p >= end) {
        return NULL;
    }
    c = *(*p)++;
    if (c == 'u') {
        return unescape_code(p, end, to);
    }
    hit = c ? strchr(from, c) : NULL;
    if (!hit) {
        return NULL;
    }
    *to++ = into[hit - from];
    return to;
}

/* A string with escapes, from its first backslash on, into the spare room.
 * It never gets longer. */
static int decode(fast_line_t *l, char *start, char *at, aigw_slice_t *out)
{
    char *to = l->spare, *stop;
    int n;

    memcpy(to, start, (apr_size_t)(at - start));
    to += at - start;
    for (;;) {
        stop = scan_plain(at, l->end);
        memcpy(to, at, (apr_size_t)(stop - at));
        to += stop - at;
        at = stop;
        if (at >= l->end) {
            return 0;
        }
        if (*at == '"') {
            break;
        }
        if (*at == '\\') {
            at++;
            to = unescape(&at, l->end, to);
            if (!to) {
                return 0;
            }
            continue;
        }
        n = aigw_fast_utf8((const unsigned char *)at);
        if (n == 0 || n > l->end - at) {
            return 0;
        }
        memcpy(to, at, (apr_size_t)n);
        to += n;
        at += n;
    }
    *to = '\0';
    *out = aigw_slice(l->spare, (apr_size_t)(to - l->spare));
    l->spare = to + 1;
    l->p = at + 1;
    return 1;
}

/* The string whose opening quote is at p. Without an escape it stays in the
 * line, its closing quote behind it. */
static inline int read_string(fast_line_t *l, aigw_slice_t *out)
{
    char *start = l->p + 1, *at = start;
    int n;

    for (;;) {
        at = scan_plain(at, l->end);
        if (at >= l->end) {
            return 0;
        }
        if (*at == '"') {
            break;
        }
        if (*at == '\\') {
            return decode(l, start, at, out);
        }
        n = aigw_fast_utf8((const unsigned char *)at);
        if (n == 0 || n > l->end - at) {
            return 0;
        }
        at += n;
    }
    *out = aigw_slice(start, (apr_size_t)(at - start));
    l->p = at + 1;
    return 1;
}

/* -- values -------------------------------------------------------------- */

static void skip_blanks(fast_line_t *l)
{
    while (
        l->p < l->end
        && (*l->p == ' ' || *l->p == '\t' || *l->p == '\r' || *l->p == '\n')) {
        l->p++;
    }
}

static int literal(fast_line_t *l, const char *word, apr_size_t n)
{
    if ((apr_size_t)(l->end - l->p) < n || memcmp(l->p, word, n) != 0) {
        return 0;
    }
    l->p += n;
    return 1;
}

static unsigned count_digits(const char *p, const char *end,
                             apr_uint64_t *value)
{
    apr_uint64_t n = 0;
    const char *start = p;
    unsigned digit;

    while (p < end && p - start < 19
           && (digit = (unsigned)(unsigned char)*p - '0') < 10) {
        n = n * 10 + digit;
        p++;
    }
    *value = n;
    return (unsigned)(p - start);
}

/* At most 18 digits, no sign, no fraction. */
static inline int read_integer(fast_line_t *l, apr_uint64_t *value)
{
    const char *start = l->p;
    unsigned n;
#ifdef AIGW_DIGITS_8
    n = aigw_digits_8(start, value);
    if (n == 8) {
        n = count_digits(start, l->end, value);
    }
#else
    n = count_digits(start, l->end, value);
#endif
    l->p += n;
    if (l->p > l->end || n > 18) { /* digits behind the line are not its own */
        return 0;
    }
    return n > 0 && (*start != '0' || n == 1)
           && (l->p >= l->end || (*l->p != '.' && (*l->p | 0x20) != 'e'));
}

static int two_digits(const char *p, unsigned *value)
{
    unsigned a = (unsigned)(unsigned char)p[0] - '0';
    unsigned b = (unsigned)(unsigned char)p[1] - '0';

    *value = a * 10 + b;
    return a < 10 && b < 10;
}

static int read_time(fast_line_t *l)
{
    aigw_fast_t *f = (aigw_fast_t *)l->fast;
    char text[40];
    aigw_slice_t s;
    unsigned sec, a, b, c;

    if (*l->p != '"' || !read_string(l, &s) || s.n >= sizeof(text)) {
        return 0;
    }
    if (s.n == 27 && memcmp(s.p, f->minute, 17) == 0
        && two_digits(s.p + 17, &sec) && sec < 60 && s.p[19] == '.'
        && two_digits(s.p + 20, &a) && two_digits(s.p + 22, &b)
        && two_digits(s.p + 24, &c) && s.p[26] == 'Z') {
        l->rec->ts =
            f->minute_at + apr_time_make(sec, a * 10000 + b * 100 + c);
        return 1;
    }
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    if (strlen(text) != s.n
        || aigw_record_time(text, &l->rec->ts) != AIGW_OK) {
        return 0;
    }
    memcpy(f->minute, text, 17);
    f->minute_at = l->rec->ts - l->rec->ts % apr_time_from_sec(60);
    return 1;
}

/* Up to 18 digits in all, the plain way to write an amount. */
static int plain_money(aigw_slice_t s, aigw_money_t *out)
{
    static const apr_uint64_t tens[] = {1,
                                        10,
                                        100,
                                        1000,
                                        10000,
                                        100000,
                                        1000000,
                                        10000000,
                                        100000000,
                                        1000000000,
                                        APR_UINT64_C(10000000000),
                                        APR_UINT64_C(100000000000),
                                        APR_UINT64_C(1000000000000),
                                        APR_UINT64_C(10000000000000),
                                        APR_UINT64_C(100000000000000),
                                        APR_UINT64_C(1000000000000000)};
    apr_uint64_t n = 0;
    apr_size_t i, point = s.n;
    unsigned digit;

    if (s.n == 0 || s.n > 18 || s.p[0] == '.' || s.p[s.n - 1] == '.') {
        return 0;
    }
    for (i = 0; i < s.n; i++) {
        digit = (unsigned)(unsigned char)s.p[i] - '0';
        if (digit < 10) {
            n = n * 10 + digit;
        }
        else if (s.p[i] == '.' && point == s.n) {
            point = i;
        }
        else {
            return 0;
        }
    }
    i = point < s.n ? s.n - point - 1 : 0;
    if (i > AIGW_MONEY_SCALE || (point > 1 && s.p[0] == '0')) {
        return 0;
    }
    *out = (aigw_money_t)n * (apr_int64_t)tens[AIGW_MONEY_SCALE - i];
    return 1;
}

static int read_cost(fast_line_t *l)
{
    aigw_slice_t s;

    if (*l->p != '"' || !read_string(l, &s)
        || (!plain_money(s, &l->rec->cost)
            && (aigw_money_parse(s, &l->rec->cost) != AIGW_OK
                || l->rec->cost < 0))) {
        return 0;
    }
    l->rec->has_cost = 1;
    return 1;
}

static int find_word(const word_t *words, int from, int n, aigw_slice_t s)
{
    int i;

    for (i = from; i < n; i++) {
        if (words[i].n == s.n && memcmp(words[i].word, s.p, s.n) == 0) {
            return i;
        }
    }
    return n;
}

static int read_end(fast_line_t *l)
{
    aigw_slice_t s;
    int i;

    if (*l->p != '"' || !read_string(l, &s)) {
        return 0;
    }
    i = find_word(l->fast->ends, 1, AIGW_END_REFUSED + 1, s);
    l->rec->end = (aigw_end_t)i;
    return i <= AIGW_END_REFUSED;
}

/* A reason of a later version is one that is not known. */
static int read_reason(fast_line_t *l)
{
    aigw_slice_t s;

    if (*l->p != '"' || !read_string(l, &s)) {
        return 0;
    }
    l->rec->reason =
        (aigw_reason_t)find_word(l->fast->reasons, AIGW_REASON_NONE + 1,
                                 AIGW_REASON_MAX, s);
    return 1;
}

static int read_source(fast_line_t *l)
{
    static const word_t words[] = {{"none", 4},
                                   {"reported", 8},
                                   {"partial", 7},
                                   {"estimated", 9}};
    aigw_slice_t s;
    int i;

    if (*l->p != '"' || !read_string(l, &s)) {
        return 0;
    }
    i = find_word(words, 0, 4, s);
    l->rec->usage.source = (aigw_usage_source_t)i;
    return i < 4;
}

static int read_flags(fast_line_t *l)
{
    aigw_slice_t s;
    int i;

    if (*l->p++ != '[') {
        return 0;
    }
    skip_blanks(l);
    if (l->p < l->end && *l->p == ']') {
        l->p++;
        return 1;
    }
    while (l->p < l->end && *l->p == '"' && read_string(l, &s)) {
        i = find_word(l->fast->flags, 0, AIGW_FLAG_MAX, s);
        if (i < AIGW_FLAG_MAX) {
            l->rec->flags |= 1u << i;
        }
        skip_blanks(l);
        if (l->p < l->end && *l->p == ']') {
            l->p++;
            return 1;
        }
        if (l->p >= l->end || *l->p++ != ',') {
            return 0;
        }
        skip_blanks(l);
    }
    return 0;
}

static int read_bool(fast_line_t *l)
{
    if (literal(l, "true", 4)) {
        l->rec->stream = 1;
        return 1;
    }
    l->rec->stream = 0;
    return literal(l, "false", 5);
}

/* A string that is kept: it will end with a NUL. */
static int keep_string(fast_line_t *l, const fast_key_t *k)
{
    aigw_slice_t s;

    if (*l->p != '"' || l->n_ends == ENDS_MAX || !read_string(l, &s)) {
        return 0;
    }
    if (s.p[s.n] == '"') { /* in the line, not in the spare room */
        l->ends[l->n_ends++] = (char *)s.p + s.n;
    }
    memcpy((char *)l->rec + k->at, &s.p, sizeof(s.p));
    return 1;
}

static int read_number(fast_line_t *l, const fast_key_t *k)
{
    apr_uint64_t n;
    apr_int64_t wide;
    int narrow;

    if (!read_integer(l, &n) || n > k->max) {
        return 0;
    }
    switch (k->kind) {
    case KIND_V:
        return n == 1;
    case KIND_INT:
        narrow = (int)n;
        memcpy((char *)l->rec + k->at, &narrow, sizeof(narrow));
        return 1;
    case KIND_INT64:
        wide = (apr_int64_t)n;
        memcpy((char *)l->rec + k->at, &wide, sizeof(wide));
        return 1;
    default:
        l->rec->usage.n[k->at] = n;
        l->rec->usage.known |= 1u << k->at;
        return 1;
    }
}

/* An amount of digits that no reader finds too large. */
static int skip_number(fast_line_t *l)
{
    char *start;
    apr_uint64_t ignored;

    if (*l->p == '-') {
        l->p++;
    }
    start = l->p;
    if (read_integer(l, &ignored)) {
        return 1;
    }
    if (l->p == start || (*start == '0' && l->p - start > 1)
        || l->p - start > 18 || l->p >= l->end || *l->p != '.') {
        return 0;
    }
    start = ++l->p;
    while (l->p < l->end && *l->p >= '0' && *l->p <= '9') {
        l->p++;
    }
    return l->p > start && (l->p >= l->end || (*l->p | 0x20) != 'e');
}

static int skip_value(fast_line_t *l)
{
    aigw_slice_t s;

    switch (*l->p) {
    case '"':
        return read_string(l, &s);
    case 't':
        return literal(l, "true", 4);
    case 'f':
        return literal(l, "false", 5);
    case 'n':
        return literal(l, "null", 4);
    default:
        return skip_number(l);
    }
}

static int read_value(fast_line_t *l, const fast_key_t *k)
{
    if (*l->p == 'n' && k->kind != KIND_V && k->kind != KIND_TIME) {
        return literal(l, "null", 4);
    }
    switch (k->kind) {
    case KIND_TIME:
        return read_time(l);
    case KIND_STRING:
        return keep_string(l, k);
    case KIND_BOOL:
        return read_bool(l);
    case KIND_END:
        return read_end(l);
    case KIND_REASON:
        return read_reason(l);
    case KIND_SOURCE:
        return read_source(l);
    case KIND_COST:
        return read_cost(l);
    case KIND_FLAGS:
        return read_flags(l);
    default:
        return read_number(l, k);
    }
}

/* -- keys ---------------------------------------------------------------- */

static inline int is_key(const fast_key_t *k, const char *p)
{
    apr_uint64_t word[3];

    memcpy(word, p, sizeof(word));
    return (((word[0] ^ k->word[0]) & k->mask[0])
            | ((word[1] ^ k->word[1]) & k->mask[1])
            | ((word[2] ^ k->word[2]) & k->mask[2]))
           == 0;
}

/* A key of another format: its name must not come twice. */
static int note_unknown(fast_line_t *l, aigw_slice_t name)
{
    int i;

    for (i = 0; i < l->n_unknown; i++) {
        if (l->unknown[i].n == name.n
            && memcmp(l->unknown[i].p, name.p, name.n) == 0) {
            return 0;
        }
    }
    if (l->n_unknown == UNKNOWN_MAX) {
        return 0;
    }
    l->unknown[l->n_unknown++] = name;
    return 1;
}

/* Index of the key whose opening quote is at p; n_keys if it is none of
 * ours, -1 to give up. */
static int find_key(fast_line_t *l)
{
    const aigw_fast_t *f = l->fast;
    char *start = l->p + 1, *at = scan_plain(start, l->end);
    aigw_slice_t name = aigw_slice(start, (apr_size_t)(at - start));
    apr_uint32_t slot;
    int i;

    if (at >= l->end || *at != '"') {
        return -1;
    }
    l->p = at + 1;
    for (slot = slot_of(name.p, name.n); f->slots[slot];
         slot = (slot + 1) % SLOTS) {
        i = f->slots[slot] - 1;
        if (is_key(&f->keys[i], start)) {
            return i;
        }
    }
    return note_unknown(l, name) ? f->n_keys : -1;
}

static inline int next_key(fast_line_t *l, int before)
{
    aigw_fast_t *f = (aigw_fast_t *)l->fast;
    int k = f->next[before];

    if (l->p >= l->end || *l->p != '"') {
        return -1;
    }
    if (is_key(&f->keys[k], l->p + 1)) {
        l->p += f->keys[k].n + 2;
        return l->p <= l->end ? k : -1;
    }
    k = find_key(l);
    if (k >= 0 && k < f->n_keys) {
        f->next[before] = (unsigned char)k;
    }
    return k;
}

static inline int colon(fast_line_t *l)
{
    if (l->p < l->end && *l->p == ':') {
        l->p++;
    }
    else {
        skip_blanks(l);
        if (l->p >= l->end || *l->p++ != ':') {
            return 0;
        }
    }
    if (l->p < l->end && (unsigned char)*l->p <= ' ') {
        skip_blanks(l);
    }
    return l->p < l->end;
}

/* Behind a value: 1 to go on, 0 at the object's end, -1 to give up. */
static inline int comma(fast_line_t *l)
{
    if (l->p < l->end && (unsigned char)*l->p <= ' ') {
        skip_blanks(l);
    }
    if (l->p >= l->end || (*l->p != ',' && *l->p != '}')) {
        return -1;
    }
    if (*l->p++ == '}') {
        return 0;
    }
    if (l->p < l->end && (unsigned char)*l->p <= ' ') {
        skip_blanks(l);
    }
    return 1;
}

static int read_members(fast_line_t *l)
{
    const aigw_fast_t *f = l->fast;
    apr_uint64_t seen = 0;
    int k, more = 1, before = KEYS_MAX;

    while (more > 0) {
        k = next_key(l, before);
        if (k < 0 || !colon(l)) {
            return 0;
        }
        if (k == f->n_keys) {
            if (!skip_value(l)) {
                return 0;
            }
        }
        else {
            if (seen >> k & 1 || !read_value(l, &f->keys[k])) {
                return 0;
            }
            seen |= APR_UINT64_C(1) << k;
            before = k;
        }
        more = comma(l);
    }
    return more == 0 && (seen & 3) == 3; /* "v" and "ts" */
}

aigw_rc_t aigw_fast_read(aigw_fast_t *fast, char *line, apr_size_t n,
                         char **spare, aigw_record_t *rec)
{
    fast_line_t l;

    l.fast = fast;
    l.p = line;
    l.end = line + n;
    l.n_ends = l.n_unknown = 0;
    l.spare = *spare;
    l.rec = rec;
    aigw_record_init(rec);
    skip_blanks(&l);
    if (l.p >= l.end || *l.p++ != '{') {
        return AIGW_AGAIN;
    }
    skip_blanks(&l);
    if (!read_members(&l)) {
        return AIGW_AGAIN;
    }
    skip_blanks(&l);
    if (l.p != l.end
        || (rec->has_cost
            && (!rec->currency || *rec->currency == '"'
                || *rec->currency == '\0'))) {
        return AIGW_AGAIN;
    }
    while (l.n_ends) {
        *l.ends[--l.n_ends] = '\0';
    }
    *spare = l.spare;
    return AIGW_OK;
}

/* -- one value from plain text -------------------------------------------- */

int aigw_fast_key(const aigw_fast_t *f, const char *name)
{
    int i;

    for (i = 1; i < f->n_keys; i++) { /* "v" is no note */
        if (strcmp(f->keys[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

apr_size_t aigw_fast_member(const aigw_fast_t *f, int key)
{
    switch (f->keys[key].kind) {
    case KIND_STRING:
    case KIND_INT:
    case KIND_INT64:
        return f->keys[key].at;
    case KIND_TIME:
        return AT(ts);
    default:
        return sizeof(aigw_record_t) + (apr_size_t)key;
    }
}

static int set_words(const aigw_fast_t *f, const char *p, aigw_record_t *rec)
{
    apr_size_t n;
    int i;

    for (;; p += n + 1) {
        n = strcspn(p, ",");
        i = find_word(f->flags, 0, AIGW_FLAG_MAX, aigw_slice(p, n));
        if (i < AIGW_FLAG_MAX) {
            rec->flags |= 1u << i;
        }
        if (!p[n]) {
            return 1;
        }
    }
}

/* What JSON has in quotes is read as if it stood between some. */
static int set_quoted(fast_line_t *l, const fast_key_t *k, char *text,
                      apr_size_t n)
{
    char buf[64];

    if (n + 2 > sizeof(buf) - AIGW_FAST_SLACK) {
        return 0;
    }
    memset(buf, 0, sizeof(buf));
    buf[0] = '"';
    memcpy(buf + 1, text, n);
    buf[n + 1] = '"';
    l->p = buf;
    l->end = buf + n + 2;
    return read_value(l, k) && l->p == l->end;
}

int aigw_fast_set(aigw_fast_t *f, int key, char *text, apr_size_t n,
                  aigw_record_t *rec)
{
    const fast_key_t *k = &f->keys[key];
    char buf[64];
    fast_line_t l;

    if (k->kind == KIND_STRING) {
        memcpy((char *)rec + k->at, &text, sizeof(text));
        return 1;
    }
    if (k->kind == KIND_FLAGS) {
        return set_words(f, text, rec);
    }
    l.fast = f;
    l.rec = rec;
    l.n_ends = l.n_unknown = 0;
    l.spare = NULL;
    if (memchr(text, '\\', n)) {
        return 0;
    }
    if (k->kind != KIND_BOOL && k->kind != KIND_INT && k->kind != KIND_INT64
        && k->kind != KIND_USAGE) {
        return set_quoted(&l, k, text, n);
    }
    if (n > sizeof(buf) - AIGW_FAST_SLACK || *text == 'n') {
        return 0;
    }
    memset(buf, 0, sizeof(buf));
    memcpy(buf, text, n);
    l.p = buf;
    l.end = buf + n;
    return read_value(&l, k) && l.p == l.end;
}
