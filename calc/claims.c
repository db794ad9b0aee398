/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims, from JSON to a verdict.  Strict: an unknown key, a number that is
 * no decimal text or a formula that can't be read is an error and names its
 * place.  A name in a formula that has no input is no error: it is what the
 * publisher left out, and makes the claim not computable.
 */
#include <apr_strings.h>
#include "claims.h"
#include "formula.h"
#include "json.h"

#define FILE_MAX_BYTES (4 * 1024 * 1024)
#define CORNERS_OF 8 /* inputs whose rounding is followed */
#define SLIP_MAX 6
#define EARNED 10 /* last digits that a range may span */

typedef struct {
    const char *text;
    aigw_ratio_t value, half; /* half: of the last digit, 0 if exact */
} input_t;

typedef struct {
    aigw_claims_t *claims;
    aigw_json_t doc;
    apr_pool_t *pool;
    const char *err;
} work_t;

static aigw_rc_t wrong(work_t *w, const char *place, const char *why)
{
    w->err = apr_psprintf(w->pool, "%s:%d: %s: %s", w->doc.path,
                          aigw_json_line(&w->doc, place), place, why);
    return AIGW_MALFORMED;
}

/* -- judging ------------------------------------------------------------- */

/* Names met while a formula is evaluated, and the side of its rounding that
 * each rounded one is put to. */
typedef struct {
    const aigw_claims_t *claims;
    const char *names[CORNERS_OF * 2];
    int n, n_rounded, overflow;
    unsigned corner; /* bit per rounded name: up; only if at_corner */
    int at_corner;
    const char *missing;
    apr_pool_t *pool;
} names_t;

static int known(names_t *v, const char *name)
{
    int i;

    for (i = 0; i < v->n; i++) {
        if (strcmp(v->names[i], name) == 0) {
            return i;
        }
    }
    if (v->n == CORNERS_OF * 2) {
        v->overflow = 1;
        return -1;
    }
    v->names[v->n++] = apr_pstrdup(v->pool, name);
    return v->n - 1;
}

static aigw_rc_t at_corner(const names_t *v, int index, const input_t *input,
                           aigw_ratio_t *value)
{
    if (!v->at_corner || input->half.num == 0 || index < 0) {
        return AIGW_OK;
    }
    return v->corner & 1u << index
               ? aigw_ratio_add(input->value, input->half, value)
               : aigw_ratio_sub(input->value, input->half, value);
}

static aigw_rc_t value_of(void *ctx, const char *name, aigw_ratio_t *value)
{
    names_t *v = ctx;
    const input_t *input =
        apr_hash_get(v->claims->inputs, name, APR_HASH_KEY_STRING);
    int index = known(v, name);

    if (!input) {
        if (!v->missing || !strstr(v->missing, name)) {
            v->missing =
                v->missing ? apr_pstrcat(v->pool, v->missing, ", ", name, NULL)
                           : apr_pstrdup(v->pool, name);
        }
        *value = aigw_ratio_of(1); /* go on: what else is missing? */
        return AIGW_OK;
    }
    *value = input->value;
    return at_corner(v, index, input, value);
}

static aigw_rc_t evaluate(names_t *v, const aigw_claims_t *claims,
                          const char *formula, aigw_ratio_t *value,
                          const char **why, apr_pool_t *pool)
{
    memset(v, 0, sizeof(*v));
    v->claims = claims;
    v->pool = pool;
    return aigw_formula_eval(formula, value_of, v, value, why, pool);
}

/* 1 if the printed number is the value, rounded (mode) to its digits. */
static int prints_as(const aigw_claim_t *claim, aigw_ratio_t value,
                     aigw_round_t mode)
{
    aigw_money_t m;
    int order;

    return aigw_ratio_round(value, claim->digits, mode, &m) == AIGW_OK
           && aigw_ratio_order(aigw_ratio_money(m), claim->printed, &order)
                  == AIGW_OK
           && order == 0;
}

static int rounds_to(const aigw_claim_t *claim, aigw_ratio_t value)
{
    return prints_as(claim, value, AIGW_ROUND_HALF_EVEN)
           || prints_as(claim, value, AIGW_ROUND_HALF_UP);
}

/* The power of ten by which the value is off; 0 if it is not. */
static int slip_of(const aigw_claim_t *claim)
{
    aigw_ratio_t up = claim->value, down = claim->value;
    aigw_ratio_t ten = aigw_ratio_of(10);
    int i;

    for (i = 1; i <= SLIP_MAX && claim->value.num; i++) {
        if (aigw_ratio_div(up, ten, &up) == AIGW_OK && rounds_to(claim, up)) {
            return i;
        }
        if (aigw_ratio_mul(down, ten, &down) == AIGW_OK
            && rounds_to(claim, down)) {
            return -i;
        }
    }
    return 0;
}

