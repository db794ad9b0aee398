/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An incremental JSON tokenizer that follows a static table of paths and
 * reports the values found there.  It knows depth and escapes, so that a key
 * inside a text or at another depth is never taken for the wanted one.  It
 * builds no tree, allocates nothing, does not recurse, and gives the same
 * result for every split of the bytes.
 *
 * Structure is checked as RFC 8259 has it (balance, commas, strings and their
 * escapes, numbers, literals), so that broken JSON is noticed.  UTF-8 is not
 * checked: bytes over 0x7f pass as they are.
 */
#ifndef AIGW_JSONSCAN_H
#define AIGW_JSONSCAN_H

#include <stddef.h>
#include "slice.h"

#define AIGW_JSONSCAN_DEPTH  64  /* containers inside one another */
#define AIGW_JSONSCAN_PATH   8   /* containers that a path may lead through */
#define AIGW_JSONSCAN_TEXT   256 /* longest string reported whole */
#define AIGW_JSONSCAN_NUMBER 64  /* longest number reported whole */

/** As a field: strings here are not reported, but their bytes (unescaped,
 * any length) are added to `measured`. */
#define AIGW_JSONSCAN_MEASURE (-2)

typedef enum {
    AIGW_JSON_NULL = 0,
    AIGW_JSON_FALSE,
    AIGW_JSON_TRUE,
    AIGW_JSON_NUMBER,
    AIGW_JSON_STRING,
    AIGW_JSON_OBJECT, /* its opening brace was read */
    AIGW_JSON_ARRAY,  /* its opening bracket was read */
    AIGW_JSON_CLOSE   /* the object of this path ended */
} aigw_json_kind_t;

/** A value at a path of the table. Dies with the call that reports it. */
typedef struct {
    aigw_json_kind_t kind;
    int cut;            /* text is only the beginning */
    aigw_slice_t text;  /* string: unescaped, without quotes; other scalars:
                           as they stand; else empty */
    apr_uint64_t at;    /* offset of the value's first byte in what was fed
                           since the reset */
    apr_uint64_t end;   /* offset after its last byte; OBJECT and ARRAY: of
                           the first byte inside */
} aigw_jsonscan_value_t;

typedef struct aigw_jsonscan_node_t aigw_jsonscan_node_t;

/** What may be wanted inside an object, or (one node with the key "*") of
 * each element of an array. */
typedef struct {
    apr_uint64_t keys; /* bit per key, by AIGW_JSONSCAN_BIT: most other keys
                          fail here */
    const aigw_jsonscan_node_t *nodes; /* end with a tag of 0 */
} aigw_jsonscan_table_t;

/** One step of a path. A document's root is a node whose key is not looked
 * at. */
struct aigw_jsonscan_node_t {
    const char *key;
    unsigned short tag;   /* length of key, and its first byte << 8 */
    signed char field;    /* what to report the value as; -1: do not;
                             AIGW_JSONSCAN_MEASURE: count its bytes */
    const aigw_jsonscan_table_t *members; /* of the value; NULL: no way on */
};

/* A table's rows are written once as LIST(LEAF, WITH), which expands
 * LEAF(key, field) and WITH(key, field, name of the members' table). */
#define AIGW_JSONSCAN_TAG(key)          \
    ((unsigned short)((sizeof(key) - 1) \
                      | (unsigned)(unsigned char)key[0] << 8))
#define AIGW_JSONSCAN_LEAF(key, field) \
    {key, AIGW_JSONSCAN_TAG(key), field, NULL},
