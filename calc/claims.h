/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of claims: what somebody printed, the inputs that stand beside it,
 * and the formula that its label promises.  A verdict follows from these and
 * from nothing else.
 */
#ifndef AIGW_CALC_CLAIMS_H
#define AIGW_CALC_CLAIMS_H

#include <apr_hash.h>
#include <apr_tables.h>
#include "ratio.h"

typedef enum {
    AIGW_VERDICT_MATCH = 0,
    AIGW_VERDICT_TRUNCATED,
    AIGW_VERDICT_SLIP,
    AIGW_VERDICT_NO_FORMULA,
    AIGW_VERDICT_NOT_COMPUTABLE,
    AIGW_VERDICT_MISLABELLED,
    AIGW_VERDICT_MAX
} aigw_verdict_t;

typedef struct {
    const char *name, *about, *note; /* about, note: NULL if not given */
    const char *printed_text;
    const char *formula;        /* what the label promises; NULL: none */
    const char *instead;        /* what may have been printed in its place */
    aigw_ratio_t instead_value; /* where the verdict is mislabelled */
    int has_printed;            /* printed_text holds a number: */
    aigw_ratio_t printed;
    int digits;    /* it has after the point */
    int has_value; /* the formula could be evaluated: */
    aigw_ratio_t value;
    const char *missing; /* inputs that are not stated */
    int has_range;
    aigw_ratio_t low, high; /* what the inputs' own rounding allows */
    int not_earned;         /* the range spans many last digits */
    aigw_verdict_t verdict;
    int slip; /* power of ten */
} aigw_claim_t;

typedef struct {
    const char *title, *source; /* NULL if not given */
    int runs;                   /* 0: not given */
    apr_hash_t *inputs;         /* name -> private */
    apr_array_header_t *claims; /* of aigw_claim_t * */
} aigw_claims_t;

/**
 * Read a file of claims and judge them.
 * @param err on failure a sentence that names the place
 * @return AIGW_OK, or AIGW_MALFORMED
 */
aigw_rc_t aigw_claims_load(aigw_claims_t **claims, const char *path,
                           apr_pool_t *pool, const char **err);

/** "qps_after = 4232, qps_before = 3210": what the formula names. */
const char *aigw_claim_inputs(const aigw_claims_t *claims,
                              const aigw_claim_t *claim, apr_pool_t *pool);

/** "match", "slip x10", ... */
const char *aigw_claim_verdict(const aigw_claim_t *claim, apr_pool_t *pool);

/** "match", "slip", ...: static text. */
const char *aigw_verdict_name(aigw_verdict_t verdict);

/** The same as a key of JSON: static text. */
const char *aigw_verdict_key(aigw_verdict_t verdict);

#endif
