/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From files to records.  Pieces of logs are read one after the other, their
 * lines are parsed by any number of threads, and the records are dealt with
 * one after the other again, in the order of the logs: who parsed what makes
 * no difference to any result.  Every thread does whichever of the three is
 * next.  Memory is that of the pieces in work.  A log that can't be read ends
 * the run, as a sum that silently lacks a file is worse than none.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "dedup.h"
#include "fastline.h"
#include "feed.h"
#include "logformat.h"
#include "logs.h"

#define BAD_SHOWN 10
#define ENTRIES 512 /* lines of a piece that are parsed at a time */
#define AHEAD 8     /* records whose place in the table of ids is fetched */
#define THREADS_MAX 64
#define SLOTS_MAX (THREADS_MAX + 2)

static const char torn_line[] =
    "the last line has no end: it is still being written, or was cut";

typedef struct {
    const char *why; /* NULL: it is a record */
    aigw_dedup_id_t id;
    aigw_record_t rec;
} entry_t;

typedef enum { SLOT_FREE = 0, SLOT_TAKEN, SLOT_PARSED } slot_state_t;

/* A piece in work. */
typedef struct {
    slot_state_t state;
    apr_uint64_t order;
    aigw_chunk_t *chunk;
    aigw_feed_at_t from;
    aigw_rc_t rc;  /* of reading it */
    apr_size_t at; /* bytes of it that are parsed */
    entry_t *entries;
    int n_entries;
    char *spare; /* for strings with escapes */
    apr_size_t spare_room;
    apr_pool_t *pool; /* cleared with each piece */
    aigw_fast_t *fast;
    aigw_logformat_t *format; /* NULL: usage records */
} slot_t;

/* Reading in progress. */
typedef struct {
    const aigw_options_t *opt;
    aigw_logs_fn fn;
    void *ctx;
    aigw_logs_t *logs;
    aigw_feed_t *feed;
    aigw_dedup_t *dedup;
    /* of the piece that is dealt with */
    const char *name;
    apr_uint64_t number; /* of the line */
    aigw_exit_t end;
    /* under the lock */
    pthread_mutex_t lock;
    pthread_cond_t change;
    slot_t slots[SLOTS_MAX];
    int n_slots;
    apr_uint64_t next_read, next_done;
    unsigned reading : 1, doing : 1, read_all : 1, stop : 1;
} work_t;

/* -- parsing ------------------------------------------------------------- */

static void parse_json(slot_t *s, char *line, apr_size_t n, char **spare,
                       entry_t *e)
{
    if (aigw_fast_read(s->fast, line, n, spare, &e->rec) != AIGW_OK
        && aigw_record_read(aigw_slice(line, n), &e->rec, s->pool, &e->why)
               == AIGW_OK) {
        e->why = NULL;
    }
}

static void parse_line(work_t *w, slot_t *s, char *line, apr_size_t n,
                       char **spare)
{
    entry_t *e = &s->entries[s->n_entries++];

    e->why = NULL;
    if (n == 0) {
        e->why = "empty line";
    }
    else if (n > AIGW_LINE_MAX) {
        e->why = "line of more than 1048576 bytes";
    }
    else if (s->format) {
        if (aigw_logformat_read(s->format, line, n, &e->rec, s->pool, &e->why)
            == AIGW_OK) {
            e->why = NULL;
        }
    }
    else {
        parse_json(s, line, n, spare, e);
    }
    if (!e->why && e->rec.id && w->dedup) {
        e->id = aigw_dedup_hash(w->dedup, e->rec.id);
    }
}

static void make_spare(slot_t *s)
{
    if (s->spare_room < s->chunk->room) {
        free(s->spare);
        s->spare_room = s->chunk->room;
        s->spare = malloc(s->spare_room + AIGW_CHUNK_SLACK);
        if (!s->spare) {
            abort(); /* as APR's pools do */
        }
    }
}

/* As many further lines of the piece as there is room for. */
static void parse_more(work_t *w, slot_t *s)
{
    aigw_chunk_t *c = s->chunk;
    char *spare = s->spare, *line, *nl;

    s->n_entries = 0;
    while (s->at < c->n && s->n_entries < ENTRIES) {
        line = c->buf + s->at;
        nl = memchr(line, '\n', c->n - s->at);
        if (!nl) {
            nl = c->buf + c->n;
        }
        parse_line(w, s, line, (apr_size_t)(nl - line), &spare);
        s->at = (apr_size_t)(nl - c->buf) + 1;
        if (s->at > c->n && (s->format || s->entries[s->n_entries - 1].why)) {
            s->entries[s->n_entries - 1].why = torn_line;
        }
    }
}

