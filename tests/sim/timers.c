/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heap of timers.h.  Invariant: at[i]->pos == i, and no timer is due
 * before its parent at[i / 2].
 */
#include "timers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(sim_timers_t *h, size_t i, sim_timer_t *t)
{
    h->at[i] = t;
    t->pos = i;
}

static void sift_up(sim_timers_t *h, size_t i, sim_timer_t *t)
{
    while (i > 1 && h->at[i / 2]->due > t->due) {
        put(h, i, h->at[i / 2]);
        i /= 2;
    }
    put(h, i, t);
}

static void sift_down(sim_timers_t *h, size_t i, sim_timer_t *t)
{
    size_t kid;

    while ((kid = 2 * i) <= h->n) {
        if (kid < h->n && h->at[kid + 1]->due < h->at[kid]->due) {
            kid++;
        }
        if (h->at[kid]->due >= t->due) {
            break;
        }
        put(h, i, h->at[kid]);
        i = kid;
    }
    put(h, i, t);
}

static void grow(sim_timers_t *h)
{
    h->cap = h->cap ? h->cap * 2 : 64;
    h->at = realloc(h->at, h->cap * sizeof(*h->at));
    if (!h->at) {
        fputs("aigw-sim: out of memory\n", stderr);
        abort();
    }
}

void sim_timers_set(sim_timers_t *h, sim_timer_t *t, uint64_t due)
{
    uint64_t old = t->due;

    t->due = due;
    if (!t->pos) {
        if (h->n + 1 >= h->cap) {
            grow(h);
        }
        sift_up(h, ++h->n, t);
    }
    else if (due < old) {
        sift_up(h, t->pos, t);
    }
    else {
        sift_down(h, t->pos, t);
    }
}

void sim_timers_clear(sim_timers_t *h, sim_timer_t *t)
{
    size_t i = t->pos;
    sim_timer_t *last;

    if (!i) {
        return;
    }
    t->pos = 0;
    last = h->at[h->n--];
    if (last == t) {
        return;
    }
    if (i > 1 && h->at[i / 2]->due > last->due) {
        sift_up(h, i, last);
    }
    else {
        sift_down(h, i, last);
    }
}

sim_timer_t *sim_timers_first(const sim_timers_t *h)
{
    return h->n ? h->at[1] : NULL;
}

void sim_timers_free(sim_timers_t *h)
{
    free(h->at);
    memset(h, 0, sizeof(*h));
}
