/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A format is a row of fields, each with the text that ends it.  A field ends
 * at the first place where that text stands, but not at one behind a
 * backslash where it begins with a quote, as httpd escapes those.  Where two
 * directives tell the same, the one that knows more is taken: a note of the
 * module before the server's own figure.
 */
#include <stddef.h>
#include <apr_strings.h>
#include "digits.h"
#include "logformat.h"
#include "scanfast.h"

#define FIELDS_MAX 64
#define CLF_TIME 28 /* [10/Oct/2000:13:55:36 -0700] */
#define SECOND APR_INT64_C(1000000)

typedef enum {
    TAKE_NOTHING = 0,
    TAKE_TEXT, /* a string of the record */
    TAKE_NOTE, /* a key of the record, as text */
    TAKE_STATUS,
    TAKE_COUNT,    /* bytes; "-" is 0 */
    TAKE_TIME,     /* [10/Oct/2000:13:55:36 -0700] */
    TAKE_SINCE,    /* a number of units since 1970 */
    TAKE_FRACTION, /* of a second, in units */
    TAKE_DURATION  /* a number of units */
} take_t;

typedef struct {
    const char *name; /* as it stands in the format, for messages */
    take_t take;
    apr_size_t at;     /* offset in the record */
    int rank;          /* of several for one member the highest is taken */
    int key;           /* of a note */
    apr_int64_t unit;  /* microseconds */
    const char *until; /* text that ends it; "" at the end */
    apr_size_t n_until;
    apr_uint64_t word, mask; /* until and, before a time, its bracket */
} field_t;

struct aigw_logformat_t {
    apr_pool_t *pool;
    aigw_fast_t *fast;
    const char *begin; /* text before the first field */
    apr_size_t n_begin;
    field_t fields[FIELDS_MAX];
    int n;
    char minute[18]; /* 10/Oct/2000:13:55: */
    char zone[8];    /* " -0700]" */
    apr_time_t minute_at;
};

/* -- reading a format ----------------------------------------------------- */

/* Formats that Debian's httpd defines by these names. */
static const char *named(const char *text)
{
    static const struct {
        const char *name, *format;
    } rows[] =
        {{"common", "%h %l %u %t \"%r\" %>s %O"},
         {"combined",
          "%h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\""},
         {"vhost_combined", "%v:%p %h %l %u %t \"%r\" %>s %O "
                            "\"%{Referer}i\" \"%{User-Agent}i\""}};
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(text, rows[i].name) == 0) {
            return rows[i].format;
        }
    }
    return text;
}

/* The text up to the next directive, its backslashes and doubled percent
 * signs resolved. */
static const char *read_literal(aigw_logformat_t *f, const char **p,
                                apr_size_t *n)
{
    char *out = apr_palloc(f->pool, strlen(*p) + 1), *to = out;

    for (; **p && (**p != '%' || (*p)[1] == '%'); (*p)++) {
        if (**p == '%') {
            (*p)++;
        }
        else if (**p == '\\' && (*p)[1]) {
            (*p)++;
            *to++ = (char)(**p == 'n' ? '\n' : **p == 't' ? '\t' : **p);
            continue;
        }
        *to++ = **p;
    }
    *to = '\0';
    *n = (apr_size_t)(to - out);
    return out;
}

static void take(field_t *d, take_t what, apr_size_t at, int rank)
{
    d->take = what;
    d->at = at;
    d->rank = rank;
}

#define AT(member) offsetof(aigw_record_t, member)

static void take_duration(field_t *d, apr_int64_t unit, int rank)
{
    take(d, TAKE_DURATION, AT(total_us), rank);
    d->unit = unit;
}

/* %{...}T: NULL, or what is wrong. */
static const char *duration_of(field_t *d, const char *name)
{
    if (!name || strcmp(name, "s") == 0) {
        take_duration(d, SECOND, 1);
    }
    else if (strcmp(name, "ms") == 0) {
        take_duration(d, SECOND / 1000, 2);
    }
    else if (strcmp(name, "us") == 0) {
        take_duration(d, 1, 3);
    }
    else {
        return "has a unit that is not s, ms or us";
    }
    return NULL;
}

