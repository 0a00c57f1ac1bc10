/* SPDX-License-Identifier: MIT
 *
 * Why: MMT's server acts toward the library like a program: it calls malloc and free, one block at a time, and the
 * library is none the wiser (III-A).  In order of urgency: requests of clients that wait (III-F, "it prioritizes
 * serving an allocation request over deallocation requests"), buckets to be filled, queues to be emptied.  The last two
 * are done in small steps, with a look at the requests after each, so that a client never waits for a whole bucket or
 * queue of another (the collisions of III-D1).
 *
 * Aggressive preallocation (III-C, III-D2): a size's first request starts its bucket, a bucket's taking the next one at
 * once.  A full bucket is given without being asked for (mmt.c); a request that comes while one is being filled gets
 * what is there.
 *
 * How many blocks: the paper has 400 + 4 x size of every size (III-D2) and calls the memory negligible (V-F).  It is
 * not where a program uses many sizes, a few blocks each: two buckets of every size are half a gigabyte.  So a size's
 * first bucket has one block, and each further one is twice as large, up to the paper's size, as long as all of a
 * client's buckets stay within its share: a constant and a part of what the program holds.  Beyond that a size takes
 * from those that want buckets half as often.
 *
 * Each of several servers looks at its own clients only.  What is reckoned for a share is summed over all, because a
 * thread may free what another server's client allocated.
 *
 * Clients whose thread has ended are not looked at, once they are drained, and hold nothing: their buckets go back to
 * the library, but for a few that stay as they are for the next threads.
 */
#include "mmt_server.h"
#include "backend.h"
#include "manager.h"
#include "mmt_clients.h"
#include "mmt_shared.h"

#define STEP   16u
#define ENOUGH 64u /* blocks: by then a message costs little */

#define OWN_BYTES    ((uint64_t)64 << 10)  /* a client's share: this, */
#define COMMON_BYTES ((uint64_t)128 << 10) /* and, divided among all, this */
#define HELD_PART    5u                    /* and a fifth of what the program (and its buckets) hold */
#define EXCESS_PART  4u                    /* a fourth: how far beyond a share that became less the buckets may stay */
#define KEPT_WARM    2u                    /* of each server: clients of ended threads that keep their buckets */

/* Written by its own thread; the others read the counts. */
static struct server {
    _Alignas(64) struct client *attended; /* the clients that it looks at */
    uint32_t arrivals_seen;
    uint64_t blocks_allocated, bytes_allocated, blocks_freed;
} servers[MANAGERS_MOST];

static __thread struct server *mine __attribute__((tls_model("initial-exec")));

static void count(uint64_t *which, uint64_t more)
{
    STORE_RELAXED(which, *which + more);
}

static bool request_waits(const struct client *client)
{
    return LOAD(&client->wakeup) != client->served;
}

/* A lost client belongs to a thread that this process, a fork, does not have: nothing in it can be relied on. */
static bool is_lost(const struct client *client)
{
    return LOAD_RELAXED(&client->owner) == CLIENT_LOST;
}

static bool is_filling(const struct client *client, size_t size)
{
    return (client->fill_bits[size / 64] >> size % 64 & 1) != 0;
}

static void *take(size_t size)
{
    count(&mine->blocks_allocated, 1);
    count(&mine->bytes_allocated, size);
    return backend.malloc(size);
}

static void give_back(void *block)
{
    library_free(block);
    count(&mine->blocks_freed, 1);
}

/* What the program (and its buckets) hold, reckoned from the blocks that were not freed and their mean size: the size
 * of a freed one is not known where checks are offloaded. */
static uint64_t held_bytes(void)
{
    uint64_t allocated = 0, bytes = 0, freed = 0;
    for (unsigned i = 0; i < manager_count; i++) {
        allocated += LOAD_RELAXED(&servers[i].blocks_allocated);
        bytes += LOAD_RELAXED(&servers[i].bytes_allocated);
        freed += LOAD_RELAXED(&servers[i].blocks_freed);
    }
    if (freed > allocated) { /* others than ours are freed here, too */
        uint64_t others = freed - allocated;
        STORE_RELAXED(&mine->blocks_freed,
                      mine->blocks_freed - (others < mine->blocks_freed ? others : mine->blocks_freed));
    }
    return freed < allocated ? (allocated - freed) * (bytes / allocated) : 0;
}

/* Of all buckets of a client. */
static uint64_t share_bytes(void)
{
    uint32_t clients = LOAD_RELAXED(&mmt_owned);
    return OWN_BYTES + (COMMON_BYTES + held_bytes() / HELD_PART) / (clients > 0 ? clients : 1);
}

static void set_target(struct client *client, size_t size, uint32_t target)
{
    client->reserved_bytes += 2 * size * ((uint64_t)target - client->target[size]);
    client->target[size] = (uint16_t)target;
}

/* Looks at the next size, in turn, for one that wanted its last bucket `interval` buckets ago: halves its buckets if it
 * has wanted none for twice as long, or if all are to have less.  Sizes then settle where they want buckets about
 * equally often; halved at every look, they never do. */
