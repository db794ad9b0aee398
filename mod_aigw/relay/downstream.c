/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See downstream.h.  Cost of an event on a plain connection: one bucket for
 * the run, two for httpd's chunk frame, one sendmsg(2); no copy.
 */
#include <errno.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "downstream.h"


#include "../upstream/request.h"

static ap_filter_rec_t *net_filter_rec;
static APR_OPTIONAL_FN_TYPE(ap_logio_add_bytes_out) *logio_add_bytes_out;

/* -- the network filter --------------------------------------------------- */

#define NET_IOV 64

static int is_in_memory(const apr_bucket *b)
{
    return APR_BUCKET_IS_TRANSIENT(b) || APR_BUCKET_IS_HEAP(b)
           || APR_BUCKET_IS_POOL(b) || APR_BUCKET_IS_IMMORTAL(b);
}

/* A run of leading in-memory buckets as an iovec. FLUSH buckets go: nothing
 * is waited for here. Stops at the first bucket of another kind. */
static int gather(apr_bucket_brigade *bb, struct iovec *vec, int max)
{
    apr_bucket *b = APR_BRIGADE_FIRST(bb);
    int n = 0;

    while (b != APR_BRIGADE_SENTINEL(bb) && n < max) {
        apr_bucket *next = APR_BUCKET_NEXT(b);
        const char *data;
        apr_size_t len;

        if (APR_BUCKET_IS_FLUSH(b)) {
            apr_bucket_delete(b);
        }
        else if (APR_BUCKET_IS_METADATA(b)) {
            break;
        }
        else if (is_in_memory(b)) {
            if (b->length) {
                apr_bucket_read(b, &data, &len, APR_NONBLOCK_READ);
                vec[n].iov_base = (void *)data;
                vec[n].iov_len = len;
                n++;
            }
        }
        else {
            break;
        }
        b = next;
    }
    return n;
}

/* Take n written bytes off the front. */
static void consume(apr_bucket_brigade *bb, apr_size_t n)
{
    while (n) {
        apr_bucket *b = APR_BRIGADE_FIRST(bb);

        if (b->length > n) {
            apr_bucket_split(b, n);
        }
        n -= b->length;
        apr_bucket_delete(b);
    }
}

static void drop_leading_metadata(apr_bucket_brigade *bb)
{
    apr_bucket *b;

    while ((b = APR_BRIGADE_FIRST(bb)) != APR_BRIGADE_SENTINEL(bb)
           && b->length == 0 && !AP_BUCKET_IS_EOR(b)
           && !AP_BUCKET_IS_EOC(b)) {
        apr_bucket_delete(b);
    }
}

/* @return APR_SUCCESS when all that can be written here was; EAGAIN when the
 * socket is full */
