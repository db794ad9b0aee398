/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First every log is read to its end.  Under --follow those that are named
 * stay open and are looked at again and again: a log that was renamed is read
 * on for a while, as workers of a graceful restart still write to it, beside
 * the new one of its name; of one that was truncated, the copy is looked for
 * and read on where we were.
 *
 * A log that an earlier run has read is found by its first bytes and read on
 * from there; one that is not among those named is looked for among the
 * rotated logs beside them.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <apr_errno.h>
#include <apr_strings.h>
#include "feed.h"
#include "position.h"
#include "rotated.h"

#define LOOK_NS 200000000L /* between two looks at a log */
#define LINGER 50          /* looks at a renamed log without anything new */

/* A log that is open. */
typedef struct tail_t {
    struct tail_t *next;
    apr_pool_t *pool;
    aigw_reader_t *reader;
    const char *path, *name;
    apr_uint64_t lines; /* who deals with the pieces counts them */
    apr_uint64_t device, inode;
    aigw_head_t head;
    int stays;   /* it is followed */
    int renamed; /* it has lost its name; looks left */
    int emptied; /* what was read of it is in its copy */
} tail_t;

struct aigw_feed_t {
    const aigw_options_t *opt;
    apr_pool_t *pool;
    apr_array_header_t *files; /* of const char *, in the order to be read */
    int at;                    /* of files */
    tail_t *now;               /* being read to its end for the first time */
    tail_t *tails;             /* followed */
    apr_array_header_t *known; /* of aigw_position_t: as the run began */
};

static volatile sig_atomic_t asked_to_stop;

static void stop_following(int sig)
{
    (void)sig;
    asked_to_stop = 1;
}

/* The second signal ends the program as if there were no handler. */
static void catch_signals(void)
{
    struct sigaction act;

    memset(&act, 0, sizeof(act));
    act.sa_handler = stop_following;
    act.sa_flags = (int)SA_RESETHAND;
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
}

/* -- which logs ---------------------------------------------------------- */

static int is_stdin(const char *path)
{
    return strcmp(path, "-") == 0;
}

static void list_files(aigw_feed_t *f)
{
    int i, j, n;

    for (i = 0; i < f->opt->n_files; i++) {
        APR_ARRAY_PUSH(f->files, const char *) = f->opt->files[i];
    }
    for (i = 0; f->opt->rotated && i < f->opt->n_files; i++) {
        n = f->files->nelts;
        if (!is_stdin(f->opt->files[i])) {
            aigw_rotated_find(f->opt->files[i], f->files, f->pool);
        }
        for (j = n; j < f->files->nelts;) {
            const char **p = (const char **)f->files->elts;
            int k = 0;

            while (k < n && strcmp(p[k], p[j]) != 0) {
                k++;
            }
            if (k < n) { /* it was named, too */
                p[j] = p[--f->files->nelts];
            }
            else {
                j++;
            }
        }
    }
    aigw_rotated_sort(f->files, f->pool);
}

static int say(aigw_feed_t *f, const char *path, const char *what)
{
    fprintf(stderr, "aigw-calc: %s: %s\n", aigw_text_safe(f->pool, path),
            what);
    return 0;
}

/* What is known of a log whose name is now another log's. */
static const char *find_moved(aigw_feed_t *f, const aigw_position_t *p)
{
    apr_array_header_t *all = apr_array_make(f->pool, 8, sizeof(const char *));
    char head[AIGW_HEAD_SIZE];
    apr_size_t n;
    int i;

    aigw_rotated_find(p->path, all, f->pool);
    for (i = 0; i < all->nelts; i++) {
        const char *path = APR_ARRAY_IDX(all, i, const char *);

        n = aigw_head_read(path, head, f->pool);
        if (n >= p->head.n
            && aigw_head_of(head, (apr_size_t)p->head.n).hash
                   == p->head.hash) {
            return path;
        }
    }
    return NULL;
}

