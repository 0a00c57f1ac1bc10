/* SPDX-License-Identifier: MIT
 *
 * No bugs: what programs may do although it looks odd.  Whoever reports one of these has reported a false alarm.
 * Numbers: the block's size.
 */
#include "corpus.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The whole of the usable size is the owner's. */
static void usable_size(const struct bug *bug)
{
    unsigned char *block = take(bug->size);
    bug_begin();
    fill(block, malloc_usable_size(block), 'x');
    give(block);
    bug_end();
    settle(bug->size);
}

static void usable_size_after_realloc(const struct bug *bug)
{
    unsigned char *block = take(bug->size);
    bug_begin();
    for (size_t size = bug->size; size < 4 * bug->size; size += 7) {
        block = realloc(block, size);
        fill(block, malloc_usable_size(block), 'x');
    }
    for (size_t size = 4 * bug->size; size > 0; size = 2 * size / 3) {
        block = realloc(block, size);
        fill(block, malloc_usable_size(block), 'x');
    }
    give(block);
    bug_end();
    settle(bug->size);
}

static void nothing_freed(const struct bug *bug)
{
    bug_begin();
    give(NULL);
    give(realloc(NULL, bug->size));
    give(malloc(0));
    give(realloc(take(bug->size), 0));
    bug_end();
    settle(bug->size);
}

static void aligned(const struct bug *bug)
{
    bug_begin();
    for (size_t alignment = 16; alignment <= MIB; alignment *= 2) {
        unsigned char *block = memalign(alignment, bug->size);
        effect((uintptr_t)block % alignment != 0);
        fill(block, malloc_usable_size(block), 'x');
        block = realloc(block, 2 * bug->size);
        fill(block, 2 * bug->size, 'x');
        give(block);
    }
    bug_end();
    settle(bug->size);
}

static void *give_here(void *block)
{
    give(block);
    return NULL;
}

static void freed_elsewhere(const struct bug *bug)
{
    bug_begin();
    for (int i = 0; i < 50; i++) {
        unsigned char *block = take(bug->size);
        fill(block, bug->size, 'x');
        in_thread(give_here, block);
    }
    bug_end();
    settle(bug->size);
}

static void refused(const struct bug *bug)
{
    volatile size_t most = SIZE_MAX;
    unsigned char *block = take(bug->size);
    fill(block, bug->size, 'x');
    bug_begin();
    effect(malloc(most / 2 + 1) != NULL || calloc(most / 2, 3) != NULL || realloc(block, most - 64) != NULL);
    effect(!holds(block, bug->size, 'x'));
    give(block);
    bug_end();
}

/* Both processes go on with what was free, full and held back at the fork. */
static void forked(const struct bug *bug)
{
    static struct crowd crowd;
    crowd_take(&crowd, bug->size);
    for (size_t i = 0; i < crowd.count; i += 2) {
        give(crowd.blocks[i]);
        crowd.blocks[i] = NULL;
    }
    bug_begin();
    pid_t child = fork();
    crowd_give(&crowd);
    settle(bug->size);
    if (child == 0)
        _exit(0);
    int status = -1;
    effect(waitpid(child, &status, 0) != child || status != 0);
    bug_end();
}

static void grown(const struct bug *bug)
{
    bug_begin();
    unsigned char *block = NULL;
    for (size_t size = bug->size; size < 64 * MIB; size += size / 2) {
        block = realloc(block, size);
        fill(block + size - bug->size, bug->size, 'x');
    }
    give(block);
    bug_end();
}

/* Old data in a new block may be read; nothing says that it is zero. */
static void zeros_only_of_calloc(const struct bug *bug)
{
    bug_begin();
    for (int i = 0; i < 1000; i++) {
        unsigned char *block = i % 2 == 0 ? calloc(1, bug->size) : take(bug->size);
        effect(i % 2 == 0 && !is_zero(block, bug->size));
        fill(block, bug->size, 'x');
        give(block);
    }
    bug_end();
}

const struct bug correct[] = {
    {"usable_size_of_1", usable_size, 1, 0, 0},
    {"usable_size_of_100", usable_size, 100, 0, 0},
    {"usable_size_of_5000", usable_size, 5000, 0, 0},
    {"usable_size_of_200000", usable_size, 200000, 0, 0},
    {"usable_size_of_32_mib", usable_size, 32 * MIB, 0, 0},
    {"usable_size_after_realloc", usable_size_after_realloc, 1000, 0, 0},
    {"nothing_freed", nothing_freed, 64, 0, 0},
    {"aligned", aligned, 1000, 0, 0},
    {"freed_elsewhere", freed_elsewhere, 64, 0, 0},
    {"refused", refused, 1000, 0, 0},
    {"forked", forked, 64, 0, 0},
    {"grown", grown, 1000, 0, 0},
    {"zeros_only_of_calloc", zeros_only_of_calloc, 1000, 0, 0},
    {0},
};
