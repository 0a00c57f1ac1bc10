/* SPDX-License-Identifier: MIT
 *
 * The heap of a child made while another thread was in the middle of a slow path, by fork or by _Fork.  That thread
 * does not exist in the child: what it had half-done must be found and made whole, and what it had in its hands be
 * free.
 *
 * Half-done states are made in two ways: the locks are taken here and data under them left as some step of the code
 * leaves them; or a thread really is stopped there, in a system call (os_map and os_map_at are wrapped by the linker)
 * or by a page fault.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "heap/arena.h"
#include "heap/large.h"
#include "heap/mapping.h"
#include "heap/remote.h"
#include "heap/span.h"
#include "inspect.h"
#include "os/os.h"
#include "sutler/sutler.h"
#include "unit.h"

/* ---- a thread that is stopped half-way ---- */

enum stop_at { nowhere, at_descriptors, at_region, at_new_table, at_purge };

static _Atomic enum stop_at stop_at;
static sem_t stopped, go_on;
static char *faulting;

static void meet(void)
{
    stop_at = nowhere;
    EXPECT_EQ(sem_post(&stopped), 0);
    while (sem_wait(&go_on) != 0)
        continue;
}

int __real_os_map_at(void *address, size_t size);
int __wrap_os_map_at(void *address, size_t size);
int __wrap_os_map_at(void *address, size_t size)
{
    int result = __real_os_map_at(address, size);
    bool descriptors = (uintptr_t)address < hot.region_base;
    if (result == 0 && stop_at == (descriptors ? at_descriptors : at_region))
        meet();
    return result;
}

void *__real_os_map(size_t size);
void *__wrap_os_map(size_t size);
void *__wrap_os_map(size_t size)
{
    char *mapped = __real_os_map(size);
    /* Not the first table, nor a mapping.  Its middle cannot be written to yet. */
    if (stop_at == at_new_table && size > 4 * os_page_bytes) {
        faulting = mapped + align_up(size / 2, os_page_bytes);
        EXPECT_EQ(mprotect(faulting, os_page_bytes, PROT_NONE), 0);
    }
    return mapped;
}

bool __real_os_purge_ranges(const struct os_range *ranges, size_t count);
bool __wrap_os_purge_ranges(const struct os_range *ranges, size_t count);
bool __wrap_os_purge_ranges(const struct os_range *ranges, size_t count)
{
    bool done = __real_os_purge_ranges(ranges, count);
    if (stop_at == at_purge)
        meet();
    return done;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    uintptr_t offset = (uintptr_t)info->si_addr - (uintptr_t)faulting;
    if (faulting == NULL || offset >= os_page_bytes) {
        signal(number, SIG_DFL);
        return;
    }
    if (stop_at == at_new_table)
        meet();
    EXPECT_EQ(mprotect(faulting, os_page_bytes, PROT_READ | PROT_WRITE), 0);
    faulting = NULL;
}

/* ---- the child ---- */

extern pid_t _Fork(void) __attribute__((weak));

static pid_t fork_without_handlers(void)
{
    if (_Fork != NULL)
        return _Fork();
#if defined(__aarch64__)
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
#else
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
#endif
}

#define HELD 4000

static char *held[HELD];
static size_t held_bytes[HELD];

/* The same sizes each time, so that the memory of one round is enough for the next. */
static void take_held(void)
{
    struct rng rng = {1};
    for (size_t i = 0; i < HELD; i++) {
        held_bytes[i] = i % 8 == 0 ? 200000 + rng_below(&rng, 400000) : 1 + rng_below(&rng, 20000);
        EXPECT((held[i] = malloc(held_bytes[i])) != NULL);
        memset(held[i], (int)i, held_bytes[i] < 300 ? held_bytes[i] : 300);
        held[i][held_bytes[i] - 1] = (char)i;
    }
}

static void give_held(size_t from, size_t step)
{
    for (size_t i = from; i < HELD; i += step) {
        if (held[i] == NULL)
            continue;
        for (size_t k = 0; k < 300 && k + 1 < held_bytes[i]; k++)
            EXPECT_MSG(held[i][k] == (char)i, "block %zu was written to", i);
        EXPECT_MSG(held[i][held_bytes[i] - 1] == (char)i, "the end of block %zu was written to", i);
        free(held[i]);
        held[i] = NULL;
    }
}

