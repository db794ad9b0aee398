/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a stream are alike but for one string, the text.  What stands
 * before it and behind it is remembered together with what the scanner
 * reported there and how it stood afterwards; an event with the same bytes is
 * then compared, not scanned.  It changes nothing but the cost: the reports
 * are the same, in the same order.  Where the events are not alike it gives
 * up after a few of them.
 */
#ifndef AIGW_JSONMEMO_H
#define AIGW_JSONMEMO_H

#include "jsonscan.h"

#define AIGW_JSONMEMO_HEAD    320
#define AIGW_JSONMEMO_TAIL    128
#define AIGW_JSONMEMO_REPORTS 8

/* A report; its places are counted from the first byte of the head, or of
 * what stands behind the text. */
typedef struct {
    signed char field;
    unsigned char kind;
    unsigned char cut;
    unsigned char text_n;
    unsigned short at, end, text;
} aigw_jsonmemo_report_t;

typedef struct {
    unsigned char phase;      /* what is known: see jsonmemo.c */
    unsigned char misses;     /* in a row */
    unsigned char n_head;     /* reports in the head, */
    unsigned char n_tail;     /* and after them those of the tail */
    unsigned short head;      /* bytes before the text */
    unsigned short tail;      /* bytes from the text's closing quote to the
                                 end of the document; 0: not known */
    unsigned short head_text; /* bytes measured in the head, */
    unsigned short tail_text; /* and behind the text */
    aigw_jsonmemo_report_t report[AIGW_JSONMEMO_REPORTS];
    char bytes[AIGW_JSONMEMO_HEAD];
    char tail_bytes[AIGW_JSONMEMO_TAIL];
    char state[AIGW_JSONSCAN_STATE]; /* of the scanner after the head */
} aigw_jsonmemo_t;

void aigw_jsonmemo_init(aigw_jsonmemo_t *memo);

/** As aigw_jsonscan_feed(), for the first bytes after a reset. */
void aigw_jsonmemo_feed(aigw_jsonmemo_t *memo, aigw_jsonscan_t *js,
                        const char *p, apr_size_t n, aigw_jsonscan_fn *fn,
                        void *ctx);

#endif
