/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's side: brigades down r->output_filters, and the connection
 * filter that sits just above httpd's core filter.  While armed, that filter
 * writes in-memory buckets to the socket itself, without blocking, and
 * swallows FLUSH, so that nothing on the relay thread can wait for a client;
 * what the socket does not take goes to the core filter, which keeps it.
 * It decides nothing about answers.
 */
#ifndef AIGW_DOWNSTREAM_H
#define AIGW_DOWNSTREAM_H

#include "../aigw.h"

/** Register the filter (hooks) and find mod_logio's counter (post_config). */
void aigw_downstream_register(void);
void aigw_downstream_post_config(void);

/** pre_connection: put the filter in its place, unarmed. */
void aigw_downstream_attach(aigw_conn_t *cc);

/** The meter's sink: body bytes on their way to the client. */
extern const aigw_meter_sink_t aigw_downstream_sink;

/** The status for the client, one that httpd does not know (529) too. */
void aigw_downstream_status(request_rec *r, int status);

/** Status and header fields for the client, from the answer's head. */
void aigw_downstream_head(aigw_exchange_t *x, const aigw_http1_head_t *head);

/** The answer failed before a byte of it went to the client: nothing of its
 * head or body may show in the error that is sent instead. */
void aigw_downstream_forget(aigw_exchange_t *x);

/**
 * Hand down what was collected, and let it leave now.
 * @param end 1: the answer ends here, rightly; -1: it ends here, cut: the
 *            client must see a truncation; 0: more comes
 * @return AIGW_OK (x->blocked says if the client lags) or AIGW_FAILED: the
 *         client is gone
 */
aigw_rc_t aigw_downstream_push(aigw_exchange_t *x, int end);

/** The client's socket takes bytes again. As aigw_downstream_push(). */
aigw_rc_t aigw_downstream_resume(aigw_exchange_t *x);

/** 1 if a filter of the connection above ours keeps small pieces until it
 * sees FLUSH: mod_ssl's. mod_reqtimeout's only looks on. */
int aigw_downstream_keeps(const aigw_exchange_t *x);

/** Name of the first content filter that may not run on the relay thread,
 * NULL if there is none: see the list of harmless ones in downstream.c. */
const char *aigw_downstream_foreign_filter(const request_rec *r);

#endif
