/* SPDX-License-Identifier: MIT
 *
 * Why: what MMT's client (mmt.c), its server (mmt_server.c) and the designs that share the library between both
 * (mmt_shared.c) have in common.  "MMT x" in comments is a section of Tiwari et al. 2010.
 *
 * One server serves all clients; every thread of the program is a client with a struct of its own, which the paper leaves
 * for later ("outside the scope").  Single-writer rule (MMT III-E2, III-E3): each field below has one writer, named by its
 * group; a bucket's writer changes hands with `given` and `ordered`, a queue's with `handed` and `drained`.
 */
#ifndef ENGINES_MMT_H
#define ENGINES_MMT_H

#include "engine.h"

#define MMT_SMALL 512u /* III-C: only requests up to this are preallocated */
#define MMT_QUEUE 200u /* III-D1: entries of a deallocation queue */
#define MMT_ORDERS 1024u /* more than sizes: each has at most one order under way */

/* III-D2: bucket size = 400 + 4 x request size, so that buckets of different sizes do not run empty together. */
static inline uint32_t mmt_bucket_size(size_t size)
{
    return 400 + 4 * (uint32_t)size;
}

struct bucket {
    uint32_t next;  /* the client takes from here, once it has been given */
    uint32_t count; /* the server filled up to here */
    void *blocks[];
};

/* HELD: a retired one, while a thread forks.  LOST: of a thread that this process, a fork, does not have. */
enum client_owner { CLIENT_RETIRED, CLIENT_OWNED, CLIENT_HELD, CLIENT_LOST };

struct client {
    /* the client's alone, written at every free: apart from what the polling server reads */
    _Alignas(64) uint32_t fill; /* entries in the queue being filled */

    /* written by the client, once a request or queue */
    _Alignas(64) uint32_t wakeup; /* requests made */
    uint32_t handed;              /* deallocation queues filled and handed over */
    uint32_t waiting;
    size_t size;     /* the request: this many bytes, or, if `freed` is set, the deallocation of that (design 1) */
    void *freed;
    uint32_t queued[2]; /* entries in a queue handed over */
    uint32_t ordered;   /* buckets taken, so the next one of that size is to be filled */
    uint16_t orders[MMT_ORDERS];
    struct bucket *bucket[MMT_SMALL + 1]; /* the one in use */
    uint32_t taken[MMT_SMALL + 1];        /* buckets of this size taken so far */
    uint32_t owner;     /* enum client_owner; between clients only: who may use a retired one */
    struct client *next;

    /* written by the server */
    _Alignas(64) uint32_t served; /* requests answered */
    uint32_t drained;             /* queues emptied */
    uint32_t drained_to;          /* entries of the queue being emptied */
    void *reply;
    uint32_t orders_seen;
    uint32_t filling; /* sizes whose next bucket is not full yet, in all */
    uint64_t fill_bits[MMT_SMALL / 64 + 1];
    uint32_t given[MMT_SMALL + 1];            /* buckets of this size filled so far: `taken` of them are the client's */
    struct bucket *buckets[MMT_SMALL + 1][2]; /* number n is buckets[size][n % 2] */

    _Alignas(64) void *queues[2][MMT_QUEUE]; /* written by the client until handed over */
};

/* Section V: what each design does, as data. */
struct mmt_design {
    bool allocate_at_client; /* 3, 4, 5: the client calls the library itself, under a lock */
    bool bulk_free;          /* 2, 5, 6: queues of MMT_QUEUE; else one at a time */
    bool preallocate;        /* 6 */
    uint32_t queues;         /* deallocation queues per client */
    bool pthread;            /* 3: Pthread primitives; else minimalist ones */
};

extern struct mmt_design mmt_design;
extern struct client *mmt_clients;
extern uint32_t mmt_client_count;

void mmt_manage(void); /* designs 1, 2, 5, 6 */

/* mmt_shared.c: designs 3, 4, 5 */
void library_lock(void);
void library_unlock(void);
void library_free(void *block); /* for every design */
void *shared_allocate(size_t size);
void shared_release(void *block); /* designs 3 and 4: one at a time */
void shared_manage(void);
void shared_start(void);
void shared_fork_prepare(void);
void shared_fork_parent(void);
void shared_fork_child(void);

#endif