/* The printed figure is something else than its label says. */
static int is_mislabelled(const work_t *w, aigw_claim_t *claim)
{
    aigw_ratio_t other;
    const char *why;
    names_t v;

    if (!claim->instead
        || evaluate(&v, w->claims, claim->instead, &other, &why, w->pool)
               != AIGW_OK
        || v.missing) {
        return 0;
    }
    claim->instead_value = other;
    return !claim->has_printed || rounds_to(claim, other)
           || prints_as(claim, other, AIGW_ROUND_TRUNC);
}

static aigw_verdict_t judge_value(const work_t *w, aigw_claim_t *claim)
{
    if (rounds_to(claim, claim->value)) {
        return AIGW_VERDICT_MATCH;
    }
    if (prints_as(claim, claim->value, AIGW_ROUND_TRUNC)) {
        return AIGW_VERDICT_TRUNCATED;
    }
    claim->slip = slip_of(claim);
    if (claim->slip) {
        return AIGW_VERDICT_SLIP;
    }
    return is_mislabelled(w, claim) ? AIGW_VERDICT_MISLABELLED
                                    : AIGW_VERDICT_NO_FORMULA;
}

static void widen(aigw_claim_t *claim, aigw_ratio_t value, int first)
{
    int order;

    if (first) {
        claim->low = claim->high = value;
        return;
    }
    if (aigw_ratio_order(value, claim->low, &order) == AIGW_OK && order < 0) {
        claim->low = value;
    }
    if (aigw_ratio_order(value, claim->high, &order) == AIGW_OK && order > 0) {
        claim->high = value;
    }
}

/* 1 if the range is wider than so many of the last printed digit. */
static int is_not_earned(const aigw_claim_t *claim)
{
    aigw_ratio_t width = claim->low, unit = aigw_ratio_of(EARNED);
    int i, order = 0;

    for (i = 0; i < claim->digits; i++) {
        if (aigw_ratio_div(unit, aigw_ratio_of(10), &unit) != AIGW_OK) {
            return 0;
        }
    }
    return claim->has_printed
           && aigw_ratio_sub(claim->high, claim->low, &width) == AIGW_OK
           && aigw_ratio_order(width, unit, &order) == AIGW_OK && order > 0;
}

/* Every corner of the box that the inputs' rounding leaves: the formulas of
 * such tables rise or fall with each input. */
static void find_range(const work_t *w, aigw_claim_t *claim,
                       const names_t *met)
{
    names_t v = *met;
    aigw_ratio_t value;
    const char *why;
    unsigned corner;
    int rounded = 0, i;

    for (i = 0; i < met->n; i++) {
        const input_t *input = apr_hash_get(w->claims->inputs, met->names[i],
                                            APR_HASH_KEY_STRING);
        rounded += input->half.num != 0;
    }
    if (!rounded || met->overflow || met->n > CORNERS_OF) {
        return;
    }
    v.at_corner = 1;
    for (corner = 0; corner < 1u << met->n; corner++) {
        v.corner = corner;
        if (aigw_formula_eval(claim->formula, value_of, &v, &value, &why,
                              w->pool)
            != AIGW_OK) {
            return;
        }
        widen(claim, value, corner == 0);
    }
    claim->has_range = 1;
    claim->not_earned = is_not_earned(claim);
}

static aigw_rc_t judge(work_t *w, aigw_claim_t *claim, const char *place)
{
    const char *why = NULL;
    aigw_rc_t rc;
    names_t v;

    claim->verdict = AIGW_VERDICT_NOT_COMPUTABLE;
    if (claim->formula) {
        rc = evaluate(&v, w->claims, claim->formula, &claim->value, &why,
                      w->pool);
        claim->missing = v.missing;
        if (rc != AIGW_OK && !v.missing) {
            return wrong(w, place, why);
        }
        claim->has_value = rc == AIGW_OK && !v.missing;
    }
    if (claim->has_value) {
        find_range(w, claim, &v);
    }
    if (claim->has_value && claim->has_printed) {
        claim->verdict = judge_value(w, claim);
    }
    else if (is_mislabelled(w, claim)) {
        claim->verdict = AIGW_VERDICT_MISLABELLED;
    }
    return AIGW_OK;
}

