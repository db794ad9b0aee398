/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leads the bytes of an answer through the scanners and on to the sink.  What
 * a value means is the dialect's; what may pass is decided here.
 *
 * In every feed `from` is the first byte that has not been passed, and while
 * an event is undecided (only ever if withhold is on) `event` is its first
 * byte in this feed.  Bytes are
 * kept only at the end of a feed, so that kept bytes are older than all that
 * the next feed passes, and kept > 0 means that this feed begins inside an
 * undecided event.
 */
#include "meter.h"
#include "scanfast.h"

#define KEEP_MAX (64 * 1024)

/* One feed on its way. */
typedef struct {
    const char *from;
    const char *event;
    const aigw_meter_sink_t *sink;
    void *ctx;
} way_t;

void aigw_meter_init(aigw_meter_t *m, aigw_meter_kind_t kind,
                     const aigw_dialect_t *dialect, int withhold)
{
    aigw_meter_init_for(m, kind, dialect, NULL, withhold);
}

void aigw_meter_init_for(aigw_meter_t *m, aigw_meter_kind_t kind,
                         const aigw_dialect_t *dialect,
                         const aigw_endpoint_t *endpoint, int withhold)
{
    memset(m, 0, sizeof(*m));
    m->kind = kind;
    m->dialect = dialect;
    m->answer = (endpoint != NULL ? endpoint : dialect->endpoints)->answer;
    m->withhold = kind == AIGW_METER_SSE && withhold;
    aigw_sse_init(&m->sse, m->withhold);
    m->sse.bare_json = m->answer->bare_json;
    aigw_jsonscan_init(&m->json, m->answer->paths);
    aigw_jsonmemo_init(&m->memo);
    m->answer->event_start(m);
}

/* ---- what leaves -------------------------------------------------------- */

static void pass_until(way_t *w, const char *to)
{
    if (to > w->from) {
        w->sink->pass(w->ctx, w->from, (apr_size_t)(to - w->from));
    }
    w->from = to;
}

static void release(aigw_meter_t *m, way_t *w)
{
    if (m->kept > 0) {
        m->kept = 0;
        w->sink->release(w->ctx);
    }
}

/* The event passes, whatever follows. */
static void decide(aigw_meter_t *m, way_t *w)
{
    m->undecided = 0;
    release(m, w);
}

/* The event is kept from the client; @a after is its end. */
static void drop(aigw_meter_t *m, way_t *w, const char *after)
{
    pass_until(w, w->event);
    if (m->kept > 0) {
        m->kept = 0;
        w->sink->drop(w->ctx);
    }
    w->from = after;
    m->drop_lf = m->sse.after_cr;
}

/* An event that is still undecided when the feed ends. */
static void keep_rest(aigw_meter_t *m, way_t *w, const char *end)
{
    apr_size_t n = (apr_size_t)(end - w->event);

    if (n > KEEP_MAX - m->kept) {
        decide(m, w);
        return;
    }
    pass_until(w, w->event);
    w->sink->keep(w->ctx, w->event, n);
    m->kept += n;
    w->from = end;
}

/* ---- events ------------------------------------------------------------- */

/* Collect the beginning of data that is no object: the end marker. */
static void take_head(aigw_meter_t *m, aigw_slice_t run)
{
    apr_size_t room = sizeof(m->head) - m->n_head;
    apr_size_t n = run.n < room ? run.n : room;

    memcpy(m->head + m->n_head, run.p, n);
    m->n_head += (unsigned char)n;
}

static void take_data(aigw_meter_t *m, aigw_slice_t run)
{
    if (!m->data) {
        m->data = 1;
        m->n_head = 0;
        m->plain = *run.p != '{';
        ++m->seen.events;
        if (!m->plain) {
            aigw_jsonmemo_feed(&m->memo, &m->json, run.p, run.n,
                               m->answer->value, m);
            return;
        }
    }
    if (m->plain) {
        take_head(m, run);
    }
    aigw_jsonscan_feed(&m->json, run.p, run.n, m->answer->value, m);
}

/* 1 if the event may still turn out to be the usage that we asked for. */
static int may_be_ours(const aigw_meter_t *m)
{
    return !m->state.event_choice && !m->state.event_error
           && aigw_jsonscan_state(&m->json) < AIGW_JSONSCAN_BAD;
}

/* The event's data is over. @return 1 if it is the usage we asked for. */
static int settle_event(aigw_meter_t *m)
{
    aigw_jsonscan_end_t end;

    if (m->plain) {
        int what = m->answer->is_end(m->head, m->n_head);

        if (what != 0) {
            m->seen.saw_end |= what == 1;
            return 0;
        }
    }
    end = aigw_jsonscan_finish(&m->json, m->answer->value, m);
    if (end != AIGW_JSONSCAN_WHOLE && end != AIGW_JSONSCAN_EMPTY
        && !(m->cut && (end == AIGW_JSONSCAN_OPEN || m->plain))) {
        m->seen.bad_json = 1;
    }
    if (end == AIGW_JSONSCAN_WHOLE
        || (end == AIGW_JSONSCAN_OPEN && m->finished)) {
        m->answer->event_end(m);
    }
    return end == AIGW_JSONSCAN_WHOLE && m->state.event_usage
           && may_be_ours(m);
}

