/* SPDX-License-Identifier: MIT
 *
 * Why: MMT's server acts toward the library like a program: it calls malloc and free, one block at a time, and the library
 * is none the wiser (III-A).  In order of urgency: requests of clients that wait (III-F, "it prioritizes serving an
 * allocation request over deallocation requests"), buckets to be filled, queues to be emptied.  The last two are done in small
 * steps, with a look at the requests after each, so that a client never waits for a whole bucket or queue of another (the
 * collisions of III-D1).
 *
 * Aggressive preallocation (III-C, III-D2): a size's first request starts its bucket, and handing a bucket over starts the
 * next one at once.  A request that comes while its bucket is being filled gets what is there.
 */
#include "mmt.h"

#define STEP 16u

static bool request_waits(const struct client *client)
{
    return LOAD(&client->wakeup) != client->served;
}

/* A lost client belongs to a thread that this process, a fork, does not have: nothing in it can be relied on. */
static bool is_lost(const struct client *client)
{
    return LOAD_RELAXED(&client->owner) == CLIENT_LOST;
}

static void want_filled(struct client *client, size_t size)
{
    uint64_t bit = (uint64_t)1 << size % 64;
    client->filling += (client->fill_bits[size / 64] & bit) == 0;
    client->fill_bits[size / 64] |= bit;
}

static void filled(struct client *client, size_t size)
{
    client->fill_bits[size / 64] &= ~((uint64_t)1 << size % 64);
    client->filling--;
}

/* The client waits: its bucket of this size is empty and, until `served`, ours. */
static void *serve_small(struct client *client, size_t size)
{
    struct bucket *bucket = client->next_bucket[size];
    void *reply;
    if (bucket != NULL && bucket->count > 0) {
        client->next_bucket[size] = client->bucket[size];
        if (client->next_bucket[size] != NULL)
            client->next_bucket[size]->count = 0;
        client->bucket[size] = bucket;
        reply = bucket->blocks[0];
        bucket->next = 1;
    } else {
        reply = backend.malloc(size);
    }
    if (reply != NULL)
        want_filled(client, size);
    return reply;
}

static void serve(struct client *client)
{
    if (client->freed != NULL)
        library_free(client->freed);
    else if (mmt_design.preallocate && client->size <= MMT_SMALL)
        client->reply = serve_small(client, client->size);
    else
        client->reply = backend.malloc(client->size);
    STORE(&client->served, client->served + 1);
    engine_wake(&client->served, &client->waiting);
}

static bool serve_requests(void)
{
    bool any = false;
    for (struct client *client = LOAD(&mmt_clients); client != NULL; client = client->next) {
        if (request_waits(client) && !is_lost(client)) {
            serve(client);
            any = true;
        }
    }
    return any;
}

/* A step of filling this client's next buckets. */
static void fill_step(struct client *client)
{
    uint32_t share = LOAD_RELAXED(&mmt_client_count);
    uint32_t step = STEP;
    for (size_t word = 0; word <= MMT_SMALL / 64; word++) {
        while (client->fill_bits[word] != 0) {
            size_t size = word * 64 + (size_t)__builtin_ctzl(client->fill_bits[word]);
            uint32_t room = mmt_bucket_size(size);
            struct bucket *bucket = client->next_bucket[size];
            if (bucket == NULL) {
                bucket = backend.malloc(sizeof *bucket + room * sizeof bucket->blocks[0]);
                client->next_bucket[size] = bucket;
                if (bucket != NULL)
                    bucket->next = bucket->count = 0;
            }
            room = room / share > 8 ? room / share : 8;
            while (bucket != NULL && bucket->count < room && step > 0) {
                void *block = backend.malloc(size);
                if (block == NULL)
                    break;
                bucket->blocks[bucket->count++] = block;
                step--;
            }
            if (step == 0 && bucket->count < room)
                return;
            filled(client, size); /* or out of memory: the next request tries again */
        }
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

/* A step for each client, filling before emptying. */
static bool work_ahead(void)
{
    bool any = false;
    for (struct client *client = LOAD(&mmt_clients); client != NULL; client = client->next) {
        if (is_lost(client))
            continue;
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
        if (!is_lost(client) && (request_waits(client) || queue_waits(client)))
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
