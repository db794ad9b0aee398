/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parser of an HTTP/1.1 answer: head, and decoder of its body.
 *
 * Line ends.  A line of the head ends with CRLF or with a lone LF (RFC 9112
 * section 2.2 lets a recipient take it).  On this side that is safe: the
 * answer is parsed here once and written anew for the client, so that no
 * second reader sees these bytes, and one answer follows one request.  A CR
 * that no LF follows is malformed, everywhere.  In the chunk grammar, where a
 * wrong guess would shift the border of the body, only CRLF is taken.
 */
#include "http1.h"

#define MAX_LINE 4096

/* ---- head --------------------------------------------------------------- */

static int is_tchar(unsigned char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
        || (c >= '0' && c <= '9')) {
        return 1;
    }
    return c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The blank line that ends the head: an LF after an LF or after LF CR. */
static const char *head_end(const char *buf, apr_size_t n, apr_size_t *scanned)
{
    const char *end = buf + n;
    const char *p = buf + *scanned;
    const char *lf;

    while ((lf = memchr(p, '\n', (apr_size_t)(end - p))) != NULL) {
        const char *prev = lf > buf && lf[-1] == '\r' ? lf - 1 : lf;

        if (prev > buf && prev[-1] == '\n') {
            return lf + 1;
        }
        p = lf + 1;
    }
    *scanned = n;
    return NULL;
}

/* Take a line without its end; *p moves past it. The head ends with an LF,
 * so that there always is one. */
static aigw_rc_t next_line(const char **p, const char *end, aigw_slice_t *line)
{
    const char *start = *p;
    const char *lf = memchr(start, '\n', (apr_size_t)(end - start));
    apr_size_t n = (apr_size_t)(lf - start);

    *p = lf + 1;
    if (n > 0 && start[n - 1] == '\r') {
        --n;
    }
    if (memchr(start, '\r', n) != NULL || memchr(start, '\0', n) != NULL) {
        return AIGW_MALFORMED;
    }
    *line = aigw_slice(start, n);
    return AIGW_OK;
}

/* HTTP/1.x SSS, then the end or a space and any reason phrase. */
static aigw_rc_t status_line(aigw_slice_t line, aigw_http1_head_t *head)
{
    const char *p = line.p;

    if (line.n < 12 || memcmp(p, "HTTP/1.", 7) != 0 || !is_digit(p[7])
        || p[8] != ' ' || !is_digit(p[9]) || !is_digit(p[10])
        || !is_digit(p[11]) || (line.n > 12 && p[12] != ' ')) {
        return AIGW_MALFORMED;
    }
    head->minor = p[7] - '0';
    head->status = (p[9] - '0') * 100 + (p[10] - '0') * 10 + (p[11] - '0');
    if (head->status < 100 || head->status > 599) {
        return AIGW_MALFORMED;
    }
    return AIGW_OK;
}

static aigw_slice_t trimmed(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t')) {
        ++p;
    }
    while (p < end && (end[-1] == ' ' || end[-1] == '\t')) {
        --end;
    }
    return aigw_slice(p, (apr_size_t)(end - p));
}

/* name ":" OWS value OWS. A line that begins with white space (obs-fold)
 * has an empty name, and white space before the colon is no token either. */
/* httpd refuses to send such a value on, and would answer in its own way. */
static int has_control(const char *p, const char *end)
{
    for (; p < end; ++p) {
        unsigned char c = (unsigned char)*p;

        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return 1;
        }
    }
    return 0;
}

static aigw_rc_t field_line(aigw_slice_t line, aigw_http1_head_t *head)
{
    const char *end = line.p + line.n;
    const char *colon = line.p;

    while (colon < end && is_tchar((unsigned char)*colon)) {
        ++colon;
    }
    if (colon == line.p || colon == end || *colon != ':') {
        return AIGW_MALFORMED;
    }
    if (head->n_fields == AIGW_HTTP1_FIELDS) {
        return AIGW_TOO_BIG;
    }
    head->field[head->n_fields].name =
        aigw_slice(line.p, (apr_size_t)(colon - line.p));
    head->field[head->n_fields].value = trimmed(colon + 1, end);
    if (has_control(colon + 1, end)) {
        return AIGW_MALFORMED;
    }
    ++head->n_fields;
    return AIGW_OK;
}

/* A Content-Length: one number, or the same one repeated in a list. */
static aigw_rc_t length_value(aigw_slice_t value, aigw_http1_head_t *head,
                              int *seen)
{
    const char *p = value.p;
    const char *end = p + value.n;

    for (;;) {
        const char *comma = memchr(p, ',', (apr_size_t)(end - p));
        apr_uint64_t length;

        if (aigw_slice_u64(trimmed(p, comma ? comma : end), &length) != AIGW_OK
            || length > APR_INT64_MAX || (*seen && length != head->length)) {
            return AIGW_MALFORMED;
        }
        head->length = length;
        *seen = 1;
        if (comma == NULL) {
            return AIGW_OK;
        }
        p = comma + 1;
    }
}