/* %{...}t */
static const char *time_of(field_t *d, const char *name)
{
    static const struct {
        const char *name;
        take_t what;
        apr_int64_t unit;
        int rank;
    } rows[] = {{"sec", TAKE_SINCE, SECOND, 1},
                {"msec", TAKE_SINCE, SECOND / 1000, 2},
                {"usec", TAKE_SINCE, 1, 3},
                {"msec_frac", TAKE_FRACTION, SECOND / 1000, 1},
                {"usec_frac", TAKE_FRACTION, 1, 2}};
    size_t i;

    if (!name) {
        take(d, TAKE_TIME, AT(ts), 1);
        return NULL;
    }
    if (strncmp(name, "begin:", 6) == 0) {
        name += 6;
    }
    else if (strncmp(name, "end:", 4) == 0) {
        return "is the end of the request: its beginning is needed";
    }
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(name, rows[i].name) == 0) {
            take(d, rows[i].what, AT(ts), rows[i].rank);
            d->unit = rows[i].unit;
            return NULL;
        }
    }
    return "is a time in a form that is not read: use %t, %{sec}t, %{msec}t "
           "or %{usec}t";
}

static const char *note_of(aigw_logformat_t *f, field_t *d, const char *name)
{
    if (!name || strncmp(name, "aigw-", 5) != 0) {
        return NULL;
    }
    d->key = aigw_fast_key(f->fast, name + 5);
    if (d->key < 0) {
        return "is no note of the module";
    }
    take(d, TAKE_NOTE, aigw_fast_member(f->fast, d->key), 9);
    return NULL;
}

static void variable_of(field_t *d, const char *name)
{
    if (name && strcmp(name, "UNIQUE_ID") == 0) {
        take(d, TAKE_TEXT, AT(id), 1);
    }
}

/* What a directive tells; NULL, or why it is refused. */
static const char *directive(aigw_logformat_t *f, field_t *d, char letter,
                             const char *name)
{
    switch (letter) {
    case 'h':
        take(d, TAKE_TEXT, AT(client), 1);
        return NULL;
    case 'a':
        take(d, name ? TAKE_NOTHING : TAKE_TEXT, AT(client), 2);
        return NULL;
    case 'u':
        take(d, TAKE_TEXT, AT(tenant), 1);
        return NULL;
    case 'v':
        take(d, TAKE_TEXT, AT(host), 2);
        return NULL;
    case 'V':
        take(d, TAKE_TEXT, AT(host), 1);
        return NULL;
    case 's':
        take(d, TAKE_STATUS, AT(status), 1);
        return NULL;
    case 'b':
    case 'B':
        take(d, TAKE_COUNT, AT(bytes_out), 2);
        return NULL;
    case 'O':
        take(d, TAKE_COUNT, AT(bytes_out), 1);
        return NULL;
    case 'I':
        take(d, TAKE_COUNT, AT(bytes_in), 1);
        return NULL;
    case 'D':
        take_duration(d, 1, 4);
        return NULL;
    case 'T':
        return duration_of(d, name);
    case 't':
        return time_of(d, name);
    case 'n':
        return note_of(f, d, name);
    case 'e':
        variable_of(d, name);
        return NULL;
    default:
        return strchr("ACfHiklLmopPqrRSUXc", letter)
                   ? NULL
                   : "is not a directive of LogFormat";
    }
}

/* ^FB, ^FU, ^ti, ^to, ^IU, ^OU */
static const char *caret(field_t *d, const char **p)
{
    static const char *const names[] = {"FB", "FU", "ti", "to",
                                        "IU", "OU", "IR", "OR"};
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncmp(*p, names[i], 2) == 0) {
            *p += 2;
            if (i == 0) {
                take(d, TAKE_DURATION, AT(first_us), 1);
                d->unit = 1;
            }
            return NULL;
        }
    }
    return "is not a directive of LogFormat";
}