/* -- reading ------------------------------------------------------------- */

/* The number in "+31.8%", "-92.8 %", "480,000": sign, digits with commas,
 * fraction. Anything before and after it is a unit. */
static void read_printed(aigw_claim_t *claim, apr_pool_t *pool)
{
    const char *p = claim->printed_text;
    char *digits = apr_palloc(pool, strlen(p) + 2), *to = digits;
    aigw_money_t m;
    int negative = 0, point = 0;

    for (; *p && (*p < '0' || *p > '9'); p++) {
        negative = *p == '-' || (negative && *p == ' ');
    }
    if (negative) {
        *to++ = '-';
    }
    for (; (*p >= '0' && *p <= '9') || *p == ',' || (*p == '.' && !point);
         p++) {
        point = point || *p == '.';
        claim->digits += point && *p != '.' && *p != ',';
        if (*p != ',') {
            *to++ = *p;
        }
    }
    *to = '\0';
    claim->has_printed =
        aigw_money_parse(aigw_slice(digits, strlen(digits)), &m) == AIGW_OK
        && claim->digits <= AIGW_MONEY_SCALE - 2;
    if (claim->has_printed) {
        claim->printed = aigw_ratio_money(m);
    }
}

static aigw_rc_t half_of(const char *text, aigw_ratio_t *half)
{
    const char *point = strchr(text, '.');
    size_t i, n = point ? strlen(point + 1) : 0;

    aigw_ratio_make(1, 2, half);
    for (i = 0; i < n; i++) {
        if (aigw_ratio_div(*half, aigw_ratio_of(10), half) != AIGW_OK) {
            return AIGW_TOO_BIG;
        }
    }
    return AIGW_OK;
}

static aigw_rc_t read_input(work_t *w, const char *name, json_t *value)
{
    const char *place = apr_pstrcat(w->pool, "inputs.", name, NULL), *text;
    input_t *input = apr_pcalloc(w->pool, sizeof(*input));
    aigw_money_t m;
    int rounded = 0;

    input->half = aigw_ratio_of(0);
    if (json_is_object(value)) {
        rounded = json_is_true(json_object_get(value, "rounded"));
        if (json_object_size(value) != 2
            || !json_is_boolean(json_object_get(value, "rounded"))) {
            return wrong(w, place,
                         "must be a number as text, or an object "
                         "of value and rounded");
        }
        value = json_object_get(value, "value");
    }
    text = json_string_value(value);
    if (!text
        || aigw_money_parse(aigw_slice(text, strlen(text)), &m) != AIGW_OK) {
        return wrong(w, place, "must be a decimal number in quotes");
    }
    input->text = apr_pstrdup(w->pool, text);
    input->value = aigw_ratio_money(m);
    if (rounded && half_of(text, &input->half) != AIGW_OK) {
        return wrong(w, place, "has too many digits");
    }
    apr_hash_set(w->claims->inputs, apr_pstrdup(w->pool, name),
                 APR_HASH_KEY_STRING, input);
    return AIGW_OK;
}

static aigw_rc_t take_text(work_t *w, aigw_claim_t *claim, const char *key,
                           const char *text)
{
    const char **to = strcmp(key, "claim") == 0     ? &claim->name
                      : strcmp(key, "about") == 0   ? &claim->about
                      : strcmp(key, "printed") == 0 ? &claim->printed_text
                      : strcmp(key, "formula") == 0 ? &claim->formula
                      : strcmp(key, "instead") == 0 ? &claim->instead
                      : strcmp(key, "note") == 0    ? &claim->note
                                                    : NULL;

    if (!to || !text) {
        return AIGW_MALFORMED;
    }
    *to = apr_pstrdup(w->pool, text);
    return AIGW_OK;
}

static aigw_rc_t read_claim(work_t *w, json_t *value, size_t index)
{
    const char *place =
        apr_psprintf(w->pool, "claims[%lu]", (unsigned long)index);
    aigw_claim_t *claim = apr_pcalloc(w->pool, sizeof(*claim));
    const char *key;
    json_t *member;

    if (!json_is_object(value)) {
        return wrong(w, place, "must be an object");
    }
    json_object_foreach(value, key, member)
    {
        if (take_text(w, claim, key, json_string_value(member)) != AIGW_OK) {
            return wrong(w, apr_pstrcat(w->pool, place, ".", key, NULL),
                         "must be text; keys are claim, about, printed, "
                         "formula, instead and note");
        }
    }
    if (!claim->name || !claim->printed_text) {
        return wrong(w, place, "claim and printed must be given");
    }
    read_printed(claim, w->pool);
    APR_ARRAY_PUSH(w->claims->claims, aigw_claim_t *) = claim;
    return judge(w, claim, place);
}

