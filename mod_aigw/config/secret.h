/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The key of an account at a provider, fetched while the configuration is
 * read (as root).  A key never stands in the configuration itself, and no
 * message of this file holds any byte of one.
 */
#ifndef AIGW_SECRET_H
#define AIGW_SECRET_H

#include <apr_pools.h>

typedef struct {
    char *key;         /* secret, from the caller's pool: the caller
                          cleanses it; NULL for none */
    const char *from;  /* the file or the program: may be printed */
    int open_to_others; /* 1: the file can be read by other users */
} aigw_secret_t;

/**
 * @param spec  "file:PATH", "exec:COMMAND" or "none". PATH and the program
 *              are relative to ServerRoot. The first line is the key.
 * @param ptemp for what is not kept; holds no secret afterwards
 * @return NULL, or a sentence without its subject: what is wrong and what
 *         is allowed
 */
const char *aigw_secret_read(const char *spec, aigw_secret_t *out,
                             apr_pool_t *pool, apr_pool_t *ptemp);

#endif