static void parse(work_t *w, slot_t *s)
{
    s->at = 0;
    s->n_entries = 0;
    if (s->rc == AIGW_OK) {
        make_spare(s);
        parse_more(w, s);
    }
}

/* -- dealing with what was parsed ---------------------------------------- */

static aigw_exit_t bad_line(work_t *w, const slot_t *s, const char *why)
{
    w->logs->bad++;
    if (w->logs->bad <= BAD_SHOWN || w->opt->strict) {
        fprintf(stderr, "%s:%" APR_UINT64_T_FMT ": %s\n", w->name, w->number,
                aigw_text_safe(s->pool, why));
    }
    else if (w->logs->bad == BAD_SHOWN + 1) {
        fputs("aigw-calc: further bad lines are counted and not named\n",
              stderr);
    }
    return w->opt->strict ? AIGW_EXIT_BAD_LINES : AIGW_EXIT_OK;
}

static aigw_exit_t one_record(work_t *w, const entry_t *e)
{
    if (e->rec.id && w->dedup && aigw_dedup_seen(w->dedup, e->id)) {
        w->logs->duplicates++;
        return AIGW_EXIT_OK;
    }
    w->logs->records++;
    if (w->fn(w->ctx, &e->rec) == AIGW_OK) {
        return AIGW_EXIT_OK;
    }
    fprintf(stderr,
            "aigw-calc: %s:%" APR_UINT64_T_FMT ": a figure does "
            "not fit: a sum or a cost is too large\n",
            w->name, w->number);
    return AIGW_EXIT_TOO_BIG;
}

static void fetch_ahead(const work_t *w, const slot_t *s, int i)
{
    const entry_t *e = &s->entries[i];

    if (w->dedup && i < s->n_entries && !e->why && e->rec.id) {
        aigw_dedup_prefetch(w->dedup, e->id);
    }
}

static aigw_exit_t do_entries(work_t *w, const slot_t *s)
{
    aigw_exit_t end = AIGW_EXIT_OK;
    int i;

    for (i = 0; i < AHEAD; i++) {
        fetch_ahead(w, s, i);
    }
    for (i = 0; i < s->n_entries && end == AIGW_EXIT_OK; i++) {
        fetch_ahead(w, s, i + AHEAD);
        w->number++;
        end = s->entries[i].why ? bad_line(w, s, s->entries[i].why)
                                : one_record(w, &s->entries[i]);
    }
    return end;
}

static aigw_exit_t do_piece(work_t *w, slot_t *s)
{
    aigw_exit_t end = AIGW_EXIT_OK;

    w->name = s->from.name;
    if (s->rc == AIGW_FAILED) {
        fprintf(stderr, "aigw-calc: %s: %s\n", w->name, s->from.why);
        return AIGW_EXIT_INPUT;
    }
    w->number = *s->from.lines;
    for (;;) {
        end = do_entries(w, s);
        if (end != AIGW_EXIT_OK || s->at >= s->chunk->n) {
            break;
        }
        parse_more(w, s);
    }
    if (end == AIGW_EXIT_OK && s->chunk->too_long) {
        w->number++;
        end = bad_line(w, s, "line of more than 1048576 bytes");
    }
    *s->from.lines = w->number;
    return end;
}

/* -- threads ------------------------------------------------------------- */

/* Each is called with the lock held and gives it back while it works. */

static void step_do(work_t *w, slot_t *s)
{
    aigw_exit_t end;

    w->doing = 1;
    pthread_mutex_unlock(&w->lock);
    end = do_piece(w, s);
    apr_pool_clear(s->pool);
    pthread_mutex_lock(&w->lock);
    w->doing = 0;
    w->next_done++;
    s->state = SLOT_FREE;
    if (end != AIGW_EXIT_OK) {
        w->end = end;
        w->stop = 1;
    }
    pthread_cond_broadcast(&w->change);
}