static aigw_rc_t read_head(work_t *w)
{
    static const char *const keys[] = {"format", "title",  "source", "note",
                                       "runs",   "inputs", "claims"};
    const char *key;
    json_t *value;
    size_t i;

    json_object_foreach(w->doc.root, key, value)
    {
        for (i = 0; i < 7 && strcmp(keys[i], key) != 0; i++) {
        }
        if (i == 7) {
            return wrong(w, key, "is not a key of a file of claims");
        }
    }
    if (json_integer_value(json_object_get(w->doc.root, "format")) != 1) {
        return wrong(w, "format", "must be 1");
    }
    value = json_object_get(w->doc.root, "title");
    w->claims->title = apr_pstrdup(w->pool, json_string_value(value));
    value = json_object_get(w->doc.root, "source");
    w->claims->source = apr_pstrdup(w->pool, json_string_value(value));
    value = json_object_get(w->doc.root, "runs");
    w->claims->runs = json_integer_value(value) == 1;
    return AIGW_OK;
}

static aigw_rc_t read_all(work_t *w)
{
    json_t *inputs = json_object_get(w->doc.root, "inputs"), *value;
    json_t *claims = json_object_get(w->doc.root, "claims");
    aigw_rc_t rc = read_head(w);
    const char *key;
    size_t i;

    if (rc == AIGW_OK && (!json_is_object(inputs) || !json_is_array(claims))) {
        return wrong(w, "",
                     "inputs (an object) and claims (a list) must be "
                     "given");
    }
    json_object_foreach(inputs, key, value)
    {
        rc = rc == AIGW_OK ? read_input(w, key, value) : rc;
    }
    json_array_foreach(claims, i, value)
    {
        rc = rc == AIGW_OK ? read_claim(w, value, i) : rc;
    }
    return rc;
}

aigw_rc_t aigw_claims_load(aigw_claims_t **claims, const char *path,
                           apr_pool_t *pool, const char **err)
{
    work_t w;
    aigw_rc_t rc;

    memset(&w, 0, sizeof(w));
    w.pool = pool;
    w.claims = *claims = apr_pcalloc(pool, sizeof(**claims));
    w.claims->inputs = apr_hash_make(pool);
    w.claims->claims = apr_array_make(pool, 32, sizeof(aigw_claim_t *));
    if (aigw_json_load(&w.doc, path, FILE_MAX_BYTES, pool, err)
        != APR_SUCCESS) {
        return AIGW_MALFORMED;
    }
    rc = read_all(&w);
    *err = w.err;
    return rc;
}

/* -- saying -------------------------------------------------------------- */

const char *aigw_claim_inputs(const aigw_claims_t *claims,
                              const aigw_claim_t *claim, apr_pool_t *pool)
{
    const char *said = "", *why;
    aigw_ratio_t value;
    names_t v;
    int i;

    if (!claim->formula) {
        return said;
    }
    evaluate(&v, claims, claim->formula, &value, &why, pool);
    for (i = 0; i < v.n; i++) {
        const input_t *input =
            apr_hash_get(claims->inputs, v.names[i], APR_HASH_KEY_STRING);

        if (input) {
            said = apr_pstrcat(pool, said, *said ? ", " : "", v.names[i],
                               " = ", input->text, NULL);
        }
    }
    return said;
}

static const struct {
    const char *key, *name;
} verdicts[AIGW_VERDICT_MAX] = {{"match", "match"},
                                {"match_truncated", "match (truncated)"},
                                {"slip", "slip"},
                                {"no_formula", "no formula"},
                                {"not_computable", "not computable"},
                                {"mislabelled", "mislabelled"}};

const char *aigw_verdict_name(aigw_verdict_t verdict)
{
    return verdicts[verdict].name;
}

const char *aigw_verdict_key(aigw_verdict_t verdict)
{
    return verdicts[verdict].key;
}

const char *aigw_claim_verdict(const aigw_claim_t *claim, apr_pool_t *pool)
{
    int n = claim->slip < 0 ? -claim->slip : claim->slip;

    if (claim->verdict != AIGW_VERDICT_SLIP) {
        return verdicts[claim->verdict].name;
    }
    return apr_psprintf(pool, "slip x%s1%.*s", claim->slip < 0 ? "1/" : "", n,
                        "000000");
}