/* Words of a Connection field that matter. */
static void connection_value(aigw_slice_t value, int *close, int *keep)
{
    const char *p = value.p;
    const char *end = p + value.n;

    while (p <= end) {
        const char *comma =
            p < end ? memchr(p, ',', (apr_size_t)(end - p)) : NULL;
        aigw_slice_t word = trimmed(p, comma ? comma : end);

        *close |= aigw_slice_is_nocase(word, "close");
        *keep |= aigw_slice_is_nocase(word, "keep-alive");
        if (comma == NULL) {
            return;
        }
        p = comma + 1;
    }
}

static int bodyless(int status)
{
    return status < 200 || status == 204 || status == 304;
}

/* RFC 9112 section 6.3. A status without a body that announces one all the
 * same may be followed by that body: its connection is not used again. */
static aigw_rc_t framing(aigw_http1_head_t *head)
{
    int has_te = 0, has_length = 0, close = 0, keep = 0, i;

    for (i = 0; i < head->n_fields; ++i) {
        aigw_slice_t name = head->field[i].name;
        aigw_slice_t value = head->field[i].value;

        if (aigw_slice_is_nocase(name, "Transfer-Encoding")) {
            if (has_te || !aigw_slice_is_nocase(value, "chunked")) {
                return AIGW_MALFORMED;
            }
            has_te = 1;
        }
        else if (aigw_slice_is_nocase(name, "Content-Length")) {
            if (length_value(value, head, &has_length) != AIGW_OK) {
                return AIGW_MALFORMED;
            }
        }
        else if (aigw_slice_is_nocase(name, "Connection")) {
            connection_value(value, &close, &keep);
        }
    }
    if (has_te && (has_length || head->minor == 0)) {
        return AIGW_MALFORMED;
    }
    if (bodyless(head->status)) {
        head->frame = AIGW_FRAME_NONE;
    }
    else if (has_te) {
        head->frame = AIGW_FRAME_CHUNKED;
    }
    else if (has_length) {
        head->frame = head->length ? AIGW_FRAME_LENGTH : AIGW_FRAME_NONE;
    }
    else {
        head->frame = AIGW_FRAME_CLOSE;
    }
    head->keep_alive =
        !close && (head->minor > 0 || keep) && head->frame != AIGW_FRAME_CLOSE
        && head->status != 101 && !(head->frame == AIGW_FRAME_NONE && has_te)
        && !(head->status == 204 && head->length > 0);
    return AIGW_OK;
}

aigw_rc_t aigw_http1_head(const char *buf, apr_size_t n, apr_size_t *scanned,
                          aigw_http1_head_t *head)
{
    const char *end = head_end(buf, n, scanned);
    const char *p = buf;
    aigw_slice_t line;
    aigw_rc_t rc;

    if (end == NULL) {
        return AIGW_AGAIN;
    }
    head->length = 0;
    head->n_fields = 0;
    head->size = (apr_size_t)(end - buf);
    rc = next_line(&p, end, &line);
    if (rc == AIGW_OK) {
        rc = status_line(line, head);
    }
    while (rc == AIGW_OK) {
        rc = next_line(&p, end, &line);
        if (rc == AIGW_OK && line.n == 0) {
            return framing(head);
        }
        if (rc == AIGW_OK) {
            rc = field_line(line, head);
        }
    }
    return rc;
}

aigw_slice_t aigw_http1_field(const aigw_http1_head_t *head, const char *name)
{
    int i;

    for (i = 0; i < head->n_fields; ++i) {
        if (aigw_slice_is_nocase(head->field[i].name, name)) {
            return head->field[i].value;
        }
    }
    return aigw_slice(NULL, 0);
}

/* ---- body --------------------------------------------------------------- */

/* States of the chunk grammar; data runs in CHUNK_DATA. */
/* clang-format off */
enum {
    CHUNK_SIZE_FIRST = 0, /* a digit must come */
    CHUNK_SIZE,
    CHUNK_EXT,            /* to the CR: read over */
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    TRAILER_FIRST,        /* a CR here is the blank line */
    TRAILER,
    TRAILER_LF,
    FINAL_LF,
    BODY_DONE,
    BODY_BROKEN
};
/* clang-format on */

void aigw_http1_body_init(aigw_http1_body_t *b, const aigw_http1_head_t *head)
{
    b->frame = head->frame;
    b->left = head->frame == AIGW_FRAME_LENGTH ? head->length : 0;
    b->line = 0;
    b->state = head->frame == AIGW_FRAME_NONE ? BODY_DONE : CHUNK_SIZE_FIRST;
    if (head->frame == AIGW_FRAME_LENGTH && b->left == 0) {
        b->state = BODY_DONE;
    }
}

