/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tokenizer is a state machine whose states are the places where a split
 * can fall.  run() takes whole tokens, as long as they lie whole in the bytes
 * at hand; what does not (the end of a feed, escapes, odd white space) is
 * left to the handlers of the single states.  Both keep the same state.
 *
 * `want` is the table's node for the value that comes next, NULL where no
 * path leads; below such a value nothing is compared or collected.  path[]
 * holds the nodes of the open containers from the root down to the last one
 * that a path leads through: match == depth says that the innermost one is
 * among them.
 */
#include "jsonscan.h"
#include "scanfast.h"

/* clang-format off */
enum {
    ST_VALUE = 0,      /* a value must come */
    ST_VALUE_OR_CLOSE, /* after [ */
    ST_KEY,            /* after , in an object */
    ST_KEY_OR_CLOSE,   /* after { */
    ST_COLON,
    ST_NEXT,           /* after a value: , or the close */
    ST_STRING,
    ST_ESCAPE,         /* after a backslash */
    ST_HEX,
    ST_LITERAL,
    ST_NUMBER,         /* before its first byte; never left like this */
    ST_MINUS,
    ST_ZERO,
    ST_INT,
    ST_DOT,
    ST_FRAC,
    ST_E,
    ST_E_SIGN,
    ST_EXP,
    ST_DONE,           /* only white space may follow */
    ST_BAD,
    ST_DEEP
};
/* clang-format on */

/* What a string is. */
enum { KEY_OTHER = 0, KEY_LOOKED_AT, VALUE_OTHER, VALUE_WANTED };

/* The bytes of one feed and where to report. */
typedef struct {
    const char *start;
    const char *end;
    aigw_jsonscan_fn *fn;
    void *ctx;
} feed_t;

static apr_uint64_t offset(const aigw_jsonscan_t *js, const feed_t *f,
                           const char *p)
{
    return js->base + (apr_uint64_t)(p - f->start);
}

static const char *broken(aigw_jsonscan_t *js, const feed_t *f, const char *p)
{
    js->state = ST_BAD;
    js->bad_at = offset(js, f, p);
    return f->end;
}

static const char *skip_long_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')) {
        ++p;
    }
    return p;
}

static inline const char *skip_space(const char *p, const char *end)
{
    return p < end && (unsigned char)*p <= ' ' ? skip_long_space(p, end) : p;
}

static int in_object(const aigw_jsonscan_t *js)
{
    return (int)(js->objects >> (js->depth - 1)) & 1;
}

/* ---- reporting ---------------------------------------------------------- */

static void report(const feed_t *f, const aigw_jsonscan_node_t *node,
                   const aigw_jsonscan_value_t *v)
{
    if (node != NULL && node->field >= 0) {
        f->fn(f->ctx, node->field, v);
    }
}

/* A scalar: @a text is all of it, or what was collected of it. */
static void report_scalar(aigw_jsonscan_t *js, const feed_t *f,
                          aigw_json_kind_t kind, aigw_slice_t text,
                          apr_uint64_t end)
{
    aigw_jsonscan_value_t v;
    apr_size_t max =
        kind == AIGW_JSON_NUMBER ? AIGW_JSONSCAN_NUMBER : AIGW_JSONSCAN_TEXT;

    v.kind = kind;
    v.cut = js->cut || text.n > max;
    v.text = aigw_slice(text.p, text.n > max ? max : text.n);
    v.at = js->at;
    v.end = end;
    report(f, js->want, &v);
}

/* @param at the offset of its brace or bracket */
static void report_container(const aigw_jsonscan_node_t *node, const feed_t *f,
                             aigw_json_kind_t kind, apr_uint64_t at)
{
    aigw_jsonscan_value_t v;

    v.kind = kind;
    v.cut = 0;
    v.text = aigw_slice("", 0);
    v.at = at;
    v.end = at + 1;
    f->fn(f->ctx, node->field, &v);
}

/* ---- what a string or number collects ----------------------------------- */

static void text_start(aigw_jsonscan_t *js)
{
    js->n = 0;
    js->cut = 0;
    js->high = 0;
}

