/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is calling: a key from the request's head -> key id and tenant.
 * It reads no body, opens no file (keys were read at start) and answers
 * unknown, expired and missing in the same time class.
 */
#ifndef AIGW_IDENTIFY_H
#define AIGW_IDENTIFY_H

#include <httpd.h>
#include "../core/reason.h"
#include "keys.h"

typedef struct {
    const char *key_id;  /* "" when the Location has AIGWKeyFile none */
    const char *tenant;  /* "" likewise; pconf. Both also tell whose key
                            it was that had expired. */
} aigw_identity_t;

/**
 * Find the caller by Authorization: Bearer, x-api-key, api-key or
 * x-goog-api-key, or ?key= .  All that are present must be the same key.
 * Also takes every credential out of r->headers_in, and `key=` out of
 * r->args, r->unparsed_uri and r->the_request (of requests that were
 * redirected here, too), and notes and environment variables that hold a
 * copy, so that nothing later (logs, other modules, the upstream) sees it.
 * @param keys NULL: AIGWKeyFile none, everybody may call
 * @param now  r->request_time
 * @return AIGW_REASON_NONE or why not
 */
aigw_reason_t aigw_identify(request_rec *r, const aigw_keys_t *keys,
                            apr_time_t now, aigw_identity_t *who);

#endif
