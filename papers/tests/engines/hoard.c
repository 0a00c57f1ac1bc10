/* SPDX-License-Identifier: MIT
 *
 * The 2013 report's allocator is what the report says: classes are powers of two, a superblock is a page of one class
 * and one heap, freed blocks come back last in, first out, and an emptied superblock goes to whoever needs one.
 */
#include "engine.h"

#include <malloc.h>
#include <pthread.h>

#define BLOCKS 2000
#define PAGE   4096u

static void *blocks[BLOCKS];

static uintptr_t page_of(const void *block)
{
    return (uintptr_t)block & ~(uintptr_t)(PAGE - 1);
}

static void allocate_all(size_t size)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(size);
        CHECK(blocks[i] != NULL);
    }
}

static void free_all(void)
{
    for (size_t i = 0; i < BLOCKS; i++)
        free(blocks[i]);
}

static void classes(void)
{
    for (size_t size = 1; size <= 2048; size++) {
        void *block = malloc(size);
        size_t expected = 8;
        while (expected < size)
            expected *= 2;
        CHECK_MSG(malloc_usable_size(block) == expected, "%zu for %zu", malloc_usable_size(block), size);
        free(block);
    }
    void *large = malloc(2049);
    CHECK(malloc_usable_size(large) >= 2049 && (uintptr_t)large % 64 == 0);
    free(large);
}

/* 31 blocks of 128 bytes and a header fill a page, and there is none of another class in it. */
static void superblocks(void)
{
    allocate_all(128);
    void *other = malloc(64);
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t together = 0;
        for (size_t j = 0; j < BLOCKS; j++)
            together += page_of(blocks[i]) == page_of(blocks[j]);
        CHECK_MSG(together <= 31, "%zu blocks in one page", together);
        CHECK(page_of(blocks[i]) != page_of(other) && page_of(blocks[i]) != (uintptr_t)blocks[i]);
    }
    free(other);
    free_all();
}

static void last_in_first_out(void)
{
    void *a = malloc(100), *b = malloc(100);
    uintptr_t freed = (uintptr_t)b;
    free(b);
    b = malloc(100);
    CHECK((uintptr_t)b == freed);
    free(a);
    free(b);
}

#define THREADS 8

static uintptr_t lowest = UINTPTR_MAX, highest;
static pthread_barrier_t turns;

/* When it is this thread's turn: how many blocks it gets from what the first thread had. */
static void *another(void *argument)
{
    void *mine[BLOCKS];
    size_t had = 0;
    for (uintptr_t turn = 0; turn < THREADS; turn++) {
        pthread_barrier_wait(&turns);
        for (size_t i = 0; turn == (uintptr_t)argument && i < BLOCKS; i++) {
            mine[i] = malloc(100);
            had += (uintptr_t)mine[i] >= lowest && (uintptr_t)mine[i] <= highest;
        }
        for (size_t i = 0; turn == (uintptr_t)argument && i < BLOCKS; i++)
            free(mine[i]);
    }
    CHECK_MSG(had > BLOCKS / 2, "thread %lu got %zu blocks of what was emptied", (unsigned long)(uintptr_t)argument,
              had);
    return NULL;
}

/* 1.3: superblocks that one thread has emptied serve threads of other heaps, and of eight threads some have another
 * one. */
static void global_heap(void)
{
    pthread_t threads[THREADS];
    CHECK(pthread_barrier_init(&turns, NULL, THREADS) == 0);
    allocate_all(100);
    for (size_t i = 0; i < BLOCKS; i++) {
        lowest = (uintptr_t)blocks[i] < lowest ? (uintptr_t)blocks[i] : lowest;
        highest = (uintptr_t)blocks[i] > highest ? (uintptr_t)blocks[i] : highest;
    }
    free_all();
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, another, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(void)
{
    engine_begin(100);
    classes();
    superblocks();
    last_in_first_out();
    global_heap();
    return 0;
}
