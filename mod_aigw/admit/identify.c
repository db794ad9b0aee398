/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See identify.h.  First everything that may be a credential is collected,
 * then it is wiped, then one look-up decides: the wiping does not depend on
 * the answer, and neither does the work of the look-up.
 */
#include "identify.h"

#include <apr_escape.h>
#include <apr_lib.h>
#include <apr_strings.h>
#include <scoreboard.h>

/* Shorter texts would match notes and variables that have nothing to do
 * with them. */
#define TRACE_MIN 8

typedef struct {
    apr_pool_t *pool;
    const char *key; /* the first one, NULL: none yet */
    int conflict;
    int cut;                    /* a query held one */
    apr_array_header_t *traces; /* texts that must not be found elsewhere */
} seen_t;

static void trace(seen_t *seen, const char *text)
{
    if (strlen(text) >= TRACE_MIN) {
        APR_ARRAY_PUSH(seen->traces, const char *) = text;
    }
}

static void see(seen_t *seen, const char *key)
{
    trace(seen, key);
    if (!seen->key) {
        seen->key = key;
    }
    else if (strcmp(seen->key, key) != 0) {
        seen->conflict = 1;
    }
}

/* httpd joins repeated fields with commas; no key holds one. */
static char *next_element(char **rest)
{
    char *start = *rest, *end;

    while (*start == ',' || apr_isspace(*start)) {
        start++;
    }
    end = start + strcspn(start, ",");
    *rest = *end ? end + 1 : end;
    while (end > start && apr_isspace(end[-1])) {
        end--;
    }
    *end = '\0';
    return start;
}

static int see_field(void *ctx, const char *name, const char *value)
{
    seen_t *seen = ctx;
    int scheme = ap_cstr_casecmp(name, "Authorization") == 0;
    char *rest = apr_pstrdup(seen->pool, value), *el;

    while (*(el = next_element(&rest))) {
        if (!scheme) {
            see(seen, el);
        }
        else if (ap_cstr_casecmpn(el, "bearer", 6) == 0
                 && apr_isspace(el[6])) {
            for (el += 6; apr_isspace(*el); el++) {
            }
            see(seen, el);
        }
        else {
            trace(seen, el); /* another scheme: no key, but a secret */
        }
    }
    return 1;
}

/* "key" in any spelling that decodes to it. */
static int is_key_param(apr_pool_t *pool, const char *param, apr_size_t n)
{
    apr_size_t len = 0;
    const char *name;

    while (len < n && param[len] != '=') {
        len++;
    }
    if (len > 9) { /* three escapes */
        return 0;
    }
    name = apr_punescape_url(pool, apr_pstrmemdup(pool, param, len), NULL,
                             NULL, 0);
    return name && strcmp(name, "key") == 0;
}

static void see_param(seen_t *seen, const char *param, apr_size_t n)
{
    const char *raw = memchr(param, '=', n), *key;

    if (!raw || raw + 1 == param + n) {
        return;
    }
    raw =
        apr_pstrmemdup(seen->pool, raw + 1, (apr_size_t)(param + n - raw - 1));
    key = apr_punescape_url(seen->pool, raw, NULL, NULL, 0);
    trace(seen, raw);
    see(seen, key ? key : raw);
}

/*
 * Take each key= out of the query, which ends at the first of "ends" or at
 * NUL; what follows moves up. In place, since other modules may have kept
 * the pointer. Gives 1 if no parameter is left of a query that held a
 * key.
 */
static int cut_params(seen_t *seen, char *query, const char *ends)
{
    char *end = query + strcspn(query, ends), *from = query, *to = query;
    apr_size_t tail = strlen(end) + 1;
    int cut = 0;

    while (from <= end) {
        apr_size_t n = 0;
        while (from + n < end && from[n] != '&') {
            n++;
        }
        if (is_key_param(seen->pool, from, n)) {
            see_param(seen, from, n);
            cut = 1;
        }
        else {
            if (to > query) {
                *to++ = '&';
            }
            memmove(to, from, n);
            to += n;
        }
        from += n + 1;
    }
    if (cut) {
        seen->cut = 1;
        memmove(to, end, tail);
        memset(to + tail, 0, (apr_size_t)(end - to));
    }
    return cut && to == query;
}