static void make_one_smaller(struct client *client, uint32_t interval, bool less_of_all)
{
    for (uint32_t i = 0; i <= MMT_SMALL; i++) {
        uint32_t size = client->oldest = client->oldest < MMT_SMALL ? client->oldest + 1 : 0;
        if (client->target[size] <= 1)
            continue;
        if (less_of_all || (client->planned - client->planned_at[size]) / 2 > interval)
            set_target(client, size, client->target[size] / 2);
        return;
    }
}

/* How many blocks the next bucket of this size is to have. */
static uint32_t plan(struct client *client, size_t size)
{
    uint32_t most = 400 + 4 * (uint32_t)size, target = client->target[size];
    if (mmt_options.bucket == MMT_BUCKET_PAPER)
        return most;
    if (mmt_options.bucket > MMT_BUCKET_PAPER)
        return mmt_options.bucket;
    uint32_t more = target == 0 ? 1 : 2 * target < most ? 2 * target : most;
    uint32_t interval = ++client->planned - client->planned_at[size];
    uint64_t share = share_bytes();
    client->planned_at[size] = client->planned;
    if (target > 0 && client->reserved_bytes + 2 * size * (uint64_t)(more - target) > share)
        make_one_smaller(client, interval, client->reserved_bytes > share + share / EXCESS_PART);
    else
        set_target(client, size, more);
    return client->target[size];
}

/* Bucket number `given` goes where number `given - 2` was, which the client is done with when it has taken all others.
 * One for which there is no memory is not filled: the next request tries again. */
static void want_filled(struct client *client, size_t size)
{
    uint64_t bit = (uint64_t)1 << size % 64;
    uint32_t given = client->given[size];
    if (is_filling(client, size) || LOAD(&client->taken[size]) != given)
        return;
    struct bucket **place = &client->buckets[size][given % 2], *bucket = *place;
    uint32_t room = plan(client, size);
    if (bucket == NULL || bucket->room < room || bucket->room > 2 * room) {
        backend.free(bucket);
        *place = bucket = backend.malloc(sizeof *bucket + room * sizeof bucket->blocks[0]);
        if (bucket == NULL)
            return;
    }
    *bucket = (struct bucket){.room = room};
    client->fill_bits[size / 64] |= bit;
    client->filling++;
}

static void filled(struct client *client, size_t size)
{
    client->fill_bits[size / 64] &= ~((uint64_t)1 << size % 64);
    client->filling--;
}

/* The bucket being filled is the client's now, from block `from` on. */
static void give(struct client *client, size_t size, uint32_t from)
{
    filled(client, size);
    client->buckets[size][client->given[size] % 2]->next = from;
    STORE(&client->given[size], client->given[size] + 1);
}

/* The client waits, its buckets of this size are empty: it gets what there is of the next one.  Not the first few
 * blocks of it, or it would be back at once, and all of it if it has gone to sleep, since waking it costs more than the
 * rest. */
static bool serve_small(struct client *client, size_t size)
{
    if (!is_filling(client, size)) {
        client->reply = take(size);
        if (client->reply != NULL)
            want_filled(client, size);
        return true;
    }
    struct bucket *bucket = client->buckets[size][client->given[size] % 2];
    if (bucket->count < ENOUGH || LOAD_RELAXED(&client->waiting) != 0)
        return false; /* comes back when it is full, or there is no memory */
    client->reply = bucket->blocks[0];
    give(client, size, 1);
    return true;
}

static bool serve(struct client *client)
{
    if (client->freed != NULL)
        give_back(client->freed);
    else if (!mmt_design.preallocate || client->size > MMT_SMALL)
        client->reply = take(client->size);
    else if (!serve_small(client, client->size))
        return false;
    STORE(&client->served, client->served + 1);
    manager_answer(&client->served, &client->waiting);
    return true;
}

/* "The MMT server then starts to preallocate a new bucket to replace the one it just passed" (III-F). */
static void see_orders(struct client *client)
{
    for (uint32_t ordered = LOAD(&client->ordered); client->orders_seen != ordered; client->orders_seen++)
        want_filled(client, client->orders[client->orders_seen % MMT_ORDERS]);
}

static bool serve_requests(void)
{
    bool any = false;
    for (struct client *client = mine->attended; client != NULL; client = client->attended_next) {
        if (request_waits(client))
            any |= serve(client);
    }
    return any;
}

/* Up to `step` blocks into the next bucket of this size; how many it took. */
static uint32_t fill(struct client *client, size_t size, uint32_t step)
{
    struct bucket *bucket = client->buckets[size][client->given[size] % 2];
    uint32_t made = 0;
    while (bucket->count < bucket->room && made < step) {
        void *block = take(size);
        if (block == NULL)
            break;
        bucket->blocks[bucket->count++] = block;
        made++;
    }
    if (made == step && bucket->count < bucket->room)
        return made;
    if (bucket->count > 0)
        give(client, size, 0);
    else
        filled(client, size); /* no memory: the next request tries again */
    return made;
}

