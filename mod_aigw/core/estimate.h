/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts where the provider stated none: tokens from bytes of text, by a
 * factor of the dialect.  docs/metering.md tells the rule and how far off it
 * may be.  An estimate never stands beside a reported number: where one is
 * known, nothing is estimated.
 */
#ifndef AIGW_ESTIMATE_H
#define AIGW_ESTIMATE_H

#include "dialect.h"
#include "usage.h"

/** Tokens of @a bytes of UTF-8 text in this dialect, rounded up. */
apr_uint64_t aigw_estimate_tokens(const aigw_dialect_t *d, apr_uint64_t bytes);

/**
 * Fill in counts for an answer of which none is known: input_uncached of the
 * request's text, output of the answer's; the source becomes ESTIMATED.
 * Does nothing if a count of tokens is known, or if there was no text at all.
 * Whether an estimate is wanted is the caller's to decide.
 * @param asked  bytes of text in the request (aigw_reqbody_t's text_bytes)
 * @param said   bytes of text in the answer (aigw_meter_seen_t's text_bytes)
 * @return 1 if counts were filled in
 */
int aigw_estimate(const aigw_dialect_t *d, apr_uint64_t asked,
                  apr_uint64_t said, aigw_usage_t *u);

#endif