/* One directive whose percent sign is at *p. */
static const char *read_field(aigw_logformat_t *f, const char **p)
{
    field_t *d = &f->fields[f->n++];
    const char *start = (*p)++, *name = NULL, *close, *why;

    *p += strspn(*p, "!,0123456789<>");
    if (**p == '{') {
        close = strchr(*p, '}');
        if (!close) {
            return "has no closing brace";
        }
        name = apr_pstrmemdup(f->pool, *p + 1, (apr_size_t)(close - *p - 1));
        *p = close + 1;
    }
    *p += strspn(*p, "<>");
    if (**p == '\0') {
        d->name = start;
        return "has no letter";
    }
    if (**p == '^') {
        (*p)++;
        why = caret(d, p);
    }
    else {
        why = directive(f, d, *(*p)++, name);
    }
    d->name = apr_pstrmemdup(f->pool, start, (apr_size_t)(*p - start));
    return why;
}

static int adds_fraction(const field_t *a, const field_t *b)
{
    return a->take == TAKE_FRACTION
           && (b->take == TAKE_TIME
               || (b->take == TAKE_SINCE && b->unit == SECOND));
}

/* Of two fields for one member only the better one is taken. The others
 * are read over. */
static void choose(aigw_logformat_t *f)
{
    int i, j;

    for (i = 0; i < f->n; i++) {
        for (j = 0; j < f->n; j++) {
            field_t *a = &f->fields[i], *b = &f->fields[j];
            int fraction = adds_fraction(a, b) || adds_fraction(b, a);

            if (i != j && a->take && b->take && a->at == b->at && !fraction
                && (a->rank < b->rank || (a->rank == b->rank && i > j))) {
                a->take = TAKE_NOTHING;
            }
        }
    }
}

/* The first eight bytes of what ends a field, to be compared at once. */
static void set_word(field_t *d)
{
    apr_size_t n = strlen(d->until);
    unsigned char text[8] = {0}, mask[8] = {0};

    n = n < 8 ? n : 8;
    memcpy(text, d->until, n);
    memset(mask, 0xff, n);
    memcpy(&d->word, text, 8);
    memcpy(&d->mask, mask, 8);
}

/* A line without a time belongs to no day. */
static const char *check(aigw_logformat_t *f)
{
    int i, has_time = 0;

    for (i = 0; i < f->n; i++) {
        field_t *d = &f->fields[i];

        if (i + 1 < f->n && d->n_until == 0) {
            return "has nothing between it and the next directive";
        }
        has_time |=
            d->take == TAKE_TIME || d->take == TAKE_SINCE
            || (d->take == TAKE_NOTE && strcmp(d->name, "%{aigw-ts}n") == 0);
        /* a user's name may hold blanks, a time begins with a bracket */
        if (i + 1 < f->n && f->fields[i + 1].take == TAKE_TIME) {
            d->until = apr_pstrcat(f->pool, d->until, "[", NULL);
        }
        set_word(d);
    }
    return has_time ? NULL : "";
}

aigw_logformat_t *aigw_logformat_make(const char *text, aigw_fast_t *fast,
                                      apr_pool_t *pool, const char **why)
{
    aigw_logformat_t *f = apr_pcalloc(pool, sizeof(*f));
    const char *p = named(text), *wrong;
    field_t *d;

    f->pool = pool;
    f->fast = fast;
    f->begin = read_literal(f, &p, &f->n_begin);
    while (*p) {
        if (f->n == FIELDS_MAX) {
            *why = "has more than 64 directives";
            return NULL;
        }
        d = &f->fields[f->n];
        wrong = read_field(f, &p);
        if (!wrong) {
            d->until = read_literal(f, &p, &d->n_until);
            if (*p && d->n_until == 0) {
                wrong = "has nothing between it and the next directive";
            }
        }
        if (wrong) {
            *why =
                apr_pstrcat(pool, d->name ? d->name : "%{", " ", wrong, NULL);
            return NULL;
        }
    }
    choose(f);
    if (check(f)) {
        *why = "has no time of the request, such as %t";
        return NULL;
    }
    return f;
}

/* -- reading a line ------------------------------------------------------- */

/* The first byte c, or the end. May read 15 bytes behind it. */
static inline char *scan_for(char *p, const char *end, char c)
{
#ifdef __SSE2__
    __m128i want = _mm_set1_epi8(c);

    while (p < end) {
        unsigned bits =
            (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(aigw_load(p), want));

        if (bits) {
            p += __builtin_ctz(bits);
            return p < end ? p : (char *)end;
        }
        p += 16;
    }
    return (char *)end;
#else
    char *hit = memchr(p, c, (size_t)(end - p));

    return hit ? hit : (char *)end;
#endif
}