static void text_add(aigw_jsonscan_t *js, const char *p, apr_size_t n)
{
    if (n > AIGW_JSONSCAN_TEXT - js->n) {
        n = AIGW_JSONSCAN_TEXT - js->n;
        js->cut = 1;
    }
    memcpy(js->text + js->n, p, n);
    js->n += (unsigned)n;
}

static void text_add_char(aigw_jsonscan_t *js, apr_uint32_t c)
{
    char utf8[4];
    int n = 0;

    if (c < 0x80) {
        utf8[n++] = (char)c;
    }
    else if (c < 0x800) {
        utf8[n++] = (char)(0xc0 | c >> 6);
        utf8[n++] = (char)(0x80 | (c & 0x3f));
    }
    else if (c < 0x10000) {
        utf8[n++] = (char)(0xe0 | c >> 12);
        utf8[n++] = (char)(0x80 | (c >> 6 & 0x3f));
        utf8[n++] = (char)(0x80 | (c & 0x3f));
    }
    else {
        utf8[n++] = (char)(0xf0 | c >> 18);
        utf8[n++] = (char)(0x80 | (c >> 12 & 0x3f));
        utf8[n++] = (char)(0x80 | (c >> 6 & 0x3f));
        utf8[n++] = (char)(0x80 | (c & 0x3f));
    }
    text_add(js, utf8, (apr_size_t)n);
}

/* A high surrogate whose low one did not come is no character. */
static void text_drop_high(aigw_jsonscan_t *js)
{
    if (js->high != 0) {
        js->high = 0;
        text_add_char(js, 0xfffd);
    }
}

/* A code unit written as \uXXXX. */
static void text_add_unit(aigw_jsonscan_t *js, apr_uint32_t unit)
{
    if (js->high != 0 && unit >= 0xdc00 && unit <= 0xdfff) {
        apr_uint32_t high = js->high;

        js->high = 0;
        text_add_char(js, 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00));
        return;
    }
    text_drop_high(js);
    if (unit >= 0xd800 && unit <= 0xdbff) {
        js->high = unit;
    }
    else {
        text_add_char(js, unit >= 0xdc00 && unit <= 0xdfff ? 0xfffd : unit);
    }
}

static int collects(const aigw_jsonscan_t *js)
{
    return js->after & 1;
}

/* ---- containers --------------------------------------------------------- */

static const aigw_jsonscan_node_t no_nodes[] = {{NULL, 0, -1, NULL}};
static const aigw_jsonscan_table_t nothing = {0, no_nodes};

/* What is wanted inside the innermost container. */
static inline const aigw_jsonscan_table_t *innermost(const aigw_jsonscan_t *js)
{
    const aigw_jsonscan_table_t *table;

    if (js->match != js->depth || js->depth == 0) {
        return &nothing;
    }
    table = js->path[js->match - 1]->members;
    return table != NULL ? table : &nothing;
}

static int is_any(const aigw_jsonscan_node_t *node)
{
    return node->tag == (1 | '*' << 8);
}

static inline const aigw_jsonscan_node_t *find_element(
    const aigw_jsonscan_table_t *table)
{
    return table != &nothing && is_any(table->nodes) ? table->nodes : NULL;
}

/* Keys are short: comparing them here costs less than a call. The first
 * bytes are known to be the same. */
static inline int same_bytes(const char *a, const char *b, apr_size_t n)
{
    apr_uint32_t x, y;
    apr_size_t i;

    if (n < 4) {
        return a[n - 1] == b[n - 1] && a[n / 2] == b[n / 2];
    }
    for (i = 0; i < n - 4; i += 4) {
        memcpy(&x, a + i, 4);
        memcpy(&y, b + i, 4);
        if (x != y) {
            return 0;
        }
    }
    memcpy(&x, a + n - 4, 4);
    memcpy(&y, b + n - 4, 4);
    return x == y;
}

static const aigw_jsonscan_node_t *look_up(const aigw_jsonscan_table_t *table,
                                           aigw_slice_t key)
{
    const aigw_jsonscan_node_t *m;
    apr_size_t tag = key.n | (apr_size_t)(unsigned char)key.p[0] << 8;

    if (key.n > 255) {
        return NULL;
    }
    for (m = table->nodes; m->tag != 0; ++m) {
        if (m->tag == tag && same_bytes(m->key, key.p, key.n) && !is_any(m)) {
            return m;
        }
    }
    return NULL;
}

