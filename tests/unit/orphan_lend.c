/* SPDX-License-Identifier: MIT
 *
 * A child made while another thread is in the middle of lending a superblock's slices, or of giving up a superblock
 * that has lent some (heap/lend.h): no slice has two owners in the child, and no live block is handed out.
 *
 * The thread really is stopped there, each time one span further: span_give is wrapped by the linker.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/wait.h>

#include "heap/purge.h"
#include "heap/span.h"
#include "inspect.h"
#include "sutler/sutler.h"
#include "unit.h"

enum { BLOCKS = 300, KEPT_EVERY = 40, STOPS = 8 };
#define BYTES 36000

static int gives_left; /* until the thread is stopped; 0: it is not */
static bool is_stopped;
static sem_t stopped, go_on;

void __real_span_give(uint32_t first, size_t slices);
void __wrap_span_give(uint32_t first, size_t slices);
void __wrap_span_give(uint32_t first, size_t slices)
{
    __real_span_give(first, slices);
    if (gives_left == 0 || --gives_left > 0)
        return;
    is_stopped = true;
    EXPECT_EQ(sem_post(&stopped), 0);
    while (sem_wait(&go_on) != 0)
        continue;
}

static char *block[BLOCKS], *more[BLOCKS];

static void fill(char **p, int first)
{
    for (int i = 0; i < BLOCKS; i++) {
        EXPECT((p[i] = malloc(BYTES)) != NULL);
        memset(p[i], first + i, BYTES);
    }
}

static void expect_whole(char **p, int first)
{
    for (int i = 0; i < BLOCKS; i++)
        for (size_t k = 0; p[i] != NULL && k < BYTES; k += 500)
            EXPECT_MSG(p[i][k] == (char)(first + i), "byte %zu of block %d was written to", k, i);
}

/* Another heap is in want, so that superblocks go to the global heap, which lets go of them in a pass. */
static void give(char **p, int kept_every)
{
    static const struct heap elsewhere = {.number = 77};
    for (int i = 0; i < BLOCKS; i++)
        if (kept_every == 0 || i % kept_every != 0) {
            global_want(&elsewhere, size_class_of(BYTES));
            free(p[i]);
            p[i] = NULL;
        }
}

static void use_heap(void)
{
    static char *large[40];
    fill(more, 7);
    for (int i = 0; i < 40; i++) { /* of the slices that were given */
        EXPECT((large[i] = malloc(200000)) != NULL);
        memset(large[i], 99, 200000);
    }
    expect_whole(more, 7);
    expect_whole(block, 1);
    for (int i = 0; i < 40; i++)
        free(large[i]);
    give(more, 0);
    give(block, 0);
    sutler_purge(); /* which puts what is pending on its list */
    expect_heaps_sound();
}

static void *make_room(void *unused)
{
    EXPECT(slow_enter());
    heap_make_room(room_everywhere, 1);
    slow_leave();
    EXPECT_EQ(sem_post(&stopped), 0);
    return unused;
}

static void *purge(void *unused)
{
    sutler_purge();
    EXPECT_EQ(sem_post(&stopped), 0);
    return unused;
}

static void in_child(void)
{
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        unit_watchdog(60);
        use_heap();
        _exit(0);
    }
    int status;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_MSG(status == 0, "the child ended with wait status 0x%x", (unsigned)status);
}

/* True if it came so far. */
static bool with_stopped_thread(void *(*run)(void *), int gives)
{
    pthread_t thread;
    is_stopped = false;
    gives_left = gives;
    EXPECT_EQ(pthread_create(&thread, NULL, run, NULL), 0);
    while (sem_wait(&stopped) != 0)
        continue;
    gives_left = 0;
    const bool came = is_stopped;
    if (came) {
        in_child();
        EXPECT_EQ(sem_post(&go_on), 0);
        while (sem_wait(&stopped) != 0)
            continue;
    }
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    return came;
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(120);
    EXPECT(sem_init(&stopped, 0, 0) == 0 && sem_init(&go_on, 0, 0) == 0);
    cpu_set_t one; /* and so one heap */
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    int lent = 0, given = 0;
    for (int stop = 1; stop <= STOPS; stop++) {
        fill(block, 1);
        give(block, KEPT_EVERY);
        lent += with_stopped_thread(make_room, stop);
        expect_whole(block, 1);
        give(block, 0);
        given += with_stopped_thread(purge, stop);
        use_heap();
    }
    EXPECT_MSG(lent > 2 && given > 2, "stopped %d times while lending, %d times while giving", lent, given);
    return 0;
}
