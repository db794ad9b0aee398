/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request body, read whole on the worker: it must be known before an
 * upstream is chosen.  Slow uploads must not starve the web sites: at most
 * half of a child's workers wait for bodies at a time, each within a
 * deadline that grows with what has come.
 */
#ifndef AIGW_BODY_H
#define AIGW_BODY_H

#include "aigw.h"

/** Refuse from the head what is announced too large. Before the body is
 * read, so that a client that asked "Expect: 100-continue" never sends it. */
aigw_reason_t aigw_body_check(aigw_exchange_t *x);

/** Read it into x->body. */
aigw_reason_t aigw_body_read(aigw_exchange_t *x);

/**
 * A request is refused before its body was read: read over what has already
 * come, without waiting.
 * @return 1 if that was all of it, so that the connection can go on
 */
int aigw_body_discard(aigw_exchange_t *x);

#endif
