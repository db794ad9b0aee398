/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door through which jansson comes in: a configuration file of JSON,
 * read whole, strict, and with the line of whatever is wrong in it.  Not for
 * requests and answers: those are scanned and never built into a tree.
 */
#ifndef AIGW_JSON_H
#define AIGW_JSON_H

#include <apr_pools.h>
#include <jansson.h>
#include "slice.h"

/** A file that was read. Everything lives as long as its pool. */
typedef struct {
    const char *path;
    aigw_slice_t text; /* the file's bytes: valid JSON, an object */
    json_t *root;      /* released by a cleanup of the pool */
} aigw_json_t;

/**
 * Read a file that must hold one JSON object, no key twice in an object, at
 * most @a max bytes. Only regular files are opened: a FIFO would stop the
 * server's start.
 * @param err on failure a sentence "FILE:LINE:COLUMN: ..." or "FILE: ...",
 *            from @a pool
 * @return APR_SUCCESS; APR_EINVAL for bad content; what the system said
 */
apr_status_t aigw_json_load(aigw_json_t *doc, const char *path, apr_size_t max,
                            apr_pool_t *pool, const char **err);

/**
 * The same from bytes in memory.
 * @param path what to call them in an error
 * @param text lives as long as @a doc, and a NUL stands behind it
 */
apr_status_t aigw_json_parse(aigw_json_t *doc, const char *path,
                             aigw_slice_t text, apr_pool_t *pool,
                             const char **err);

/**
 * The line (from 1) on which a value starts.
 * @param place where it is, as in an error text: "prices[3].per_mtok.input".
 *              Keys that hold '.', '[' or escapes are not found.
 * @return the line of the deepest part of @a place that exists
 */
int aigw_json_line(const aigw_json_t *doc, const char *place);

/**
 * Text of a file made fit for a message: quoted, at most about 80 bytes of
 * it, anything but printable ASCII as '?'.
 */
const char *aigw_json_quote(apr_pool_t *pool, const char *text);

/** A value of any kind for a message: "the number 2.5", "a list", ... */
const char *aigw_json_say(apr_pool_t *pool, const json_t *value);

#endif
