/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The key file: who may call, by the SHA-256 of the key.  The keys
 * themselves stand nowhere: they are 256 random bits, so that a plain hash
 * gives nothing away.  Used by the module and by aigw-key; knows no httpd.
 *
 * One key a line, blanks between the words:
 *
 *     key-id tenant sha256:64-hex-digits [expires=DATE]
 *
 * Key id and tenant are 1 to 64 letters, digits and . _ - @.  DATE is
 * YYYY-MM-DD (its first moment, UTC) or RFC 3339 with a zone: from then on
 * the key is refused.  Empty lines and lines that start with '#' say
 * nothing.  No key id and no hash may occur twice.
 */
#ifndef AIGW_KEYS_H
#define AIGW_KEYS_H

#include <apr_pools.h>
#include <apr_time.h>
#include "../core/slice.h"

#define AIGW_KEY_HASH 32

typedef struct aigw_keys_t aigw_keys_t;

typedef struct {
    const char *id;
    const char *tenant;
    apr_time_t expires;    /* 0: never */
    const char *expires_text; /* as written, NULL: never */
    unsigned char hash[AIGW_KEY_HASH];
} aigw_key_t;

/**
 * Read one line that is neither empty nor a comment.
 * @param line without its newline
 * @return NULL, or a static phrase that says what is wrong and what is
 *         allowed
 */
const char *aigw_key_parse(aigw_slice_t line, aigw_key_t *key,
                           apr_pool_t *pool);

/** 1 if the line holds no key: empty, blank or a comment. */
int aigw_key_line_empty(aigw_slice_t line);

/** A date as described above. @return 1, or 0 if it is none */
int aigw_key_date(const char *text, apr_time_t *when);

/** 1 if the text can be a key id or a tenant. */
int aigw_key_word(const char *text);

/**
 * Read a whole key file from memory.
 * @param name the file's, for the messages
 * @return NULL, or a sentence that names file and line (from @a pool)
 */
const char *aigw_keys_parse(aigw_keys_t **keys, aigw_slice_t text,
                            const char *name, apr_pool_t *pool);

/**
 * Read a key file (at directive time: as root, before privileges drop). A
 * file that other users may write to is refused.
 * @return as aigw_keys_parse()
 */
const char *aigw_keys_load(aigw_keys_t **keys, const char *path,
                           apr_pool_t *pool);

/** A set that holds no key. */
aigw_keys_t *aigw_keys_empty(apr_pool_t *pool);

int aigw_keys_count(const aigw_keys_t *keys);

/** SHA-256 of a key. @return 1, or 0 if OpenSSL could not */
int aigw_key_hash(aigw_slice_t key, unsigned char hash[AIGW_KEY_HASH]);

/**
 * The row of a key; NULL if it is unknown. Expiry is the caller's question.
 * Does the same work whatever the answer is: one hash, and one comparison in
 * constant time with each row whose hash starts with the same byte.
 * @param key may be empty (no credential was sent): nothing is found then
 */
const aigw_key_t *aigw_keys_find(const aigw_keys_t *keys, aigw_slice_t key);

#endif
