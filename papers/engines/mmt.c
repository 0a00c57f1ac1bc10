/* SPDX-License-Identifier: MIT
 *
 * Why: MMT (Tiwari et al. 2010) moves all of malloc to a second thread without changing malloc.  The program's thread
 * is a client that holds, for each request size up to 512 bytes, a bucket of blocks the server allocated ahead of
 * demand; malloc takes the next one, with no lock, no atomic read-modify-write and no word to anybody (III-D2).  free
 * appends to one of two queues of 200; a full one is handed to the server while the client fills the other (III-D1,
 * III-E3).  The server drives the unmodified library with plain calls of malloc and free (mmt_server.c).
 *
 * Client and server talk through counters with one writer each (III-E2): a request is wakeup != served, a queue to be
 * emptied is handed != drained, a bucket to be had is given != taken, one to be filled is ordered != orders_seen.  Full
 * fences appear only where one of them may be asleep, once per request, bucket or queue, and are not on the path of a
 * call.
 *
 * The paper's server polls for ever; ours sleeps after a while (manager.c), as it must on one cpu.  That moves one step
 * of the protocol: the paper's client asks for each bucket, and the polling server passes it at once (III-F).  Asking a
 * sleeping one costs a wake and its latency, 25 us for a bucket that lies there full.  So the server gives a bucket as
 * soon as it is full, the client takes it without asking, and two buckets a size change sides as the two queues of
 * III-E3 do: while the client empties one, the server fills the other.  Only a client that finds none asks, and waits.
 *
 * How much is allocated ahead follows the demand (mmt_server.c); SUTLER_MMT_BUCKET=paper has the paper's bucket sizes
 * from the first request on, and a number has buckets of so many blocks, SUTLER_MMT_QUEUE queues of so many (V-E).
 * SUTLER_MMT=conservative orders a bucket when half of the one before it is used (figure 5a), SUTLER_MMT=shortcut has a
 * request that finds no bucket look through the blocks that the thread freed last (V-C).
 *
 * SUTLER_MMT_DESIGN=1..6 are section V's designs, for its figures 7, 8 and 9: 1 all synchronous, 2 deallocation in
 * bulk, 3 to 5 allocation back on the program's thread (mmt_shared.c), 6 (default) the final one.
 *
 * With SUTLER_ENGINE_MANAGERS=n several servers divide the clients among them, but for designs 3 and 4, whose one queue
 * has one reader.
 *
 * Requests above 512 bytes are synchronous (III-F); above ENGINE_LARGEST they go to the library directly, ours.  Freed
 * blocks above ENGINE_LARGE_BLOCK do, too, since 400 of those in the queues could be gigabytes.  With
 * SUTLER_CHECKS=offloaded the client must not look at a block it knows nothing of (usable() of a wild pointer may crash
 * where the server would report it), so all go to the server, and a thread hands its queue over before it asks for
 * something large.
 *
 * Threads: a struct client for each (mmt_clients.h).  A thread that has run its exit handlers goes to the library.
 *
 * fork: the server pauses between two steps; the forking thread's client is whole and stays its child's.  The clients
 * of the threads that the child does not have are lost to it with what is in their buckets: they were being changed
 * while the snapshot was made.  A thread that waits for the server while a fork pauses it goes to the library instead
 * (around.h); it leaves its request where it is, and takes the reply back before it makes the next one.
 */
#include "around.h"
#include "backend.h"
#include "checks.h"
#include "counts.h"
#include "engine.h"
#include "manager.h"
#include "mmt_clients.h"
#include "mmt_server.h"
#include "mmt_shared.h"
#include "say.h"

#include <stdlib.h>
#include <string.h>

#define SHORTCUT_LOOKS 32u  /* blocks */
#define SHORTCUT_WASTE 16u  /* bytes; what a library rounds up to */

static const struct mmt_design designs[] = {
    [1] = {.queues = 1},
    [2] = {.bulk_free = true, .queues = 1},
    [3] = {.allocate_at_client = true, .queues = 1, .sleeping = true},
    [4] = {.allocate_at_client = true, .queues = 1},
    [5] = {.allocate_at_client = true, .bulk_free = true, .queues = 1},
    [6] = {.bulk_free = true, .preallocate = true, .queues = 2},
};

/* NULL: no server, no memory, or a thread near its end; the library serves it. */
static inline struct client *client_get(void)
{
    if (UNLIKELY(!manager_ready()))
        return NULL;
    return LIKELY(my_client != NULL) ? my_client : client_get_slow();
}

/* -----------------------------------------------------------------------------------------------------------
 * allocation */

