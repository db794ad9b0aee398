/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two generations of an open hash table.  New ids go into the young one; when
 * it is full, the old one is emptied and takes its place.  The first grows
 * from small, so that a short log takes little memory.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include "dedup.h"
#include "mix.h"

#define FIRST_SLOTS 8192
#define MOST_SLOTS (2 * 1024 * 1024) /* of 16 bytes, twice */
#define HUGE_PAGE (2 * 1024 * 1024)

typedef struct {
    aigw_dedup_id_t *slots; /* both words 0: free */
    apr_size_t mask, n;
} generation_t;

struct aigw_dedup_t {
    apr_uint64_t seed[2];
    generation_t young, old; /* old: no slots until it is needed */
    int passed;
};

/* Pages of zeros, large ones if the system has them to give. */
static aigw_dedup_id_t *make_slots(apr_size_t n)
{
    void *p = mmap(NULL, n * sizeof(aigw_dedup_id_t), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        abort(); /* as APR's pools do */
    }
#ifdef MADV_HUGEPAGE
    if (n * sizeof(aigw_dedup_id_t) >= HUGE_PAGE) {
        madvise(p, n * sizeof(aigw_dedup_id_t), MADV_HUGEPAGE);
    }
#endif
    return p;
}

static void free_slots(generation_t *g)
{
    if (g->slots) {
        munmap(g->slots, (g->mask + 1) * sizeof(*g->slots));
    }
}

static apr_status_t free_all(void *data)
{
    aigw_dedup_t *d = data;

    free_slots(&d->young);
    free_slots(&d->old);
    return APR_SUCCESS;
}

aigw_dedup_t *aigw_dedup_make(apr_pool_t *pool)
{
    aigw_dedup_t *d = apr_pcalloc(pool, sizeof(*d));

    if (getrandom(d->seed, sizeof(d->seed), GRND_NONBLOCK)
        != (ssize_t)sizeof(d->seed)) {
        d->seed[0] = (apr_uint64_t)time(NULL);
        d->seed[1] = (apr_uint64_t)getpid();
    }
    d->young.slots = make_slots(FIRST_SLOTS);
    d->young.mask = FIRST_SLOTS - 1;
    apr_pool_cleanup_register(pool, d, free_all, apr_pool_cleanup_null);
    return d;
}

aigw_dedup_id_t aigw_dedup_hash(const aigw_dedup_t *d, const char *id)
{
    apr_size_t n = strlen(id);
    aigw_dedup_id_t out;

    out.a = aigw_mix_text(id, n, d->seed[0]);
    out.b = aigw_mix_text(id, n, d->seed[1]) | 1; /* never a free slot */
    return out;
}

static aigw_dedup_id_t *find(const generation_t *g, aigw_dedup_id_t id)
{
    apr_size_t at = id.a & g->mask;

    while (g->slots[at].b
           && (g->slots[at].a != id.a || g->slots[at].b != id.b)) {
        at = (at + 1) & g->mask;
    }
    return &g->slots[at];
}

void aigw_dedup_prefetch(const aigw_dedup_t *d, aigw_dedup_id_t id)
{
    __builtin_prefetch(&d->young.slots[id.a & d->young.mask], 1);
    if (d->old.slots) {
        __builtin_prefetch(&d->old.slots[id.a & d->old.mask], 0);
    }
}

static void grow(generation_t *g)
{
    generation_t more;
    apr_size_t i;

    more.mask = g->mask * 4 + 3;
    more.n = g->n;
    more.slots = make_slots(more.mask + 1);
    for (i = 0; i <= g->mask; i++) {
        if (g->slots[i].b) {
            *find(&more, g->slots[i]) = g->slots[i];
        }
    }
    free_slots(g);
    *g = more;
}

static void next_generation(aigw_dedup_t *d)
{
    generation_t g = d->old;

    d->passed |= g.slots != NULL;
    free_slots(&g);
    d->old = d->young;
    d->young.n = 0;
    d->young.slots = make_slots(d->young.mask + 1);
}

static void make_room(aigw_dedup_t *d)
{
    if (d->young.n * 4 < (d->young.mask + 1) * 3) {
        return;
    }
    if (d->young.mask + 1 < MOST_SLOTS) {
        grow(&d->young);
    }
    else {
        next_generation(d);
    }
}

int aigw_dedup_seen(aigw_dedup_t *d, aigw_dedup_id_t id)
{
    aigw_dedup_id_t *slot = find(&d->young, id);

    if (slot->b || (d->old.slots && find(&d->old, id)->b)) {
        return 1;
    }
    *slot = id;
    d->young.n++;
    make_room(d);
    return 0;
}

int aigw_dedup_passed(const aigw_dedup_t *d)
{
    return d->passed;
}
