/* SPDX-License-Identifier: MIT
 *
 * A block of the running cid's own heap goes back to its superblock's own list by a fast path, whatever its class: no
 * free of one is remote, and none but the interrupted take the slow way (rcs mode on x86-64).
 */
#include <sched.h>

#include "core/core.h"
#include "inspect.h"
#include "unit.h"

#define BLOCKS 16
#define INTERRUPTED_MAX 10

static unsigned slow;

void __real_free_slow(void *block);
void __wrap_free_slow(void *block);
void __wrap_free_slow(void *block)
{
    slow++;
    __real_free_slow(block);
}

static void free_by_call(void *block)
{
    free(block);
}

static void free_by_push(void *block)
{
    struct superblock *s = block_find(block).superblock;
    enum hot_pushed pushed = hot_push(block, s);
    EXPECT_MSG(pushed != hot_foreign, "a block of %u bytes is foreign to its own heap", size_class[s->class].bytes);
    if (pushed == hot_pushed_notify)
        free_notify(s);
    else if (pushed != hot_pushed)
        free(block);
}

static void frees_stay_local(unsigned c, void (*give)(void *block))
{
    char *block[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        EXPECT((block[i] = malloc(size_class[c].bytes)) != NULL);
    for (int i = 0; i < BLOCKS; i++) {
        struct superblock *s = block_find(block[i]).superblock;
        EXPECT_EQ(s->class, c);
        give(block[i]);
        EXPECT_MSG(freelist_count(s->x_remote) == 0,
                   "a block of %u bytes went to the remote list", size_class[c].bytes);
    }
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(60);
    cpu_set_t here; /* so that no other heap becomes ours */
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    EXPECT_EQ(sched_setaffinity(0, sizeof here, &here), 0);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        frees_stay_local(c, free_by_call);
        if (sync_mode == sync_rcs)
            frees_stay_local(c, free_by_push);
    }
#if defined(__x86_64__)
    EXPECT_MSG(sync_mode != sync_rcs || slow <= INTERRUPTED_MAX, "%u frees took the slow way", slow);
#endif
    return 0;
}
