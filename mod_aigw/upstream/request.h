/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request as the upstream gets it: one head, built from configuration,
 * constants and an allow-list of the client's fields, and the body's pieces.
 * No byte of the client's request line goes out, and no credential but the
 * upstream's own.
 */
#ifndef AIGW_REQUEST_H
#define AIGW_REQUEST_H

#include "../aigw.h"

/**
 * Build x->out_head and x->out[] from x->upstream, x->endpoint, the client's
 * headers and x->body with its edits. Worker thread.
 * @return AIGW_OK or AIGW_FAILED (no memory)
 */
aigw_rc_t aigw_request_build(aigw_exchange_t *x, const aigw_edit_t *edits,
                             int n_edits);

/** Forget head and body: no retry can come any more. */
void aigw_request_free(aigw_exchange_t *x);

/** 1 if a field name (any case) is in a pass= list. */
int aigw_request_passes(const aigw_upstream_t *up, const char *name,
                        apr_size_t n);

#endif