static apr_status_t write_brigade(aigw_conn_t *cc, apr_bucket_brigade *bb)
{
    struct iovec vec[NET_IOV];

    for (;;) {
        struct msghdr msg = { 0 };
        apr_size_t want = 0;
        ssize_t put;
        int i, n;

        drop_leading_metadata(bb);
        n = gather(bb, vec, NET_IOV);
        if (n == 0) {
            return APR_SUCCESS;
        }
        for (i = 0; i < n; i++) {
            want += vec[i].iov_len;
        }
        msg.msg_iov = vec;
        msg.msg_iovlen = (size_t)n;
        do {
            put = sendmsg(cc->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
        } while (put < 0 && errno == EINTR);
        if (put < 0) {
            return errno == EWOULDBLOCK ? APR_EAGAIN : errno;
        }
        if (logio_add_bytes_out) {
            logio_add_bytes_out(cc->c, put);
        }
        consume(bb, (apr_size_t)put);
        if ((apr_size_t)put < want) {
            return APR_EAGAIN;
        }
    }
}

/* Bytes up to the first bucket that is neither in memory nor metadata of no
 * use to the core filter. FLUSH goes on the way. */
static apr_size_t memory_length(apr_bucket_brigade *bb, apr_bucket **end)
{
    apr_bucket *b = APR_BRIGADE_FIRST(bb), *next;
    apr_size_t total = 0;

    for (; b != APR_BRIGADE_SENTINEL(bb); b = next) {
        next = APR_BUCKET_NEXT(b);
        if (APR_BUCKET_IS_FLUSH(b)) {
            apr_bucket_delete(b);
        }
        else if (AP_BUCKET_IS_EOR(b) || AP_BUCKET_IS_EOC(b)
                 || (!APR_BUCKET_IS_METADATA(b) && !is_in_memory(b))) {
            break;
        }
        else {
            total += b->length;
        }
    }
    *end = b;
    return total;
}

/* What the socket did not take becomes one bucket. The core filter would copy
 * each small one into a node of 8 KiB of its own: thirty times the bytes. */
static void compact(apr_bucket_brigade *bb)
{
    apr_bucket *end, *b;
    apr_size_t total = memory_length(bb, &end), n = 0;
    char *p;

    if (total == 0) {
        return;
    }
    p = apr_bucket_alloc(total, bb->bucket_alloc);
    while ((b = APR_BRIGADE_FIRST(bb)) != end) {
        const char *data;
        apr_size_t len = 0;

        if (b->length) {
            apr_bucket_read(b, &data, &len, APR_NONBLOCK_READ);
            memcpy(p + n, data, len);
            n += len;
        }
        apr_bucket_delete(b);
    }
    APR_BRIGADE_INSERT_HEAD(bb, apr_bucket_heap_create(p, n, apr_bucket_free,
                                                       bb->bucket_alloc));
}

static apr_status_t net_filter(ap_filter_t *f, apr_bucket_brigade *bb)
{
    aigw_conn_t *cc = f->ctx;
    apr_status_t rv;

    if (!cc->armed) {
        return ap_pass_brigade(f->next, bb);
    }
    if (f->c->aborted) {
        apr_brigade_cleanup(bb);
        return APR_ECONNABORTED;
    }
    if (!f->c->data_in_output_filters) {
        rv = write_brigade(cc, bb);
        if (rv != APR_SUCCESS && !APR_STATUS_IS_EAGAIN(rv)) {
            f->c->aborted = 1;
            apr_brigade_cleanup(bb);
            return rv;
        }
        if (APR_BRIGADE_EMPTY(bb)) {
            return APR_SUCCESS;
        }
    }
    compact(bb);
    return ap_pass_brigade(f->next, bb);
}

void aigw_downstream_register(void)
{
    net_filter_rec = ap_register_output_filter("AIGW_NET", net_filter, NULL,
                                               AP_FTYPE_NETWORK - 1);
}

void aigw_downstream_attach(aigw_conn_t *cc)
{
    cc->filter = ap_add_output_filter_handle(net_filter_rec, cc, NULL, cc->c);
}

/* -- which filters may run on the relay thread ---------------------------- */

/* Filters that neither block nor keep what they are given: httpd's own
 * protocol filters, mod_headers, mod_expires, mod_logio, mod_ssl, the
 * compressors (they take themselves out on no-gzip and no-brotli) and ours.
 * docs/mod_aigw.md holds the same list. */
static const char *const harmless_names[] = {
    "byterange", "content_length", "http_header", "http_outerror", "chunk",
    "fixup_headers_out", "fixup_headers_err", "mod_expires", "deflate",
    "brotli_compress", "old_write", "log_input_output", "ssl/tls filter",
    "ssl/tls coalescing filter", "reqtimeout", "aigw_net", "core", NULL
};

#define HARMLESS (sizeof(harmless_names) / sizeof(harmless_names[0]))

/* Looked up once: a request compares pointers. */
static ap_filter_rec_t *harmless[HARMLESS];
static int n_harmless;

static void find_harmless(void)
{
    const char *const *name;

    n_harmless = 0;
    for (name = harmless_names; *name; name++) {
        ap_filter_rec_t *rec = ap_get_output_filter_handle(*name);

        if (rec) {
            harmless[n_harmless++] = rec;
        }
    }
}

static int is_harmless(const ap_filter_rec_t *rec)
{
    int i;

    for (i = 0; i < n_harmless; i++) {
        if (harmless[i] == rec) {
            return 1;
        }
    }
    return 0;
}

int aigw_downstream_keeps(const aigw_exchange_t *x)
{
    const ap_filter_t *f = x->c->output_filters;

    while (f != x->conn->filter
           && strcasecmp(f->frec->name, "reqtimeout") == 0) {
        f = f->next;
    }
    return f != x->conn->filter;
}

const char *aigw_downstream_foreign_filter(const request_rec *r)
{
    const ap_filter_t *f;

    for (f = r->output_filters; f; f = f->next) {
        if (!is_harmless(f->frec)) {
            return f->frec->name;
        }
    }
    return NULL;
}

void aigw_downstream_post_config(void)
{
    find_harmless();
    logio_add_bytes_out = APR_RETRIEVE_OPTIONAL_FN(ap_logio_add_bytes_out);
}

/* -- the answer's head ---------------------------------------------------- */

/* What an upstream may tell a client.  Never Set-Cookie, Server, Alt-Svc,
 * Strict-Transport-Security, nor the account's own limits and organisation:
 * they are absent on purpose. */
static const char *const to_client[] = {
    "Retry-After", "Retry-After-Ms", "X-Should-Retry", "X-Request-Id",
    "Request-Id", "Openai-Version", "Openai-Processing-Ms",
    "Content-Encoding", NULL
};

static int may_come(const aigw_exchange_t *x, aigw_slice_t name)
{
    const char *const *h;

    for (h = to_client; *h; h++) {
        if (aigw_slice_is_nocase(name, *h)) {
            return 1;
        }
    }
    return !aigw_slice_is_nocase(name, "Content-Length")
           && !aigw_slice_is_nocase(name, "Transfer-Encoding")
           && !aigw_slice_is_nocase(name, "Connection")
           && aigw_request_passes(x->upstream, name.p, name.n);
}

static char *copy(request_rec *r, aigw_slice_t s)
{
    return apr_pstrmemdup(r->pool, s.p, s.n);
}

static int holds_key(const aigw_exchange_t *x, aigw_slice_t value)
{
    aigw_slice_t key = x->upstream->secret;

    return key.n && memmem(value.p, value.n, key.p, key.n) != NULL;
}

static void copy_fields(aigw_exchange_t *x, const aigw_http1_head_t *head)
{
    request_rec *r = x->r;
    int i;

    for (i = 0; i < head->n_fields; i++) {
        aigw_slice_t name = head->field[i].name;
        aigw_slice_t value = head->field[i].value;

        if (aigw_slice_is_nocase(name, "Content-Type")) {
            ap_set_content_type(r, copy(r, value));
        }
        else if (may_come(x, name) && !holds_key(x, value)) {
            apr_table_setn(r->headers_out, copy(r, name), copy(r, value));
        }
    }
}

/* One id for the request: the upstream's own name for it stays what it was,
 * ours takes the other name then. */
static void set_ids(aigw_exchange_t *x)
{
    apr_table_t *out = x->r->headers_out;
    const char *theirs = apr_table_get(out, "x-request-id");

    if (theirs == NULL) {
        theirs = apr_table_get(out, "request-id");
        apr_table_setn(out, "x-request-id", x->id);
    }
    else {
        apr_table_setn(out, "aigw-request-id", x->id);
    }
    x->rec.upstream_id = theirs;
}

static void set_stream_fields(request_rec *r)
{
    apr_table_setn(r->headers_out, "X-Accel-Buffering", "no");
    apr_table_setn(r->headers_out, "Cache-Control",
                   "no-cache, no-transform");
    apr_table_setn(r->subprocess_env, "no-gzip", "1");
    apr_table_setn(r->subprocess_env, "no-brotli", "1");
}

/* httpd turns a status that it has no line for into 500. */
void aigw_downstream_status(request_rec *r, int status)
{
    const char *known = ap_get_status_line(status);

    r->status = status;
    r->status_line = apr_strtoi64(known, NULL, 10) == status
                     ? NULL : apr_psprintf(r->pool, "%d Upstream status",
                                           status);
}

void aigw_downstream_head(aigw_exchange_t *x, const aigw_http1_head_t *head)
{
    request_rec *r = x->r;

    aigw_downstream_status(r, head->status);
    copy_fields(x, head);
    set_ids(x);
    if (x->meter.kind == AIGW_METER_SSE) {
        set_stream_fields(r);
    }
    else if (head->frame == AIGW_FRAME_LENGTH) {
        ap_set_content_length(r, (apr_off_t)head->length);
    }
    x->rec.status = head->status;
}

void aigw_downstream_forget(aigw_exchange_t *x)
{
    apr_brigade_cleanup(x->bb);
    apr_table_clear(x->r->headers_out);
    x->rec.bytes_out = 0;
}

/* -- bytes ---------------------------------------------------------------- */

static void add(aigw_exchange_t *x, apr_bucket *b)
{
    APR_BRIGADE_INSERT_TAIL(x->bb, b);
}

/* An error answer may repeat the key that it refuses. Same length, so that the
 * framing holds; NULL: it is not there. */
static char *without_key(const aigw_exchange_t *x, const char *p,
                         apr_size_t n)
{
    aigw_slice_t key = x->upstream ? x->upstream->secret
                                   : aigw_slice(NULL, 0);
    char *copy = NULL, *at;
    const char *found;

    if (key.n == 0 || x->rec.upstream_status < 300) {
        return NULL;
    }
    for (found = p; (found = memmem(found, n - (apr_size_t)(found - p), key.p,
                                    key.n)) != NULL; found += key.n) {
        if (copy == NULL) {
            copy = apr_bucket_alloc(n, x->c->bucket_alloc);
            memcpy(copy, p, n);
        }
        at = copy + (found - p);
        memset(at, '*', key.n);
    }
    return copy;
}

static void sink_pass(void *ctx, const char *p, apr_size_t n)
{
    aigw_exchange_t *x = ctx;
    char *masked;

    if (x->gone) {
        x->drain_left -= (apr_off_t)n;
        return;
    }
    masked = without_key(x, p, n);
    add(x, masked ? apr_bucket_heap_create(masked, n, apr_bucket_free,
                                           x->c->bucket_alloc)
                  : apr_bucket_transient_create(p, n, x->c->bucket_alloc));
    x->rec.bytes_out += (apr_int64_t)n;
}

static void sink_keep(void *ctx, const char *p, apr_size_t n)
{
    aigw_exchange_t *x = ctx;

    ap_assert(aigw_buffer_add(&x->held, p, n) == AIGW_OK);
}

/* A copy, as the memory goes back to its pool; it is one small event. */
static void sink_release(void *ctx)
{
    aigw_exchange_t *x = ctx;

    if (x->held.n && !x->gone) {
        add(x, apr_bucket_heap_create(x->held.p, x->held.n, NULL,
                                      x->c->bucket_alloc));
        x->rec.bytes_out += (apr_int64_t)x->held.n;
    }
    aigw_buffer_free(&x->held);
}

static void sink_drop(void *ctx)
{
    aigw_exchange_t *x = ctx;

    aigw_buffer_free(&x->held);
}

const aigw_meter_sink_t aigw_downstream_sink = {
    sink_pass, sink_keep, sink_release, sink_drop
};

static void note_first(aigw_exchange_t *x)
{
    x->committed = 1;
    if (x->rec.first_us < 0) {
        x->rec.first_us = apr_time_now() - x->rec.ts;
    }
}

static aigw_rc_t passed(aigw_exchange_t *x, apr_status_t rv)
{
    if (rv != APR_SUCCESS || x->c->aborted) {
        return AIGW_FAILED;
    }
    x->blocked = !x->sync && x->c->data_in_output_filters;
    return AIGW_OK;
}

static void add_end(aigw_exchange_t *x, int end)
{
    apr_bucket_alloc_t *ba = x->c->bucket_alloc;

    if (end < 0) {
        /* The chunk filter leaves out the last chunk on this one. */
        add(x, ap_bucket_error_create(HTTP_BAD_GATEWAY, NULL, x->r->pool,
                                      ba));
        x->c->keepalive = AP_CONN_CLOSE;
    }
    if (end) {
        add(x, apr_bucket_eos_create(ba));
    }
}

aigw_rc_t aigw_downstream_push(aigw_exchange_t *x, int end)
{
    apr_status_t rv;

    if (!APR_BRIGADE_EMPTY(x->bb)) {
        note_first(x);
    }
    add_end(x, end);
    if (APR_BRIGADE_EMPTY(x->bb)) {
        return AIGW_OK;
    }
    if (!end && x->must_flush) {
        add(x, apr_bucket_flush_create(x->c->bucket_alloc));
    }
    rv = ap_pass_brigade(x->r->output_filters, x->bb);
    apr_brigade_cleanup(x->bb);
    return passed(x, rv);
}

aigw_rc_t aigw_downstream_resume(aigw_exchange_t *x)
{
    ap_filter_t *core = x->conn->filter->next;

    return passed(x, core->frec->filter_func.out_func(core, NULL));
}
