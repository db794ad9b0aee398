/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What differs between the providers' languages, as a table of constants and
 * functions: endpoints, error bodies, where counts stand in an answer.
 * Adding a provider is a new row, not a branch elsewhere.
 */
#ifndef AIGW_DIALECT_H
#define AIGW_DIALECT_H

#include "slice.h"
#include "reason.h"
#include "jsonscan.h"
#include "decimal.h"

typedef struct aigw_dialect_t aigw_dialect_t;
struct aigw_meter_t;

typedef enum {
    AIGW_API_OTHER = 0,
    AIGW_API_OPENAI_CHAT
} aigw_api_t;

/** One thing that may be called. */
typedef struct {
    aigw_api_t api;
    const char *path;    /* below the engine's prefix and the URL's path:
                            "/chat/completions"; sent as it stands here */
    const char *method;  /* "POST" */
    unsigned ask_usage:1; /* stream_options.include_usage is known here */
} aigw_endpoint_t;

/** Whether a provider counts reasoning inside its output count. Where a
 * total is given, arithmetic decides; this is for what it leaves open. */
typedef enum {
    AIGW_REASONING_INSIDE = 0,
    AIGW_REASONING_UNTOLD,  /* outside, unless a total says otherwise */
    AIGW_REASONING_OUTSIDE, /* outside, and the total leaves it out too */
    AIGW_REASONING_HIDDEN   /* what total has beyond prompt and completion
                               is reasoning that is stated nowhere */
} aigw_reasoning_t;

#define AIGW_DIALECT_COUNTS 24

/** What a dialect remembers while one answer goes by: raw counts by path,
 * merged at the end of each event. The owner is the meter. */
typedef struct {
    apr_uint64_t raw[AIGW_DIALECT_COUNTS];
    apr_uint64_t last[AIGW_DIALECT_COUNTS]; /* merged over the events: last
                                               good value wins */
    aigw_money_t cost;         /* stated by this event's snapshot */
    aigw_money_t cost_beside;  /* part of it that is billed elsewhere */
    apr_uint32_t have;         /* bit per raw count in the snapshot */
    apr_uint32_t last_have;
    apr_uint64_t choice_index; /* of the choice that is open */
    apr_uint64_t choice_place; /* its place in the array */
    char choice_finish[33];
    unsigned usage_rank:2;     /* best place a usage stood in this event */
    unsigned usage_live:1;     /* the usage that is open is the best one */
    unsigned usage_whole:1;    /* and it was closed */
    unsigned usage_final:1;    /* the last merged one is no mere snapshot of
                                  an answer that then failed */
    unsigned usage_last:1;     /* it stood alone behind the finish reason */
    unsigned cost_have:1;
    unsigned cost_adds:1;      /* cost_beside comes on top of cost */
    unsigned error_rank:2;     /* how telling seen.error is */
    unsigned event_usage:1;    /* this event holds a usage object */
    unsigned event_choice:1;   /* this event holds a choice */
    unsigned event_error:1;    /* this event holds an error */
    unsigned choice_before:1; /* an earlier event held a choice */
} aigw_dialect_state_t;

struct aigw_dialect_t {
    const char *name;                    /* "openai" */
    aigw_reasoning_t reasoning;          /* what output counts leave out */
    const aigw_endpoint_t *endpoints;    /* ends with path NULL */

    /**
     * Write an error body of ours as the provider's SDKs expect it.
     * @param info    the row of the reason
     * @param message one sentence for a person instead of the row's own, or
     *                NULL; escaped here, shortened where @a size is small
     * @param id      the request id, or NULL
     * @return length, less than @a size (at least 512); always complete
     *         JSON, NUL-terminated
     */
    apr_size_t (*error_body)(char *buf, apr_size_t size,
                             const aigw_reason_info_t *info,
                             const char *message, const char *id);

    const char *error_type;              /* Content-Type of such a body */

    /* -- what the meter calls; see meter.h -- */
    const aigw_jsonscan_node_t *answer;  /* the paths that matter */
    aigw_jsonscan_fn *value;             /* ctx is the meter */
    void (*event_start)(struct aigw_meter_t *m);
    /** The event's JSON is whole, or was cut after a whole usage. */
    void (*event_end)(struct aigw_meter_t *m);
    /** 1 if these are the whole data of the event that ends a stream. */
    int (*is_end)(const char *data, apr_size_t n);
    void (*settle)(struct aigw_meter_t *m); /* raw counts -> seen.usage */
};

/* OpenAI's language, and providers that speak it but count otherwise. */
extern const aigw_dialect_t aigw_dialect_openai;
extern const aigw_dialect_t aigw_dialect_openai_gemini;
extern const aigw_dialect_t aigw_dialect_openai_perplexity;
extern const aigw_dialect_t aigw_dialect_openai_xai;

/** By name ("openai", "gemini-openai", "perplexity", "xai"), NULL if there
 * is none. */
const aigw_dialect_t *aigw_dialect_find(const char *name);

/** "openai.chat", ...: static text for the record. */
const char *aigw_api_name(aigw_api_t api);

/** The endpoint with exactly that path (no prefix match), NULL if none. */
const aigw_endpoint_t *aigw_dialect_endpoint(const aigw_dialect_t *d,
                                             const char *path);

#endif
