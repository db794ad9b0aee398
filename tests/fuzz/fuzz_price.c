/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Price files of any bytes.  What must hold: a file is refused with a
 * sentence fit for a log, or each of its rows can be found, is in force from
 * its first moment to its last, and gives exact costs or none.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <apr_general.h>
#include <apr_strings.h>
#include "price.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
    if (!holds) {
        abort();
    }
}

static void check_sentence(const char *err)
{
    must(err != NULL && strncmp(err, "fuzz", 4) == 0);
    for (; *err; err++) {
        must((unsigned char)*err >= 0x20 && *err != 0x7f);
    }
}

static void check_cost(const aigw_price_t *row, apr_uint64_t n)
{
    aigw_usage_t u;
    aigw_money_t once, twice;
    int f;

    memset(&u, 0, sizeof(u));
    for (f = 0; f < AIGW_U_MAX; f++) {
        if (row->known & (1u << f)) {
            must(row->per_mtok[f] >= 0);
            aigw_usage_set(&u, (aigw_usage_field_t)f, n);
        }
    }
    u.n[AIGW_U_OUTPUT] = n * 3; /* room for its three parts */
    if (aigw_price_cost(row, &u, &once) != AIGW_OK) {
        return;
    }
    must(once >= 0);
    for (f = 0; f < AIGW_U_MAX; f++) {
        u.n[f] *= 2;
    }
    if (aigw_price_cost(row, &u, &twice) == AIGW_OK) {
        must(twice == once * 2);
    }
}

static void check_row(const aigw_catalog_t *cat, const aigw_price_t *row)
{
    must(row->known != 0 && strlen(row->currency) == 3);
    must(row->to == 0 || row->from < row->to);
    must(aigw_catalog_find(cat, row->model, row->from) != NULL);
    if (!strchr(row->model, '*')) {
        must(aigw_catalog_find(cat, row->model, row->from) == row);
        must(aigw_catalog_find(cat, row->model,
                               row->to ? row->to - 1 : APR_INT64_MAX)
             == row);
    }
    check_cost(row, 0);
    check_cost(row, 1);
    check_cost(row, APR_UINT64_C(1) << 50);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static apr_pool_t *pool;
    const aigw_price_t *row;
    aigw_catalog_t *cat;
    const char *err;
    char *text;
    int i;

    if (!pool) {
        apr_initialize();
        apr_pool_create(&pool, NULL);
    }
    text = apr_palloc(pool, size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    if (aigw_catalog_parse(&cat, "fuzz", aigw_slice(text, size), pool, &err)
        == APR_SUCCESS) {
        must(err == NULL && *aigw_catalog_version(cat));
        for (i = 0; (row = aigw_catalog_row(cat, i)); i++) {
            check_row(cat, row);
        }
    }
    else {
        check_sentence(err);
    }
    apr_pool_clear(pool);
    return 0;
}