static inline const aigw_jsonscan_node_t *find_member(
    const aigw_jsonscan_table_t *table, aigw_slice_t key)
{
    /* The byte behind an empty key is its quote: it can be read. */
    if ((table->keys & AIGW_JSONSCAN_BIT(key.n, *key.p)) == 0) {
        return NULL;
    }
    return look_up(table, key);
}

/* p is on the brace or bracket. Leaves ST_DEEP or what may come inside. */
static inline const char *open_container(aigw_jsonscan_t *js, const feed_t *f,
                                         const char *p, int object)
{
    const aigw_jsonscan_node_t *want = js->want;
    apr_uint64_t bit = (apr_uint64_t)1 << (js->depth & 63);

    if (js->depth == AIGW_JSONSCAN_DEPTH) {
        js->state = ST_DEEP;
        js->bad_at = offset(js, f, p);
        return f->end;
    }
    if (want != NULL && js->match < AIGW_JSONSCAN_PATH) {
        if (want->field >= 0) {
            report_container(want, f,
                             object ? AIGW_JSON_OBJECT : AIGW_JSON_ARRAY,
                             offset(js, f, p));
        }
        js->path[js->match++] = want;
    }
    ++js->depth;
    if (object) {
        js->objects |= bit;
        js->state = ST_KEY_OR_CLOSE;
    }
    else {
        js->objects &= ~bit;
        js->want = find_element(innermost(js));
        js->state = ST_VALUE_OR_CLOSE;
    }
    return p + 1;
}

static const char *value_done(aigw_jsonscan_t *js, const char *p)
{
    js->state = js->depth > 0 ? ST_NEXT : ST_DONE;
    return p;
}

static inline const char *close_container(aigw_jsonscan_t *js, const feed_t *f,
                                          const char *p)
{
    if (js->match == js->depth) {
        const aigw_jsonscan_node_t *node = js->path[--js->match];

        if (node->field >= 0 && in_object(js)) {
            report_container(node, f, AIGW_JSON_CLOSE, offset(js, f, p));
        }
    }
    --js->depth;
    return value_done(js, p + 1);
}

/* ---- strings ------------------------------------------------------------ */

/* 1 if a string that comes now is to be collected and reported. */
static int reported(const aigw_jsonscan_t *js)
{
    return js->want != NULL && js->want->field >= 0;
}

/* p is after the closing quote; text is what the string holds. */
static const char *string_done(aigw_jsonscan_t *js, const feed_t *f,
                               const char *p, aigw_slice_t text)
{
    switch (js->after) {
    case KEY_LOOKED_AT:
        js->want = find_member(innermost(js), text);
        break;
    case KEY_OTHER:
        js->want = NULL;
        break;
    case VALUE_WANTED:
        report_scalar(js, f, AIGW_JSON_STRING, text, offset(js, f, p));
        return value_done(js, p);
    default:
        if (aigw_jsonscan_measures(js)) {
            js->measured += offset(js, f, p) - js->at - 2 - js->saved;
        }
        return value_done(js, p);
    }
    if (p < f->end && *p == ':') {
        js->state = ST_VALUE;
        return p + 1;
    }
    js->state = ST_COLON;
    return p;
}

/* What a backslash and this byte stand for; 0 for none, 1 for \u. */
static unsigned char escaped(char c)
{
    switch (c) {
    case 'n':
        return '\n';
    case '"':
    case '\\':
    case '/':
        return (unsigned char)c;
    case 't':
        return '\t';
    case 'r':
        return '\r';
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'u':
        return 1;
    default:
        return 0;
    }
}

static const char *take_escape(aigw_jsonscan_t *js, const feed_t *f,
                               const char *p)
{
    unsigned char c = escaped(*p);

    if (c == 0) {
        return broken(js, f, p);
    }
    if (c == 1) {
        js->hex = 0;
        js->digits = 4;
        js->state = ST_HEX;
    }
    else {
        js->state = ST_STRING;
        ++js->saved;
        if (collects(js)) {
            text_drop_high(js);
            text_add(js, (const char *)&c, 1);
        }
    }
    return p + 1;
}

