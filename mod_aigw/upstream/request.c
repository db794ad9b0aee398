/* SPDX-License-Identifier: Apache-2.0 */
/* See request.h.  The head holds a secret: it is wiped before it is freed. */
#include <strings.h>

#include "request.h"

/* What a client may tell an upstream.  Everything else stays here: Cookie,
 * Referer, Forwarded, X-Forwarded-*, Range, conditional fields, and all
 * hop-by-hop fields are absent on purpose. */
static const char *const to_upstream[] = {
    "content-type", "accept", "user-agent", "idempotency-key",
    "x-goog-api-client", NULL
};
/* Families of fields that the providers' own SDKs send. */
static const char *const to_upstream_prefix[] = {
    "openai-", "anthropic-", "x-stainless-", NULL
};
/* The host's account is the host's: organisation and project are not the
 * client's to choose.  And what a pass= list may never open. */
static const char *const never_upstream[] = {
    "openai-organization", "openai-project", "authorization", "x-api-key",
    "api-key", "x-goog-api-key", "proxy-authorization", "cookie",
    "connection", "keep-alive", "te", "trailer", "transfer-encoding",
    "upgrade", "host", "content-length", "accept-encoding", "expect",
    "content-encoding", "proxy-connection", NULL
};

/* Most comparisons end with the first letter: no call for those. */
static int same_letter(const char *a, const char *b)
{
    return ((*a ^ *b) & ~0x20) == 0;
}

static int in_list(const char *const *list, const char *name)
{
    for (; *list; list++) {
        if (same_letter(*list, name) && strcasecmp(*list, name) == 0) {
            return 1;
        }
    }
    return 0;
}

static int has_prefix(const char *name)
{
    const char *const *p;

    for (p = to_upstream_prefix; *p; p++) {
        if (same_letter(*p, name)
            && strncasecmp(*p, name, strlen(*p)) == 0) {
            return 1;
        }
    }
    return 0;
}

int aigw_request_passes(const aigw_upstream_t *up, const char *name,
                        apr_size_t n)
{
    int i;

    for (i = 0; up->pass && i < up->pass->nelts; i++) {
        const char *p = APR_ARRAY_IDX(up->pass, i, const char *);

        if (strlen(p) == n && strncasecmp(p, name, n) == 0) {
            return 1;
        }
    }
    return 0;
}

static int may_go(const aigw_upstream_t *up, const char *name)
{
    return in_list(to_upstream, name)
           || ((has_prefix(name)
                || aigw_request_passes(up, name, strlen(name)))
               && !in_list(never_upstream, name));
}

/* What can't be had any more is noted once, at the end. */
typedef struct {
    aigw_buffer_t *b;
    int failed;
} out_t;

static void put(out_t *o, const char *s)
{
    if (aigw_buffer_add(o->b, s, strlen(s)) != AIGW_OK) {
        o->failed = 1;
    }
}

static void put_field(out_t *o, const char *name, const char *value)
{
    put(o, name);
    put(o, ": ");
    put(o, value);
    put(o, "\r\n");
}

/* The names came through httpd's strict parser: tokens, and values without
 * control characters, so they cannot break the head. */
static void put_client_fields(out_t *o, const aigw_exchange_t *x)
{
    const apr_array_header_t *h = apr_table_elts(x->r->headers_in);
    const apr_table_entry_t *e = (const apr_table_entry_t *)h->elts;
    int i;

    for (i = 0; i < h->nelts; i++) {
        if (e[i].key && may_go(x->upstream, e[i].key)) {
            put_field(o, e[i].key, e[i].val);
        }
    }
}

static void put_head(out_t *o, const aigw_exchange_t *x, const char *length)
{
    const aigw_upstream_t *up = x->upstream;

    put(o, x->endpoint->method);
    put(o, " ");
    if (up->proxy_host && !up->tls) {
        put(o, "http://"); /* absolute form, RFC 9112 section 3.2.2 */
        put(o, up->host_field);
    }
    put(o, up->path);
    put(o, x->target);
    put(o, " HTTP/1.1\r\n");
    put_field(o, "Host", up->host_field);
    put(o, up->auth_line);
    put_field(o, "Accept-Encoding", "identity");
    put_client_fields(o, x);
    put_field(o, "Content-Length", length);
    put(o, "\r\n");
}

static void add_piece(aigw_exchange_t *x, const char *p, apr_size_t n)
{
    if (n) {
        x->out[x->out_n++] = aigw_slice(p, n);
    }
}

/* The body goes out as the client's own bytes, with the splices between. */
static apr_size_t cut_pieces(aigw_exchange_t *x, const aigw_edit_t *e, int n)
{
    apr_size_t at = 0, total = x->body.n;
    int i;

    for (i = 0; i < n; i++) {
        add_piece(x, x->body.p + at, e[i].at - at);
        add_piece(x, e[i].put.p, e[i].put.n);
        at = e[i].at + e[i].cut;
        total += e[i].put.n - e[i].cut;
    }
    add_piece(x, x->body.p + at, x->body.n - at);
    return total;
}

aigw_rc_t aigw_request_build(aigw_exchange_t *x, const aigw_edit_t *edits,
                             int n_edits)
{
    char length[24];
    out_t o = { &x->out_head, 0 };

    aigw_buffer_wipe(&x->out_head); /* of a candidate that failed */
    x->out_n = 1; /* the head's place */
    apr_snprintf(length, sizeof(length), "%" APR_SIZE_T_FMT,
                 cut_pieces(x, edits, n_edits));
    put_head(&o, x, length);
    x->out[0] = aigw_slice(x->out_head.p, x->out_head.n);
    x->out_at = 0;
    x->out_off = 0;
    return o.failed ? AIGW_FAILED : AIGW_OK;
}

void aigw_request_free(aigw_exchange_t *x)
{
    aigw_buffer_wipe(&x->out_head);
    aigw_buffer_free(&x->body);
    x->out_n = x->out_at = 0;
}
