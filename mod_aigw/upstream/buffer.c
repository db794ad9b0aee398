/* SPDX-License-Identifier: Apache-2.0 */
/* See buffer.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <apr_thread_mutex.h>

#include "buffer.h"

#define CLASS_MIN 10                 /* 1 KiB */
#define CLASSES   20                 /* up to 512 MiB */
#define LARGE_MIN (64 * 1024)        /* less is not worth pages of its own */
#define KEEP_MAX  (4 * 1024 * 1024)  /* bytes that wait for a next use */

typedef struct spare_t spare_t;
struct spare_t {
    spare_t *next;
};

static struct {
    apr_thread_mutex_t *mutex;
    apr_size_t max;          /* a larger one is not kept */
    spare_t *spare[CLASSES];
    apr_size_t kept;
    apr_uint64_t in_use;     /* atomic */
} pool;

apr_status_t aigw_buffer_child_init(apr_pool_t *pchild, apr_size_t max)
{
    memset(&pool, 0, sizeof(pool));
    pool.max = max;
    return apr_thread_mutex_create(&pool.mutex, APR_THREAD_MUTEX_DEFAULT,
                                   pchild);
}

static int class_of(apr_size_t size)
{
    int c = 0;

    while (c < CLASSES - 1 && ((apr_size_t)1 << (c + CLASS_MIN)) < size) {
        c++;
    }
    return c;
}

/* What is not kept comes from the system and goes back to it as pages: free()
 * would keep it, since glibc raises its own threshold with every large block
 * that it gets back. */
static int is_large(apr_size_t size)
{
    return size > pool.max && size >= LARGE_MIN;
}

static char *map(apr_size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

static char *take(int c, apr_size_t size)
{
    spare_t *s;

    if (is_large(size)) {
        return map(size);
    }
    apr_thread_mutex_lock(pool.mutex);
    s = pool.spare[c];
    if (s) {
        pool.spare[c] = s->next;
        pool.kept -= size;
    }
    apr_thread_mutex_unlock(pool.mutex);
    return s ? (char *)s : malloc(size);
}

static void put(char *p, apr_size_t size)
{
    int keep;

    if (is_large(size)) {
        munmap(p, size);
        return;
    }
    apr_thread_mutex_lock(pool.mutex);
    keep = size <= pool.max && pool.kept + size <= KEEP_MAX;
    if (keep) {
        spare_t *s = (spare_t *)p;
        int c = class_of(size);

        s->next = pool.spare[c];
        pool.spare[c] = s;
        pool.kept += size;
    }
    apr_thread_mutex_unlock(pool.mutex);
    if (!keep) {
        free(p);
    }
}

static void count(apr_int64_t n)
{
    __atomic_add_fetch(&pool.in_use, (apr_uint64_t)n, __ATOMIC_RELAXED);
}

void aigw_buffer_free(aigw_buffer_t *b)
{
    if (b->p) {
        count(-(apr_int64_t)b->room);
        put(b->p, b->room);
        b->p = NULL;
    }
    b->n = b->room = 0;
}

void aigw_buffer_wipe(aigw_buffer_t *b)
{
    if (b->p) {
        explicit_bzero(b->p, b->n);
    }
    aigw_buffer_free(b);
}

aigw_rc_t aigw_buffer_room(aigw_buffer_t *b, apr_size_t more)
{
    aigw_buffer_t grown = { NULL, b->n, 0 };
    int c;

    if (b->n + more <= b->room) {
        return AIGW_OK;
    }
    c = class_of(b->n + more);
    grown.room = (apr_size_t)1 << (c + CLASS_MIN);
    if (grown.room < b->n + more) {
        return AIGW_FAILED;
    }
    grown.p = take(c, grown.room);
    if (grown.p == NULL) {
        return AIGW_FAILED;
    }
    count((apr_int64_t)grown.room);
    if (b->n) {
        memcpy(grown.p, b->p, b->n);
    }
    aigw_buffer_wipe(b);
    *b = grown;
    return AIGW_OK;
}

aigw_rc_t aigw_buffer_add(aigw_buffer_t *b, const char *p, apr_size_t n)
{
    aigw_rc_t rc = aigw_buffer_room(b, n);

    if (rc == AIGW_OK) {
        memcpy(b->p + b->n, p, n);
        b->n += n;
    }
    return rc;
}

apr_uint64_t aigw_buffer_in_use(void)
{
    return __atomic_load_n(&pool.in_use, __ATOMIC_RELAXED);
}