/* Of the six bytes of an escaped unit. Each half of a pair stands for two of
 * the pair's four bytes. */
static unsigned saved_by_unit(apr_uint32_t unit)
{
    if (unit < 0x800) {
        return unit < 0x80 ? 5 : 4;
    }
    return unit >= 0xd800 && unit <= 0xdfff ? 4 : 3;
}

static const char *take_hex(aigw_jsonscan_t *js, const feed_t *f,
                            const char *p)
{
    for (; p < f->end && js->digits > 0; ++p, --js->digits) {
        unsigned c = (unsigned char)*p;

        if (c - '0' <= 9) {
            c -= '0';
        }
        else if ((c | 0x20) - 'a' <= 5) {
            c = (c | 0x20) - 'a' + 10;
        }
        else {
            return broken(js, f, p);
        }
        js->hex = js->hex << 4 | c;
    }
    if (js->digits == 0) {
        js->state = ST_STRING;
        js->saved += saved_by_unit(js->hex);
        if (collects(js)) {
            text_add_unit(js, js->hex);
        }
    }
    return p;
}

static const char *in_string(aigw_jsonscan_t *js, const feed_t *f,
                             const char *p)
{
    while (p < f->end) {
        const char *q = aigw_scan_string(p, f->end);

        if (collects(js) && q > p) {
            text_drop_high(js);
            text_add(js, p, (apr_size_t)(q - p));
        }
        if (q == f->end) {
            return q;
        }
        if (*q == '"') {
            if (collects(js)) {
                text_drop_high(js);
            }
            return string_done(js, f, q + 1, aigw_slice(js->text, js->n));
        }
        if (*q != '\\') {
            return broken(js, f, q);
        }
        if (q + 1 == f->end) {
            js->state = ST_ESCAPE;
            return q + 1;
        }
        p = take_escape(js, f, q + 1);
        if (js->state != ST_STRING) {
            return p;
        }
    }
    return p;
}

/* p is after the opening quote. */
static const char *start_string(aigw_jsonscan_t *js, const feed_t *f,
                                const char *p, int what)
{
    const char *q = aigw_scan_string(p, f->end);

    js->after = (unsigned char)what;
    js->cut = 0;
    js->saved = 0;
    if (q < f->end && *q == '"') {
        return string_done(js, f, q + 1, aigw_slice(p, (apr_size_t)(q - p)));
    }
    text_start(js);
    js->state = ST_STRING;
    return in_string(js, f, p);
}

static const char *start_key(aigw_jsonscan_t *js, const feed_t *f,
                             const char *p)
{
    return start_string(js, f, p,
                        js->match == js->depth ? KEY_LOOKED_AT : KEY_OTHER);
}

/* ---- numbers and literals ----------------------------------------------- */

static int is_number_end(unsigned state)
{
    return state == ST_ZERO || state == ST_INT || state == ST_FRAC
           || state == ST_EXP;
}

/* The state after a byte of a number, or ST_VALUE: not a part of it. */
static unsigned number_step(unsigned state, char c)
{
    int digit = c >= '0' && c <= '9';

    switch (state) {
    case ST_NUMBER:
        if (c == '-') {
            return ST_MINUS;
        }
        return c == '0' ? ST_ZERO : ST_INT;
    case ST_MINUS:
        return digit ? (c == '0' ? ST_ZERO : ST_INT) : ST_VALUE;
    case ST_ZERO:
    case ST_INT:
        if (digit) {
            return state == ST_INT ? ST_INT : ST_VALUE;
        }
        return c == '.' ? ST_DOT : (c | 0x20) == 'e' ? ST_E : ST_VALUE;
    case ST_DOT:
        return digit ? ST_FRAC : ST_VALUE;
    case ST_FRAC:
        return digit ? ST_FRAC : (c | 0x20) == 'e' ? ST_E : ST_VALUE;
    case ST_E:
        if (c == '+' || c == '-') {
            return ST_E_SIGN;
        }
        return digit ? ST_EXP : ST_VALUE;
    default:
        return digit ? ST_EXP : ST_VALUE;
    }
}