static int hex_digit(char c)
{
    if (is_digit(c)) {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A byte of the size: up to 16 digits, so that no overflow is possible. */
static int size_byte(aigw_http1_body_t *b, char c)
{
    int digit = hex_digit(c);

    if (digit >= 0) {
        if (b->line == 16) {
            return BODY_BROKEN;
        }
        b->left = b->left * 16 + (unsigned)digit;
        ++b->line;
        return CHUNK_SIZE;
    }
    if (b->state == CHUNK_SIZE_FIRST) {
        return BODY_BROKEN;
    }
    if (c == '\r') {
        return CHUNK_SIZE_LF;
    }
    return c == ';' || c == ' ' || c == '\t' ? CHUNK_EXT : BODY_BROKEN;
}

/* A byte of an extension or a trailer, which nobody reads. */
static int skipped_byte(aigw_http1_body_t *b, char c, int at_cr)
{
    if (c == '\r') {
        return at_cr;
    }
    if (c == '\n' || c == '\0' || ++b->line > MAX_LINE) {
        return BODY_BROKEN;
    }
    return at_cr == CHUNK_SIZE_LF ? CHUNK_EXT : TRAILER;
}

/* The state after one byte of framing. */
static int frame_byte(aigw_http1_body_t *b, char c)
{
    switch (b->state) {
    case CHUNK_SIZE_FIRST:
    case CHUNK_SIZE:
        return size_byte(b, c);
    case CHUNK_EXT:
        return skipped_byte(b, c, CHUNK_SIZE_LF);
    case CHUNK_SIZE_LF:
        b->line = 0;
        if (c != '\n') {
            return BODY_BROKEN;
        }
        return b->left ? CHUNK_DATA : TRAILER_FIRST;
    case CHUNK_DATA_CR:
        return c == '\r' ? CHUNK_DATA_LF : BODY_BROKEN;
    case CHUNK_DATA_LF:
        return c == '\n' ? CHUNK_SIZE_FIRST : BODY_BROKEN;
    case TRAILER_FIRST:
        return skipped_byte(b, c, FINAL_LF);
    case TRAILER:
        return skipped_byte(b, c, TRAILER_LF);
    case TRAILER_LF:
        b->line = 0;
        return c == '\n' ? TRAILER_FIRST : BODY_BROKEN;
    case FINAL_LF:
        return c == '\n' ? BODY_DONE : BODY_BROKEN;
    default:
        return BODY_BROKEN;
    }
}

/* A run of at most b->left bytes; *p < end. */
static void counted_run(aigw_http1_body_t *b, const char **p, const char *end,
                        aigw_slice_t *run)
{
    apr_size_t n = (apr_size_t)(end - *p);

    if (n > b->left) {
        n = (apr_size_t)b->left;
    }
    *run = aigw_slice(*p, n);
    b->left -= n;
    *p += n;
}

static aigw_rc_t chunked_next(aigw_http1_body_t *b, const char **p,
                              const char *end, aigw_slice_t *run)
{
    while (*p < end) {
        if (b->state == CHUNK_DATA) {
            counted_run(b, p, end, run);
            if (b->left == 0) {
                b->state = CHUNK_DATA_CR;
            }
            return AIGW_OK;
        }
        b->state = frame_byte(b, **p);
        if (b->state == BODY_BROKEN) {
            return AIGW_MALFORMED;
        }
        ++*p;
        if (b->state == BODY_DONE) {
            return AIGW_DONE;
        }
    }
    return AIGW_AGAIN;
}

aigw_rc_t aigw_http1_body_next(aigw_http1_body_t *b, const char **p,
                               const char *end, aigw_slice_t *run)
{
    if (b->state == BODY_DONE) {
        return AIGW_DONE;
    }
    if (b->state == BODY_BROKEN) {
        return AIGW_MALFORMED;
    }
    if (b->frame == AIGW_FRAME_CHUNKED) {
        return chunked_next(b, p, end, run);
    }
    if (*p == end) {
        return AIGW_AGAIN;
    }
    if (b->frame == AIGW_FRAME_LENGTH) {
        counted_run(b, p, end, run);
        if (b->left == 0) {
            b->state = BODY_DONE;
        }
        return AIGW_OK;
    }
    *run = aigw_slice(*p, (apr_size_t)(end - *p));
    *p = end;
    return AIGW_OK;
}

aigw_rc_t aigw_http1_body_eof(const aigw_http1_body_t *b)
{
    if (b->state == BODY_DONE) {
        return AIGW_DONE;
    }
    if (b->state != BODY_BROKEN && b->frame == AIGW_FRAME_CLOSE) {
        return AIGW_DONE;
    }
    return AIGW_TRUNCATED;
}
