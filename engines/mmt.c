/* SPDX-License-Identifier: MIT
 *
 * Why: MMT (Tiwari et al. 2010) moves all of malloc to a second thread without changing malloc.  The program's thread is a
 * client that holds, for each request size up to 512 bytes, a bucket of blocks the server allocated ahead of demand; malloc
 * takes the next one, with no lock, no atomic read-modify-write and no word to anybody (III-D2).  free appends to one of two
 * queues of 200; a full one is handed to the server while the client fills the other (III-D1, III-E3).  The server drives
 * the unmodified library with plain calls of malloc and free (mmt_server.c).
 *
 * Client and server talk through counters with one writer each (III-E2): a request is wakeup != served, a queue to be
 * emptied is handed != drained, a bucket to be had is given != taken, one to be filled is ordered != orders_seen.  Full
 * fences appear only where one of them may be asleep, once per request, bucket or queue, and are not on the path of a call.
 *
 * The paper's server polls for ever; ours sleeps after a while (manager.c), as it must on one cpu.  That moves one step of the
 * protocol: the paper's client asks for each bucket, and the polling server passes it at once (III-F).  Asking a sleeping
 * one costs a wake and its latency, 25 us for a bucket that lies there full.  So the server gives a bucket as soon as it is
 * full, the client takes it without asking, and two buckets a size change sides as the two queues of III-E3 do: while
 * the client empties one, the server fills the other.  Only a client that finds none asks, and waits.
 *
 * SUTLER_MMT_DESIGN=1..6 are section V's designs, for its figures 7, 8 and 9: 1 all synchronous, 2 deallocation in bulk,
 * 3 to 5 allocation back on the program's thread (mmt_shared.c), 6 (default) the final one.
 *
 * Requests above 512 bytes are synchronous (III-F); above ENGINE_LARGEST they go to the library directly, ours.  Freed blocks
 * above ENGINE_LARGE_BLOCK do, too, since 400 of those in the queues could be gigabytes.  With SUTLER_CHECKS=offloaded the
 * client must not look at a block it knows nothing of (usable() of a wild pointer may crash where the server would report
 * it), so all go to the server, and a thread hands its queue over before it asks for something large.
 *
 * Threads: a struct client for each, adopted from an ended thread where possible, with its buckets.  Where the paper has one
 * client, n of them share the bucket size: (400 + 4 x size) / n, at least 8.  A thread that has run its exit handlers goes
 * to the library.
 *
 * fork: the server pauses between two steps; the forking thread's client is whole and stays its child's.  The clients of
 * the threads that the child does not have are lost to it with what is in their buckets: they were being changed while the
 * snapshot was made.
 */
#include "mmt.h"
#include "checks.h"

#include <sys/mman.h>

static const struct mmt_design designs[] = {
    [1] = {.queues = 1},
    [2] = {.bulk_free = true, .queues = 1},
    [3] = {.allocate_at_client = true, .queues = 1, .pthread = true},
    [4] = {.allocate_at_client = true, .queues = 1},
    [5] = {.allocate_at_client = true, .bulk_free = true, .queues = 1},
    [6] = {.bulk_free = true, .preallocate = true, .queues = 2},
};

struct mmt_design mmt_design;
struct client *mmt_clients;
uint32_t mmt_client_count;

static struct client *clients_at_fork;

static __thread struct client *my_client __attribute__((tls_model("initial-exec")));
static __thread bool client_ended __attribute__((tls_model("initial-exec")));

static void client_owns(struct client *client)
{
    my_client = client;
    engine_thread_own(client);
}

