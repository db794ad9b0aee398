/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a request was refused or failed: the gateway's own words, and the one
 * place where they become an HTTP status.  The word stands in the usage
 * record and in the notes; the type and code are what OpenAI-style SDKs
 * look at.
 */
#ifndef AIGW_REASON_H
#define AIGW_REASON_H

typedef enum {
    AIGW_REASON_NONE = 0,
    /* the caller */
    AIGW_REASON_NO_KEY,            /* no credential was sent */
    AIGW_REASON_BAD_KEY,           /* unknown */
    AIGW_REASON_KEY_EXPIRED,
    AIGW_REASON_KEY_CONFLICT,      /* two credentials that disagree */
    /* the request */
    AIGW_REASON_NOT_FOUND,         /* no such endpoint here */
    AIGW_REASON_METHOD,            /* 405, with Allow */
    AIGW_REASON_ENCODED_BODY,      /* Content-Encoding on the request */
    AIGW_REASON_BODY_TOO_LARGE,
    AIGW_REASON_BODY_TIMEOUT,
    AIGW_REASON_BODY_ABORTED,      /* the client left while sending */
    AIGW_REASON_NOT_JSON,
    AIGW_REASON_DUPLICATE_KEY,
    AIGW_REASON_NO_MODEL,
    AIGW_REASON_BAD_FIELD,
    AIGW_REASON_MODEL_UNKNOWN,     /* no AIGWModel row matches, or denied */
    /* the host */
    AIGW_REASON_OVERLOADED,        /* AIGWMaxStreams reached */
    AIGW_REASON_UPLOADS,           /* too many bodies being read */
    AIGW_REASON_UPSTREAM_FULL,     /* max= of the upstream reached */
    AIGW_REASON_STOPPING,          /* httpd is stopping */
    AIGW_REASON_INTERNAL,
    /* the upstream */
    AIGW_REASON_RESOLVE,           /* name not resolved */
    AIGW_REASON_CONNECT,           /* refused or unreachable */
    AIGW_REASON_CONNECT_TIMEOUT,
    AIGW_REASON_TLS,               /* handshake or verification failed */
    AIGW_REASON_SEND,              /* the request could not be sent */
    AIGW_REASON_FIRST_TIMEOUT,     /* silent before the first byte */
    AIGW_REASON_IDLE_TIMEOUT,      /* silent in mid-answer */
    AIGW_REASON_TOTAL_TIMEOUT,
    AIGW_REASON_BAD_ANSWER,        /* not HTTP, or broken framing */
    AIGW_REASON_TRUNCATED,         /* ended before its end */
    AIGW_REASON_UPSTREAM_STATUS,   /* a non-2xx answer, passed on */
    AIGW_REASON_UPSTREAM_ERROR,    /* an error inside a 2xx answer */
    /* the client */
    AIGW_REASON_CLIENT_GONE,
    AIGW_REASON_MAX
} aigw_reason_t;

typedef struct {
    aigw_reason_t reason;
    const char *word;     /* "bad_key": record and notes */
    int status;           /* HTTP status when the gateway answers */
    const char *type;     /* error.type in the OpenAI form */
    const char *message;  /* default sentence for the caller */
    int retry_after;      /* seconds, 0: no Retry-After */
    const char *code;     /* error.code where it is not the word, or NULL */
} aigw_reason_info_t;

/** The row of a reason; never NULL. Static data. */
const aigw_reason_info_t *aigw_reason_info(aigw_reason_t reason);

/**
 * The HTTP status that fits an error inside an event stream, by its type or
 * code: a number of 400 to 599 is the status itself; else the words that the
 * providers use. 502 for what is unknown.
 */
int aigw_reason_error_status(const char *word);

/** 1 if a status is worth another try elsewhere: 408, 409, 429, 5xx. */
int aigw_reason_status_retry(int status);

/** 1 if a failure before the first byte is. */
int aigw_reason_retry(aigw_reason_t reason);

#endif
