/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of reasons.  A caller without a right key learns nothing about
 * which keys exist: no key, an unknown one and an expired one have the same
 * status, type, code and sentence; only the record and the log tell them
 * apart.
 */
#include <stddef.h>
#include "reason.h"
#include "slice.h"

#define REQUEST "invalid_request_error"
#define SERVER "server_error"
#define LIMIT "rate_limit_error"
#define TIMEOUT "timeout_error"

#define KEY_CODE "invalid_api_key"
#define KEY_MESSAGE                                                     \
    "The API key is missing or not valid here. Send the key that this " \
    "gateway's operator gave you as 'Authorization: Bearer KEY'."

/* clang-format off */
static const aigw_reason_info_t table[AIGW_REASON_MAX] = {
    [AIGW_REASON_NONE] = {
        AIGW_REASON_NONE, "none", 200, "", "", 0, NULL},

    [AIGW_REASON_NO_KEY] = {
        AIGW_REASON_NO_KEY, "no_key", 401, REQUEST, KEY_MESSAGE, 0, KEY_CODE},
    [AIGW_REASON_BAD_KEY] = {
        AIGW_REASON_BAD_KEY, "bad_key", 401, REQUEST,
        KEY_MESSAGE, 0, KEY_CODE},
    [AIGW_REASON_KEY_EXPIRED] = {
        AIGW_REASON_KEY_EXPIRED, "key_expired", 401, REQUEST,
        KEY_MESSAGE, 0, KEY_CODE},
    [AIGW_REASON_KEY_CONFLICT] = {
        AIGW_REASON_KEY_CONFLICT, "key_conflict", 400, REQUEST,
        "The request carries two API keys that differ. Send one only, as "
        "'Authorization: Bearer KEY'.", 0, NULL},

    [AIGW_REASON_NOT_FOUND] = {
        AIGW_REASON_NOT_FOUND, "not_found", 404, REQUEST,
        "There is no such endpoint here. Check the base URL: the path must "
        "end in an endpoint that is served, such as /chat/completions.",
        0, NULL},
    [AIGW_REASON_METHOD] = {
        AIGW_REASON_METHOD, "method_not_allowed", 405, REQUEST,
        "This endpoint does not take that HTTP method; the Allow header "
        "names those that it takes.", 0, NULL},
    [AIGW_REASON_ENCODED_BODY] = {
        AIGW_REASON_ENCODED_BODY, "encoded_body", 415, REQUEST,
        "The request body is compressed. Send it without Content-Encoding.",
        0, NULL},
    [AIGW_REASON_BODY_TOO_LARGE] = {
        AIGW_REASON_BODY_TOO_LARGE, "body_too_large", 413, REQUEST,
        "The request body is larger than this gateway takes. Send less, for "
        "instance fewer or smaller images.", 0, NULL},
    [AIGW_REASON_BODY_TIMEOUT] = {
        AIGW_REASON_BODY_TIMEOUT, "body_timeout", 408, REQUEST,
        "The request body did not arrive in time. Send the request again.",
        0, NULL},
    [AIGW_REASON_BODY_ABORTED] = {
        AIGW_REASON_BODY_ABORTED, "body_aborted", 400, REQUEST,
        "The request body ended before its announced end. Send the request "
        "again.", 0, NULL},
    [AIGW_REASON_NOT_JSON] = {
        AIGW_REASON_NOT_JSON, "not_json", 400, REQUEST,
        "The request body is not one JSON object. Check it with a JSON "
        "parser.", 0, NULL},
    [AIGW_REASON_DUPLICATE_KEY] = {
        AIGW_REASON_DUPLICATE_KEY, "duplicate_key", 400, REQUEST,
        "A top-level key of the request body comes twice. Send each of "
        "model, stream and stream_options once.", 0, NULL},
    [AIGW_REASON_NO_MODEL] = {
        AIGW_REASON_NO_MODEL, "no_model", 400, REQUEST,
        "The request body names no model. Add a \"model\" string.", 0, NULL},
    [AIGW_REASON_BAD_FIELD] = {
        AIGW_REASON_BAD_FIELD, "bad_field", 400, REQUEST,
        "A field of the request body has a wrong type: model must be a "
        "string of 1 to 256 bytes, stream true or false, stream_options an "
        "object.", 0, NULL},
    [AIGW_REASON_MODEL_UNKNOWN] = {
        AIGW_REASON_MODEL_UNKNOWN, "model_not_found", 404, REQUEST,
        "That model is not served here, or not for this key. Ask the "
        "gateway's operator which models are.", 0, NULL},

    [AIGW_REASON_OVERLOADED] = {
        AIGW_REASON_OVERLOADED, "overloaded", 503, SERVER,
        "This gateway is relaying as many answers as it can. Send the "
        "request again after the time in Retry-After.", 2, NULL},
    [AIGW_REASON_UPLOADS] = {
        AIGW_REASON_UPLOADS, "too_many_uploads", 503, SERVER,
        "This gateway is reading as many request bodies as it can. Send the "
        "request again after the time in Retry-After.", 2, NULL},
    [AIGW_REASON_UPSTREAM_FULL] = {
        AIGW_REASON_UPSTREAM_FULL, "upstream_full", 503, LIMIT,
        "The provider's account is in use to its limit. Send the request "
        "again after the time in Retry-After.", 2, NULL},
    [AIGW_REASON_STOPPING] = {
        AIGW_REASON_STOPPING, "stopping", 503, SERVER,
        "The server is being restarted. Send the request again.", 1, NULL},
    [AIGW_REASON_INTERNAL] = {
        AIGW_REASON_INTERNAL, "internal", 500, SERVER,
        "The gateway failed. If it happens again, tell its operator the "
        "request id.", 0, NULL},

    [AIGW_REASON_RESOLVE] = {
        AIGW_REASON_RESOLVE, "upstream_name", 502, SERVER,
        "The provider's host name could not be resolved. Send the request "
        "again later.", 0, NULL},
    [AIGW_REASON_CONNECT] = {
        AIGW_REASON_CONNECT, "upstream_connect", 502, SERVER,
        "The provider could not be reached. Send the request again later.",
        0, NULL},
    [AIGW_REASON_CONNECT_TIMEOUT] = {
        AIGW_REASON_CONNECT_TIMEOUT, "upstream_connect_timeout", 504, TIMEOUT,
        "The provider did not take the connection in time. Send the request "
        "again later.", 0, NULL},
    [AIGW_REASON_TLS] = {
        AIGW_REASON_TLS, "upstream_tls", 502, SERVER,
        "No trusted connection to the provider could be made. Tell the "
        "gateway's operator the request id.", 0, NULL},
    [AIGW_REASON_SEND] = {
        AIGW_REASON_SEND, "upstream_send", 502, SERVER,
        "The provider closed the connection while the request was being "
        "sent. Send the request again.", 0, NULL},
    [AIGW_REASON_FIRST_TIMEOUT] = {
        AIGW_REASON_FIRST_TIMEOUT, "upstream_first_timeout", 504, TIMEOUT,
        "The provider did not begin to answer in time. Send the request "
        "again, or ask for less.", 0, NULL},
    [AIGW_REASON_IDLE_TIMEOUT] = {
        AIGW_REASON_IDLE_TIMEOUT, "upstream_idle_timeout", 504, TIMEOUT,
        "The provider fell silent in the middle of its answer. Send the "
        "request again.", 0, NULL},
    [AIGW_REASON_TOTAL_TIMEOUT] = {
        AIGW_REASON_TOTAL_TIMEOUT, "upstream_total_timeout", 504, TIMEOUT,
        "The answer took longer than this gateway allows. Ask for less, or "
        "in several requests.", 0, NULL},
    [AIGW_REASON_BAD_ANSWER] = {
        AIGW_REASON_BAD_ANSWER, "upstream_bad_answer", 502, SERVER,
        "The provider's answer was not valid HTTP. Send the request again "
        "later.", 0, NULL},
    [AIGW_REASON_TRUNCATED] = {
        AIGW_REASON_TRUNCATED, "upstream_truncated", 502, SERVER,
        "The provider's answer ended before its end. Send the request "
        "again.", 0, NULL},
    [AIGW_REASON_UPSTREAM_STATUS] = {
        AIGW_REASON_UPSTREAM_STATUS, "upstream_status", 502, SERVER,
        "The provider refused the request.", 0, NULL},
    [AIGW_REASON_UPSTREAM_ERROR] = {
        AIGW_REASON_UPSTREAM_ERROR, "upstream_error", 502, SERVER,
        "The provider reported an error inside its answer.", 0, NULL},

    [AIGW_REASON_CLIENT_GONE] = {
        AIGW_REASON_CLIENT_GONE, "client_gone", 499, REQUEST,
        "The client left before the answer was complete.", 0, NULL},
};
/* clang-format on */