/* Everything the parent had goes and comes back, twice; the region does not grow meanwhile by more than `growth`. */
static void use_heap(size_t growth)
{
    give_held(0, 3);
    give_held(0, 1);
    size_t opened = region_opened_bytes();
    for (int round = 0; round < 2; round++) {
        take_held();
        give_held(1, 2);
        give_held(0, 1);
    }
    EXPECT_MSG(region_opened_bytes() - opened <= growth, "%zu MiB of memory were lost",
               (region_opened_bytes() - opened) >> 20);
    expect_heaps_sound();
}

/* Some thread more, so that libc does not take the process for single-threaded. */
static void *stand_by(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static void in_child_made_by(pid_t (*make)(void), void (*check)(void), const char *what)
{
    unit_say("%s\n", what);
    pid_t child = make();
    EXPECT(child >= 0);
    if (child == 0) {
        unit_watchdog(60);
        check();
        _exit(0);
    }
    int status;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_MSG(status == 0, "%s: the child ended with wait status 0x%x", what, (unsigned)status);
}

static void in_child(void (*check)(void), const char *what)
{
    in_child_made_by(fork_without_handlers, check, what);
    in_child_made_by(fork, check, what);
}

/* Every slice belongs to something, and every superblock to a heap. */
static void expect_nothing_in_hands(void)
{
    free(malloc((size_t)3 << 20)); /* a slow path: the child is whole after it */
    size_t slices;
    for (uint32_t at = region_slice_from(0); at != SLICE_END; at = region_slice_from(at + (uint32_t)slices)) {
        const struct slice *s = slice_at(at);
        const struct arena *a = arena_of(at);
        slices = 1;
        if (s->kind == slice_superblock) {
            EXPECT_MSG(superblock_owner(superblock_at_slice(at)) != NULL, "nobody owns the superblock at slice %u",
                       (unsigned)at);
        } else if (s->kind == slice_tail) {
            EXPECT_MSG(slice_head(slice_at(at))->kind == slice_superblock, "slice %u is of no superblock",
                       (unsigned)at);
        } else if (s->kind == slice_large || s->kind == slice_kept || s->kind == slice_free) {
            slices = s->slices;
        } else if (at >= a->fresh_first && at < a->fresh_end) {
            slices = a->fresh_end - at;
        } else {
            EXPECT_MSG(s->kind == slice_hole, "slice %u belongs to nothing (kind %d)",
                       (unsigned)at, s->kind);
        }
    }
}

/* ---- locks held here ---- */

static void check_all(void)
{
    use_heap((size_t)24 << 20);
}

static void check_spans(void)
{
    use_heap((size_t)80 << 20); /* the fresh ends are given up */
}

/* Lists as a list operation may leave them: neither their links nor their counts can be believed. */
static void scramble_lists(struct heap *h)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        for (enum group g = group_nearly_full; g < group_count; g++)
            for (uint32_t at = h->class[c].head[g], next; at != 0; at = next) {
                struct superblock *s = superblock_at_slice(at - 1);
                next = s->slice.next + 1;
                s->slice.next = s->slice.prev = 12345;
                s->carved = 1; /* counting what was carved takes two stores */
            }
        h->class[c].listed = h->class[c].surplus = 77;
    }
}

static void lock_heaps(void)
{
    for (unsigned i = 0; i < heap_total; i++)
        unit_hold(&heap_list[i]->lock);
    for (unsigned i = 0; i < GLOBAL_HEAPS; i++)
        unit_hold(&global_heap[i].lock);
}

/* In a child of its own: what `damage` leaves is of no use to anyone afterwards. */
static void aside(void (*damage)(void))
{
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        damage();
        _exit(0);
    }
    int status;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

static void spans_with_neighbours(void)
{
    unit_hold(&span_lock);
    in_child(check_spans, "the span lock is held");
}

static void spans_only(void)
{
    give_held(0, 1);
    unit_hold(&span_lock);
    in_child(check_spans, "the span lock is held, most memory is free");
}

static void spans_are_found_again(void)
{
    aside(spans_with_neighbours);
    aside(spans_only);
}

