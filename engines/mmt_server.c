/* SPDX-License-Identifier: MIT
 *
 * Why: MMT's server acts toward the library like a program: it calls malloc and free, one block at a time, and the library
 * is none the wiser (III-A).  In order of urgency: requests of clients that wait (III-F, "it prioritizes serving an
 * allocation request over deallocation requests"), buckets to be filled, queues to be emptied.  The last two are done in small
 * steps, with a look at the requests after each, so that a client never waits for a whole bucket or queue of another (the
 * collisions of III-D1).
 *
 * Aggressive preallocation (III-C, III-D2): a size's first request starts its bucket, a bucket's taking the next one at once.
 * A full bucket is given without being asked for (mmt.c); a request that comes while one is being filled gets what is there.
 */
#include "mmt.h"

#define STEP   16u
#define ENOUGH 64u /* blocks: by then a message costs little */

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

/* Bucket number `given` goes where number `given - 2` was, which the client is done with when it has taken all others. */
static void want_filled(struct client *client, size_t size)
{
    uint64_t bit = (uint64_t)1 << size % 64;
    uint32_t given = client->given[size];
    if (is_filling(client, size) || LOAD(&client->taken[size]) != given)
        return;
    if (client->buckets[size][given % 2] != NULL)
        client->buckets[size][given % 2]->count = 0;
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

/* The client waits, its buckets of this size are empty: it gets what there is of the next one.  Not the first few blocks of
 * it, or it would be back at once, and all of it if it has gone to sleep, since waking it costs more than the rest. */
static bool serve_small(struct client *client, size_t size)
{
    if (!is_filling(client, size)) {
        client->reply = backend.malloc(size);
        if (client->reply != NULL)
            want_filled(client, size);
        return true;
    }
    struct bucket *bucket = client->buckets[size][client->given[size] % 2];
    if (bucket == NULL || bucket->count < ENOUGH || LOAD_RELAXED(&client->waiting) != 0)
        return false; /* comes back when it is full, or there is no memory */
    client->reply = bucket->blocks[0];
    give(client, size, 1);
    return true;
}

static bool serve(struct client *client)
{
    if (client->freed != NULL)
        library_free(client->freed);
    else if (!mmt_design.preallocate || client->size > MMT_SMALL)
        client->reply = backend.malloc(client->size);
    else if (!serve_small(client, client->size))
        return false;
    STORE(&client->served, client->served + 1);
    engine_wake(&client->served, &client->waiting);
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
    for (struct client *client = LOAD(&mmt_clients); client != NULL; client = client->next) {
        if (request_waits(client) && !is_lost(client))
            any |= serve(client);
    }
    return any;
}

/* Up to `step` blocks into the next bucket of this size; how many it took. */
static uint32_t fill(struct client *client, size_t size, uint32_t step)
{
    uint32_t share = LOAD_RELAXED(&mmt_client_count);
    uint32_t room = mmt_bucket_size(size), made = 0;
    struct bucket **place = &client->buckets[size][client->given[size] % 2], *bucket = *place;
    if (bucket == NULL) {
        *place = bucket = backend.malloc(sizeof *bucket + room * sizeof bucket->blocks[0]);
        if (bucket != NULL)
            bucket->count = 0;
    }
    room = room / share > 8 ? room / share : 8;
    while (bucket != NULL && bucket->count < room && made < step) {
        void *block = backend.malloc(size);
        if (block == NULL)
            break;
        bucket->blocks[bucket->count++] = block;
        made++;
    }
    if (made == step && bucket->count < room)
        return made;
    if (bucket != NULL && bucket->count > 0)
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
        void *block = client->queues[queue][client->drained_to++];
        library_free(block);
    }
    if (client->drained_to == end) {
        client->drained_to = 0;
        STORE(&client->drained, client->drained + 1);
        engine_wake(&client->drained, &client->waiting);
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
    for (struct client *client = LOAD(&mmt_clients); client != NULL; client = client->next) {
        if (is_lost(client))
            continue;
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

static bool anything_wanted(void)
{
    for (const struct client *client = LOAD(&mmt_clients); client != NULL; client = client->next) {
        if (!is_lost(client) && (request_waits(client) || queue_waits(client) || order_waits(client)))
            return true;
    }
    return false;
}

void mmt_manage(void)
{
    manager_begin();
    do {
        do {
            manager_checkpoint();
        } while (serve_requests() || work_ahead());
    } while (manager_sleep(anything_wanted));
    manager_end();
}