static void *past_the_server(size_t size, void *freed)
{
    if (freed == NULL)
        return library_malloc(size);
    library_free(freed);
    return NULL;
}

/* False: the reply to a request that was deserted is not here yet, and a fork is under way again. */
static bool take_back(struct client *client)
{
    uint32_t served = LOAD(&client->served);
    if (served != client->wakeup && !manager_await(&client->served, served, &client->waiting))
        return false;
    client->deserted = false;
    if (client->freed == NULL)
        library_free(client->reply);
    return true;
}

/* III-B, III-F: place the request, count up, wait until it is counted as served. */
static __attribute__((noinline)) void *request(struct client *client, size_t size, void *freed)
{
    if (UNLIKELY(client->deserted) && !take_back(client))
        return past_the_server(size, freed);
    uint32_t served = LOAD_RELAXED(&client->served);
    client->size = size;
    client->freed = freed;
    STORE(&client->wakeup, client->wakeup + 1);
    manager_wake(client->server);
    if (LIKELY(manager_await(&client->served, served, &client->waiting)))
        return client->reply;
    client->deserted = true;
    return freed == NULL ? library_malloc(size) : NULL; /* what is to be freed the server has */
}

static void order(struct client *client, size_t size)
{
    client->orders[client->ordered % MMT_ORDERS] = (uint16_t)size;
    STORE(&client->ordered, client->ordered + 1);
    manager_wake(client->server);
}

/* V-C: of the blocks freed last one that serves this size and is not much larger; NULL: none. */
static void *short_circuit(struct client *client, size_t size)
{
    void **queue = client->queues[client->handed % mmt_design.queues];
    for (uint32_t i = client->fill; i > 0 && client->fill - i < SHORTCUT_LOOKS; i--) {
        void *block = queue[i - 1];
        size_t usable = backend.usable(block);
        if (usable >= size && usable - size < SHORTCUT_WASTE) {
            queue[i - 1] = queue[--client->fill];
            return block;
        }
    }
    return NULL;
}

/* III-D2, the bucket in use is empty, or (conservative) half of it is used.  Taking the next one orders the one after
 * it ("aggressive", figure 5b), which goes where the empty one was. */
static __attribute__((noinline)) void *change_bucket(struct client *client, size_t size)
{
    struct bucket *bucket = client->bucket[size];
    if (bucket != NULL && bucket->end < bucket->count) {
        bucket->end = bucket->count;
        order(client, size);
        return bucket->blocks[bucket->next++];
    }
    client->bucket[size] = NULL;
    uint32_t taken = client->taken[size];
    if (LOAD(&client->given[size]) == taken) {
        void *block = mmt_options.shortcut ? short_circuit(client, size) : NULL;
        return block != NULL ? block : request(client, size, NULL);
    }
    bucket = client->buckets[size][taken % 2];
    client->bucket[size] = bucket;
    client->taken[size] = taken + 1;
    bucket->end = bucket->count;
    if (mmt_options.conservative && bucket->count - bucket->next > 1)
        bucket->end = bucket->next + (bucket->count - bucket->next) / 2;
    else
        order(client, size);
    return bucket->blocks[bucket->next++];
}

static void *mmt_allocate(size_t size)
{
    if (mmt_design.allocate_at_client)
        return library_malloc(size);
    struct client *client = client_get();
    if (UNLIKELY(client == NULL))
        return backend.malloc(size);
    if (size <= MMT_SMALL) {
        struct bucket *bucket = client->bucket[size];
        if (LIKELY(bucket != NULL && bucket->next < bucket->end))
            return bucket->blocks[bucket->next++];
        if (mmt_design.preallocate)
            return change_bucket(client, size);
    }
    return request(client, size, NULL);
}

/* ---------------------------------------------------------------------------------------------------------
 * deallocation */

/* III-D1, III-E3: the filled queue is the server's from here on. */
static void hand_over(struct client *client)
{
    client->queued[client->handed % mmt_design.queues] = client->fill;
    client->fill = 0;
    STORE(&client->handed, client->handed + 1);
    manager_wake(client->server);
}

/* "In the rare occasion in which both queues fill up, the main thread waits until the queue it waits for becomes free."
 * False: it is not free, and a fork is under way. */
static __attribute__((noinline)) bool wait_for_queue(struct client *client)
{
    uint32_t drained;
    while (client->handed - (drained = LOAD(&client->drained)) >= mmt_design.queues) {
        if (!manager_await(&client->drained, drained, &client->waiting))
            return false;
    }
    return true;
}

