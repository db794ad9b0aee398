/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What differs between the providers' languages, as tables of constants and
 * functions: endpoints, error bodies, where counts stand in an answer.
 * Adding a provider is a new row, not a branch elsewhere.
 *
 * A dialect is a language (openai, anthropic, gemini, ollama) or a provider
 * that speaks one but counts otherwise (xai).  An endpoint is a thing that
 * may be called in a language; an answer is how what it returns is read.
 */
#ifndef AIGW_DIALECT_H
#define AIGW_DIALECT_H

#include "slice.h"
#include "reason.h"
#include "jsonscan.h"
#include "decimal.h"
#include "usage.h"

typedef struct aigw_dialect_t aigw_dialect_t;
struct aigw_meter_t;

typedef enum {
    AIGW_API_OTHER = 0,
    AIGW_API_OPENAI_CHAT,
    AIGW_API_OPENAI_COMPLETIONS,
    AIGW_API_OPENAI_RESPONSES,
    AIGW_API_OPENAI_EMBEDDINGS,
    AIGW_API_OPENAI_IMAGES,
    AIGW_API_OPENAI_AUDIO,
    AIGW_API_OPENAI_MODERATIONS,
    AIGW_API_OPENAI_MODELS,
    AIGW_API_ANTHROPIC_MESSAGES,
    AIGW_API_ANTHROPIC_COUNT_TOKENS,
    AIGW_API_GEMINI_GENERATE,
    AIGW_API_GEMINI_COUNT_TOKENS,
    AIGW_API_GEMINI_EMBED,
    AIGW_API_OLLAMA_CHAT,
    AIGW_API_MAX
} aigw_api_t;

/** Where a request names its model. */
typedef enum {
    AIGW_MODEL_JSON = 0, /* in its JSON body, with "stream" */
    AIGW_MODEL_FORM,     /* in a part of its multipart/form-data body, or in a
                            JSON body, by its Content-Type */
    AIGW_MODEL_PATH,     /* in its path; the body is JSON without either */
    AIGW_MODEL_NONE      /* nowhere: it has no body */
} aigw_model_place_t;

/** How the answers of one API are read: what the meter calls. */
typedef struct {
    const aigw_jsonscan_node_t *paths; /* that matter */
    aigw_jsonscan_fn *value;           /* ctx is the meter */
    void (*event_start)(struct aigw_meter_t *m);
    /** The event's JSON is whole, or was cut after a whole usage. */
    void (*event_end)(struct aigw_meter_t *m);
    /** What data that is no object means, given whole: 0 nothing; 1 the
     * stream's end; 2 nothing here, but no fault either. */
    int (*is_end)(const char *data, apr_size_t n);
    void (*settle)(struct aigw_meter_t *m); /* raw counts -> seen.usage */
    unsigned may_lack_end:1;  /* a stream without its end, but rightly framed,
                                 may be complete */
    unsigned bare_json:1;     /* an object may stand in a stream without
                                 "data:" before it */
    unsigned own_reasoning:1; /* the dialect's way with reasoning is not this
                                 API's */
    unsigned searches:1;      /* items of it that are searches are counted */
    unsigned char output;       /* AIGW_U_OUTPUT_IMAGE, _AUDIO: what output is,
                                 where the answer does not say; 0: text */
} aigw_answer_t;

/** One thing that may be called. Static. */
typedef struct {
    aigw_api_t api;
    const char *path;       /* below the engine's prefix and the URL's path:
                            "/chat/completions"; a '*' stands for the model */
    const char *method;     /* "POST" */
    unsigned ask_usage:1;     /* stream_options.include_usage is known here */
    unsigned streams:1;       /* its answer is a stream, unasked */
    unsigned stream_default:1; /* it is, unless "stream" is false */
    unsigned format_streams:1; /* "stream_format":"sse" asks for one */
    unsigned alt_sse:1;       /* "?alt=sse" makes the stream one of events */
    unsigned local:1;         /* the gateway answers it itself */
    aigw_model_place_t model;
    const aigw_answer_t *answer;
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
    aigw_money_t cost;        /* stated by this event's snapshot */
    aigw_money_t cost_beside; /* part of it that is billed elsewhere */
    apr_uint32_t have;        /* bit per raw count in the snapshot */
    apr_uint32_t last_have;
    apr_uint64_t choice_index; /* of the choice that is open */
    apr_uint64_t choice_place; /* its place in the array */
    apr_uint64_t part;         /* a count that waits for its name */
    apr_uint32_t items;        /* things counted one by one in this event */
    char choice_finish[33];
    char word[65];            /* a word that waits for its meaning */
    unsigned char type;       /* of the event, in the dialect's own numbers */
    unsigned char part_type;  /* of the entry that is open */
    unsigned usage_rank:2;    /* best place a usage stood in this event */
    unsigned usage_live:1;    /* the usage that is open is the best one */
    unsigned usage_whole:1;   /* and it was closed */
    unsigned usage_final:1;   /* the last merged one is no mere snapshot of
                                  an answer that then failed */
    unsigned usage_last:1;    /* it stood where only the last one stands */
    unsigned cost_have:1;
    unsigned cost_adds:1;     /* cost_beside comes on top of cost */
    unsigned error_rank:2;    /* how telling seen.error is */
    unsigned event_usage:1;   /* this event holds a usage object */
    unsigned event_choice:1;  /* this event holds a choice */
    unsigned event_error:1;   /* this event holds an error */
    unsigned choice_before:1; /* an earlier event held a choice */
    unsigned no_adds:1;       /* passes beside the answer are in its sums */
    unsigned part_have:1;     /* part is set */
} aigw_dialect_state_t;