#define AIGW_JSONSCAN_WITH(key, field, name)                                  \
    {key, AIGW_JSONSCAN_TAG(key), field, &name##_table},
#define AIGW_JSONSCAN_BIT(n, first) \
    ((apr_uint64_t)1 << (((n)*5 + (unsigned char)(first)) & 63))
#define AIGW_JSONSCAN_BIT1(key, field) \
    | AIGW_JSONSCAN_BIT(sizeof(key) - 1, key[0])
#define AIGW_JSONSCAN_BIT2(key, field, name) AIGW_JSONSCAN_BIT1(key, field)

/** Make name_table of LIST. */
#define AIGW_JSONSCAN_TABLE(name, LIST)                                       \
    static const aigw_jsonscan_node_t name##_nodes[] = {                      \
        LIST(AIGW_JSONSCAN_LEAF, AIGW_JSONSCAN_WITH){NULL, 0, -1, NULL}};     \
    static const aigw_jsonscan_table_t name##_table =                     \
        {0 LIST(AIGW_JSONSCAN_BIT1, AIGW_JSONSCAN_BIT2), name##_nodes}

typedef void aigw_jsonscan_fn(void *ctx, int field,
                              const aigw_jsonscan_value_t *v);

typedef struct {
    const aigw_jsonscan_node_t *root;
    const aigw_jsonscan_node_t *want; /* of the value being read, or NULL */
    const aigw_jsonscan_node_t *path[AIGW_JSONSCAN_PATH];
    apr_uint64_t base;     /* bytes fed before this feed */
    apr_uint64_t at;       /* where the value being read began */
    apr_uint64_t bad_at;   /* where the document broke or got too deep */
    apr_uint64_t objects;  /* bit per depth: 1 object, 0 array */
    unsigned char state;
    unsigned char after;   /* what a string is: key, wanted value, other */
    unsigned char depth;
    unsigned char match;   /* path[0..match-1] hold; the container being read
                              is matched if match == depth */
    unsigned char digits;  /* of \uXXXX still to come */
    unsigned char lit;     /* which literal, */
    unsigned char lit_at;  /* and how far into it */
    unsigned char cut;
    unsigned char nulls;   /* 1: null members are reported too; the user sets
                              it */
    apr_uint32_t hex;      /* of \uXXXX */
    apr_uint32_t high;     /* a high surrogate that waits for its low one */
    apr_uint64_t saved;    /* bytes that the open string's escapes have more
                              than what they stand for */
    unsigned n;            /* bytes in text */
    /* What is above this line is all, while no wanted string, number or key
     * is open. */
    char text[AIGW_JSONSCAN_TEXT + 4];
    apr_uint64_t measured; /* bytes of strings to be measured, over all
                              documents since init */
} aigw_jsonscan_t;

/** Size of that part of it. */
#define AIGW_JSONSCAN_STATE offsetof(aigw_jsonscan_t, text)

typedef enum {
    AIGW_JSONSCAN_OPEN = 0, /* not yet a whole document */
    AIGW_JSONSCAN_EMPTY,    /* white space at most */
    AIGW_JSONSCAN_WHOLE,    /* one whole JSON value */
    AIGW_JSONSCAN_BAD,      /* not JSON; see bad_at */
    AIGW_JSONSCAN_DEEP      /* nested too deep; the rest was not looked at */
} aigw_jsonscan_end_t;

/**
 * @param root what is wanted; borrowed, static. A member that is null is not
 *             reported unless js->nulls is set after this.
 */
void aigw_jsonscan_init(aigw_jsonscan_t *js, const aigw_jsonscan_node_t *root);

/** Start the next document with the same table. */
void aigw_jsonscan_reset(aigw_jsonscan_t *js);

/**
 * Read on. Nothing is kept of the bytes but at most AIGW_JSONSCAN_TEXT of a
 * wanted value. Once the document is broken or too deep the rest is read
 * over at no cost.
 * @param fn called for each value at a path of the table, in their order;
 *           a key that comes twice is reported twice
 */
void aigw_jsonscan_feed(aigw_jsonscan_t *js, const char *p, apr_size_t n,
                        aigw_jsonscan_fn *fn, void *ctx);

/** The document has ended: reports a number that nothing else ended. */
aigw_jsonscan_end_t aigw_jsonscan_finish(aigw_jsonscan_t *js,
                                         aigw_jsonscan_fn *fn, void *ctx);

/** How the document stands so far (OPEN also while it could go on). */
aigw_jsonscan_end_t aigw_jsonscan_state(const aigw_jsonscan_t *js);

/* -- for jsonmemo, which skips what it has seen before -- */

/** 1 inside a string that is no key and not reported. */
int aigw_jsonscan_in_other(const aigw_jsonscan_t *js);

/** 1 if the value that is open or comes next is to be measured. */
static inline int aigw_jsonscan_measures(const aigw_jsonscan_t *js)
{
    return js->want != NULL && js->want->field == AIGW_JSONSCAN_MEASURE;
}

/** The closing quote of the string that @a p is inside of; NULL if it is not
 * in [p, end), or if something before it needs the scanner. The escapes
 * before it, one byte saved each, are added to *saved. */
const char *aigw_jsonscan_string_end(const char *p, const char *end,
                                     apr_uint64_t *saved);

/** As if a document of @a n bytes had been fed whole. */
void aigw_jsonscan_set_whole(aigw_jsonscan_t *js, apr_uint64_t n);

/**
 * A value as a count: an integer, an integral decimal (12.0, 1.5e2), or a
 * string of digits, 0..2^53. A huge exponent costs nothing.
 * @return AIGW_OK; AIGW_DONE for null (says nothing); AIGW_MALFORMED for
 *         anything else; AIGW_TOO_BIG over 2^53
 */
aigw_rc_t aigw_jsonscan_count(const aigw_jsonscan_value_t *v,
                              apr_uint64_t *count);

#endif
