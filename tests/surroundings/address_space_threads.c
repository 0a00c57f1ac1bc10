/* SPDX-License-Identifier: MIT
 *
 * Threads that live at a limit on address space: each allocates until it is refused, frees some, its own blocks and
 * others', and goes on.  Superblocks lend slices and are merged again all the time; no block may be harmed by it.  At
 * the end all is freed, and one block may have most of it.
 *   --ms N  for how long
 */
#include "support/check.h"
#include "support/pattern.h"
#include "support/proc.h"
#include "support/rng.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { THREADS = 4, SLOTS = 1 << 15, HEADROOM_MIB = 48 };

struct held {
    size_t size;
    uint64_t key;
};

/* A block lies in one slot, which whoever exchanges it owns. */
static void *_Atomic slot[SLOTS];
static uint64_t end_ms;
static _Atomic size_t taken, refused;
static pthread_barrier_t barrier;

static void drop(struct held *block)
{
    if (block == NULL)
        return;
    pattern_verify_sparse(block + 1, block->size - sizeof *block, block->size - sizeof *block, block->key);
    free(block);
}

static struct held *take(struct rng *rng)
{
    size_t size = sizeof(struct held) + rng_size(rng, 18);
    struct held *block = rng_below(rng, 8) != 0 ? malloc(size) : NULL;
    if (block == NULL && (block = calloc(1, size)) != NULL)
        for (size_t i = 0; i < size; i += 997)
            CHECK(((char *)block)[i] == 0);
    if (block == NULL)
        return NULL;
    *block = (struct held){size, rng_next(rng)};
    pattern_fill_sparse(block + 1, size - sizeof *block, block->key);
    return block;
}

static void *live_at_the_limit(void *seed)
{
    struct rng rng = {(uint64_t)(uintptr_t)seed};
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i % 64 != 0 || now_ms() < end_ms; i++) {
        struct held *block = take(&rng);
        if (block != NULL) {
            taken++;
            drop(__atomic_exchange_n((void **)&slot[rng_below(&rng, SLOTS)], block, __ATOMIC_ACQ_REL));
            continue;
        }
        refused++;
        for (size_t first = rng_below(&rng, SLOTS), n = rng_below(&rng, SLOTS / 2); n > 0; n--)
            drop(__atomic_exchange_n((void **)&slot[(first + n) % SLOTS], NULL, __ATOMIC_ACQ_REL));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    test_begin(600);
    if (proc_lacks_fence())
        SKIP("takes a fence, which there is none of under a seccomp filter");
    struct rng rng = {test_seed_from(NULL)};
    pthread_t thread[THREADS];
    free(opaque(malloc(100)));
    struct rlimit bound;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 * KIB);
    CHECK(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], &attributes, live_at_the_limit, (void *)(uintptr_t)rng_next(&rng)) == 0);
    end_ms = now_ms() + test_option(argc, argv, "--ms", 2000);
    bound.rlim_cur = bound.rlim_max = proc_status_bytes("VmSize") + HEADROOM_MIB * MIB;
    CHECK(setrlimit(RLIMIT_AS, &bound) == 0);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    for (int i = 0; i < SLOTS; i++)
        drop(slot[i]);
    test_say("%zu taken, %zu refused\n", (size_t)taken, (size_t)refused);
    void *block = opaque(malloc(HEADROOM_MIB * MIB / 2));
    CHECK_MSG(block != NULL, "half of it cannot be had at the end");
    free(block);
    return 0;
}
