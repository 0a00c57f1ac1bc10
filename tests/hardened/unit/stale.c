/* SPDX-License-Identifier: MIT
 *
 * Stale pointers, second tier: threads free blocks, keep pointers to them in all kinds of places and move these about
 * while they allocate.  No block that malloc hands out may overlap one to which a stale pointer is kept; once it is
 * dropped the block shall come again.
 *
 *     stale [--ops N] [--threads N] [--seed N] [--forks N]
 *
 * What is known of stale blocks is written down without pointers: a byte for each 16 bytes of the heap.  A block is
 * written down before it is freed, and struck out before the last pointer to it is dropped.
 *
 * With --forks children are made meanwhile, who go on allocating: the stale pointers of threads that are not there any
 * more keep their blocks in the child as well, but for those that were in a register.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/proc.h"
#include "support/rng.h"

/* So much is live that there is a manager, who sweeps while the threads go on. */
enum { STALE = 96, NODES = 8192, SIZE_MOST = 900, THREADS_MOST = 64 };

#define COVERED ((uintptr_t)8 << 30)
#define GRANULE 16u

enum { HELD = 1, WAS_HELD = 2 };
static _Atomic unsigned char *note;
static uintptr_t note_base;
struct counts {
    _Atomic uint64_t reused, dropped, ops;
};
static struct counts counts;

/* Where a stale pointer is. */
enum place { in_global, in_heap, in_stack, in_thread_local, in_mapping, in_interior, places };
struct slot {
    enum place place;
    unsigned index; /* in the place's array */
    size_t size;
    uintptr_t hidden; /* the complement of its address */
    bool used;
};

static void *volatile global_place[THREADS_MOST][STALE];
static __thread void *volatile thread_local_place[STALE];

struct thread {
    unsigned number;
    uint64_t ops;
    struct rng rng;
    struct slot slot[STALE]; /* slot i uses index i of its place's array */
    void *volatile *heap_place, *volatile *stack_place, *volatile *mapping_place, *volatile *thread_local_place;
};

static void fail(const char *what)
{
    fprintf(stderr, "FAILED: %s\n", what);
    _exit(1);
}

static _Atomic unsigned char *note_of(const void *p)
{
    uintptr_t offset = (uintptr_t)p - note_base;
    if (offset >= COVERED)
        fail("the heap is elsewhere");
    return &note[offset / GRANULE];
}

static void write_down(const void *p, size_t size)
{
    for (size_t i = 0; i < size; i += GRANULE)
        atomic_store(note_of((const char *)p + i), HELD);
}

static void strike_out(const void *p, size_t size)
{
    for (size_t i = 0; i < size; i += GRANULE)
        atomic_store(note_of((const char *)p + i), WAS_HELD);
}

/* A block nobody must have a pointer to. */
static void *take(size_t size)
{
    char *p = malloc(size);
    if (p == NULL)
        fail("no memory");
    for (size_t i = 0; i < size; i += GRANULE) {
        unsigned char was = atomic_load(note_of(p + i));
        if (was == HELD)
            fail("a block was handed out to which a stale pointer is kept");
        if (was == WAS_HELD) {
            atomic_fetch_add(&counts.reused, 1);
            atomic_store(note_of(p + i), 0);
        }
    }
    return p;
}

static void *volatile *place_of(struct thread *t, enum place place, unsigned index)
{
    switch (place) {
    case in_global:
    case in_interior:
        return &global_place[t->number][index];
    case in_heap:
        return &t->heap_place[index];
    case in_stack:
        return &t->stack_place[index];
    case in_thread_local:
        return &t->thread_local_place[index];
    default:
        return &t->mapping_place[index];
    }
}

static size_t shift_for(enum place place, size_t size)
{
    return place == in_interior ? size : 0; /* one past the end */
}

static void put(struct thread *t, unsigned i, char *p, enum place place)
{
    struct slot *s = &t->slot[i];
    s->place = place;
    *place_of(t, place, i) = p + shift_for(place, s->size);
}

/* Its only copy is in a register for a moment. */
static char *pick_up(struct thread *t, unsigned i)
{
    struct slot *s = &t->slot[i];
    char *p = *place_of(t, s->place, i);
    *place_of(t, s->place, i) = NULL;
    return p - shift_for(s->place, s->size);
}

static enum place random_place(struct thread *t)
{
    return (enum place)(rng_next(&t->rng) % places);
}

static void drop(struct thread *t, unsigned i)
{
    struct slot *s = &t->slot[i];
    strike_out((char *)*place_of(t, s->place, i) - shift_for(s->place, s->size), s->size);
    *place_of(t, s->place, i) = NULL;
    s->used = false;
    atomic_fetch_add(&counts.dropped, 1);
}