/* Odd: the last of them escapes what follows. */
static int is_escaped(const char *start, const char *p)
{
    const char *from = p;

    while (from > start && from[-1] == '\\') {
        from--;
    }
    return (p - from) & 1;
}

/* Where a field ends, NULL if it does not. A quote that begins what follows
 * is compared alone: what is behind it may belong to the next field. */
static char *field_end(const field_t *d, char *p, char *end)
{
    char *start = p;
    apr_uint64_t word;

    if (d->n_until == 0) {
        return end;
    }
    if (d->take == TAKE_TIME && end - p > CLF_TIME
        && (apr_size_t)(end - p) >= CLF_TIME + d->n_until) {
        memcpy(&word, p + CLF_TIME, 8);
        if (p[CLF_TIME - 1] == ']' && d->n_until <= 8
            && ((word ^ d->word) & d->mask) == 0) {
            return p + CLF_TIME;
        }
    }
    for (;; p++) {
        p = scan_for(p, end, d->until[0]);
        if (p == end) {
            return NULL;
        }
        if (*p == '"' && is_escaped(start, p)) {
            continue;
        }
        memcpy(&word, p, 8);
        if ((apr_size_t)(end - p) >= d->n_until
            && ((word ^ d->word) & d->mask) == 0
            && (d->n_until <= 8 || memcmp(p, d->until, d->n_until) == 0)) {
            return p;
        }
    }
}

static int is_hex(unsigned char c, unsigned *value)
{
    unsigned low = c | 0x20u;

    if (c >= '0' && c <= '9') {
        *value = c - '0';
        return 1;
    }
    *value = low - 'a' + 10;
    return low >= 'a' && low <= 'f';
}

/* One escape of httpd at p (a backslash) into *c: its length, 0 if it is
 * none. */
static int unescape_one(const char *p, const char *end, char *c)
{
    static const char from[] = "\"\\bnrtv", into[] = "\"\\\b\n\r\t\v";
    unsigned high, low;
    const char *hit;

    if (end - p >= 4 && p[1] == 'x' && is_hex((unsigned char)p[2], &high)
        && is_hex((unsigned char)p[3], &low) && high + low > 0) {
        *c = (char)(high << 4 | low);
        return 4;
    }
    hit = end - p >= 2 && p[1] ? strchr(from, p[1]) : NULL;
    if (!hit) {
        return 0;
    }
    *c = into[hit - from];
    return 2;
}

static int is_utf8(const char *text, apr_size_t n)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + n;
    int len;

    while (p < end) {
        len = *p < 0x80 ? 1 : aigw_fast_utf8(p);
        if (len == 0 || len > end - p) {
            return 0;
        }
        p += len;
    }
    return 1;
}

/* In place. Bytes that make no text stay escaped. */
static apr_size_t unescape(char *text, apr_size_t n, apr_pool_t *pool)
{
    char *was = apr_pmemdup(pool, text, n), *to = text, *p = text;
    char *end = text + n;
    int len;

    while (p < end) {
        len = *p == '\\' ? unescape_one(p, end, to) : 0;
        if (len == 0) {
            *to = *p;
            len = 1;
        }
        to++;
        p += len;
    }
    if (!is_utf8(text, (apr_size_t)(to - text))) {
        memcpy(text, was, n);
        return n;
    }
    return (apr_size_t)(to - text);
}

/* 1 if every byte is printable ASCII and none is a backslash. */
static int is_plain(const char *p, apr_size_t n)
{
    const char *end = p + n;

#ifdef __SSE2__
    for (; p < end; p += 16) {
        __m128i v = aigw_load(p);
        unsigned odd =
            (unsigned)_mm_movemask_epi8(v)
            | (unsigned)_mm_movemask_epi8(
                _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('\\')),
                             _mm_cmpeq_epi8(_mm_min_epu8(v,
                                                         _mm_set1_epi8(0x1f)),
                                            v)));

        if (end - p < 16) {
            odd &= (1u << (end - p)) - 1;
        }
        if (odd) {
            return 0;
        }
    }
    return 1;