static void scrambled(void)
{
    lock_heaps();
    for (unsigned i = 0; i < heap_total; i++)
        scramble_lists(heap_list[i]);
    for (unsigned i = 0; i < GLOBAL_HEAPS; i++)
        scramble_lists(&global_heap[i]);
    in_child(check_all, "heaps are locked, their lists half-written");
}

static void lists_are_made_anew(void)
{
    aside(scrambled);
}

static struct heap *bound;

static void check_binding(void)
{
    unsigned heaps = heap_total, slots = 0;
    check_all();
    for (unsigned slot = 0; slot < slot_count; slot++)
        slots += heap_of_cid[slot] == bound;
    EXPECT_MSG(slots == 1, "a heap whose slot was being changed has %u", slots);
    EXPECT(heap_total <= heaps + 1);
}

static void heaps_keep_their_slots(void)
{
    bound = heap_here();
    unit_hold(&binding_lock);
    unsigned slot = bound->x_slot;
    heap_of_cid[slot] = &empty_heap; /* as an exchange of heaps begins */
    in_child(check_binding, "the binding lock is held, two heaps being exchanged");
    heap_of_cid[slot] = bound;
    unit_let_go(&binding_lock);
}

static struct superblock *untold;

static void check_untold(void)
{
    EXPECT(slow_enter());
    struct heap *h = superblock_owner(untold);
    lock_take(&h->lock);
    heap_flush_pending(h);
    lock_release(&h->lock);
    slow_leave();
    EXPECT_MSG(freelist_count(untold->x_remote) == 0 || h->x_pending != 0, "frees nobody was told of are left");
    check_all();
}

/* A thread consumed ARMED and marked the superblock as pending, but had not put it on the stack yet. */
static void posts_are_repeated(void)
{
    for (uint32_t slice = 0; untold == NULL && region_contains(slice_address(slice)); slice++) {
        struct superblock *s = superblock_at_slice(slice);
        if (s->slice.kind == slice_superblock && superblock_owner(s) != NULL && s->group == group_nearly_full &&
            s->x_remote == REMOTE_ARMED && s->x_pending_next == 0)
            untold = s;
    }
    EXPECT(untold != NULL);
    size_t i = 0;
    while (i < HELD && (!region_contains(held[i]) || superblock_of(held[i]) != untold))
        i++;
    EXPECT(i < HELD);
    EXPECT_EQ(remote_push(untold, held[i]), remote_pushed_armed);
    held[i] = NULL;
    untold->x_pending_next = 1;
    in_child(check_untold, "a superblock is between mark and stack");
    untold->x_pending_next = 0;
    heap_push_pending(superblock_owner(untold), untold);
}

static void *as_thread(void *number)
{
    for (uintptr_t i = 1; i < 2000; i++) {
        char *p = malloc(i * 64 % 40000 + 1);
        EXPECT(p != NULL);
        *p = (char)(uintptr_t)number;
        free(p);
    }
    return NULL;
}

static void check_threads(void)
{
    pthread_t thread[4];
    for (uintptr_t i = 0; i < 4; i++)
        EXPECT_EQ(pthread_create(&thread[i], NULL, as_thread, (void *)i), 0);
    for (int i = 0; i < 4; i++)
        EXPECT_EQ(pthread_join(thread[i], NULL), 0);
    check_all();
}

static void children_with_threads(void)
{
    lock_heaps();
    in_child(check_threads, "heaps are locked, the child starts threads");
    for (unsigned i = 0; i < GLOBAL_HEAPS; i++)
        unit_let_go(&global_heap[i].lock);
    for (unsigned i = heap_total; i-- > 0;)
        unit_let_go(&heap_list[i]->lock);
}

/* ---- things in hands ---- */

static void check_hands(void)
{
    expect_nothing_in_hands();
    use_heap((size_t)24 << 20);
}

/* Some superblocks on their way from heap to heap, a span taken and not formatted yet, one being purged. */
static void hands_full(void)
{
    unsigned count = 0;
    for (uint32_t slice = region_slice_from(0); slice != SLICE_END && count < 20;
         slice = region_slice_from(slice + 1)) {
        struct superblock *s = superblock_at_slice(slice);
        struct heap *h = s->slice.kind == slice_superblock ? superblock_owner(s) : NULL;
        if (h != NULL && !heap_is_global(h) && h->active[s->class] != s && s->group != group_none) {
            lock_take(&h->lock);
            heap_take_offline(h, s);
            lock_release(&h->lock);
            count++;
        }
    }
    EXPECT(count > 4);
    uint32_t taken[2];
    EXPECT(span_take(span_dense, 3, 1, &taken[0]) && span_take(span_large, 5, 1, &taken[1]));
    slice_at(taken[1])->kind = slice_tail; /* formatting begins at the end */
    in_child(check_hands, "superblocks and spans are in hands");
}

