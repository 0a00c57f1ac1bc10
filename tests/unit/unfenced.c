/* SPDX-License-Identifier: MIT
 *
 * Under a seccomp filter there is no fence: what other cids' heaps have stays theirs.  What the caller's own heap has
 * is given up by sections, so malloc_trim gives it back all the same; and nothing that needs the fence leaves anything
 * half done.  Only a process that never had two threads needs none.
 */
#include <pthread.h>
#include <sys/wait.h>

#include "heap/purge.h"
#include "heap/span.h"
#include "inspect.h"
#include "os/os.h"
#include "unit.h"

#define COUNT 20000

static char *block[COUNT];

static size_t purge(void)
{
    EXPECT(slow_enter());
    size_t bytes = heap_purge(purge_force, NULL);
    slow_leave();
    return bytes;
}

static void fill(size_t size)
{
    for (size_t i = 0; i < COUNT; i++) {
        EXPECT((block[i] = malloc(size)) != NULL);
        memset(block[i], (int)i, size);
    }
}

/* All but one of `keep`; 0: all. */
static void release(size_t size, size_t keep)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (block[i] != NULL && (keep == 0 || i % keep != 0)) {
            EXPECT(block[i][0] == (char)i && block[i][size - 1] == (char)i);
            free(block[i]);
            block[i] = NULL;
        }
    }
}

static void own_heap_is_purged(size_t size)
{
    const size_t whole = COUNT * size;
    fill(size);
    release(size, 64);
    size_t bytes = purge();
    EXPECT_MSG(bytes > whole / 2, "%zu KiB of %zu were given back", bytes >> 10, whole >> 10);
    EXPECT_EQ(purge(), 0);
    expect_heaps_sound();
    release(size, 0);
    purge();
    EXPECT_EQ(class_inspect(size_class_of(size)).live, 0);
    expect_heaps_sound();
}

static _Atomic bool stop;

/* On whatever cpus, so that heaps become others', and are taken offline under them. */
static void *work(void *argument)
{
    static const size_t sizes[] = {24, 100, 480, 1100, 3000, 9000, 40000};
    enum { SLOTS = 256 };
    static _Thread_local char *slot[SLOTS];
    struct rng rng = {(uintptr_t)argument};
    while (!stop) {
        size_t i = rng_below(&rng, SLOTS), size = sizes[rng_below(&rng, ARRAY_LEN(sizes))];
        EXPECT(slot[i] == NULL || slot[i][0] == (char)i);
        free(slot[i]);
        EXPECT((slot[i] = malloc(size)) != NULL);
        memset(slot[i], (int)i, size);
    }
    for (size_t i = 0; i < SLOTS; i++)
        free(slot[i]);
    return NULL;
}

static void others_go_on(void)
{
    pthread_t thread[3];
    for (size_t i = 0; i < ARRAY_LEN(thread); i++)
        EXPECT_EQ(pthread_create(&thread[i], NULL, work, (void *)(i + 1)), 0);
    for (int round = 0; round < 200; round++) {
        void *p = malloc(100);
        purge();
        free(p);
        sched_yield();
    }
    stop = true;
    for (size_t i = 0; i < ARRAY_LEN(thread); i++)
        EXPECT_EQ(pthread_join(thread[i], NULL), 0);
    expect_heaps_sound();
}

static bool is_fenced(void)
{
    EXPECT_EQ(rcs_has_fence(), rcs_fence());
    return rcs_has_fence();
}

static void *find_none(void *ignored)
{
    EXPECT(!is_fenced());
    return ignored;
}

/* So that the parent goes on having had but one thread. */
static void in_child(void (*check)(void))
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        check();
        _exit(0);
    }
    EXPECT(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT_EQ(status, 0);
}

static void no_thread(void)
{
    EXPECT(is_fenced());
}

static void a_thread(void)
{
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, NULL, find_none, NULL), 0);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    EXPECT(!is_fenced());
}

static void a_manager(void)
{
    rcs_expect_manager();
    EXPECT(!is_fenced());
}

static void one_thread_needs_none(void)
{
    if (sync_mode != sync_rcs)
        return;
    EXPECT(!rcs_keeps_fence());
    in_child(no_thread);
    in_child(a_thread);
    in_child(a_manager);
    no_thread();
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(60);
    os_expect_filter();
    os_note_filter(true);
    EXPECT(os_is_filtered() && !os_may_call_luxuries() && !os_has_rseq_fence() && !os_rseq_fence());
    EXPECT_EQ(os_resident_bytes(), 0);
    EXPECT_EQ(os_resident_peak_bytes(), 0);
    EXPECT_EQ(os_current_place().cpu, OS_CPU_UNKNOWN);
    EXPECT_EQ(os_cpus_allowed(0), 0);
    unsigned char there;
    EXPECT(!os_find_resident((void *)((uintptr_t)block & ~(os_page_bytes - 1)), os_page_bytes, &there));
    one_thread_needs_none();
    /* First, while there has only been one thread: later its cid may become another's, and the heap with it. */
    own_heap_is_purged(200);
    own_heap_is_purged(1500);
    own_heap_is_purged(6000);
    others_go_on();
    return 0;
}