#else
    while (p < end && *p >= 0x20 && *p != '\\') {
        p++;
    }
    return p == end;
#endif
}

/* A text's end in place; NULL, or what is wrong with it. */
static const char *clean(char *text, apr_size_t *n, apr_pool_t *pool)
{
    apr_size_t i;

    if (!is_plain(text, *n)) {
        for (i = 0; i < *n; i++) {
            if ((unsigned char)text[i] < 0x20) {
                return "holds a control character";
            }
        }
        if (!is_utf8(text, *n)) {
            return "is not UTF-8";
        }
        if (memchr(text, '\\', *n)) {
            *n = unescape(text, *n, pool);
        }
    }
    text[*n] = '\0';
    return NULL;
}

static const char not_number[] = "is not a whole number in its range";

static int read_digits(const char *p, apr_size_t n, apr_int64_t *value)
{
    apr_int64_t sum = 0;
    apr_size_t i;
#ifdef AIGW_DIGITS_8
    apr_uint64_t few;

    if (n < 8) {
        if (n > 0 && aigw_digits_8(p, &few) == n) {
            *value = (apr_int64_t)few;
            return 1;
        }
    }
#endif
    if (n == 0 || n > 18) {
        return 0;
    }
    for (i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9') {
            return 0;
        }
        sum = sum * 10 + (p[i] - '0');
    }
    *value = sum;
    return 1;
}

static int month_of(const char *p)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int i;

    for (i = 0; i < 12; i++) {
        if (memcmp(p, names + 3 * i, 3) == 0) {
            return i + 1;
        }
    }
    return 0;
}

static int digits_at(const char *p, int n)
{
    int value = 0;

    while (n-- > 0) {
        if (*p < '0' || *p > '9') {
            return -1;
        }
        value = value * 10 + (*p++ - '0');
    }
    return value;
}

/* [10/Oct/2000:13:55:36 -0700], by the record's own calendar. */
static int slow_time(const char *s, apr_time_t *when)
{
    char text[32];
    int month = month_of(s + 4), hours = digits_at(s + 23, 2);
    int minutes = digits_at(s + 25, 2);
    apr_int64_t zone;

    if (month == 0 || s[0] != '[' || s[3] != '/' || s[7] != '/' || s[12] != ':'
        || s[21] != ' ' || (s[22] != '+' && s[22] != '-') || hours < 0
        || hours > 23 || minutes < 0 || minutes > 59 || s[27] != ']') {
        return 0;
    }
    apr_snprintf(text, sizeof(text), "%.4s-%02d-%.2sT%.8sZ", s + 8, month,
                 s + 1, s + 13);
    if (aigw_record_time(text, when) != AIGW_OK) {
        return 0;
    }
    zone = (hours * 60 + minutes) * 60 * SECOND;
    *when += s[22] == '-' ? zone : -zone;
    return *when >= 0;
}

/* Eight bytes or more, of a length that the compiler knows. */
static inline int same_text(const char *a, const char *b, apr_size_t n)
{
    apr_uint64_t x, y, odd = 0;
    apr_size_t at;

    for (at = 0; at + 8 <= n; at += 8) {
        memcpy(&x, a + at, 8);
        memcpy(&y, b + at, 8);
        odd |= x ^ y;
    }
    memcpy(&x, a + n - 8, 8);
    memcpy(&y, b + n - 8, 8);
    return (odd | (x ^ y)) == 0;
}

/* Seven bytes. */
static inline int same_zone(const char *a, const char *b)
{
    apr_uint32_t x[2], y[2];

    memcpy(&x[0], a, 4);
    memcpy(&x[1], a + 3, 4);
    memcpy(&y[0], b, 4);
    memcpy(&y[1], b + 3, 4);
    return x[0] == y[0] && x[1] == y[1];
}