/* The query inside a longer text: the '?' goes with its last parameter. */
static void cut_params_after_mark(seen_t *seen, char *text, const char *ends)
{
    char *mark = text ? strchr(text, '?') : NULL;

    if (mark && cut_params(seen, mark + 1, ends)) {
        memmove(mark, mark + 1, strlen(mark));
    }
}

static void wipe_query(seen_t *seen, request_rec *r)
{
    if (r->args && cut_params(seen, r->args, "")) {
        r->args = NULL;
    }
    if (r->parsed_uri.query && cut_params(seen, r->parsed_uri.query, "")) {
        r->parsed_uri.query = NULL;
    }
    cut_params_after_mark(seen, r->unparsed_uri, "#");
    cut_params_after_mark(seen, r->the_request, " ");
}

typedef struct {
    const seen_t *seen;
    apr_array_header_t *names;
} holders_t;

static int note_holder(void *ctx, const char *name, const char *value)
{
    holders_t *holders = ctx;
    int i;

    for (i = 0; i < holders->seen->traces->nelts; i++) {
        if (strstr(value,
                   APR_ARRAY_IDX(holders->seen->traces, i, const char *))) {
            APR_ARRAY_PUSH(holders->names, const char *) = name;
            return 1;
        }
    }
    return 1;
}

/* SetEnvIf and RewriteRule are often used to copy Authorization into the
 * environment of PHP. */
static void wipe_table(const seen_t *seen, apr_table_t *table)
{
    holders_t holders;
    int i;

    holders.seen = seen;
    holders.names = apr_array_make(seen->pool, 2, sizeof(const char *));
    apr_table_do(note_holder, &holders, table, NULL);
    for (i = 0; i < holders.names->nelts; i++) {
        apr_table_unset(table, APR_ARRAY_IDX(holders.names, i, const char *));
    }
}

static void collect_and_wipe(seen_t *seen, request_rec *r)
{
    static const char *const fields[] = {"Authorization", "X-Api-Key",
                                         "Api-Key", "X-Goog-Api-Key"};
    request_rec *q;
    apr_size_t i;

    for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        apr_table_do(see_field, seen, r->headers_in, fields[i], NULL);
    }
    for (q = r; q; q = q->prev) {
        wipe_query(seen, q);
        for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
            apr_table_unset(q->headers_in, fields[i]);
        }
    }
    if (seen->cut) {
        /* server-status shows the request line as it was read. */
        ap_update_child_status(r->connection->sbh, SERVER_BUSY_WRITE, r);
    }
    for (q = seen->traces->nelts > 0 ? r : NULL; q; q = q->prev) {
        wipe_table(seen, q->subprocess_env);
        wipe_table(seen, q->notes);
    }
}

aigw_reason_t aigw_identify(request_rec *r, const aigw_keys_t *keys,
                            apr_time_t now, aigw_identity_t *who)
{
    seen_t seen = {r->pool, NULL, 0, 0, NULL};
    const aigw_key_t *key;
    aigw_slice_t text;

    who->key_id = who->tenant = "";
    seen.traces = apr_array_make(r->pool, 4, sizeof(const char *));
    collect_and_wipe(&seen, r);
    if (!keys) {
        return AIGW_REASON_NONE;
    }
    if (seen.conflict) {
        return AIGW_REASON_KEY_CONFLICT;
    }
    text = aigw_slice(seen.key, seen.key ? strlen(seen.key) : 0);
    key = aigw_keys_find(keys, text);
    if (!key) {
        return text.n > 0 ? AIGW_REASON_BAD_KEY : AIGW_REASON_NO_KEY;
    }
    who->key_id = key->id;
    who->tenant = key->tenant;
    return key->expires && now >= key->expires ? AIGW_REASON_KEY_EXPIRED
                                               : AIGW_REASON_NONE;
}