static const char *in_number(aigw_jsonscan_t *js, const feed_t *f,
                             const char *p)
{
    const char *q = p;
    unsigned state = js->state;

    for (; q < f->end; ++q) {
        unsigned next;

        if ((unsigned char)(*q - '0') <= 9
            && (state == ST_INT || state == ST_FRAC)) {
            continue;
        }
        next = number_step(state, *q);
        if (next == ST_VALUE) {
            break;
        }
        state = next;
    }
    js->state = (unsigned char)state;
    if (q < f->end && !is_number_end(state)) {
        return broken(js, f, q);
    }
    if (js->after == VALUE_WANTED && (q == f->end || js->n > 0)) {
        text_add(js, p, (apr_size_t)(q - p));
    }
    if (q == f->end) {
        return q;
    }
    if (js->after == VALUE_WANTED) {
        report_scalar(js, f, AIGW_JSON_NUMBER,
                      js->n > 0 ? aigw_slice(js->text, js->n)
                                : aigw_slice(p, (apr_size_t)(q - p)),
                      offset(js, f, q));
    }
    return value_done(js, q);
}

static const char *start_number(aigw_jsonscan_t *js, const feed_t *f,
                                const char *p)
{
    text_start(js);
    js->after = reported(js) ? VALUE_WANTED : VALUE_OTHER;
    js->state = ST_NUMBER;
    return in_number(js, f, p);
}

static const struct {
    const char *text;
    unsigned char n;
} literals[] = {
    [AIGW_JSON_NULL] = {"null", 4},
    [AIGW_JSON_FALSE] = {"false", 5},
    [AIGW_JSON_TRUE] = {"true", 4},
};

static const char *in_literal(aigw_jsonscan_t *js, const feed_t *f,
                              const char *p)
{
    const char *text = literals[js->lit].text;
    unsigned n = literals[js->lit].n;

    for (; js->lit_at < n && p < f->end; ++p, ++js->lit_at) {
        if (*p != text[js->lit_at]) {
            return broken(js, f, p);
        }
    }
    if (js->lit_at < n) {
        return p;
    }
    if (js->lit != AIGW_JSON_NULL || js->nulls || js->depth == 0
        || !in_object(js)) {
        report_scalar(js, f, (aigw_json_kind_t)js->lit, aigw_slice(text, n),
                      offset(js, f, p));
    }
    return value_done(js, p);
}

static const char *start_literal(aigw_jsonscan_t *js, const feed_t *f,
                                 const char *p, aigw_json_kind_t kind)
{
    js->cut = 0;
    js->lit = (unsigned char)kind;
    js->lit_at = 0;
    js->state = ST_LITERAL;
    return in_literal(js, f, p);
}

/* ---- between tokens ----------------------------------------------------- */

/* p is on the first byte of a value, white space over. */
static const char *start_value(aigw_jsonscan_t *js, const feed_t *f,
                               const char *p)
{
    if (js->want != NULL) {
        js->at = offset(js, f, p);
    }
    switch (*p) {
    case '"':
        return start_string(js, f, p + 1,
                            reported(js) ? VALUE_WANTED : VALUE_OTHER);
    case '{':
        return open_container(js, f, p, 1);
    case '[':
        return open_container(js, f, p, 0);
    case 'n':
        return start_literal(js, f, p, AIGW_JSON_NULL);
    case 't':
        return start_literal(js, f, p, AIGW_JSON_TRUE);
    case 'f':
        return start_literal(js, f, p, AIGW_JSON_FALSE);
    default:
        if (*p == '-' || (*p >= '0' && *p <= '9')) {
            return start_number(js, f, p);
        }
        return broken(js, f, p);
    }
}

