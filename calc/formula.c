/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formulas by recursive descent.  Depth is bounded, so that a file of
 * brackets can't exhaust the stack.
 */
#include <apr_strings.h>
#include "formula.h"

#define DEPTH_MAX 40
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyz0123456789_"

typedef struct {
    const char *p;
    aigw_formula_fn fn;
    void *ctx;
    int depth;
    const char *why;
    apr_pool_t *pool;
} work_t;

static aigw_rc_t sum(work_t *w, aigw_ratio_t *value);

static aigw_rc_t wrong(work_t *w, const char *why)
{
    w->why = why;
    return AIGW_MALFORMED;
}

static int next_is(work_t *w, char c)
{
    w->p += strspn(w->p, " ");
    if (*w->p != c) {
        return 0;
    }
    w->p++;
    return 1;
}

static aigw_rc_t number(work_t *w, aigw_ratio_t *value)
{
    apr_size_t n = strspn(w->p, "0123456789.");
    aigw_money_t m;

    if (aigw_money_parse(aigw_slice(w->p, n), &m) != AIGW_OK) {
        return wrong(w, "a number is malformed");
    }
    w->p += n;
    *value = aigw_ratio_money(m);
    return AIGW_OK;
}

static aigw_rc_t bracket(work_t *w, aigw_ratio_t *value)
{
    aigw_rc_t rc;

    if (++w->depth > DEPTH_MAX) {
        return wrong(w, "too many brackets");
    }
    rc = sum(w, value);
    w->depth--;
    if (rc == AIGW_OK && !next_is(w, ')')) {
        return wrong(w, "a bracket is not closed");
    }
    return rc;
}

static aigw_rc_t name(work_t *w, aigw_ratio_t *value)
{
    apr_size_t n = strspn(w->p, NAME_CHARS);
    const char *text = apr_pstrmemdup(w->pool, w->p, n);
    aigw_rc_t rc;

    if (n == 0) {
        return wrong(w, "a number, a name or a bracket is missing");
    }
    w->p += n;
    if (strcmp(text, "ceil") == 0 && next_is(w, '(')) {
        rc = bracket(w, value);
        if (rc == AIGW_OK) {
            value->num = aigw_ratio_ceil(*value);
            value->den = 1;
        }
        return rc;
    }
    rc = w->fn(w->ctx, text, value);
    if (rc != AIGW_OK) {
        w->why = text;
    }
    return rc;
}

static aigw_rc_t factor(work_t *w, aigw_ratio_t *value)
{
    aigw_rc_t rc;
    int minus = next_is(w, '-');

    w->p += strspn(w->p, " ");
    if (next_is(w, '(')) {
        rc = bracket(w, value);
    }
    else if (*w->p >= '0' && *w->p <= '9') {
        rc = number(w, value);
    }
    else {
        rc = name(w, value);
    }
    if (rc == AIGW_OK && minus) {
        value->num = -value->num;
    }
    return rc;
}

static aigw_rc_t too_big(work_t *w, aigw_rc_t rc)
{
    if (rc == AIGW_TOO_BIG) {
        w->why = "a value is too large";
    }
    else if (rc == AIGW_MALFORMED) {
        w->why = "it divides by 0";
    }
    return rc;
}

static aigw_rc_t product(work_t *w, aigw_ratio_t *value)
{
    aigw_ratio_t other;
    aigw_rc_t rc = factor(w, value);
    int by;

    while (rc == AIGW_OK && ((by = next_is(w, '*')) || next_is(w, '/'))) {
        rc = factor(w, &other);
        if (rc == AIGW_OK) {
            rc = too_big(w, by ? aigw_ratio_mul(*value, other, value)
                               : aigw_ratio_div(*value, other, value));
        }
    }
    return rc;
}

static aigw_rc_t sum(work_t *w, aigw_ratio_t *value)
{
    aigw_ratio_t other;
    aigw_rc_t rc = product(w, value);
    int plus;

    while (rc == AIGW_OK && ((plus = next_is(w, '+')) || next_is(w, '-'))) {
        rc = product(w, &other);
        if (rc == AIGW_OK) {
            rc = too_big(w, plus ? aigw_ratio_add(*value, other, value)
                                 : aigw_ratio_sub(*value, other, value));
        }
    }
    return rc;
}

aigw_rc_t aigw_formula_eval(const char *text, aigw_formula_fn fn, void *ctx,
                            aigw_ratio_t *value, const char **why,
                            apr_pool_t *pool)
{
    work_t w = {text, fn, ctx, 0, NULL, pool};
    aigw_rc_t rc = sum(&w, value);

    if (rc == AIGW_OK && w.p[strspn(w.p, " ")]) {
        rc = wrong(&w, apr_pstrcat(pool, "'", w.p, "' is left over", NULL));
    }
    *why = w.why;
    return rc;
}