struct aigw_dialect_t {
    const char *name;                 /* "xai" */
    const char *language;             /* "openai" */
    aigw_reasoning_t reasoning;       /* what output counts leave out */
    const aigw_endpoint_t *endpoints; /* of the language; ends with path
                                         NULL; the first one is what the
                                         language is mostly used for */
    unsigned text_factor;             /* bytes of text for 100 tokens: see
                                         estimate.h */

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

    const char *error_type; /* Content-Type of such a body */
    int overloaded;         /* its status for 503; 0: 503 */
};

/* The languages, */
extern const aigw_dialect_t aigw_dialect_openai;
extern const aigw_dialect_t aigw_dialect_anthropic;
extern const aigw_dialect_t aigw_dialect_gemini;
extern const aigw_dialect_t aigw_dialect_ollama;
/* Gemini's, where its clients expect errors inside an array, */
extern const aigw_dialect_t aigw_dialect_gemini_array;
/* and providers that speak OpenAI's but count otherwise. */
extern const aigw_dialect_t aigw_dialect_openai_gemini;
extern const aigw_dialect_t aigw_dialect_openai_perplexity;
extern const aigw_dialect_t aigw_dialect_openai_xai;

/** By name ("openai", "anthropic", "gemini", "ollama", "gemini-openai",
 * "perplexity", "xai"), NULL if there is none. */
const aigw_dialect_t *aigw_dialect_find(const char *name);

/**
 * A provider's row in a language. Most providers count as their language
 * does and have no row of their own.
 * @param d       a language
 * @param profile "deepseek", "xai", ...; NULL: none
 * @return @a d itself if the profile changes nothing; NULL if there is no
 *         such profile in that language
 */
const aigw_dialect_t *aigw_dialect_profile(const aigw_dialect_t *d,
                                           const char *profile);

/** The profile names that any language knows, ends with NULL. */
extern const char *const aigw_dialect_profiles[];

/** 1 if what an upstream of dialect @a upstream is sent may be in the
 * language of @a caller. */
int aigw_dialect_speaks(const aigw_dialect_t *upstream,
                        const aigw_dialect_t *caller);

/** The HTTP status of an error of ours in a dialect: info->status but where
 * its SDKs know another one (Anthropic: 529 for 503). */
int aigw_dialect_status(const aigw_dialect_t *d,
                        const aigw_reason_info_t *info);

/** "openai.chat", ...: static text for the record. */
const char *aigw_api_name(aigw_api_t api);

/** What a path below the prefix says. Slices point into that path. */
typedef struct {
    const aigw_endpoint_t *endpoint;
    const aigw_dialect_t *dialect; /* to answer the caller in */
    aigw_slice_t model;            /* named in the path, else empty */
    const char *query;             /* to be sent upstream: "alt=sse", or "" */
} aigw_match_t;

/**
 * Find what a request calls, in any language. Paths are compared whole: no
 * prefix, no trailing slash, and a model's name in a path is 1 to 128 of
 * letters, digits, "-", ".", "_", "@".
 * @param path below the engine's prefix, decoded ("/chat/completions")
 * @param args the query as it came, or NULL
 * @param m    filled in; where nothing is found, m->endpoint is NULL and
 *             m->dialect the language that the path looks like
 * @return AIGW_OK, or AIGW_REFUSED: there is no such endpoint
 */
aigw_rc_t aigw_endpoint_match(const char *path, const char *args,
                              aigw_match_t *m);

/**
 * The path and query that go upstream, behind the URL's own path: constants
 * of ours and a model's name, never bytes of the request's path.
 * @param model the name at the upstream, for endpoints with the model in the
 *              path; NULL: as the caller named it
 * @param buf   room for AIGW_TARGET_MAX bytes
 * @return length (NUL-terminated); 0 if the name cannot stand in a path
 */
#define AIGW_TARGET_MAX 256
apr_size_t aigw_endpoint_target(const aigw_match_t *m, const char *model,
                                char *buf);

/** OpenAI's chat only: the endpoint with exactly that path, NULL if it is
 * another. For all of them see aigw_endpoint_match(). */
const aigw_endpoint_t *aigw_dialect_endpoint(const aigw_dialect_t *d,
                                             const char *path);

#endif