/* @param after the first byte behind the event */
static void end_event(aigw_meter_t *m, way_t *w, const char *after)
{
    int ours = 0;

    if (m->data) {
        ours = settle_event(m);
        aigw_jsonscan_reset(&m->json);
        m->answer->event_start(m);
        m->data = 0;
        m->plain = 0;
    }
    if (m->undecided) {
        m->undecided = 0;
        if (ours) {
            drop(m, w, after);
        }
        else {
            release(m, w);
        }
    }
}

/* ---- feeding ------------------------------------------------------------ */

static void feed_sse(aigw_meter_t *m, const char *p, const char *end, way_t *w)
{
    aigw_slice_t run;

    while (p < end) {
        switch (aigw_sse_next(&m->sse, &p, end, &run)) {
        case AIGW_SSE_START:
            m->undecided = 1;
            w->event = p;
            break;
        case AIGW_SSE_DATA:
            take_data(m, run);
            if (m->undecided && !may_be_ours(m)) {
                decide(m, w);
            }
            break;
        case AIGW_SSE_END:
            end_event(m, w, p);
            break;
        case AIGW_SSE_MORE:
            break;
        }
    }
}

/* A document of its own a line; blank ones are nothing. */
static void feed_lines(aigw_meter_t *m, const char *p, const char *end,
                       way_t *w)
{
    while (p < end) {
        const char *eol = aigw_scan_line(p, end);

        if (eol > p) {
            m->seen.events += !m->data;
            m->data = 1;
            aigw_jsonscan_feed(&m->json, p, (apr_size_t)(eol - p),
                               m->answer->value, m);
        }
        if (eol < end) {
            end_event(m, w, eol + 1);
        }
        p = eol < end ? eol + 1 : end;
    }
}

void aigw_meter_feed(aigw_meter_t *m, const char *p, apr_size_t n,
                     const aigw_meter_sink_t *sink, void *ctx)
{
    const char *end = p + n;
    way_t w;

    if (n == 0) {
        return;
    }
    w.from = p;
    w.event = p;
    w.sink = sink;
    w.ctx = ctx;
    if (m->drop_lf) {
        m->drop_lf = 0;
        w.from += *p == '\n';
    }
    if (m->kind == AIGW_METER_SSE) {
        feed_sse(m, p, end, &w);
        if (m->undecided) {
            keep_rest(m, &w, end);
        }
    }
    else if (m->kind == AIGW_METER_JSON) {
        aigw_jsonscan_feed(&m->json, p, n, m->answer->value, m);
    }
    else if (m->kind == AIGW_METER_NDJSON) {
        feed_lines(m, p, end, &w);
    }
    pass_until(&w, end);
}

/* ---- the end ------------------------------------------------------------ */

#define TOKENS ((1u << AIGW_U_SEARCHES) - 1)

static aigw_usage_source_t source(const aigw_meter_t *m, int complete)
{
    int right =
        complete && (m->kind == AIGW_METER_JSON || m->answer->may_lack_end);
    int ended = right || m->seen.saw_end || m->state.usage_last;

    if ((m->seen.usage.known & TOKENS) == 0) {
        return AIGW_USAGE_NONE;
    }
    return ended && m->state.usage_final ? AIGW_USAGE_REPORTED
                                         : AIGW_USAGE_PARTIAL;
}

/* A stream that says why it stopped may lack the marker behind it, where the
 * servers of its API are known to leave it out. */
static int has_end(const aigw_meter_t *m)
{
    switch (m->kind) {
    case AIGW_METER_JSON:
        return aigw_jsonscan_state(&m->json) == AIGW_JSONSCAN_WHOLE;
    case AIGW_METER_OFF:
        return 1;
    default:
        return m->seen.saw_end
               || (m->answer->may_lack_end && m->seen.finish[0] != '\0');
    }
}

void aigw_meter_finish(aigw_meter_t *m, int complete,
                       const aigw_meter_sink_t *sink, void *ctx)
{
    way_t w;

    if (m->finished) {
        return;
    }
    m->finished = 1;
    m->cut = !complete;
    w.from = w.event = NULL;
    w.sink = sink;
    w.ctx = ctx;
    if (m->kind == AIGW_METER_SSE) {
        if (aigw_sse_finish(&m->sse) == AIGW_SSE_END) {
            end_event(m, &w, NULL);
        }
    }
    else if (m->kind == AIGW_METER_JSON) {
        settle_event(m);
    }
    else if (m->kind == AIGW_METER_NDJSON) {
        end_event(m, &w, NULL);
    }
    m->seen.text_bytes = m->json.measured;
    m->seen.ended = has_end(m) & 1;
    m->answer->settle(m);
    m->seen.usage.source = source(m, complete);
}

int aigw_meter_at_boundary(const aigw_meter_t *m)
{
    aigw_jsonscan_end_t state;

    switch (m->kind) {
    case AIGW_METER_SSE:
        return aigw_sse_at_boundary(&m->sse);
    case AIGW_METER_JSON:
        state = aigw_jsonscan_state(&m->json);
        return state == AIGW_JSONSCAN_EMPTY || state == AIGW_JSONSCAN_WHOLE;
    case AIGW_METER_NDJSON:
        return !m->data;
    default:
        return 1;
    }
}