static __attribute__((noinline)) struct client *client_get_slow(void)
{
    if (client_ended)
        return NULL;
    for (struct client *client = LOAD(&mmt_clients); client != NULL; client = client->next) {
        uint32_t retired = CLIENT_RETIRED;
        if (LOAD(&client->owner) == CLIENT_RETIRED &&
            __atomic_compare_exchange_n(&client->owner, &retired, CLIENT_OWNED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            client_owns(client);
            return client;
        }
    }
    struct client *client =
        mmap(NULL, sizeof *client, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (client == MAP_FAILED)
        return NULL;
    client->owner = CLIENT_OWNED;
    client->next = LOAD(&mmt_clients);
    while (!__atomic_compare_exchange_n(&mmt_clients, &client->next, client, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
    __atomic_fetch_add(&mmt_client_count, 1, __ATOMIC_RELAXED);
    client_owns(client);
    return client;
}

/* NULL: no server, no memory, or a thread near its end; the library serves it. */
static inline struct client *client_get(void)
{
    if (UNLIKELY(!manager_ready()))
        return NULL;
    return LIKELY(my_client != NULL) ? my_client : client_get_slow();
}

/* ----------------------------------------------------------------------------------------------------------- allocation */

/* III-B, III-F: place the request, count up, wait until it is counted as served. */
static __attribute__((noinline)) void *request(struct client *client, size_t size, void *freed)
{
    uint32_t served = LOAD_RELAXED(&client->served);
    client->size = size;
    client->freed = freed;
    STORE(&client->wakeup, client->wakeup + 1);
    manager_wake();
    engine_wait(&client->served, served, &client->waiting);
    return client->reply;
}

/* III-D2, the bucket in use is empty.  Taking the next one orders the one after it ("aggressive", figure 5b), which goes
 * where the empty one was. */
static __attribute__((noinline)) void *change_bucket(struct client *client, size_t size)
{
    uint32_t taken = client->taken[size];
    if (LOAD(&client->given[size]) == taken) {
        client->bucket[size] = NULL;
        return request(client, size, NULL);
    }
    struct bucket *bucket = client->buckets[size][taken % 2];
    client->bucket[size] = bucket;
    client->taken[size] = taken + 1;
    client->orders[client->ordered % MMT_ORDERS] = (uint16_t)size;
    STORE(&client->ordered, client->ordered + 1);
    manager_wake();
    return bucket->blocks[bucket->next++];
}

static void *mmt_allocate(size_t size)
{
    if (mmt_design.allocate_at_client)
        return shared_allocate(size);
    struct client *client = client_get();
    if (UNLIKELY(client == NULL))
        return backend.malloc(size);
    if (size <= MMT_SMALL) {
        struct bucket *bucket = client->bucket[size];
        if (LIKELY(bucket != NULL && bucket->next < bucket->count))
            return bucket->blocks[bucket->next++];
        if (mmt_design.preallocate)
            return change_bucket(client, size);
    }
    return request(client, size, NULL);
}

/* --------------------------------------------------------------------------------------------------------- deallocation */

/* III-D1, III-E3: the filled queue is the server's from here on. */
static void hand_over(struct client *client)
{
    client->queued[client->handed % mmt_design.queues] = client->fill;
    client->fill = 0;
    STORE(&client->handed, client->handed + 1);
    manager_wake();
}

/* "In the rare occasion in which both queues fill up, the main thread waits until the queue it waits for becomes free." */
static __attribute__((noinline)) void wait_for_queue(struct client *client)
{
    uint32_t drained;
    while (client->handed - (drained = LOAD(&client->drained)) >= mmt_design.queues)
        engine_wait(&client->drained, drained, &client->waiting);
}

static void enqueue(struct client *client, void *block)
{
    if (client->fill == 0)
        wait_for_queue(client);
    client->queues[client->handed % mmt_design.queues][client->fill++] = block;
    if (client->fill == MMT_QUEUE)
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

/* ------------------------------------------------------------------------------------------------- start, threads, fork */

static void mmt_start(void)
{
    const char *value = engine_option("SUTLER_MMT_DESIGN");
    unsigned number = 6;
    if (value != NULL && value[0] >= '1' && value[0] <= '6' && value[1] == '\0')
        number = (unsigned)(value[0] - '0');
    else if (value != NULL)
        engine_say("SUTLER_MMT_DESIGN: unknown value '%s' (1 to 6); ignored", value);
    mmt_design = designs[number];
    shared_start();
}

static void mmt_thread_exit(void *mine)
{
    struct client *client = mine;
    if (client->fill > 0)
        hand_over(client);
    client_ended = true;
    my_client = NULL;
    STORE(&client->owner, CLIENT_RETIRED);
}

static void mmt_manage_design(void)
{
    if (mmt_design.allocate_at_client && !mmt_design.bulk_free)
        shared_manage();
    else
        mmt_manage();
}

/* Retired clients are held, or one of them could be adopted and change while the snapshot is made. */
static void mmt_fork_prepare(void)
{
    manager_pause();
    clients_at_fork = LOAD(&mmt_clients);
    for (struct client *client = clients_at_fork; client != NULL; client = client->next) {
        uint32_t retired = CLIENT_RETIRED;
        __atomic_compare_exchange_n(&client->owner, &retired, CLIENT_HELD, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    }
    shared_fork_prepare();
}

static void mmt_fork_parent(void)
{
    shared_fork_parent();
    for (struct client *client = clients_at_fork; client != NULL; client = client->next) {
        if (LOAD(&client->owner) == CLIENT_HELD)
            STORE(&client->owner, CLIENT_RETIRED);
    }
    manager_resume();
}

/* From the list's head as prepare saw it: a client added since may be half there. */
static void mmt_fork_child(void)
{
    mmt_clients = clients_at_fork;
    mmt_client_count = 0;
    for (struct client *client = mmt_clients; client != NULL; client = client->next) {
        if (client != my_client)
            client->owner = client->owner == CLIENT_HELD ? CLIENT_RETIRED : CLIENT_LOST;
        mmt_client_count += client->owner != CLIENT_LOST;
    }
    shared_fork_child();
}

/* The protocol's own counters say it; nothing is counted on its way. */
static void mmt_counts(struct engine_counts *counts)
{
    for (const struct client *client = LOAD(&mmt_clients); client != NULL; client = client->next) {
        counts->messages += LOAD_RELAXED(&client->wakeup);
        counts->handed += LOAD_RELAXED(&client->handed);
    }
}

const struct engine engine = {
    .name = "mmt",
    .largest = ENGINE_LARGEST,
    .start = mmt_start,
    .allocate = mmt_allocate,
    .release = mmt_release,
    .large = mmt_large,
    .manage = mmt_manage_design,
    .thread_exit = mmt_thread_exit,
    .counts = mmt_counts,
    .fork_prepare = mmt_fork_prepare,
    .fork_parent = mmt_fork_parent,
    .fork_child = mmt_fork_child,
};
