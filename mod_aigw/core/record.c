/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The usage record as a line of JSON, out and in.  One walk over the record
 * decides the order of the keys and what is absent; the line, the notes and
 * nothing else are made of it.  The writer allocates nothing and calls
 * nothing of the C library but memcpy, so that it may run in any thread, a
 * child's cleanup included.  It refuses to make a line that is longer than
 * one atomic write or that holds a byte which could end it early.
 */
#include <jansson.h>
#include <apr_strings.h>
#include "record.h"

#define COUNT_MAX ((json_int_t)1 << 53)

static const char *const end_names[] = {NULL,     "complete",     "truncated",
                                        "error",  "client_abort", "timeout",
                                        "refused"};
#define END_MAX ((int)(sizeof(end_names) / sizeof(end_names[0])))

static const char *const flag_names[AIGW_FLAG_MAX] =
    {"bad_json",  "bad_number",    "cache_outside_prompt",
     "odd_total", "no_end_marker", "encoded_answer",
     "sync",      "usage_hidden",  "reused",
     "cut",       "drained",       "other_model"};

void aigw_record_init(aigw_record_t *rec)
{
    memset(rec, 0, sizeof(*rec));
    rec->stream = -1;
    rec->first_us = rec->total_us = rec->own_us = -1;
    rec->events = rec->bytes_in = rec->bytes_out = -1;
}

const char *aigw_end_name(aigw_end_t end)
{
    int i = (int)end;

    return i > 0 && i < END_MAX ? end_names[i] : "";
}

/* -- small texts --------------------------------------------------------- */

#define NUMBER_TEXT 24
#define TIME_TEXT 28 /* 2026-11-30T17:02:03.123456Z and its NUL */
#define LAST_SECOND APR_INT64_C(253402300799) /* 9999-12-31T23:59:59Z */

