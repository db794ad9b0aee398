/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of usage records by day, model, tenant and so on, in memory that grows
 * with the number of groups and with nothing else: less than 200 bytes a
 * group of ordinary names.  Beyond the most groups allowed, records are
 * summed in one group that is called "(other)".  What no record stated stays
 * unknown: it is not summed as 0.
 */
#ifndef AIGW_CALC_TALLY_H
#define AIGW_CALC_TALLY_H

#include <apr_pools.h>
#include <apr_tables.h>
#include "day.h"
#include "decimal.h"
#include "price.h"
#include "record.h"

typedef enum {
    AIGW_BY_DAY = 0,
    AIGW_BY_MODEL,
    AIGW_BY_TENANT,
    AIGW_BY_KEY,
    AIGW_BY_UPSTREAM,
    AIGW_BY_HOST,
    AIGW_BY_HOUR,
    AIGW_BY_WEEK,
    AIGW_BY_MONTH,
    AIGW_BY_SERVED,
    AIGW_BY_API,
    AIGW_BY_MAX
} aigw_by_t;

/** "day", "model", ...: static text. */
const char *aigw_by_name(aigw_by_t by);

typedef enum {
    AIGW_T_REQUESTS = 0,
    AIGW_T_ERRORS,
    AIGW_T_INPUT, /* uncached */
    AIGW_T_CACHE_READ,
    AIGW_T_CACHE_WRITE, /* all lifetimes */
    AIGW_T_OUTPUT,
    AIGW_T_REASONING,
    AIGW_T_NO_USAGE, /* went upstream, and no usage is known */
    AIGW_T_PARTIAL,  /* usage is a lower bound */
    AIGW_T_ESTIMATED,
    AIGW_T_UNPRICED, /* usage is known and the cost is not */
    AIGW_T_MAX
} aigw_tally_field_t;

/** Money of one currency. */
typedef struct {
    const char *currency;
    aigw_money_t amount;
} aigw_sum_t;

typedef struct aigw_more_sums_t aigw_more_sums_t;

typedef struct {
    apr_uint64_t n[AIGW_T_MAX];
    apr_uint32_t known;     /* bit per field that a record stated */
    apr_uint32_t hash;      /* of its keys */
    aigw_sum_t sum;         /* currency NULL: none yet */
    aigw_more_sums_t *more; /* of further currencies; see aigw_group_sum() */
    const char *key[];      /* in the order asked for; NULL: absent */
} aigw_group_t;

/** The most groups, where nothing else was asked for. */
#define AIGW_GROUPS_MAX 100000

/** What the keys of the group beyond the most groups say. */
#define AIGW_OTHER "(other)"

typedef struct aigw_tally_t aigw_tally_t;

/**
 * @param by  what to group by, @a n_by of it; copied
 * @param pool everything is allocated from it
 */
aigw_tally_t *aigw_tally_make(const aigw_by_t *by, int n_by, apr_pool_t *pool);

/** At most so many groups, besides the one that takes all others. */
void aigw_tally_limit(aigw_tally_t *tally, apr_uint64_t groups);

/**
 * Add one record to its group.
 * @param day  its day in the chosen zone
 * @param cost NULL if it has none
 * @return AIGW_OK, or AIGW_TOO_BIG if a sum overflows (the tally is of no
 *         further use then)
 */
aigw_rc_t aigw_tally_add(aigw_tally_t *tally, const aigw_record_t *rec,
                         aigw_day_t day, const aigw_money_t *cost,
                         const char *currency);

/** The groups, sorted by their keys, "(other)" last. @param n their number */
aigw_group_t **aigw_tally_groups(aigw_tally_t *tally, int *n);

/**
 * The sum over everything; its keys are NULL.  To be called before
 * aigw_tally_total().
 * @return AIGW_OK, or AIGW_TOO_BIG if a sum overflows
 */
aigw_rc_t aigw_tally_close(aigw_tally_t *tally);
const aigw_group_t *aigw_tally_total(const aigw_tally_t *tally);

/** Records that are in "(other)". */
apr_uint64_t aigw_tally_overflow(const aigw_tally_t *tally);

/** Currencies of the total, sorted. @param n their number */
const char **aigw_tally_currencies(const aigw_tally_t *tally, int *n,
                                   apr_pool_t *pool);

/** The sum of a currency, NULL if the group has none. */
const aigw_sum_t *aigw_group_sum(const aigw_group_t *group,
                                 const char *currency);

/**
 * Names of models that had usage and no price, the first few of them, with
 * commas; NULL if there are none. Names are not made safe for a terminal.
 */
const char *aigw_tally_unpriced(const aigw_tally_t *tally);

/**
 * 1 if the request was refused, failed, timed out, was cut or was answered
 * with a status of 400 or above; a client that left early is no error.
 */
int aigw_tally_is_error(const aigw_record_t *rec);

#endif
