/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the gateway answers itself: the list of models, which is what the
 * configuration serves here and not what a provider's account may use.  Rows
 * with a '*' name no model and are not listed.
 */
#include "aigw.h"
#include "core/jsontext.h"
#include "relay/downstream.h"

static void put(apr_array_header_t *parts, const char *text)
{
    APR_ARRAY_PUSH(parts, const char *) = text;
}

static int is_listed(const aigw_model_row_t *row)
{
    apr_size_t n = strlen(row->pattern);

    return !row->deny && n && row->pattern[n - 1] != '*';
}

static const char *model_list(aigw_exchange_t *x)
{
    apr_pool_t *p = x->r->pool;
    apr_array_header_t *parts = apr_array_make(p, 16, sizeof(char *));
    const apr_array_header_t *rows = x->sconf->models;
    int i, any = 0;

    put(parts, "{\"object\":\"list\",\"data\":[");
    for (i = 0; rows && i < rows->nelts; i++) {
        const aigw_model_row_t *row = APR_ARRAY_IDX(rows, i,
                                                    aigw_model_row_t *);
        if (is_listed(row)) {
            put(parts, any++ ? ",{\"id\":" : "{\"id\":");
            put(parts, aigw_jsontext(p, row->pattern));
            put(parts, ",\"object\":\"model\",\"created\":0,"
                       "\"owned_by\":\"gateway\"}");
        }
    }
    put(parts, "]}\n");
    return apr_array_pstrcat(p, parts, 0);
}

int aigw_local_answer(aigw_exchange_t *x)
{
    const char *body = model_list(x);

    x->r->status = x->rec.status = HTTP_OK;
    ap_set_content_type(x->r, "application/json");
    ap_set_content_length(x->r, (apr_off_t)strlen(body));
    apr_table_setn(x->r->headers_out, "x-request-id", x->id);
    apr_table_setn(x->r->headers_out, "Cache-Control", "no-store");
    aigw_downstream_sink.pass(x, body, strlen(body));
    x->rec.end = AIGW_END_COMPLETE;
    if (aigw_downstream_push(x, 1) != AIGW_OK) {
        x->rec.end = AIGW_END_CLIENT_ABORT;
        x->rec.reason = AIGW_REASON_CLIENT_GONE;
    }
    return OK;
}
