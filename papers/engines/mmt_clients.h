/* SPDX-License-Identifier: MIT
 *
 * Why: what MMT's client (mmt.c) and its server (mmt_server.c) have in common: the clients, and what section V varies.
 * "MMT x" in comments is a section of Tiwari et al. 2010.
 *
 * One server serves all clients, or several share them (SUTLER_ENGINE_MANAGERS); every thread of the program is a
 * client with a struct of its own, which the paper leaves for later ("outside the scope").  A client stays with its
 * server.  Single-writer rule (MMT III-E2, III-E3): each field below has one writer, named by its group; a bucket's
 * writer changes hands with `given` and `ordered`, a queue's with `handed` and `drained`.
 *
 * Threads come and go: an ended thread's client is retired, and the next thread adopts it, with its buckets if the
 * server has not emptied them yet.
 */
#ifndef ENGINES_MMT_CLIENTS_H
#define ENGINES_MMT_CLIENTS_H

#include "base.h"

#define MMT_SMALL      512u  /* III-C: only requests up to this are preallocated */
#define MMT_QUEUE      200u  /* III-D1: entries of a deallocation queue */
#define MMT_QUEUE_MOST 1000u /* V-E looks no further */
#define MMT_ORDERS     1024u /* more than sizes: each has at most one order under way */

struct bucket {
    uint32_t next;  /* the client takes from here, once it has been given */
    uint32_t end;   /* to here, and then looks what is to be done */
    uint32_t count; /* the server filled up to here */
    uint32_t room;
    void *blocks[];
};

/* HELD: a retired one that nobody may adopt, because a thread forks or the server empties it.  LOST: of a thread that
 * this process, a fork, does not have. */
enum client_owner { CLIENT_RETIRED, CLIENT_OWNED, CLIENT_HELD, CLIENT_LOST };

struct client {
    /* the client's alone, written at every free: apart from what the polling server reads */
    _Alignas(64) uint32_t fill; /* entries in the queue being filled */
    bool deserted;              /* the last request's reply was not waited for: a fork was under way */

    /* written by the client, once a request or queue */
    _Alignas(64) uint32_t wakeup; /* requests made */
    uint32_t handed;              /* deallocation queues filled and handed over */
    uint32_t waiting;
    size_t size;     /* the request: this many bytes, or, if `freed` is set, the deallocation of that (design 1) */
    void *freed;
    uint32_t queued[2]; /* entries in a queue handed over */
    uint32_t ordered;   /* buckets that are to be filled */
    uint16_t orders[MMT_ORDERS];
    struct bucket *bucket[MMT_SMALL + 1]; /* the one in use */
    uint32_t taken[MMT_SMALL + 1];        /* buckets of this size taken so far */
    uint32_t owner;     /* enum client_owner; between clients only: who may use a retired one */
    unsigned server;    /* which one it is a client of; never changes */
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
    uint16_t target[MMT_SMALL + 1];           /* blocks of the next bucket; 0: none was asked for yet */
    uint32_t planned;                         /* buckets, of all sizes */
    uint32_t planned_at[MMT_SMALL + 1];       /* what `planned` was at this size's last bucket */
    struct bucket *buckets[MMT_SMALL + 1][2]; /* number n is buckets[size][n % 2] */
    uint64_t reserved_bytes;                  /* of two buckets of each size */
    uint32_t oldest;                          /* where the search for a bucket to make smaller goes on */
    bool attended;
    struct client *attended_next;

    _Alignas(64) void *queues[2][MMT_QUEUE_MOST]; /* written by the client until handed over */
};

/* Section V: what each design does, as data. */
struct mmt_design {
    bool allocate_at_client; /* 3, 4, 5: the client calls the library itself, under a lock */
    bool bulk_free;          /* 2, 5, 6: queues of many blocks; else one at a time */
    bool preallocate;        /* 6 */
    uint32_t queues;         /* deallocation queues per client */
    bool sleeping;           /* 3: locks that sleep, as Pthread's do; else minimalist ones, which spin */
};

/* Of bucket sizes: as the demand grows, III-D2's formula, or (greater) so many blocks each. */
enum { MMT_BUCKET_DEMAND = 0, MMT_BUCKET_PAPER = 1 };

struct mmt_options {
    uint32_t bucket;   /* see above */
    uint32_t queue;    /* entries of a deallocation queue */
    bool conservative; /* III-D2, figure 5a: the next bucket is ordered when half of this one is used */
    bool shortcut;     /* V-C: a miss first looks through the queue being filled */
};

extern struct mmt_design mmt_design;
extern struct mmt_options mmt_options;
extern struct client *mmt_clients;
extern uint32_t mmt_owned;    /* clients of living threads */
extern uint32_t mmt_arrivals; /* changes when there is a client that the server may not know */
extern __thread struct client *my_client __attribute__((tls_model("initial-exec")));

struct client *client_get_slow(void); /* NULL: no memory, or the thread is near its end */
void client_retire(struct client *client);

void clients_fork_prepare(void); /* with the server paused */
void clients_fork_parent(void);
void clients_fork_child(void);

#endif