/* One step of the machine outside tokens; p < f->end. */
static const char *between(aigw_jsonscan_t *js, const feed_t *f, const char *p)
{
    if ((unsigned char)*p <= ' ') {
        p = skip_space(p, f->end);
        if (p == f->end) {
            return p;
        }
    }
    switch (js->state) {
    case ST_VALUE_OR_CLOSE:
        if (*p == ']') {
            return close_container(js, f, p);
        }
        return start_value(js, f, p);
    case ST_KEY_OR_CLOSE:
        if (*p == '}') {
            return close_container(js, f, p);
        }
        return *p == '"' ? start_key(js, f, p + 1) : broken(js, f, p);
    case ST_KEY:
        return *p == '"' ? start_key(js, f, p + 1) : broken(js, f, p);
    case ST_COLON:
        if (*p != ':') {
            return broken(js, f, p);
        }
        js->state = ST_VALUE;
        return p + 1;
    default: /* ST_DONE */
        return broken(js, f, p);
    }
}

/* ---- whole tokens ------------------------------------------------------- */

/* A number of digits only that ends before @a end: where, else NULL. */
static inline const char *plain_number(const char *p, const char *end)
{
    const char *q = p;

    while (q < end && (unsigned char)(*q - '0') <= 9) {
        ++q;
    }
    if (q == p || q == end || *q == '.' || (*q | 0x20) == 'e'
        || (*p == '0' && q > p + 1)) {
        return NULL;
    }
    return q;
}

static inline const char *plain_literal(const char *p, const char *end,
                                        aigw_json_kind_t *kind)
{
    if (end - p < 5) {
        return NULL;
    }
    if (memcmp(p, "null", 4) == 0) {
        *kind = AIGW_JSON_NULL;
        return p + 4;
    }
    if (memcmp(p, "true", 4) == 0) {
        *kind = AIGW_JSON_TRUE;
        return p + 4;
    }
    if (memcmp(p, "false", 5) == 0) {
        *kind = AIGW_JSON_FALSE;
        return p + 5;
    }
    return NULL;
}

/* A wanted scalar that lies whole in the feed, from p to after. */
static inline void report_whole(aigw_jsonscan_t *js, const feed_t *f,
                                aigw_json_kind_t kind, const char *p,
                                const char *after)
{
    apr_size_t quotes = kind == AIGW_JSON_STRING;
    apr_size_t n = (apr_size_t)(after - p) - 2 * quotes;
    apr_size_t max = quotes ? AIGW_JSONSCAN_TEXT : AIGW_JSONSCAN_NUMBER;
    aigw_jsonscan_value_t v;

    if (js->want->field < 0) {
        js->measured += quotes && aigw_jsonscan_measures(js) ? n : 0;
        return;
    }
    v.kind = kind;
    v.cut = n > max;
    v.text = aigw_slice(p + quotes, v.cut ? max : n);
    v.at = offset(js, f, p);
    v.end = v.at + (apr_uint64_t)(after - p);
    f->fn(f->ctx, js->want->field, &v);
}

/*
 * From ST_VALUE or ST_NEXT on, as far as whole tokens reach. Leaves the state
 * in which the next byte is to be taken.
 */
static const char *run(aigw_jsonscan_t *js, const feed_t *f, const char *p)
{
    const char *const end = f->end;
    const aigw_jsonscan_table_t *table = innermost(js);
    int object = js->depth > 0 && in_object(js);
    aigw_json_kind_t kind;
    const char *q;

    if (js->state == ST_NEXT) {
        goto next;
    }

value:
    if (p == end) {
        js->state = ST_VALUE;
        return p;
    }
    if (*p == '"') {
        q = aigw_scan_string(p + 1, end);
        if (q == end || *q != '"') {
            return start_value(js, f, p);
        }
        kind = AIGW_JSON_STRING;
        ++q;
    }
    else if (*p == '{' || *p == '[') {
        object = *p == '{';
        p = open_container(js, f, p, object);
        if (p == end) {
            return p;
        }
        table = innermost(js);
        if (*p == '"' && object) {
            goto key;
        }
        if ((*p == '{' || *p == '"') && !object) {
            goto value;
        }
        return p;
    }
    else if ((q = plain_number(p, end)) != NULL) {
        kind = AIGW_JSON_NUMBER;
    }
    else if ((q = plain_literal(p, end, &kind)) == NULL) {
        q = skip_space(p, end);
        if (q == p) {
            return start_value(js, f, p);
        }
        p = q;
        goto value;
    }
    if (js->want != NULL && (kind != AIGW_JSON_NULL || js->nulls || !object)) {
        report_whole(js, f, kind, p, q);
    }
    p = q;
    if (js->depth == 0) {
        js->state = ST_DONE;
        return p;
    }

next:
    if (p == end) {
        js->state = ST_NEXT;
        return p;
    }
    if (*p != ',') {
        if (*p != (object ? '}' : ']')) {
            q = skip_space(p, end);
            if (q == p) {
                return broken(js, f, p);
            }
            p = q;
            goto next;
        }
        p = close_container(js, f, p);
        if (js->depth == 0) {
            return p;
        }
        table = innermost(js);
        object = in_object(js);
        goto next;
    }
    ++p;
    if (!object) {
        js->want = find_element(table);
        goto value;
    }
    if (p == end || *p != '"') {
        p = skip_space(p, end);
        if (p == end || *p != '"') {
            js->state = ST_KEY;
            return p;
        }
    }

key:
    q = aigw_scan_string(p + 1, end);
    if (q == end || *q != '"') {
        return start_key(js, f, p + 1);
    }
    js->want = find_member(table, aigw_slice(p + 1, (apr_size_t)(q - p - 1)));
    p = q + 1;
    if (p == end || *p != ':') {
        js->state = ST_COLON;
        return p;
    }
    ++p;
    goto value;
}