static void enqueue(struct client *client, void *block)
{
    if (client->fill == 0 && !wait_for_queue(client)) {
        library_free(block);
        return;
    }
    client->queues[client->handed % mmt_design.queues][client->fill++] = block;
    if (client->fill == mmt_options.queue)
        hand_over(client);
}

static void mmt_release(void *block)
{
    if (!checks_offloaded && backend.usable(block) > ENGINE_LARGE_BLOCK) {
        backend.free(block);
        return;
    }
    if (mmt_design.allocate_at_client && !mmt_design.bulk_free) {
        shared_release(block);
        return;
    }
    struct client *client = client_get();
    if (UNLIKELY(client == NULL))
        library_free(block);
    else if (mmt_design.bulk_free)
        enqueue(client, block);
    else
        request(client, 0, block);
}

static void mmt_large(void)
{
    if (checks_offloaded && my_client != NULL && my_client->fill > 0 && manager_ready())
        hand_over(my_client);
}

/* ------------------------------------------------------------------------------------------------- start, threads,
 * fork */

/* The option's number, if it is one from `least` to `most`. */
static bool read_number(const char *name, uint32_t least, uint32_t most, uint32_t *number)
{
    const char *value = engine_option(name);
    if (value == NULL)
        return false;
    char *end;
    unsigned long read = strtoul(value, &end, 10);
    if (*end == '\0' && read >= least && read <= most)
        *number = (uint32_t)read;
    else
        engine_say("%s: unknown value '%s' (%u to %u); ignored", name, value, least, most);
    return true;
}

static void read_bucket(void)
{
    const char *value = engine_option("SUTLER_MMT_BUCKET");
    if (value != NULL && strcmp(value, "paper") == 0)
        mmt_options.bucket = MMT_BUCKET_PAPER;
    else
        read_number("SUTLER_MMT_BUCKET", 2, 10000, &mmt_options.bucket);
}

static void read_words(void)
{
    char names[64] = "", *rest = names;
    const char *value = engine_option("SUTLER_MMT");
    if (value != NULL)
        strncat(names, value, sizeof names - 1);
    for (char *name; (name = strsep(&rest, ",")) != NULL;) {
        if (strcmp(name, "conservative") == 0)
            mmt_options.conservative = true;
        else if (strcmp(name, "shortcut") == 0)
            mmt_options.shortcut = !checks_offloaded; /* those must see each block freed */
        else if (name[0] != '\0')
            engine_say("SUTLER_MMT: unknown value '%s' (conservative or shortcut); ignored", name);
    }
}

static void mmt_start(void)
{
    uint32_t number = 6;
    read_number("SUTLER_MMT_DESIGN", 1, 6, &number);
    mmt_design = designs[number];
    read_bucket();
    read_number("SUTLER_MMT_QUEUE", 1, MMT_QUEUE_MOST, &mmt_options.queue);
    read_words();
    if (!mmt_design.allocate_at_client || mmt_design.bulk_free)
        managers_read();
    shared_start();
}

static void mmt_thread_exit(void *mine)
{
    struct client *client = mine;
    if (client->fill > 0)
        hand_over(client);
    client_retire(client);
    manager_wake(client->server); /* it may want the buckets back */
}

static void mmt_manage(void)
{
    if (mmt_design.allocate_at_client && !mmt_design.bulk_free)
        shared_manage();
    else
        mmt_serve();
}

static void mmt_fork_prepare(void)
{
    manager_pause();
    clients_fork_prepare();
    shared_fork_prepare();
}

static void mmt_fork_parent(void)
{
    clients_fork_parent();
    manager_resume();
}

static void mmt_fork_child(void)
{
    clients_fork_child();
    shared_fork_child();
}

/* The protocol's own counters say it; nothing is counted on its way. */
static void mmt_counts(struct engine_counts *counts)
{
    for (const struct client *client = LOAD(&mmt_clients); client != NULL; client = client->next) {
        counts->messages += LOAD_RELAXED(&client->wakeup);
        counts->handed += LOAD_RELAXED(&client->handed);
        counts->buckets += LOAD_RELAXED(&client->ordered);
        counts->attended += LOAD_RELAXED(&client->attended);
    }
}

const struct engine engine = {
    .name = "mmt",
    .largest = ENGINE_LARGEST,
    .start = mmt_start,
    .allocate = mmt_allocate,
    .release = mmt_release,
    .large = mmt_large,
    .manage = mmt_manage,
    .thread_exit = mmt_thread_exit,
    .counts = mmt_counts,
    .fork_prepare = mmt_fork_prepare,
    .fork_parent = mmt_fork_parent,
    .fork_child = mmt_fork_child,
};
