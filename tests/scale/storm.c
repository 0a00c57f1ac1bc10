/* SPDX-License-Identifier: MIT
 *
 * That the build with synthetic cids is sound, and so what is measured with it means something: a few threads go from
 * cid to cid, each held by a lock of the program's own, as another thread or as one that was moved, and allocate, free
 * their own and others' blocks, and trim.  Each block says whose it is; one handed out twice is told.
 */
#include "scale/heaps.h"
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

#include "support/rng.h"

enum { THREADS = 4, SLOTS = 1 << 14, CIDS_MOST = 4096 };

static unsigned cids;
static pthread_mutex_t cid_lock[CIDS_MOST];
static void *_Atomic slot[SLOTS];
static _Atomic bool stop;

static size_t size_of(const size_t *block)
{
    return block[0];
}

static void put(size_t *block, size_t bytes)
{
    block[0] = bytes;
    block[1] = (size_t)(uintptr_t)block;
    *(size_t *)((char *)block + bytes - sizeof(size_t)) = ~(size_t)(uintptr_t)block;
}

static void expect_whole(const size_t *block)
{
    CHECK(block[1] == (size_t)(uintptr_t)block);
    CHECK(*(const size_t *)((const char *)block + size_of(block) - sizeof(size_t)) == ~(size_t)(uintptr_t)block);
}

static void exchange(struct rng *rng)
{
    size_t bytes = (size_t)24 << rng_below(rng, 10);
    bytes += rng_below(rng, bytes) & ~(size_t)7;
    size_t *block = rng_below(rng, 8) == 0 ? NULL : malloc(bytes);
    if (block != NULL)
        put(block, bytes);
    size_t *before = atomic_exchange(&slot[rng_below(rng, SLOTS)], block);
    if (before != NULL) {
        expect_whole(before);
        before[1] = 0;
        free(before);
    }
}

static void *work(void *argument)
{
    struct rng rng = {(uintptr_t)argument};
    unsigned turns = 0;
    while (!stop) {
        unsigned cid = (unsigned)rng_below(&rng, cids);
        pthread_mutex_lock(&cid_lock[cid]);
        if (rng_below(&rng, 2) == 0)
            sutler_test_bind_cid(cid);
        else
            sutler_test_move_to_cid(cid);
        for (uint64_t i = rng_below(&rng, 500); i > 0; i--)
            exchange(&rng);
        if (++turns % 512 == 0)
            malloc_trim(0);
        pthread_mutex_unlock(&cid_lock[cid]);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    scale_begin(120);
    uint64_t seed = test_seed_from(NULL), ms = test_option(argc, argv, "--ms", 3000);
    cids = (unsigned)test_option(argc, argv, "--heaps", 64);
    CHECK(cids < CIDS_MOST);
    for (unsigned i = 0; i < cids; i++)
        pthread_mutex_init(&cid_lock[i], NULL);
    sutler_test_move_to_cid(cids); /* one for this thread alone */
    pthread_t thread[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)(seed + i)) == 0);
    sleep_us(ms * 1000);
    stop = true;
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    for (size_t i = 0; i < SLOTS; i++)
        if (slot[i] != NULL) {
            expect_whole(slot[i]);
            free(slot[i]);
        }
    return 0;
}
