/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The relay thread: one epoll set, one heap of deadlines, one read buffer.
 * It drives exchanges and waits for idle client connections; it never
 * blocks, and never runs what may block (logs, pool ends, names).  What has
 * to go back to a worker goes through handback.c.
 */
#ifndef AIGW_LOOP_H
#define AIGW_LOOP_H

#include "../aigw.h"

typedef struct aigw_relay_t aigw_relay_t;

/** What a connection comes to the relay for. */
enum {
    AIGW_TASK_START = 1, /* conn->x begins */
    AIGW_WAIT_REQUEST,   /* keep-alive: until the next request's first byte */
    AIGW_WAIT_READ,      /* until readable, within TimeOut */
    AIGW_WAIT_WRITE,     /* until writable, within TimeOut */
    AIGW_WAIT_LINGER,    /* read on until the client closes, at most 2 s */
    AIGW_TASK_GRAVE      /* destroy c->pool when that is safe */
};

/** What it goes back to a worker for. */
enum {
    AIGW_BACK_FINISH = 1, /* the exchange has ended */
    AIGW_BACK_PROCESS,    /* a request is there to be read */
    AIGW_BACK_IO,         /* what was waited for has come: go on in c->cs */
    AIGW_BACK_CLOSE,      /* begin the lingering close */
    AIGW_BACK_DESTROY     /* c->pool is to be destroyed */
};

/** Start the thread. @param buffer_size of one upstream read */
apr_status_t aigw_relay_create(aigw_relay_t **relay, apr_size_t buffer_size,
                               apr_pool_t *pchild);

/** Any thread: give a connection to the relay. From here on it is the
 * relay's alone. */
void aigw_relay_post(aigw_relay_t *relay, aigw_conn_t *cc, int task);

/**
 * Take a descriptor out of the epoll set, before it is closed. Closing alone
 * is not enough: a process that is just being forked (for a CGI program, say)
 * still holds the file, the set goes on reporting it, and what it would
 * report to has been freed. Any thread.
 */
void aigw_relay_forget(aigw_relay_t *relay, int fd);

/** Idle waits end now; exchanges go on. Any thread. */
void aigw_relay_drain(aigw_relay_t *relay);

/** End the thread and wait for it. Called once, before pchild goes. */
void aigw_relay_stop(aigw_relay_t *relay);

/** The driver of the relay thread. */
extern const aigw_driver_t aigw_relay_driver;

#endif