static void step_read(work_t *w, slot_t *s)
{
    aigw_rc_t rc;

    w->reading = 1;
    pthread_mutex_unlock(&w->lock);
    rc = aigw_feed_next(w->feed, s->chunk, &s->from);
    pthread_mutex_lock(&w->lock);
    w->reading = 0;
    w->read_all = rc != AIGW_OK;
    if (rc != AIGW_DONE) {
        s->rc = rc;
        s->state = SLOT_TAKEN;
        s->order = w->next_read++;
        pthread_cond_broadcast(&w->change);
        pthread_mutex_unlock(&w->lock);
        parse(w, s);
        pthread_mutex_lock(&w->lock);
        s->state = SLOT_PARSED;
    }
    pthread_cond_broadcast(&w->change);
}

static slot_t *find_slot(work_t *w, slot_state_t state)
{
    int i;

    for (i = 0; i < w->n_slots; i++) {
        if (w->slots[i].state == state
            && (state == SLOT_FREE || w->slots[i].order == w->next_done)) {
            return &w->slots[i];
        }
    }
    return NULL;
}

static void *work(void *data)
{
    work_t *w = data;
    slot_t *s;

    pthread_mutex_lock(&w->lock);
    while (!w->stop && !(w->read_all && w->next_done == w->next_read)) {
        if (!w->doing && (s = find_slot(w, SLOT_PARSED))) {
            step_do(w, s);
        }
        else if (!w->reading && !w->read_all
                 && (s = find_slot(w, SLOT_FREE))) {
            step_read(w, s);
        }
        else {
            pthread_cond_wait(&w->change, &w->lock);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void run_threads(work_t *w)
{
    pthread_t threads[THREADS_MAX];
    int n = 0, i;

    while (n < w->opt->threads - 1
           && pthread_create(&threads[n], NULL, work, w) == 0) {
        n++;
    }
    work(w); /* fewer threads than asked for give the same result */
    for (i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* -- all of it ----------------------------------------------------------- */

static apr_status_t free_slot(void *data)
{
    slot_t *s = data;

    free(s->entries);
    free(s->spare);
    return APR_SUCCESS;
}

static int make_slot(slot_t *s, const char *format, apr_pool_t *pool)
{
    const char *why;

    s->chunk = aigw_chunk_make(pool);
    s->fast = aigw_fast_make(pool);
    s->entries = malloc(sizeof(*s->entries) * ENTRIES);
    if (!s->entries) {
        abort(); /* as APR's pools do */
    }
    apr_pool_create(&s->pool, pool);
    apr_pool_cleanup_register(pool, s, free_slot, apr_pool_cleanup_null);
    if (!format) {
        return 1;
    }
    s->format = aigw_logformat_make(format, s->fast, pool, &why);
    if (!s->format) {
        fprintf(stderr, "aigw-calc: --log-format: %s\n",
                aigw_text_safe(pool, why));
    }
    return s->format != NULL;
}

aigw_exit_t aigw_logs_read(const aigw_options_t *opt, aigw_logs_fn fn,
                           void *ctx, aigw_logs_t *logs, apr_pool_t *pool)
{
    work_t *w = apr_pcalloc(pool, sizeof(*w));
    apr_pool_t *feed_pool, *own;
    int i;

    memset(logs, 0, sizeof(*logs));
    apr_pool_create(&feed_pool, pool);
    apr_pool_create(&own, pool);
    w->opt = opt;
    w->fn = fn;
    w->ctx = ctx;
    w->logs = logs;
    w->feed = logs->feed = aigw_feed_make(opt, feed_pool);
    if (!w->feed) {
        return AIGW_EXIT_INPUT;
    }
    w->dedup = opt->keep_duplicates ? NULL : aigw_dedup_make(own);
    w->n_slots = opt->threads > 1 ? opt->threads + 2 : 1;
    for (i = 0; i < w->n_slots; i++) {
        if (!make_slot(&w->slots[i], opt->log_format, own)) {
            return AIGW_EXIT_USAGE;
        }
    }
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->change, NULL);
    run_threads(w);
    pthread_cond_destroy(&w->change);
    pthread_mutex_destroy(&w->lock);
    logs->window_passed = w->dedup && aigw_dedup_passed(w->dedup);
    apr_pool_destroy(own);
    return w->end;
}

aigw_exit_t aigw_logs_done(aigw_logs_t *logs)
{
    return aigw_feed_save(logs->feed) ? AIGW_EXIT_OK : AIGW_EXIT_OUTPUT;
}