/* A step of filling this client's next buckets, the one it waits for first. */
static void fill_step(struct client *client)
{
    uint32_t step = STEP;
    if (request_waits(client) && client->size <= MMT_SMALL && is_filling(client, client->size))
        step -= fill(client, client->size, step);
    for (size_t word = 0; step > 0 && word <= MMT_SMALL / 64; word++) {
        while (step > 0 && client->fill_bits[word] != 0)
            step -= fill(client, word * 64 + (size_t)__builtin_ctzl(client->fill_bits[word]), step);
    }
}

/* A step of emptying the queue this client handed over first. */
static void drain_step(struct client *client)
{
    uint32_t queue = client->drained % mmt_design.queues;
    uint32_t end = client->queued[queue];
    for (uint32_t step = STEP; step > 0 && client->drained_to < end; step--) {
        give_back(client->queues[queue][client->drained_to++]);
    }
    if (client->drained_to == end) {
        client->drained_to = 0;
        STORE(&client->drained, client->drained + 1);
        manager_answer(&client->drained, &client->waiting);
    }
}

static bool queue_waits(const struct client *client)
{
    return LOAD(&client->handed) != client->drained;
}

static bool order_waits(const struct client *client)
{
    return LOAD(&client->ordered) != client->orders_seen;
}

/* A step for each client, filling before emptying. */
static bool work_ahead(void)
{
    bool any = false;
    for (struct client *client = mine->attended; client != NULL; client = client->attended_next) {
        see_orders(client);
        if (client->filling > 0) {
            fill_step(client);
            any = true;
            serve_requests();
        }
        if (queue_waits(client)) {
            drain_step(client);
            any = true;
            serve_requests();
        }
    }
    return any;
}

/* ----------------------------------------------------------------------------------------------- clients come and
 * go */

/* Attends to all that may have work, if there may be new ones. */
static void attend(void)
{
    uint32_t arrivals = LOAD(&mmt_arrivals);
    if (LIKELY(arrivals == mine->arrivals_seen))
        return;
    mine->arrivals_seen = arrivals;
    mine->attended = NULL;
    for (struct client *client = LOAD(&mmt_clients); client != NULL; client = client->next) {
        if (client->server != manager_number())
            continue;
        bool wanted = !is_lost(client) && (client->attended || LOAD(&client->owner) != CLIENT_RETIRED);
        STORE_RELAXED(&client->attended, wanted);
        if (!wanted)
            continue;
        client->attended_next = mine->attended;
        mine->attended = client;
    }
}

static bool anything_waits(const struct client *client)
{
    return request_waits(client) || queue_waits(client) || order_waits(client);
}

static void empty(struct bucket *bucket)
{
    for (uint32_t i = bucket->next; i < bucket->count; i++)
        give_back(bucket->blocks[i]);
    bucket->next = bucket->end = bucket->count = 0;
}

/* Of a client that nobody owns, all of one size: the bucket in use, the one given and the one being filled. */
static void take_back(struct client *client, size_t size)
{
    if (is_filling(client, size))
        filled(client, size);
    client->bucket[size] = NULL;
    client->taken[size] = client->given[size];
    for (int i = 0; i < 2; i++) {
        if (client->buckets[size][i] != NULL)
            empty(client->buckets[size][i]);
        backend.free(client->buckets[size][i]);
        client->buckets[size][i] = NULL;
    }
    set_target(client, size, 0);
}

/* True: the client is not attended to any more. */
static bool dismiss(struct client *client)
{
    uint32_t retired = CLIENT_RETIRED;
    if (!__atomic_compare_exchange_n(&client->owner, &retired, CLIENT_HELD, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return false;
    bool idle = !anything_waits(client);
    for (size_t size = 0; idle && size <= MMT_SMALL; size++)
        take_back(client, size);
    if (idle)
        STORE_RELAXED(&client->attended, false);
    STORE(&client->owner, CLIENT_RETIRED);
    return idle;
}

/* When there is nothing else to do. */
static bool dismiss_retired(void)
{
    uint32_t warm = 0;
    for (struct client **place = &mine->attended, *client; (client = *place) != NULL;) {
        if (LOAD(&client->owner) == CLIENT_RETIRED && ++warm > KEPT_WARM && dismiss(client)) {
            *place = client->attended_next;
            return true;
        }
        place = &client->attended_next;
    }
    return false;
}

static bool anything_wanted(void)
{
    if (LOAD(&mmt_arrivals) != mine->arrivals_seen)
        return true;
    uint32_t warm = 0;
    for (const struct client *client = mine->attended; client != NULL; client = client->attended_next) {
        warm += LOAD(&client->owner) == CLIENT_RETIRED;
        if (anything_waits(client))
            return true;
    }
    return warm > KEPT_WARM;
}

void mmt_serve(void)
{
    mine = &servers[manager_number()];
    manager_begin();
    do {
        do {
            manager_checkpoint();
            attend();
        } while (serve_requests() || work_ahead() || dismiss_retired());
    } while (manager_sleep(anything_wanted));
    manager_end();
}