static void put_number(apr_uint64_t value, char *buf)
{
    char back[NUMBER_TEXT];
    apr_size_t n = 0, at = 0;

    do {
        back[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (n) {
        buf[at++] = back[--n];
    }
    buf[at] = '\0';
}

static char *put_padded(char *p, unsigned value, int width, char after)
{
    int i;

    for (i = width - 1; i >= 0; i--) {
        p[i] = (char)('0' + value % 10);
        value /= 10;
    }
    p[width] = after;
    return p + width + 1;
}

/* Days since 1970-01-01 to a civil date.  Years are counted from March, so
 * that the leap day is the last of its year. */
static void put_date(apr_int64_t days, char **p)
{
    apr_int64_t z = days + 719468; /* since 0000-03-01 */
    unsigned era = (unsigned)(z / 146097);
    unsigned doe = (unsigned)(z - (apr_int64_t)era * 146097);
    unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    unsigned mp = (5 * doy + 2) / 153;
    unsigned month = mp < 10 ? mp + 3 : mp - 9;

    *p = put_padded(*p, yoe + era * 400 + (month <= 2), 4, '-');
    *p = put_padded(*p, month, 2, '-');
    *p = put_padded(*p, doy - (153 * mp + 2) / 5 + 1, 2, 'T');
}

static void put_time(apr_time_t ts, char *p)
{
    apr_int64_t seconds = apr_time_sec(ts);
    unsigned usec = (unsigned)apr_time_usec(ts), rest;

    if (ts < 0) {
        seconds = usec = 0;
    }
    if (seconds > LAST_SECOND) {
        seconds = LAST_SECOND;
    }
    rest = (unsigned)(seconds % 86400);
    put_date(seconds / 86400, &p);
    p = put_padded(p, rest / 3600, 2, ':');
    p = put_padded(p, rest / 60 % 60, 2, ':');
    p = put_padded(p, rest % 60, 2, '.');
    p = put_padded(p, usec, 6, 'Z');
    *p = '\0';
}

/* -- the walk ------------------------------------------------------------ */

/* What a field is in JSON; as a note it is its text either way. */
typedef enum { FORM_STRING, FORM_BARE, FORM_WORDS } form_t;

typedef struct {
    void (*put)(void *to, const char *name, const char *value, form_t form);
    void *to;
} sink_t;

static void give_string(const sink_t *s, const char *name, const char *value)
{
    if (value && *value) {
        s->put(s->to, name, value, FORM_STRING);
    }
}

static void give_number(const sink_t *s, const char *name, apr_int64_t value)
{
    char text[NUMBER_TEXT];

    if (value >= 0) {
        put_number((apr_uint64_t)value, text);
        s->put(s->to, name, text, FORM_BARE);
    }
}

/* 0 stands for absent where a count starts at 1. */
static void give_positive(const sink_t *s, const char *name, int value)
{
    give_number(s, name, value > 0 ? value : -1);
}

static void walk_request(const aigw_record_t *rec, const sink_t *s)
{
    char when[TIME_TEXT];

    if (rec->ts) {
        put_time(rec->ts, when);
        s->put(s->to, "ts", when, FORM_STRING);
    }
    give_string(s, "id", rec->id);
    give_string(s, "host", rec->host);
    give_string(s, "tenant", rec->tenant);
    give_string(s, "key", rec->key);
    give_string(s, "client", rec->client);
    give_string(s, "api", rec->api);
    if (rec->stream >= 0) {
        s->put(s->to, "stream", rec->stream ? "true" : "false", FORM_BARE);
    }
    give_string(s, "model", rec->model);
    give_string(s, "served", rec->served);
    give_string(s, "upstream", rec->upstream);
}

static void walk_outcome(const aigw_record_t *rec, const sink_t *s)
{
    give_positive(s, "tries", rec->tries);
    give_positive(s, "status", rec->status);
    give_positive(s, "upstream_status", rec->upstream_status);
    give_string(s, "upstream_id", rec->upstream_id);
    give_string(s, "end", aigw_end_name(rec->end));
    give_string(s, "finish", rec->finish);
    if (rec->reason > AIGW_REASON_NONE && rec->reason < AIGW_REASON_MAX) {
        give_string(s, "reason", aigw_reason_info(rec->reason)->word);
    }
    give_string(s, "error", rec->error);
}

static void walk_usage(const aigw_usage_t *u, const sink_t *s)
{
    apr_uint64_t n;
    int f;

    give_string(s, "usage", aigw_usage_source_name(u->source));
    for (f = 0; f < AIGW_U_MAX; f++) {
        if (aigw_usage_get(u, (aigw_usage_field_t)f, &n)) {
            give_number(s, aigw_usage_field_name((aigw_usage_field_t)f),
                        (apr_int64_t)n);
        }
    }
}

static void walk_money(const aigw_record_t *rec, const sink_t *s)
{
    char cost[AIGW_MONEY_TEXT];

    give_string(s, "tier", rec->tier);
    if (rec->has_cost) {
        aigw_money_text(rec->cost, cost);
        s->put(s->to, "cost", cost, FORM_STRING);
    }
    give_string(s, "currency", rec->currency);
    give_string(s, "cost_stated", rec->cost_stated);
    give_string(s, "prices", rec->prices);
}

static void walk_flags(apr_uint32_t flags, const sink_t *s)
{
    char words[256]; /* all names and their commas: under 128 */
    apr_size_t n = 0, len;
    int i;

    for (i = 0; i < AIGW_FLAG_MAX; i++) {
        if (flags & (1u << i)) {
            len = strlen(flag_names[i]);
            memcpy(words + n, flag_names[i], len);
            n += len;
            words[n++] = ',';
        }
    }
    if (n) {
        words[n - 1] = '\0';
        s->put(s->to, "flags", words, FORM_WORDS);
    }
}

static void walk(const aigw_record_t *rec, apr_uint32_t flags, const sink_t *s)
{
    walk_request(rec, s);
    walk_outcome(rec, s);
    walk_usage(&rec->usage, s);
    walk_money(rec, s);
    give_number(s, "first_us", rec->first_us);
    give_number(s, "total_us", rec->total_us);
    give_number(s, "own_us", rec->own_us);
    give_number(s, "events", rec->events);
    give_number(s, "bytes_in", rec->bytes_in);
    give_number(s, "bytes_out", rec->bytes_out);
    walk_flags(flags, s);
}

/* -- UTF-8 --------------------------------------------------------------- */

static int is_tail(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* Length of the well-formed character at s (which ends with a NUL), 0 if it
 * is not one: overlong forms, surrogates and what lies above U+10FFFF. */
static int utf8_length(const unsigned char *s, unsigned *code)
{
    *code = 0;
    if (s[0] < 0x80) {
        *code = s[0];
        return 1;
    }
    if (s[0] >= 0xc2 && s[0] <= 0xdf && is_tail(s[1])) {
        *code = (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu);
        return 2;
    }
    if ((s[0] & 0xf0) == 0xe0 && is_tail(s[1]) && is_tail(s[2])) {
        *code = (s[0] & 0x0fu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
        return *code < 0x800 || (*code >= 0xd800 && *code <= 0xdfff) ? 0 : 3;
    }
    if (s[0] >= 0xf0 && s[0] <= 0xf4 && is_tail(s[1]) && is_tail(s[2])
        && is_tail(s[3])) {
        *code = (s[0] & 0x07u) << 18 | (s[1] & 0x3fu) << 12
                | (s[2] & 0x3fu) << 6 | (s[3] & 0x3fu);
        return *code < 0x10000 || *code > 0x10ffff ? 0 : 4;
    }
    return 0;
}

/* Line ends that only some readers know (U+0085, U+2028, U+2029), and the
 * C0 and C1 sets, in which terminals find escape sequences.  U+FFFD is
 * always written as its escape, so that what stood for a broken byte is
 * written again as it was. */
static int needs_escape(unsigned code)
{
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x2028
           || code == 0x2029 || code == 0xfffd;
}

/* -- the line ------------------------------------------------------------ */

typedef struct {
    char *buf;
    apr_size_t n;
    apr_size_t string_max; /* bytes that one string may take, escaped */
    int cut;               /* a string did not fit into string_max */
    int full;
} line_t;

static void put_bytes(line_t *l, const char *p, apr_size_t n)
{
    if (n > AIGW_RECORD_MAX - l->n) {
        l->full = 1;
        return;
    }
    memcpy(l->buf + l->n, p, n);
    l->n += n;
}

static void put_byte(line_t *l, char c)
{
    put_bytes(l, &c, 1);
}

/* What stands in the line for the character at s; *used bytes of s. */
static apr_size_t escape_one(const unsigned char *s, char *out, int *used)
{
    static const char hex[] = "0123456789abcdef";
    unsigned code;
    int n = utf8_length(s, &code), shift;

    *used = n ? n : 1;
    code = n ? code : 0xfffd;
    if (code == '"' || code == '\\') {
        out[0] = '\\';
        out[1] = (char)code;
        return 2;
    }
    if (!needs_escape(code)) {
        memcpy(out, s, (apr_size_t)n);
        return (apr_size_t)n;
    }
    out[0] = '\\';
    out[1] = 'u';
    for (shift = 12; shift >= 0; shift -= 4) {
        out[5 - shift / 4] = hex[code >> shift & 0xf];
    }
    return 6;
}

static void put_string(line_t *l, const char *value)
{
    const unsigned char *s = (const unsigned char *)value;
    apr_size_t taken = 0, n;
    char piece[8];
    int used;

    put_byte(l, '"');
    while (*s && !l->full) {
        n = escape_one(s, piece, &used);
        if (taken + n > l->string_max) {
            l->cut = 1;
            break;
        }
        put_bytes(l, piece, n);
        taken += n;
        s += used;
    }
    put_byte(l, '"');
}

static void put_words(line_t *l, const char *words)
{
    put_bytes(l, "[\"", 2);
    for (; *words; words++) {
        if (*words == ',') {
            put_bytes(l, "\",\"", 3);
        }
        else {
            put_byte(l, *words);
        }
    }
    put_bytes(l, "\"]", 2);
}

static void put_field(void *to, const char *name, const char *value,
                      form_t form)
{
    line_t *l = to;

    put_bytes(l, ",\"", 2);
    put_bytes(l, name, strlen(name));
    put_bytes(l, "\":", 2);
    if (form == FORM_STRING) {
        put_string(l, value);
    }
    else if (form == FORM_WORDS) {
        put_words(l, value);
    }
    else {
        put_bytes(l, value, strlen(value));
    }
}

/* 1 if the whole line is in buf with every string whole. */
static int try_line(const aigw_record_t *rec, apr_uint32_t flags, line_t *l)
{
    sink_t s;

    s.put = put_field;
    s.to = l;
    l->n = 0;
    l->cut = l->full = 0;
    put_bytes(l, "{\"v\":1", 6);
    walk(rec, flags, &s);
    put_bytes(l, "}\n", 2);
    return !l->cut && !l->full;
}

/* The last step always fits: names, numbers and punctuation take less than
 * 1400 bytes, and there are 17 strings and times. */
static const apr_size_t string_steps[] = {1024, 512, 256, 128};

apr_size_t aigw_record_write(const aigw_record_t *rec, char *buf)
{
    apr_size_t i;
    line_t l;

    l.buf = buf;
    l.string_max = AIGW_RECORD_MAX;
    if (try_line(rec, rec->flags, &l)) {
        return l.n;
    }
    for (i = 0; i < sizeof(string_steps) / sizeof(string_steps[0]); i++) {
        l.string_max = string_steps[i];
        try_line(rec, rec->flags | AIGW_FLAG_CUT, &l);
        if (!l.full) {
            break;
        }
    }
    return l.n;
}

/* -- the notes ----------------------------------------------------------- */

typedef struct {
    void (*fn)(void *ctx, const char *name, const char *value);
    void *ctx;
} each_t;

static void put_note(void *to, const char *name, const char *value,
                     form_t form)
{
    each_t *e = to;

    (void)form;
    e->fn(e->ctx, name, value);
}

void aigw_record_each(const aigw_record_t *rec,
                      void (*fn)(void *ctx, const char *name,
                                 const char *value),
                      void *ctx)
{
    each_t e;
    sink_t s;

    e.fn = fn;
    e.ctx = ctx;
    s.put = put_note;
    s.to = &e;
    walk(rec, rec->flags, &s);
}

/* -- reading back -------------------------------------------------------- */

/* One line being read: the first fault stops all further steps. */
typedef struct {
    json_t *obj;
    apr_pool_t *pool;
    const char *why;
} reader_t;

static void fault(reader_t *r, const char *key, const char *what)
{
    if (!r->why) {
        r->why = apr_psprintf(r->pool, "\"%s\" %s", key, what);
    }
}

/* A JSON null is how other writers say "absent". */
static json_t *member(reader_t *r, const char *key)
{
    json_t *v = json_object_get(r->obj, key);

    return json_is_null(v) ? NULL : v;
}

static const char *read_string(reader_t *r, const char *key)
{
    json_t *v = member(r, key);

    if (v && !json_is_string(v)) {
        fault(r, key, "is not a string");
        v = NULL;
    }
    return v ? apr_pstrmemdup(r->pool, json_string_value(v),
                              json_string_length(v))
             : NULL;
}

static apr_int64_t read_count(reader_t *r, const char *key, apr_int64_t absent,
                              json_int_t max)
{
    json_t *v = member(r, key);

    if (!v) {
        return absent;
    }
    if (!json_is_integer(v) || json_integer_value(v) < 0
        || json_integer_value(v) > max) {
        fault(r, key, "is not a whole number in its range");
        return absent;
    }
    return (apr_int64_t)json_integer_value(v);
}

static int two_digits(const char *p, int *value)
{
    if (p[0] < '0' || p[0] > '9' || p[1] < '0' || p[1] > '9') {
        return 0;
    }
    *value = (p[0] - '0') * 10 + (p[1] - '0');
    return 1;
}

static int days_in_month(int year, int month)
{
    static const char days[] = {31, 28, 31, 30, 31, 30,
                                31, 31, 30, 31, 30, 31};
    int leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap ? 1 : 0);
}

static apr_int64_t days_since_1970(int year, int month, int day)
{
    int y = month <= 2 ? year - 1 : year;
    int era = y / 400, yoe = y - era * 400;
    int doy = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

    return (apr_int64_t)era * 146097 + (yoe * 365 + yoe / 4 - yoe / 100 + doy)
           - 719468;
}

static int read_fraction(const char **p, int *usec)
{
    int place = 100000;

    *usec = 0;
    if (**p != '.') {
        return 1;
    }
    for ((*p)++; **p >= '0' && **p <= '9' && place; (*p)++) {
        *usec += (**p - '0') * place;
        place /= 10;
    }
    return (*p)[-1] != '.';
}

aigw_rc_t aigw_record_time(const char *s, apr_time_t *when)
{
    int c, y, mo, d, h, mi, sec, usec;

    if (strlen(s) < 20 || !two_digits(s, &c) || !two_digits(s + 2, &y)
        || s[4] != '-' || !two_digits(s + 5, &mo) || s[7] != '-'
        || !two_digits(s + 8, &d) || s[10] != 'T' || !two_digits(s + 11, &h)
        || s[13] != ':' || !two_digits(s + 14, &mi) || s[16] != ':'
        || !two_digits(s + 17, &sec)) {
        return AIGW_MALFORMED;
    }
    s += 19;
    y += c * 100;
    if (!read_fraction(&s, &usec) || strcmp(s, "Z") != 0 || y < 1970 || mo < 1
        || mo > 12 || d < 1 || d > days_in_month(y, mo) || h > 23 || mi > 59
        || sec > 59) {
        return AIGW_MALFORMED;
    }
    *when = apr_time_make((days_since_1970(y, mo, d) * 24 + h) * 3600 + mi * 60
                              + sec,
                          usec);
    return AIGW_OK;
}

static void read_time(reader_t *r, aigw_record_t *rec)
{
    const char *s = read_string(r, "ts");

    if (!s) {
        fault(r, "ts", "is missing");
    }
    else if (aigw_record_time(s, &rec->ts) != AIGW_OK) {
        fault(r, "ts",
              "is not a UTC time such as "
              "2026-11-30T17:02:03.123456Z");
    }
}

static void read_money(reader_t *r, aigw_record_t *rec)
{
    const char *s = read_string(r, "cost");

    rec->tier = read_string(r, "tier");
    rec->currency = read_string(r, "currency");
    rec->cost_stated = read_string(r, "cost_stated");
    rec->prices = read_string(r, "prices");
    if (!s) {
        return;
    }
    if (aigw_money_parse(aigw_slice(s, strlen(s)), &rec->cost) != AIGW_OK
        || rec->cost < 0) {
        fault(r, "cost", "is not a decimal number in its range");
    }
    else if (!rec->currency || !*rec->currency) {
        fault(r, "currency", "is missing beside \"cost\"");
    }
    rec->has_cost = 1;
}

static void read_end(reader_t *r, aigw_record_t *rec)
{
    const char *s = read_string(r, "end");
    int i = 1;

    while (s && i < END_MAX && strcmp(s, end_names[i]) != 0) {
        i++;
    }
    if (s && i == END_MAX) {
        fault(r, "end", "is not a word of this format");
    }
    rec->end = s && i < END_MAX ? (aigw_end_t)i : AIGW_END_NONE;
}

static void read_reason(reader_t *r, aigw_record_t *rec)
{
    const char *s = read_string(r, "reason");
    int i = AIGW_REASON_NONE + 1;

    if (!s) {
        return;
    }
    while (i < AIGW_REASON_MAX
           && strcmp(s, aigw_reason_info((aigw_reason_t)i)->word) != 0) {
        i++;
    }
    rec->reason = (aigw_reason_t)i;
}

static void read_usage(reader_t *r, aigw_usage_t *u)
{
    const char *s = read_string(r, "usage"), *name;
    int i = AIGW_USAGE_NONE;

    while (s && i <= AIGW_USAGE_ESTIMATED
           && strcmp(s, aigw_usage_source_name((aigw_usage_source_t)i))) {
        i++;
    }
    if (i > AIGW_USAGE_ESTIMATED) {
        fault(r, "usage", "is not a word of this format");
        i = AIGW_USAGE_NONE;
    }
    u->source = (aigw_usage_source_t)i;
    for (i = 0; i < AIGW_U_MAX; i++) {
        name = aigw_usage_field_name((aigw_usage_field_t)i);
        if (member(r, name)) {
            aigw_usage_set(u, (aigw_usage_field_t)i,
                           (apr_uint64_t)read_count(r, name, 0, COUNT_MAX));
        }
    }
}

static void read_flags(reader_t *r, aigw_record_t *rec)
{
    json_t *list = member(r, "flags");
    const char *word;
    size_t at;
    int i;

    if (list && !json_is_array(list)) {
        fault(r, "flags", "is not a list");
        return;
    }
    for (at = 0; at < json_array_size(list); at++) {
        word = json_string_value(json_array_get(list, at));
        for (i = 0; word && i < AIGW_FLAG_MAX; i++) {
            if (strcmp(word, flag_names[i]) == 0) {
                rec->flags |= 1u << i;
            }
        }
    }
}

static void read_strings(reader_t *r, aigw_record_t *rec)
{
    json_t *v = member(r, "stream");

    rec->id = read_string(r, "id");
    rec->host = read_string(r, "host");
    rec->tenant = read_string(r, "tenant");
    rec->key = read_string(r, "key");
    rec->client = read_string(r, "client");
    rec->api = read_string(r, "api");
    rec->model = read_string(r, "model");
    rec->served = read_string(r, "served");
    rec->upstream = read_string(r, "upstream");
    rec->upstream_id = read_string(r, "upstream_id");
    rec->finish = read_string(r, "finish");
    rec->error = read_string(r, "error");
    if (v && !json_is_boolean(v)) {
        fault(r, "stream", "is neither true nor false");
    }
    rec->stream = json_is_boolean(v) ? json_is_true(v) : -1;
}

static void read_numbers(reader_t *r, aigw_record_t *rec)
{
    rec->tries = (int)read_count(r, "tries", 0, APR_INT32_MAX);
    rec->status = (int)read_count(r, "status", 0, 999);
    rec->upstream_status = (int)read_count(r, "upstream_status", 0, 999);
    rec->first_us = read_count(r, "first_us", -1, APR_INT64_MAX);
    rec->total_us = read_count(r, "total_us", -1, APR_INT64_MAX);
    rec->own_us = read_count(r, "own_us", -1, APR_INT64_MAX);
    rec->events = read_count(r, "events", -1, APR_INT64_MAX);
    rec->bytes_in = read_count(r, "bytes_in", -1, APR_INT64_MAX);
    rec->bytes_out = read_count(r, "bytes_out", -1, APR_INT64_MAX);
}

static void read_record(reader_t *r, aigw_record_t *rec)
{
    json_t *v = member(r, "v");

    if (!json_is_integer(v) || json_integer_value(v) != 1) {
        fault(r, "v",
              "is not 1: this is not a usage record that this "
              "version can read");
        return;
    }
    read_time(r, rec);
    read_strings(r, rec);
    read_numbers(r, rec);
    read_end(r, rec);
    read_reason(r, rec);
    read_usage(r, &rec->usage);
    read_money(r, rec);
    read_flags(r, rec);
}

aigw_rc_t aigw_record_read(aigw_slice_t line, aigw_record_t *rec,
                           apr_pool_t *pool, const char **why)
{
    json_error_t e;
    reader_t r;

    aigw_record_init(rec);
    r.pool = pool;
    r.why = NULL;
    r.obj = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES, &e);
    if (!r.obj) {
        *why =
            apr_psprintf(pool, "not JSON at column %d: %s", e.column, e.text);
        return AIGW_MALFORMED;
    }
    if (json_is_object(r.obj)) {
        read_record(&r, rec);
    }
    else {
        r.why = "not a JSON object";
    }
    json_decref(r.obj);
    *why = r.why;
    return r.why ? AIGW_MALFORMED : AIGW_OK;
}
