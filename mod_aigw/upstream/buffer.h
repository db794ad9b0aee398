/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one allocator of what exchanges hold: request bodies and heads, split
 * answer heads, events whose fate is open.  Buffers come in powers of two and
 * are kept for the next request when they come back, up to AIGWBufferMax
 * each and KEEP_MAX in all; larger ones are given back to the system.  It
 * counts what is in use: AIGWMemoryLimit is held against that.
 *
 * Any thread.  A buffer costs a mutex that is hardly ever contended, and in
 * steady state no malloc.
 */
#ifndef AIGW_BUFFER_H
#define AIGW_BUFFER_H

#include <apr_pools.h>
#include "../core/slice.h"

typedef struct {
    char *p;         /* NULL: there is none */
    apr_size_t n;    /* bytes in use */
    apr_size_t room;
} aigw_buffer_t;

/** child_init. @param max AIGWBufferMax in bytes */
apr_status_t aigw_buffer_child_init(apr_pool_t *pchild, apr_size_t max);

/**
 * Make sure that @a more bytes fit behind b->n; what is there stays. Before a
 * smaller piece of memory goes, it is wiped: it may hold a key.
 * @return AIGW_OK or AIGW_FAILED (no memory; the buffer is as it was)
 */
aigw_rc_t aigw_buffer_room(aigw_buffer_t *b, apr_size_t more);

/** Copy @a n bytes to the end. As aigw_buffer_room(). */
aigw_rc_t aigw_buffer_add(aigw_buffer_t *b, const char *p, apr_size_t n);

/** Give the memory back; *b is empty then. Does nothing when it is. */
void aigw_buffer_free(aigw_buffer_t *b);

/** The same for one that held a secret. */
void aigw_buffer_wipe(aigw_buffer_t *b);

/** Bytes of all buffers that are in use in this child. */
apr_uint64_t aigw_buffer_in_use(void);

#endif