/* ---- the interface ------------------------------------------------------ */

void aigw_jsonscan_init(aigw_jsonscan_t *js, const aigw_jsonscan_node_t *root)
{
    js->root = root;
    js->nulls = 0;
    js->measured = 0;
    js->saved = 0;
    js->after = KEY_OTHER;
    text_start(js);
    aigw_jsonscan_reset(js);
}

void aigw_jsonscan_reset(aigw_jsonscan_t *js)
{
    js->want = js->root;
    js->base = 0;
    js->bad_at = 0;
    js->depth = 0;
    js->match = 0;
    js->state = ST_VALUE;
}

void aigw_jsonscan_feed(aigw_jsonscan_t *js, const char *p, apr_size_t n,
                        aigw_jsonscan_fn *fn, void *ctx)
{
    feed_t f;

    f.start = p;
    f.end = p + n;
    f.fn = fn;
    f.ctx = ctx;
    while (p < f.end) {
        switch (js->state) {
        case ST_VALUE:
        case ST_NEXT:
            p = run(js, &f, p);
            break;
        case ST_STRING:
            p = in_string(js, &f, p);
            break;
        case ST_ESCAPE:
            p = take_escape(js, &f, p);
            break;
        case ST_HEX:
            p = take_hex(js, &f, p);
            break;
        case ST_LITERAL:
            p = in_literal(js, &f, p);
            break;
        case ST_MINUS:
        case ST_ZERO:
        case ST_INT:
        case ST_DOT:
        case ST_FRAC:
        case ST_E:
        case ST_E_SIGN:
        case ST_EXP:
            p = in_number(js, &f, p);
            break;
        case ST_BAD:
        case ST_DEEP:
            p = f.end;
            break;
        default:
            p = between(js, &f, p);
            break;
        }
    }
    js->base += n;
}

aigw_jsonscan_end_t aigw_jsonscan_state(const aigw_jsonscan_t *js)
{
    switch (js->state) {
    case ST_DONE:
        return AIGW_JSONSCAN_WHOLE;
    case ST_BAD:
        return AIGW_JSONSCAN_BAD;
    case ST_DEEP:
        return AIGW_JSONSCAN_DEEP;
    case ST_VALUE:
        return js->depth == 0 ? AIGW_JSONSCAN_EMPTY : AIGW_JSONSCAN_OPEN;
    default:
        return AIGW_JSONSCAN_OPEN;
    }
}

int aigw_jsonscan_in_other(const aigw_jsonscan_t *js)
{
    return js->state == ST_STRING && js->after == VALUE_OTHER;
}

const char *aigw_jsonscan_string_end(const char *p, const char *end,
                                     apr_uint64_t *saved)
{
    for (;;) {
        p = aigw_scan_string(p, end);
        if (end - p < 2) {
            return p < end && *p == '"' ? p : NULL;
        }
        if (*p == '"') {
            return p;
        }
        if (*p != '\\' || escaped(p[1]) <= 1) {
            return NULL;
        }
        ++*saved;
        p += 2;
    }
}