static int clf_time(aigw_logformat_t *f, const char *s, apr_size_t n,
                    apr_time_t *when)
{
    int second;

    if (n != CLF_TIME) {
        return 0;
    }
    if (same_text(s + 1, f->minute, 18) && same_zone(s + 21, f->zone)
        && (second = digits_at(s + 19, 2)) >= 0 && second < 60) {
        *when = f->minute_at + second * SECOND;
        return s[0] == '[';
    }
    if (!slow_time(s, when)) {
        return 0;
    }
    memcpy(f->minute, s + 1, 18);
    memcpy(f->zone, s + 21, 7);
    f->minute_at = *when - digits_at(s + 19, 2) * SECOND;
    return 1;
}

/* -- one field ------------------------------------------------------------ */

static const char *take_number(const field_t *d, const char *p, apr_size_t n,
                               aigw_record_t *rec)
{
    apr_int64_t value;
    int status;

    if (n == 1 && *p == '-') {
        value = 0;
        if (d->take != TAKE_COUNT) {
            return d->take == TAKE_SINCE ? not_number : NULL;
        }
    }
    else if (!read_digits(p, n, &value)
             || (d->unit > 1 && value > APR_INT64_MAX / 4 / d->unit)) {
        return not_number;
    }
    if (d->take == TAKE_STATUS) {
        status = (int)value;
        rec->status = status;
        return value > 999 ? not_number : NULL;
    }
    if (d->take == TAKE_FRACTION || d->take == TAKE_SINCE) {
        rec->ts += value * d->unit;
        return NULL;
    }
    value *= d->take == TAKE_DURATION ? d->unit : 1;
    memcpy((char *)rec + d->at, &value, sizeof(value));
    return NULL;
}

static const char *take_text(aigw_logformat_t *f, const field_t *d, char *p,
                             apr_size_t n, aigw_record_t *rec,
                             apr_pool_t *pool)
{
    const char *why;

    if (n == 0 || (n == 1 && *p == '-')) {
        return NULL;
    }
    why = clean(p, &n, pool);
    if (why) {
        return why;
    }
    if (d->take == TAKE_NOTE) {
        return aigw_fast_set(f->fast, d->key, p, n, rec)
                   ? NULL
                   : "is no value of this note";
    }
    memcpy((char *)rec + d->at, &p, sizeof(p));
    return NULL;
}

static const char *take_field(aigw_logformat_t *f, const field_t *d, char *p,
                              apr_size_t n, aigw_record_t *rec,
                              apr_pool_t *pool)
{
    apr_time_t when;

    switch (d->take) {
    case TAKE_NOTHING:
        return NULL;
    case TAKE_TEXT:
    case TAKE_NOTE:
        return take_text(f, d, p, n, rec, pool);
    case TAKE_TIME:
        if (!clf_time(f, p, n, &when)) {
            return "is not a time such as [30/Nov/2026:17:02:03 +0000]";
        }
        rec->ts += when;
        return NULL;
    default:
        return take_number(d, p, n, rec);
    }
}

static aigw_rc_t wrong(const field_t *d, const char *what, apr_pool_t *pool,
                       const char **why)
{
    *why = apr_pstrcat(pool, d->name, " ", what, NULL);
    return AIGW_MALFORMED;
}

aigw_rc_t aigw_logformat_read(aigw_logformat_t *f, char *line, apr_size_t n,
                              aigw_record_t *rec, apr_pool_t *pool,
                              const char **why)
{
    char *p = line, *end = line + n, *stop;
    const char *bad;
    int i;

    aigw_record_init(rec);
    if (n < f->n_begin || memcmp(p, f->begin, f->n_begin) != 0) {
        *why = "does not begin as the format does";
        return AIGW_MALFORMED;
    }
    p += f->n_begin;
    for (i = 0; i < f->n; i++) {
        const field_t *d = &f->fields[i];

        stop = field_end(d, p, end);
        if (!stop) {
            return wrong(d, "has no end", pool, why);
        }
        bad = take_field(f, d, p, (apr_size_t)(stop - p), rec, pool);
        if (bad) {
            return wrong(d, bad, pool, why);
        }
        p = stop + d->n_until;
    }
    if (p != end) {
        *why = "is longer than the format";
        return AIGW_MALFORMED;
    }
    if (rec->has_cost && (!rec->currency || !*rec->currency)) {
        *why = "has a cost without a currency";
        return AIGW_MALFORMED;
    }
    return AIGW_OK;
}