static void renew(struct thread *t, unsigned i)
{
    struct slot *s = &t->slot[i];
    s->size = 1 + rng_next(&t->rng) % SIZE_MOST;
    char *p = take(s->size);
    s->hidden = ~(uintptr_t)p;
    write_down(p, s->size);
    put(t, i, p, random_place(t));
    s->used = true;
    free(p);
}

static void step(struct thread *t, void **node)
{
    unsigned i = (unsigned)(rng_next(&t->rng) % STALE), n = (unsigned)(rng_next(&t->rng) % NODES);
    switch (rng_next(&t->rng) % 8) {
    case 0:
        if (t->slot[i].used)
            drop(t, i);
        else
            renew(t, i);
        break;
    case 1:
    case 2:
    case 3:
    case 4:
        if (t->slot[i].used)
            put(t, i, pick_up(t, i), random_place(t));
        break;
    default:
        free(node[n]);
        node[n] = take(1 + rng_next(&t->rng) % SIZE_MOST);
        memset(node[n], 0x11, 1);
    }
}

static void *work(void *argument)
{
    struct thread *t = argument;
    void *volatile on_stack[STALE] = {0};
    void **node = calloc(NODES, sizeof *node);
    t->stack_place = on_stack;
    t->thread_local_place = thread_local_place;
    t->heap_place = calloc(STALE, sizeof(void *));
    t->mapping_place = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* last */
    for (uint64_t k = 0; k < t->ops; k++)
        step(t, node);
    for (unsigned i = 0; i < STALE; i++)
        if (t->slot[i].used)
            drop(t, i);
    for (unsigned n = 0; n < NODES; n++)
        free(node[n]);
    free(node);
    free((void *)t->heap_place);
    return NULL;
}

/* ---- children ---- */

/* In a child: what was in a register of a thread that is not there is nowhere any more. */
static void forget_registers(struct thread *t)
{
    for (unsigned i = 0; i < STALE; i++) {
        struct slot *s = &t->slot[i];
        if (s->used && *place_of(t, s->place, i) != (char *)~s->hidden + shift_for(s->place, s->size))
            strike_out((void *)~s->hidden, s->size);
    }
}

static void live_as_child(struct thread *thread, unsigned threads, unsigned number)
{
    static void *node[NODES];
    struct rng rng = {number};
    for (unsigned i = 0; i < threads; i++)
        if (thread[i].mapping_place != NULL)
            forget_registers(&thread[i]);
    for (unsigned k = 0; k < 30000; k++) {
        unsigned n = (unsigned)(rng_next(&rng) % NODES);
        free(node[n]);
        node[n] = take(1 + rng_next(&rng) % SIZE_MOST);
    }
    _exit(0);
}

static void fork_children(struct thread *thread, unsigned threads, unsigned forks)
{
    for (unsigned i = 0; i < forks; i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0)
            live_as_child(thread, threads, i);
        waitpid(child, &status, 0);
        if (status != 0)
            fail("in a child");
    }
}

static uint64_t number(int argc, char **argv, const char *name, uint64_t fallback)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return strtoull(argv[i + 1], NULL, 10);
    return fallback;
}

int main(int argc, char **argv)
{
    static struct thread thread[THREADS_MOST];
    static pthread_t id[THREADS_MOST];
    const uint64_t ops = number(argc, argv, "--ops", 1000000), seed = number(argc, argv, "--seed", 1);
    const unsigned threads = (unsigned)number(argc, argv, "--threads", 4);
    if (proc_is_filtered())
        SKIP("no sweep is possible under a seccomp filter");
    void *first = malloc(1);
    note = mmap(NULL, COVERED / GRANULE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (note == MAP_FAILED)
        fail("mmap");
    note_base = (uintptr_t)first & ~(((uintptr_t)1 << 30) - 1);
    for (unsigned i = 0; i < threads; i++) {
        thread[i] = (struct thread){.number = i, .ops = ops / threads, .rng = {seed * 1000 + i}};
        if (pthread_create(&id[i], NULL, work, &thread[i]) != 0)
            fail("pthread_create");
    }
    fork_children(thread, threads, (unsigned)number(argc, argv, "--forks", 0));
    for (unsigned i = 0; i < threads; i++)
        pthread_join(id[i], NULL);
    free(first);
    printf("%llu operations, %llu stale pointers dropped, %llu times 16 bytes handed out again\n",
           (unsigned long long)ops, (unsigned long long)counts.dropped, (unsigned long long)counts.reused);
    if (counts.reused == 0 && ops >= 1000000)
        fail("no block came again");
    return 0;
}
