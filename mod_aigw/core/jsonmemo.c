/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Learning takes two documents.  The bytes of the first are kept; where the
 * second begins to differ is the head's end, if that is inside a string that
 * nobody wants.  The scanner may be fed in any pieces, so that its state at
 * that place can be had by feeding the head alone; it is copied, and the
 * reports made on the way are written down.  The same is done for what stands
 * behind the string, if the document ends there.  Two documents that are the
 * same are all head.
 */
#include "jsonmemo.h"

/* clang-format off */
enum {
    NOTHING = 0, /* no bytes are kept */
    ONE_SEEN,    /* bytes[] is the beginning of the last document */
    LEARNED,     /* head, tail, state and reports hold */
    OFF          /* the documents are not alike */
};
/* clang-format on */

#define HEAD_MIN 32
#define MISSES_MAX 16

void aigw_jsonmemo_init(aigw_jsonmemo_t *memo)
{
    memo->phase = NOTHING;
    memo->misses = 0;
}

/* ---- learning ----------------------------------------------------------- */

/* Keep the beginning of a document to compare the next one with. */
static void keep_bytes(aigw_jsonmemo_t *memo, const char *p, apr_size_t n)
{
    if (++memo->misses > MISSES_MAX) {
        memo->phase = OFF;
        return;
    }
    memo->head =
        (unsigned short)(n < AIGW_JSONMEMO_HEAD ? n : AIGW_JSONMEMO_HEAD);
    memcpy(memo->bytes, p, memo->head);
    memo->phase = ONE_SEEN;
}

static apr_size_t common(const char *a, const char *b, apr_size_t n)
{
    apr_size_t i = 0;

    while (i < n && a[i] == b[i]) {
        ++i;
    }
    return i;
}

/* One stretch of a document, fed while its reports are written down. */
typedef struct {
    aigw_jsonmemo_t *memo;
    aigw_jsonscan_fn *fn;
    void *ctx;
    const char *start;
    apr_size_t size;
    apr_uint64_t base; /* offset of start in the document */
    unsigned n;        /* reports so far, those of the head included */
    int odd;           /* one did not fit, or its text is not of here */
} stretch_t;

static void note(void *ctx, int field, const aigw_jsonscan_value_t *v)
{
    stretch_t *s = ctx;
    apr_size_t text =
        (apr_size_t)((apr_uintptr_t)v->text.p - (apr_uintptr_t)s->start);

    if (v->text.n == 0) {
        text = 0;
    }
    if (s->n == AIGW_JSONMEMO_REPORTS || v->text.n > 255 || v->at < s->base
        || text > s->size || v->text.n > s->size - text) {
        s->odd = 1;
    }
    else {
        aigw_jsonmemo_report_t *r = &s->memo->report[s->n++];

        r->field = (signed char)field;
        r->kind = (unsigned char)v->kind;
        r->cut = (unsigned char)v->cut;
        r->text_n = (unsigned char)v->text.n;
        r->at = (unsigned short)(v->at - s->base);
        r->end = (unsigned short)(v->end - s->base);
        r->text = (unsigned short)text;
    }
    s->fn(s->ctx, field, v);
}

static void feed_noted(stretch_t *s, aigw_jsonscan_t *js, const char *p,
                       apr_size_t n)
{
    s->start = p;
    s->size = n;
    s->base = js->base;
    aigw_jsonscan_feed(js, p, n, note, s);
}

/* The text's own bytes, if they are to be measured; @a quote is the offset
 * of its closing quote. */
static apr_uint64_t text_bytes(const aigw_jsonscan_t *js, apr_uint64_t quote,
                               apr_uint64_t saved)
{
    return aigw_jsonscan_measures(js) ? quote - js->at - 1 - saved : 0;
}

/* p is on the text's closing quote, n bytes before the feed's end. */
static void learn_tail(stretch_t *s, aigw_jsonscan_t *js, const char *p,
                       apr_size_t n)
{
    aigw_jsonmemo_t *memo = s->memo;
    apr_uint64_t before = js->measured + text_bytes(js, js->base, js->saved);

    feed_noted(s, js, p, n);
    memo->tail_text = (unsigned short)(js->measured - before);
    if (!s->odd && aigw_jsonscan_state(js) == AIGW_JSONSCAN_WHOLE) {
        memcpy(memo->tail_bytes, p, n);
        memo->tail = (unsigned short)n;
        memo->n_tail = (unsigned char)(s->n - memo->n_head);
    }
}