static int is_named(const aigw_feed_t *f, const char *path)
{
    int i;

    for (i = 0; i < f->files->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(f->files, i, const char *), path) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Logs that were read before and are not named now, at the front of the
 * list: what was added before they were moved. */
static void find_rests(aigw_feed_t *f)
{
    aigw_position_t *p = (aigw_position_t *)f->known->elts, *at;
    apr_array_header_t *all = apr_array_make(f->pool, 8, sizeof(const char *));
    char head[AIGW_HEAD_SIZE];
    const char *path;
    int i;

    for (i = 0; i < f->files->nelts; i++) {
        path = APR_ARRAY_IDX(f->files, i, const char *);
        at = aigw_position_find(f->known, head,
                                aigw_head_read(path, head, f->pool));
        if (at) {
            at->found = 1;
        }
    }
    for (i = 0; i < f->known->nelts; i++) {
        if (p[i].found || !is_named(f, p[i].path)) {
            continue;
        }
        path = find_moved(f, &p[i]);
        if (path) {
            APR_ARRAY_PUSH(all, const char *) = path;
        }
        else {
            say(f, p[i].path,
                "the log that was read before is gone: what was added to it "
                "since is not counted");
            p[i].head.n = 0;
        }
    }
    apr_array_cat(all, f->files);
    f->files = all;
}

aigw_feed_t *aigw_feed_make(const aigw_options_t *opt, apr_pool_t *pool)
{
    aigw_feed_t *f = apr_pcalloc(pool, sizeof(*f));
    const char *why;

    f->opt = opt;
    f->pool = pool;
    f->files = apr_array_make(pool, 8, sizeof(const char *));
    f->known = apr_array_make(pool, 8, sizeof(aigw_position_t));
    list_files(f);
    if (opt->state) {
        why = aigw_position_load(opt->state, f->known, pool);
        if (why) {
            say(f, opt->state, why);
            return NULL;
        }
        find_rests(f);
    }
    if (opt->follow) {
        catch_signals();
    }
    return f;
}

/* -- open logs ----------------------------------------------------------- */

static aigw_rc_t fail(aigw_feed_t *f, aigw_feed_at_t *at, const char *path,
                      int error)
{
    char said[120];

    at->name = aigw_text_safe(f->pool, path);
    at->why = apr_pstrdup(f->pool, apr_strerror(error, said, sizeof(said)));
    return AIGW_FAILED;
}

static void close_tail(tail_t *t)
{
    apr_pool_t *pool = t->pool;

    t->reader = NULL;
    t->pool = NULL;
    apr_pool_destroy(pool);
}

static aigw_rc_t open_tail(aigw_feed_t *f, const char *path, tail_t **tail,
                           aigw_feed_at_t *at)
{
    tail_t *t = apr_pcalloc(f->pool, sizeof(*t));
    struct stat st;
    apr_status_t rv;

    apr_pool_create(&t->pool, f->pool);
    t->path = path;
    t->name = is_stdin(path) ? "(stdin)" : aigw_text_safe(f->pool, path);
    rv = aigw_reader_open(&t->reader, path, t->pool);
    if (rv != APR_SUCCESS) {
        apr_pool_destroy(t->pool);
        return fail(f, at, path, rv);
    }
    if (fstat(aigw_reader_fd(t->reader), &st) == 0) {
        t->device = (apr_uint64_t)st.st_dev;
        t->inode = (apr_uint64_t)st.st_ino;
        t->stays = f->opt->follow && S_ISREG(st.st_mode);
    }
    if (t->stays || f->opt->state) {
        aigw_reader_keep_torn(t->reader, 0);
    }
    *tail = t;
    return AIGW_OK;
}

/* As far as an earlier run has come. A log that is shorter than that is
 * another one, or was truncated: it is read from its start. */
static aigw_rc_t skip_known(aigw_feed_t *f, tail_t **tail, aigw_feed_at_t *at)
{
    char head[AIGW_HEAD_SIZE];
    aigw_position_t *p;
    tail_t *t = *tail;
    aigw_rc_t rc;

    p = aigw_position_find(f->known, head,
                           aigw_head_read(t->path, head, f->pool));
    if (!p) {
        return AIGW_OK;
    }
    p->found = 1;
    rc = aigw_reader_skip(t->reader, p->offset);
    if (rc != AIGW_DONE) {
        at->name = t->name;
        at->why = rc == AIGW_OK ? NULL : aigw_reader_why(t->reader);
        return rc;
    }
    close_tail(t);
    return open_tail(f, t->path, tail, at);
}

static aigw_rc_t open_next(aigw_feed_t *f, aigw_feed_at_t *at)
{
    const char *path = APR_ARRAY_IDX(f->files, f->at++, const char *);
    aigw_rc_t rc = open_tail(f, path, &f->now, at);

    if (rc == AIGW_OK && f->opt->state && !is_stdin(path)) {
        rc = skip_known(f, &f->now, at);
    }
    return rc;
}

/* -- following ----------------------------------------------------------- */

/* The first bytes that are there, as many as have been read. */
static apr_size_t look_at_head(const tail_t *t, char *buf)
{
    apr_uint64_t offset = aigw_reader_offset(t->reader);
    ssize_t n =
        pread(aigw_reader_fd(t->reader), buf,
              offset < AIGW_HEAD_SIZE ? (size_t)offset : AIGW_HEAD_SIZE, 0);

    return n < 0 ? 0 : (apr_size_t)n;
}

/* 1 if the log was emptied since; otherwise more of its head is known. */
static int was_truncated(tail_t *t)
{
    char head[AIGW_HEAD_SIZE];
    struct stat st;
    apr_size_t n;

    if (fstat(aigw_reader_fd(t->reader), &st) != 0
        || (apr_uint64_t)st.st_size
               < aigw_reader_offset(t->reader) + aigw_reader_left(t->reader)) {
        return 1;
    }
    n = look_at_head(t, head);
    if (t->head.n
        && (n < t->head.n
            || aigw_head_of(head, (apr_size_t)t->head.n).hash
                   != t->head.hash)) {
        return 1;
    }
    t->head = aigw_head_of(head, n);
    return 0;
}

static void add_tail(aigw_feed_t *f, tail_t *t)
{
    tail_t **last = &f->tails;

    while (*last) {
        last = &(*last)->next;
    }
    *last = t;
}

/* The copy of a log that was emptied, read on where we were. */
static void follow_copy(aigw_feed_t *f, const tail_t *t, apr_uint64_t offset)
{
    aigw_position_t p;
    const char *path;
    aigw_feed_at_t at;
    tail_t *copy;

    memset(&p, 0, sizeof(p));
    p.path = t->path;
    p.head = t->head;
    path = p.head.n ? find_moved(f, &p) : NULL;
    if (!path || open_tail(f, path, &copy, &at) != AIGW_OK) {
        return;
    }
    if (aigw_reader_skip(copy->reader, offset) != AIGW_OK) {
        close_tail(copy);
        return;
    }
    copy->renamed = LINGER;
    add_tail(f, copy);
}

static void open_again(aigw_feed_t *f, const char *path)
{
    aigw_feed_at_t at;
    tail_t *t;

    if (open_tail(f, path, &t, &at) == AIGW_OK) {
        t->stays = 1;
        add_tail(f, t);
    }
}

/* A log at its end: was it moved? 1 if it is to be let go of. */
static int look_again(aigw_feed_t *f, tail_t *t)
{
    struct stat st;

    if (t->renamed) {
        return --t->renamed == 0;
    }
    if (stat(t->path, &st) == 0
        && ((apr_uint64_t)st.st_ino != t->inode
            || (apr_uint64_t)st.st_dev != t->device)) {
        t->renamed = LINGER;
        open_again(f, t->path);
    }
    return 0;
}

static void keep_position(aigw_feed_t *f, tail_t *t);

/* A look at one log. What was read of a log that was emptied meanwhile may be
 * of either state of it, and is read again from where it is whole. AIGW_AGAIN:
 * it is to be let go of. */
static aigw_rc_t look(aigw_feed_t *f, tail_t *t, aigw_chunk_t *chunk)
{
    apr_uint64_t offset = aigw_reader_offset(t->reader);
    aigw_rc_t rc = aigw_reader_next(t->reader, chunk);

    if (was_truncated(t)) {
        follow_copy(f, t, offset);
        if (!t->renamed) {
            open_again(f, t->path);
        }
        t->emptied = 1;
        return AIGW_AGAIN;
    }
    if (rc == AIGW_DONE) {
        return look_again(f, t) ? AIGW_AGAIN : AIGW_DONE;
    }
    t->renamed = t->renamed ? LINGER : 0;
    return rc;
}

/* One round over what is followed. AIGW_DONE: nothing new. */
static aigw_rc_t next_followed(aigw_feed_t *f, aigw_chunk_t *chunk,
                               aigw_feed_at_t *at)
{
    tail_t **link = &f->tails, *t;
    aigw_rc_t rc;

    while ((t = *link)) {
        rc = look(f, t, chunk);
        if (rc == AIGW_AGAIN) {
            *link = t->next;
            keep_position(f, t);
            close_tail(t);
            continue;
        }
        if (rc != AIGW_DONE) {
            at->name = t->name;
            at->lines = &t->lines;
            at->why = rc == AIGW_FAILED ? aigw_reader_why(t->reader) : NULL;
            return rc;
        }
        link = &t->next;
    }
    return AIGW_DONE;
}

static aigw_rc_t follow(aigw_feed_t *f, aigw_chunk_t *chunk,
                        aigw_feed_at_t *at)
{
    struct timespec wait = {0, LOOK_NS};
    aigw_rc_t rc;
    int last = 0;

    while (f->tails) {
        rc = next_followed(f, chunk, at);
        if (rc != AIGW_DONE) {
            return rc;
        }
        if (last) {
            break;
        }
        last = asked_to_stop; /* one more look: nothing is left behind */
        if (!last) {
            nanosleep(&wait, NULL);
        }
    }
    return AIGW_DONE;
}

/* -- pieces -------------------------------------------------------------- */

aigw_rc_t aigw_feed_next(aigw_feed_t *f, aigw_chunk_t *chunk,
                         aigw_feed_at_t *at)
{
    aigw_rc_t rc;

    for (;;) {
        if (!f->now) {
            if (f->at == f->files->nelts) {
                return follow(f, chunk, at);
            }
            if (open_next(f, at) != AIGW_OK) {
                return AIGW_FAILED;
            }
        }
        rc = aigw_reader_next(f->now->reader, chunk);
        at->name = f->now->name;
        at->lines = &f->now->lines;
        at->why = rc == AIGW_FAILED ? aigw_reader_why(f->now->reader) : NULL;
        if (rc != AIGW_DONE) {
            return rc;
        }
        if (f->now->stays && !aigw_reader_is_packed(f->now->reader)) {
            add_tail(f, f->now);
        }
        else {
            keep_position(f, f->now);
            close_tail(f->now);
        }
        f->now = NULL;
    }
}

/* -- the state ----------------------------------------------------------- */

static void keep_position(aigw_feed_t *f, tail_t *t)
{
    char head[AIGW_HEAD_SIZE];
    aigw_position_t p, *old;
    apr_size_t n;

    if (!f->opt->state || is_stdin(t->path) || t->emptied
        || aigw_reader_offset(t->reader) == 0) {
        return;
    }
    n = aigw_reader_is_packed(t->reader)
            ? aigw_head_read(t->path, head, f->pool)
            : look_at_head(t, head);
    if (t->head.n) { /* the file may have been emptied since */
        p.head = t->head;
    }
    else {
        p.head = aigw_head_of(head, n);
    }
    if (aigw_reader_left(t->reader)) {
        fprintf(stderr,
                "aigw-calc: %s: the last line has no end yet: it is left "
                "for the next run\n",
                t->name);
    }
    p.offset = aigw_reader_offset(t->reader);
    p.device = t->device;
    p.inode = t->inode;
    p.path = apr_pstrdup(f->pool, t->path);
    p.found = 1;
    old = t->head.n ? NULL : aigw_position_find(f->known, head, n);
    if (old) { /* the same log, further on */
        old->head.n = 0;
    }
    APR_ARRAY_PUSH(f->known, aigw_position_t) = p;
}

int aigw_feed_save(aigw_feed_t *f)
{
    const char *why;
    tail_t *t;

    if (!f->opt->state) {
        return 1;
    }
    for (t = f->tails; t; t = t->next) {
        keep_position(f, t);
    }
    why = aigw_position_save(f->opt->state, f->known, f->pool);
    return why ? say(f, f->opt->state, why) : 1;
}