void aigw_jsonscan_set_whole(aigw_jsonscan_t *js, apr_uint64_t n)
{
    js->state = ST_DONE;
    js->depth = 0;
    js->match = 0;
    js->base = n;
}

aigw_jsonscan_end_t aigw_jsonscan_finish(aigw_jsonscan_t *js,
                                         aigw_jsonscan_fn *fn, void *ctx)
{
    if (js->depth == 0 && is_number_end(js->state)) {
        apr_uint64_t base = js->base;

        aigw_jsonscan_feed(js, "\n", 1, fn, ctx);
        js->base = base;
    }
    return aigw_jsonscan_state(js);
}

/* ---- counts ------------------------------------------------------------- */

#define COUNT_MAX ((apr_uint64_t)1 << 53)

/* A JSON number without its sign: digits without leading and trailing zeros,
 * and the power of ten that they are multiplied by. */
typedef struct {
    apr_uint64_t digits; /* the first 18 of them */
    int n;               /* how many there are */
    int zeros;           /* read, but trailing so far */
    long power;
} plain_t;

static void add_digit(plain_t *d, unsigned digit)
{
    if (digit == 0) {
        d->zeros += d->n > 0;
        return;
    }
    for (; d->zeros > 0; --d->zeros, ++d->n) {
        d->digits = d->n < 18 ? d->digits * 10 : d->digits;
    }
    d->digits = d->n < 18 ? d->digits * 10 + digit : d->digits;
    ++d->n;
}

/* The exponent of "e-12"; over 9999 is as good as 9999. */
static long exponent(const char *p, const char *end)
{
    int negative = p < end && *p == '-';
    long e = 0;

    for (p += p < end && (*p == '-' || *p == '+'); p < end; ++p) {
        e = e < 1000 ? e * 10 + (*p - '0') : 9999;
    }
    return negative ? -e : e;
}

/* @a s has the grammar of a JSON number, or is digits only. */
static void read_plain(aigw_slice_t s, plain_t *d)
{
    const char *p = s.p;
    const char *end = p + s.n;
    int fraction = 0;

    memset(d, 0, sizeof(*d));
    for (; p < end && (*p | 0x20) != 'e'; ++p) {
        if (*p == '.') {
            fraction = 1;
        }
        else {
            add_digit(d, (unsigned)(*p - '0'));
            d->power -= fraction;
        }
    }
    if (p < end) {
        d->power += exponent(p + 1, end);
    }
    d->power += d->zeros;
}

static int all_digits(aigw_slice_t s)
{
    apr_size_t i;

    for (i = 0; i < s.n; ++i) {
        if (s.p[i] < '0' || s.p[i] > '9') {
            return 0;
        }
    }
    return s.n > 0;
}

aigw_rc_t aigw_jsonscan_count(const aigw_jsonscan_value_t *v,
                              apr_uint64_t *count)
{
    plain_t d;

    if (v->kind == AIGW_JSON_NULL) {
        return AIGW_DONE;
    }
    if (v->text.n == 1 && (unsigned char)(*v->text.p - '0') <= 9
        && v->kind <= AIGW_JSON_STRING) {
        *count = (apr_uint64_t)(*v->text.p - '0');
        return AIGW_OK;
    }
    if (v->kind == AIGW_JSON_STRING) {
        if (!all_digits(v->text)) {
            return AIGW_MALFORMED;
        }
    }
    else if (v->kind != AIGW_JSON_NUMBER || v->text.p[0] == '-') {
        return AIGW_MALFORMED;
    }
    if (v->cut) {
        return AIGW_TOO_BIG;
    }
    read_plain(v->text, &d);
    if (d.n > 0 && d.power < 0) {
        return AIGW_MALFORMED;
    }
    if (d.n > 0 && d.n + d.power > 16) {
        return AIGW_TOO_BIG;
    }
    for (; d.n > 0 && d.power > 0; --d.power) {
        d.digits *= 10;
    }
    if (d.digits > COUNT_MAX) {
        return AIGW_TOO_BIG;
    }
    *count = d.digits;
    return AIGW_OK;
}