const aigw_reason_info_t *aigw_reason_info(aigw_reason_t reason)
{
    if ((unsigned)reason >= AIGW_REASON_MAX) {
        return &table[AIGW_REASON_INTERNAL];
    }
    return &table[reason];
}

int aigw_reason_error_status(const char *word)
{
    static const struct {
        const char *part;
        int status;
    } words[] = {
        {"rate_limit", 429},   {"quota", 429},     {"overloaded", 503},
        {"unavailable", 503},  {"timeout", 504},   {"invalid_request", 400},
        {"context_length", 400}, {"not_found", 404}, {"content_filter", 400},
        {"RESOURCE_EXHAUSTED", 429}, {"UNAVAILABLE", 503},
        {"DEADLINE_EXCEEDED", 504},  {"INVALID_ARGUMENT", 400},
        {"NOT_FOUND", 404},    {"request_too_large", 413},
        {"moderation_blocked", 400},
    };
    apr_size_t i, n = strlen(word);
    apr_uint64_t number;

    if (n == 3 && aigw_slice_u64(aigw_slice(word, n), &number) == AIGW_OK
        && number >= 400 && number < 600) {
        return (int)number;
    }
    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strstr(word, words[i].part)) {
            return words[i].status;
        }
    }
    return 502;
}

int aigw_reason_status_retry(int status)
{
    return status == 408 || status == 409 || status == 429
           || (status >= 500 && status < 600);
}

int aigw_reason_retry(aigw_reason_t reason)
{
    switch (reason) {
    case AIGW_REASON_CONNECT:
    case AIGW_REASON_CONNECT_TIMEOUT:
    case AIGW_REASON_TLS:
    case AIGW_REASON_SEND:
    case AIGW_REASON_FIRST_TIMEOUT:
    case AIGW_REASON_IDLE_TIMEOUT:
    case AIGW_REASON_BAD_ANSWER:
    case AIGW_REASON_TRUNCATED:
        return 1;
    default:
        return 0;
    }
}