static void hands_are_emptied(void)
{
    aside(hands_full);
}

static void *trim(void *unused)
{
    sutler_purge();
    return unused;
}

/* ---- a thread really stopped ---- */

static void *grow_region(void *unused)
{
    (void)unused;
    EXPECT(slow_enter());
    static uint32_t first[4000];
    size_t n = 0;
    while (stop_at != nowhere) {
        EXPECT(n < ARRAY_LEN(first));
        EXPECT(span_take(n % 2 == 0 ? span_dense : span_large, 37, 1, &first[n]));
        n++;
    }
    while (n > 0)
        span_give(first[--n], 37);
    slow_leave();
    return NULL;
}

static void check_growth(void)
{
    check_spans();
    /* And the region can still grow, as far as there is memory. */
    size_t opened = region_opened_bytes();
    static uint32_t first[400];
    for (size_t i = 0; i < ARRAY_LEN(first); i++) {
        EXPECT_MSG(span_take(span_dense, 16, 1, &first[i]), "the child's region cannot grow");
        *(char *)slice_address(first[i]) = 1;
    }
    EXPECT(region_opened_bytes() >= opened);
    for (size_t i = 0; i < ARRAY_LEN(first); i++)
        EXPECT(region_contains(slice_address(first[i])));
}

#define MAPPINGS 1200

static char *mapping[MAPPINGS];
static size_t mapping_count_now;

static void *fill_table(void *unused)
{
    (void)unused;
    bool zero;
    while (stop_at != nowhere) {
        EXPECT(mapping_count_now < MAPPINGS);
        EXPECT((mapping[mapping_count_now] = mapping_take(4096 * (1 + mapping_count_now % 3), 16, &zero)) != NULL);
        mapping_count_now++;
    }
    return NULL;
}

static void check_table(void)
{
    free(malloc((size_t)3 << 20)); /* a slow path */
    for (size_t i = 0; i < mapping_count_now; i++)
        EXPECT_MSG(mapping_bytes(mapping[i], true) >= 4096 * (1 + i % 3), "mapping %zu of %zu is not known any more", i,
                   mapping_count_now);
    for (size_t i = 0; i < mapping_count_now; i++)
        EXPECT(mapping_give(mapping[i]));
    bool zero;
    for (int i = 0; i < 2000; i++) {
        char *p = mapping_take(4096, 16, &zero);
        EXPECT(p != NULL);
        *p = 1;
    }
}

static void with_stopped_thread(enum stop_at where, void *(*run)(void *), void (*check)(void), const char *what)
{
    pthread_t thread;
    stop_at = where;
    EXPECT_EQ(pthread_create(&thread, NULL, run, NULL), 0);
    while (sem_wait(&stopped) != 0)
        continue;
    in_child(check, what);
    EXPECT_EQ(sem_post(&go_on), 0);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(120);
    EXPECT(sem_init(&stopped, 0, 0) == 0 && sem_init(&go_on, 0, 0) == 0);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    EXPECT_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    cpu_set_t one; /* and so one heap: what another has is not lost either, but would be counted so */
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, NULL, stand_by, NULL), 0);
    for (int round = 0; round < 3; round++) {
        give_held(0, 1);
        take_held();
    }
    give_held(0, 16); /* free spans and superblocks with room among them */
    give_held(5, 16);
    spans_are_found_again();
    lists_are_made_anew();
    heaps_keep_their_slots();
    children_with_threads();
    hands_are_emptied();
    with_stopped_thread(at_purge, trim, check_hands, "pages are being purged");
    with_stopped_thread(at_region, grow_region, check_growth, "the region is being opened");
    with_stopped_thread(at_descriptors, grow_region, check_growth, "descriptors are being mapped");
    with_stopped_thread(at_new_table, fill_table, check_table, "the table of mappings is being replaced");
    posts_are_repeated();
    use_heap((size_t)64 << 20);
    return 0;
}
