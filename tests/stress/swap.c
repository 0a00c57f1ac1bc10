/* SPDX-License-Identifier: MIT
 *
 * The bare race: threads do nothing but malloc, swap the block into a small shared table and free what they got.  The
 * other stress tests check every byte and so spend most of their time outside the allocator; here its paths for remote
 * frees, refills and retirement meet as often as they can.  Only the first and last word are written: enough to notice
 * that a block has two owners, and an allocator that finds a free list damaged by nobody says so itself.
 */
#include "support/family.h"
#include "support/rng.h"
#include <pthread.h>

#define TABLE_MOST 262144

struct item {
    size_t size; /* of the whole block; the last word is the size's complement */
};

static struct item *table[TABLE_MOST];
static size_t table_size;
static uint64_t swaps, seed;

static size_t *last_word(struct item *item)
{
    return (size_t *)((char *)item + item->size / sizeof(size_t) * sizeof(size_t)) - 1;
}

static struct item *item_make(struct rng *rng)
{
    size_t size = 16 + rng_below(rng, 1024);
    struct item *item = malloc(size);
    CHECK(item != NULL);
    item->size = size;
    *last_word(item) = ~size;
    return item;
}

static void item_end(struct item *item)
{
    size_t size = item->size;
    CHECK_MSG(size >= 16 && size < 16 + 1024, "block %p: its size word is 0x%zx", (void *)item, size);
    CHECK_MSG(*last_word(item) == ~size, "block %p of %zu: its last word is 0x%zx", (void *)item, size,
              *last_word(item));
    *last_word(item) = 0;
    item->size = 0; /* a second owner who looks sees it */
    free(item);
}

static void *swapper(void *argument)
{
    struct rng rng = {seed + (uintptr_t)argument * 5000};
    for (uint64_t i = 0; i < swaps; i++) {
        struct item *made = item_make(&rng);
        struct item *taken = __atomic_exchange_n(&table[i % table_size], made, __ATOMIC_ACQ_REL);
        if (taken != NULL)
            item_end(taken);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    test_begin(600);
    seed = test_seed_from(NULL);
    swaps = test_option(argc, argv, "--ops", 400000);
    static const size_t sizes[] = {256, 4096, 262144}, counts[] = {2, 4, 8};
    for (size_t s = 0; s < 3; s++) {
        table_size = sizes[s];
        for (size_t c = 0; c < 3; c++) {
            pthread_t threads[8];
            struct rng rng = {seed ^ c};
            for (size_t i = 0; i < table_size; i++)
                table[i] = item_make(&rng);
            for (size_t t = 0; t < counts[c]; t++)
                CHECK(pthread_create(&threads[t], NULL, swapper, (void *)(uintptr_t)(t + 1)) == 0);
            for (size_t t = 0; t < counts[c]; t++)
                CHECK(pthread_join(threads[t], NULL) == 0);
            for (size_t i = 0; i < table_size; i++) {
                item_end(table[i]);
                table[i] = NULL;
            }
        }
    }
    return 0;
}
