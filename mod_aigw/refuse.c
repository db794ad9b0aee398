/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only writer of error replies: a reason becomes an HTTP status and a
 * body in the caller's dialect.  The body is written here and not left to
 * httpd, so that an ErrorDocument of the site cannot put HTML in its place.
 */
#include "aigw.h"
#include "body.h"
#include "relay/downstream.h"

#define ERROR_BODY_MAX 2048

/* After these the rest of the request is not worth reading, or the place
 * that the connection takes is what is wanted back. */
static int must_close(aigw_reason_t reason)
{
    switch (reason) {
    case AIGW_REASON_OVERLOADED:
    case AIGW_REASON_UPLOADS:
    case AIGW_REASON_STOPPING:
    case AIGW_REASON_BODY_TOO_LARGE:
    case AIGW_REASON_BODY_TIMEOUT:
    case AIGW_REASON_BODY_ABORTED:
        return 1;
    default:
        return 0;
    }
}

/* The refusal came before the body was looked at. */
static int body_unread(const aigw_exchange_t *x)
{
    return x->body.p == NULL && x->req == NULL
           && (apr_table_get(x->r->headers_in, "Content-Length")
               || apr_table_get(x->r->headers_in, "Transfer-Encoding"));
}

static void set_fields(aigw_exchange_t *x, const aigw_reason_info_t *info,
                       apr_size_t n)
{
    request_rec *r = x->r;

    aigw_downstream_status(r, aigw_dialect_status(x->dialect, info));
    ap_set_content_type(r, x->dialect->error_type);
    ap_set_content_length(r, (apr_off_t)n);
    apr_table_setn(r->headers_out, "x-request-id", x->id);
    apr_table_setn(r->headers_out, "Cache-Control", "no-store");
    if (info->status == HTTP_UNAUTHORIZED) {
        apr_table_setn(r->err_headers_out, "WWW-Authenticate", "Bearer");
    }
    if (info->retry_after) {
        apr_table_setn(r->headers_out, "Retry-After",
                       apr_itoa(r->pool, info->retry_after));
    }
}

static void note_refusal(aigw_exchange_t *x, const aigw_reason_info_t *info)
{
    if (x->rec.end == AIGW_END_NONE) {
        x->rec.end = info->reason == AIGW_REASON_BODY_ABORTED
                     ? AIGW_END_CLIENT_ABORT
                     : x->why ? AIGW_END_ERROR : AIGW_END_REFUSED;
        x->rec.reason = info->reason;
    }
    x->rec.status = aigw_dialect_status(x->dialect, info);
    x->rec.error = info->code ? info->code : info->word;
}

static int refuse(aigw_exchange_t *x, const aigw_reason_info_t *info,
                  const char *detail)
{
    char buf[ERROR_BODY_MAX];
    apr_size_t n = x->dialect->error_body(buf, sizeof(buf), info,
                                          detail ? detail : info->message,
                                          x->id);

    note_refusal(x, info);
    if (must_close(info->reason)
        || (body_unread(x) && !aigw_body_discard(x))) {
        x->c->keepalive = AP_CONN_CLOSE;
    }
    set_fields(x, info, n);
    if (!x->r->header_only) {
        aigw_downstream_sink.pass(x, buf, n);
    }
    if (aigw_downstream_push(x, 1) != AIGW_OK) {
        x->gone = 1;
    }
    return OK;
}

int aigw_refuse(aigw_exchange_t *x, aigw_reason_t reason,
                const char *detail)
{
    return refuse(x, aigw_reason_info(reason), detail);
}

int aigw_refuse_upstream_error(aigw_exchange_t *x, const char *word)
{
    aigw_reason_info_t info = *aigw_reason_info(AIGW_REASON_UPSTREAM_ERROR);

    info.status = aigw_reason_error_status(word);
    info.code = *word ? apr_pstrdup(x->r->pool, word) : info.code;
    return refuse(x, &info, NULL);
}
