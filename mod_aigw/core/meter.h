/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches one answer's decoded body go by and tells what it cost: SSE frames
 * split into events, events' JSON read at the few paths that matter, token
 * counts merged by the rules of the dialect.  Memory is constant whatever
 * the answer does, nothing is allocated, and every split of the bytes gives
 * the same result.
 *
 * It observes; it does not rewrite.  The one thing it may keep from the
 * client is the usage-only event that the gateway itself asked for.  Only
 * when that is switched on (`withhold`) are the bytes of an event held until
 * it is known whether it carries a choice.
 */
#ifndef AIGW_METER_H
#define AIGW_METER_H

#include "slice.h"
#include "usage.h"
#include "dialect.h"
#include "sse.h"
#include "jsonscan.h"
#include "jsonmemo.h"

typedef enum {
    AIGW_METER_OFF = 0, /* count bytes only (passed through, unmetered) */
    AIGW_METER_SSE,     /* text/event-stream */
    AIGW_METER_JSON,    /* one JSON document */
    AIGW_METER_NDJSON   /* one JSON document a line: application/x-ndjson */
} aigw_meter_kind_t;

/**
 * Where the body bytes go. Called from inside aigw_meter_feed/_finish in the
 * order of the bytes; a run given to pass() is a slice of the input and as
 * long as possible (one call a feed in the normal case).
 */
typedef struct {
    void (*pass)(void *ctx, const char *p, apr_size_t n);
    /** Undecided bytes: copy them, they come before anything passed later.
     * Never called unless withhold is on; at most 64 KiB in all before a
     * release or drop. */
    void (*keep)(void *ctx, const char *p, apr_size_t n);
    void (*release)(void *ctx); /* what was kept goes to the client */
    void (*drop)(void *ctx);    /* what was kept is forgotten */
} aigw_meter_sink_t;

/** What was seen; read by the relay at the end (and at abort). */
typedef struct {
    aigw_usage_t usage;
    apr_uint64_t text_bytes; /* of what the model said, unescaped: for an
                                estimate where usage.source is NONE */
    char model[129];         /* the answer's own model name, "" unknown */
    char finish[33];         /* raw finish reason of choice 0, "" unknown */
    char error[65];          /* type or code of an in-band error, "" none */
    char tier[33];           /* service tier served, "" unknown */
    char cost_stated[33];    /* money the upstream states, decimal text in USD
                                as sent (only plain decimals), "" none */
    apr_uint64_t events;     /* events that carried data, or lines */
    unsigned saw_end:1;      /* the API's own end ([DONE], message_stop, ...)
                                was seen */
    unsigned ended:1;        /* by aigw_meter_finish(): the answer has the end
                                that its API requires; if not, it was cut even
                                if its framing ended rightly */
    unsigned saw_error:1;    /* an error object inside the answer */
    unsigned error_first:1;  /* the first thing said was an error: no event
                                with a choice went by before it */
    unsigned saw_content:1;  /* a first event with a choice went by */
    unsigned bad_json:1;     /* an event or the document was not JSON (one
                                that the end of a cut body broke off is no
                                such) */
    unsigned bad_number:1;   /* a count was out of range and ignored */
    unsigned cache_outside:1;/* cached counts exceed the prompt */
    unsigned odd_total:1;    /* total does not add up, unexplained; or a part
                                was larger than its whole */
    unsigned other_model:1;  /* passes of another model (an advisor's) ran
                                within and are not in the counts */
} aigw_meter_seen_t;

typedef struct aigw_meter_t aigw_meter_t;

struct aigw_meter_t {
    aigw_meter_kind_t kind;
    const aigw_dialect_t *dialect;
    const aigw_answer_t *answer;
    unsigned withhold:1;
    unsigned undecided:1;    /* inside an event that may have to be kept from
                                the client */
    unsigned data:1;         /* the event has data */
    unsigned plain:1;        /* which does not begin like an object */
    unsigned drop_lf:1;      /* an LF that comes next belongs to the CR that
                                ended an event kept from the client */
    unsigned finished:1;
    unsigned cut:1;          /* the body ended before its end */
    unsigned char n_head;
    char head[8];            /* the beginning of plain data */
    apr_size_t kept;         /* bytes given to keep() and not yet decided */
    aigw_sse_t sse;
    aigw_jsonscan_t json;
    aigw_jsonmemo_t memo;
    aigw_dialect_state_t state; /* what the dialect remembers between calls */
    aigw_meter_seen_t seen;
};

/**
 * @param kind     by the answer's Content-Type, not by the request
 * @param withhold 1 if the gateway asked for the usage event and the client
 *                 did not
 */
void aigw_meter_init(aigw_meter_t *m, aigw_meter_kind_t kind,
                     const aigw_dialect_t *dialect, int withhold);

/**
 * The same for any endpoint; aigw_meter_init() takes the dialect's first.
 * @param dialect  the upstream's, which must speak the endpoint's language
 * @param endpoint what was called; NULL: the dialect's first
 */
void aigw_meter_init_for(aigw_meter_t *m, aigw_meter_kind_t kind,
                         const aigw_dialect_t *dialect,
                         const aigw_endpoint_t *endpoint, int withhold);

/**
 * Feed decoded body bytes, any split.
 * Cost: no allocation, no copy (but for keep), about 2 to 4 instructions a
 * byte.
 */
void aigw_meter_feed(aigw_meter_t *m, const char *p, apr_size_t n,
                     const aigw_meter_sink_t *sink, void *ctx);

/**
 * The body has ended (rightly or not): decides what is still kept, counts a
 * last event without a blank line, fills seen.usage.source: reported if the
 * answer ended rightly (by the API's own end; by its framing, where the API
 * has no end or its servers leave it out) with counts, or was cut behind a
 * usage that can only be the last one; partial if it was cut or failed after
 * a snapshot; none without counts of tokens (images, searches and seconds
 * may be known all the same). Idempotent.
 * @param complete 1 if the framing ended rightly
 */
void aigw_meter_finish(aigw_meter_t *m, int complete,
                       const aigw_meter_sink_t *sink, void *ctx);

/** 1 if everything fed so far ends at an event boundary. */
int aigw_meter_at_boundary(const aigw_meter_t *m);

#endif