/* The second document; it has head bytes in common with the first. */
static void learn(aigw_jsonmemo_t *memo, aigw_jsonscan_t *js, const char *p,
                  const char *end, stretch_t *s)
{
    apr_uint64_t before = js->measured, saved = 0;
    const char *quote;

    feed_noted(s, js, p, memo->head);
    memo->head_text = (unsigned short)(js->measured - before);
    p += memo->head;
    if (s->odd
        || (!aigw_jsonscan_in_other(js)
            && aigw_jsonscan_state(js) != AIGW_JSONSCAN_WHOLE)) {
        aigw_jsonscan_feed(js, p, (apr_size_t)(end - p), s->fn, s->ctx);
        keep_bytes(memo, p - memo->head, (apr_size_t)(end - p) + memo->head);
        return;
    }
    memcpy(memo->state, js, sizeof(memo->state));
    memo->n_head = (unsigned char)s->n;
    memo->n_tail = 0;
    memo->tail = 0;
    memo->phase = LEARNED;
    if (p == end) {
        return;
    }
    quote = aigw_jsonscan_string_end(p, end, &saved);
    if (quote == NULL || end - quote > AIGW_JSONMEMO_TAIL) {
        aigw_jsonscan_feed(js, p, (apr_size_t)(end - p), s->fn, s->ctx);
        return;
    }
    aigw_jsonscan_feed(js, p, (apr_size_t)(quote - p), s->fn, s->ctx);
    learn_tail(s, js, quote, (apr_size_t)(end - quote));
}

/* ---- using what was learned --------------------------------------------- */

static void report(const aigw_jsonmemo_report_t *r, unsigned n,
                   const char *start, apr_uint64_t base, aigw_jsonscan_fn *fn,
                   void *ctx)
{
    const aigw_jsonmemo_report_t *last = r + n;

    for (; r < last; ++r) {
        aigw_jsonscan_value_t v;

        v.kind = (aigw_json_kind_t)r->kind;
        v.cut = r->cut;
        v.text = aigw_slice(start + r->text, r->text_n);
        v.at = base + r->at;
        v.end = base + r->end;
        fn(ctx, r->field, &v);
    }
}

static void use(aigw_jsonmemo_t *memo, aigw_jsonscan_t *js, const char *p,
                apr_size_t n, aigw_jsonscan_fn *fn, void *ctx)
{
    const char *end = p + n;
    apr_uint64_t saved;
    const char *quote;

    memo->misses = 0;
    memcpy(js, memo->state, sizeof(memo->state));
    js->measured += memo->head_text;
    report(memo->report, memo->n_head, p, 0, fn, ctx);
    if (n == memo->head) {
        return;
    }
    saved = js->saved;
    quote = aigw_jsonscan_string_end(p + memo->head, end, &saved);
    if (quote == NULL || memo->tail != end - quote
        || memcmp(quote, memo->tail_bytes, memo->tail) != 0) {
        aigw_jsonscan_feed(js, p + memo->head, n - memo->head, fn, ctx);
        return;
    }
    report(memo->report + memo->n_head, memo->n_tail, quote,
           (apr_uint64_t)(quote - p), fn, ctx);
    js->measured +=
        memo->tail_text + text_bytes(js, (apr_uint64_t)(quote - p), saved);
    aigw_jsonscan_set_whole(js, n);
}

void aigw_jsonmemo_feed(aigw_jsonmemo_t *memo, aigw_jsonscan_t *js,
                        const char *p, apr_size_t n, aigw_jsonscan_fn *fn,
                        void *ctx)
{
    stretch_t s;

    if (memo->phase == LEARNED && n >= memo->head
        && memcmp(p, memo->bytes, memo->head) == 0) {
        use(memo, js, p, n, fn, ctx);
        return;
    }
    if (memo->phase == OFF || n < HEAD_MIN) {
        aigw_jsonscan_feed(js, p, n, fn, ctx);
        return;
    }
    if (memo->phase == ONE_SEEN) {
        apr_size_t same =
            common(memo->bytes, p, n < memo->head ? n : memo->head);

        if (same >= HEAD_MIN) {
            memset(&s, 0, sizeof(s));
            s.memo = memo;
            s.fn = fn;
            s.ctx = ctx;
            memo->head = (unsigned short)same;
            learn(memo, js, p, p + n, &s);
            return;
        }
    }
    aigw_jsonscan_feed(js, p, n, fn, ctx);
    keep_bytes(memo, p, n);
}
