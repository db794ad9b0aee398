/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event-stream scanner.  Its states are the places in a line; what is
 * remembered of a line is at most how much of "data" or of the byte order
 * mark has matched.
 */
#include "sse.h"
#include "scanfast.h"

/* clang-format off */
enum {
    ST_MARK = 0, /* at the start of the stream: a mark may come */
    ST_LINE,     /* at the start of a line */
    ST_NAME,     /* in a name that is "data" so far */
    ST_SPACE,    /* after "data:": one space is no data */
    ST_VALUE,    /* in the data */
    ST_OTHER     /* in a comment or another field */
};
/* clang-format on */

static const char mark[] = "\xef\xbb\xbf";
static const char newline[] = "\n";

void aigw_sse_init(aigw_sse_t *s, int tell_start)
{
    memset(s, 0, sizeof(*s));
    s->tell_start = tell_start != 0;
}

/* p is on a CR or LF that ends a line: move over it. */
static const char *line_end(aigw_sse_t *s, const char *p, const char *end)
{
    s->state = ST_LINE;
    if (*p++ == '\n') {
        return p;
    }
    if (p == end) {
        s->after_cr = 1;
        return p;
    }
    return *p == '\n' ? p + 1 : p;
}

static aigw_sse_token_t end_event(aigw_sse_t *s)
{
    s->in_event = 0;
    s->lines = 0;
    return AIGW_SSE_END;
}

/* The mark, or as much of it as came. Anything else begins a line, and one
 * that begins with a part of the mark is a field that nobody knows. */
static const char *in_mark(aigw_sse_t *s, const char *p, const char *end)
{
    while (p < end && s->name < 3 && *p == mark[s->name]) {
        ++p;
        ++s->name;
    }
    if (s->name == 3 || (s->name == 0 && p < end)) {
        s->state = ST_LINE;
    }
    else if (p < end) {
        s->state = ST_OTHER;
    }
    return p;
}

/* A name that may be "data": its colon or the line's end decides. */
static const char *in_name(aigw_sse_t *s, const char *p, const char *end)
{
    while (p < end && s->name < 4 && *p == "data"[s->name]) {
        ++p;
        ++s->name;
    }
    if (p == end) {
        return p;
    }
    s->state = ST_OTHER;
    if (s->name == 4 && *p == ':') {
        s->state = ST_SPACE;
        return p + 1;
    }
    if (s->name == 4 && (*p == '\n' || *p == '\r')) {
        s->state = ST_SPACE; /* a line of just "data" holds no data */
    }
    return p;
}

/* The data of a line begins: 1 if an LF joins it to the line before. */
static int start_value(aigw_sse_t *s)
{
    s->state = ST_VALUE;
    if (s->lines < 2) {
        ++s->lines;
    }
    return s->lines == 2;
}

/* A field begins. The usual one is taken in one step. @return 1 if an LF is
 * to be reported first */
static inline int start_field(aigw_sse_t *s, const char **at, const char *end)
{
    if (end - *at > 5 && memcmp(*at, "data:", 5) == 0 && s->in_event != 2) {
        *at += 5;
        *at += **at == ' ';
        return start_value(s);
    }
    if (s->in_event == 2) {
        return start_value(s); /* all of the line is data */
    }
    s->name = 0;
    s->state = ST_NAME;
    return 0;
}

aigw_sse_token_t aigw_sse_next(aigw_sse_t *s, const char **p, const char *end,
                               aigw_slice_t *run)
{
    const char *at = *p;
    const char *eol;
    int join = 0;

    if (s->after_cr && at < end) {
        s->after_cr = 0;
        at += *at == '\n';
    }
    while (at < end) {
        switch (s->state) {
        case ST_LINE:
            if (*at == '\n' || *at == '\r') {
                at = line_end(s, at, end);
                if (s->in_event) {
                    *p = at;
                    return end_event(s);
                }
                break;
            }
            if (*at == ':' && s->in_event != 2) {
                s->state = ST_OTHER;
                break;
            }
            if (!s->in_event) {
                s->in_event = 1;
                if (s->bare_json && *at == '{') {
                    s->in_event = 2;
                }
                if (s->tell_start) {
                    *p = at;
                    return AIGW_SSE_START;
                }
            }
            join = start_field(s, &at, end);
            break;
        case ST_SPACE:
            at += *at == ' ';
            join = start_value(s);
            break;
        case ST_VALUE:
            eol = aigw_scan_line(at, end);
            *run = aigw_slice(at, (apr_size_t)(eol - at));
            *p = at = eol < end ? line_end(s, eol, end) : end;
            if (run->n > 0) {
                return AIGW_SSE_DATA;
            }
            break;
        case ST_NAME:
            at = in_name(s, at, end);
            break;
        case ST_OTHER:
            eol = aigw_scan_line(at, end);
            at = eol < end ? line_end(s, eol, end) : end;
            break;
        default:
            at = in_mark(s, at, end);
            if (s->state == ST_OTHER) {
                s->in_event = 1;
                if (s->tell_start) {
                    *p = at;
                    return AIGW_SSE_START;
                }
            }
            break;
        }
        if (join) {
            *p = at;
            *run = aigw_slice(newline, 1);
            return AIGW_SSE_DATA;
        }
    }
    *p = at;
    return AIGW_SSE_MORE;
}

aigw_sse_token_t aigw_sse_finish(aigw_sse_t *s)
{
    int open = s->in_event;

    s->state = ST_LINE;
    s->after_cr = 0;
    end_event(s);
    return open ? AIGW_SSE_END : AIGW_SSE_MORE;
}

int aigw_sse_at_boundary(const aigw_sse_t *s)
{
    return !s->in_event
           && (s->state == ST_LINE || (s->state == ST_MARK && s->name == 0));
}
