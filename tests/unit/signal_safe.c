/* SPDX-License-Identifier: MIT
 *
 * Malloc in a signal handler that interrupted the allocator's own slow path: it must not wait for locks its own thread
 * may hold, so it gets signal-safe blocks, and what it frees goes to remote lists.  The handler's situation is made by
 * slow_enter(), with the locks really held.
 */
#include "heap/signal_safe.h"

#include <malloc.h>
#include <pthread.h>

#include "heap/large.h"
#include "heap/mapping_table.h"
#include "heap/span.h"
#include "inspect.h"
#include "options/options.h"
#include "unit.h"

static bool is_signal_safe(const void *p)
{
    return region_contains(p) && slice_at(slice_of(p))->kind == slice_signal_safe;
}

/* From here to leave() this thread is "inside a slow path", and everything there is to hold is held. */
static void interrupt_slow_path(void)
{
    EXPECT(slow_enter());
    unit_hold(&binding_lock);
    for (unsigned i = 0; i < heap_total; i++)
        unit_hold(&heap_list[i]->lock);
    for (unsigned i = 0; i < GLOBAL_HEAPS; i++)
        unit_hold(&global_heap[i].lock);
    unit_hold(&span_lock);
    unit_hold(&mapping_lock);
}

static void leave(void)
{
    unit_let_go(&mapping_lock);
    unit_let_go(&span_lock);
    for (unsigned i = 0; i < GLOBAL_HEAPS; i++)
        unit_let_go(&global_heap[i].lock);
    for (unsigned i = heap_total; i-- > 0;)
        unit_let_go(&heap_list[i]->lock);
    unit_let_go(&binding_lock);
    slow_leave();
}

/* Until the active list of the class is empty, so that the next malloc cannot be served by the fast path. */
static unsigned use_up(unsigned c, void **block, unsigned most)
{
    unsigned n = 0;
    do {
        EXPECT(n < most);
        EXPECT((block[n++] = malloc(size_class[c].bytes)) != NULL);
    } while (heap_here()->active[c]->freelist != 0);
    return n;
}

static void a_handler_allocates(void)
{
    unsigned c = size_class_of(1000);
    static void *held[5000];
    unsigned n = use_up(c, held, ARRAY_LEN(held));
    interrupt_slow_path();
    char *a = malloc(1000), *b = calloc(10, 100), *d = NULL, *e = malloc(70000);
    EXPECT(a != NULL && b != NULL && e != NULL);
    EXPECT(is_signal_safe(a) && is_signal_safe(b) && is_signal_safe(e));
    EXPECT((uintptr_t)a % BLOCK_ALIGNMENT == 0);
    for (size_t alignment = 32; alignment <= 4096; alignment *= 2) { /* whichever way it is served */
        EXPECT((d = aligned_alloc(alignment, 4000)) != NULL);
        EXPECT_MSG((uintptr_t)d % alignment == 0, "block %p is not aligned to %zu", (void *)d, alignment);
        if (alignment < 4096)
            free(d);
    }
    EXPECT(malloc_usable_size(a) >= 1000 && malloc_usable_size(b) >= 1000 && malloc_usable_size(e) >= 70000);
    for (int i = 0; i < 1000; i++)
        EXPECT_EQ(b[i], 0);
    memset(a, 1, 1000);
    memset(b, 2, 1000);
    memset(d, 3, 4000);
    memset(e, 4, 70000);
    a = realloc(a, 3000); /* grows among signal-safe blocks */
    EXPECT(a != NULL && is_signal_safe(a));
    for (int i = 0; i < 1000; i++)
        EXPECT_EQ(a[i], 1);
    free(NULL);
    free(b);
    leave();
    EXPECT(d[3999] == 3 && e[69999] == 4);
    a = realloc(a, 10000); /* outside again it moves to the heap */
    EXPECT(a != NULL && !is_signal_safe(a));
    for (int i = 0; i < 1000; i++)
        EXPECT_EQ(a[i], 1);
    free(a);
    free(d);
    free(e);
    while (n > 0)
        free(held[--n]);
    EXPECT_EQ(class_inspect(c).live, 0);
    expect_heaps_sound();
}

/* Frees of ordinary blocks from there: none may be lost, whichever way each has to go. */
static void a_handler_frees(size_t size)
{
    unsigned c = size_class_of(size);
    static void *block[20000];
    const unsigned count = 3u * size_class[c].blocks;
    size_t before = class_inspect(c).live;
    for (unsigned i = 0; i < count; i++)
        EXPECT((block[i] = malloc(size)) != NULL);
    interrupt_slow_path();
    for (unsigned i = 0; i < count; i++)
        free(block[i]);
    leave();
    EXPECT_EQ(class_inspect(c).live, before);
    struct heap *h = heap_here();
    lock_take(&h->lock);
    heap_flush_pending(h);
    lock_release(&h->lock);
    expect_heaps_sound();
}

static void a_handler_reallocs(void)
{
    char *small = malloc(200), *span = malloc(300000), *mapping = malloc((size_t)20 << 20);
    EXPECT(small != NULL && span != NULL && mapping != NULL);
    memset(small, 7, 200);
    memset(span, 8, 300000);
    memset(mapping, 9, 100000);
    interrupt_slow_path();
    small = realloc(small, 9000);
    EXPECT(small != NULL && small[199] == 7);
    char *moved = realloc(span, 2000000); /* more than the signal-safe area has: fails, the block is as it was */
    EXPECT(moved == NULL && errno == ENOMEM);
    span = realloc(span, 1000);
    EXPECT(span != NULL && span[0] == 8 && span[999] == 8);
    leave();
    free(small);
    free(span);
    free(mapping);
    expect_heaps_sound();
}

/* The fast path finds none of this class, whichever cid the thread is moved to.  Lost: it is the process's last but one
 * act. */
static void empty_lists(unsigned c)
{
    for (unsigned slot = 0; slot <= SLOT_MAX; slot++) {
        struct heap *h = heap_of_cid[slot];
        if (h != NULL && h->active[c]->freelist != 0)
            h->active[c]->freelist = 0;
    }
}

/* A block that need not grow can stay where it is: realloc to less never fails. */
static void shrinking_needs_no_memory(void)
{
    char *span = malloc(300000), *small = malloc(9000);
    EXPECT(span != NULL && small != NULL);
    memset(span, 8, 300000);
    memset(small, 7, 9000);
    interrupt_slow_path();
    static void *all[20000];
    size_t n = 0;
    for (size_t size = 4096; size >= 16; size /= 2)
        for (void *p; (p = signal_safe_take(size, 16)) != NULL;)
            all[n++] = p;
    if (sync_mode == sync_rcs)
        empty_lists(size_class_of(1000));
    errno = 5;
    EXPECT(realloc(span, 1000) == span && errno == 5 && span[0] == 8 && span[299999] == 8);
    EXPECT(realloc(small, 1000) == small && errno == 5 && small[8999] == 7);
    EXPECT(realloc(small, 100000) == NULL && errno == ENOMEM);
    leave();
    while (n > 0)
        EXPECT(signal_safe_give(all[--n]));
}

/* Twice, or not the start of one: reported, and the space does not start over under blocks that are out. */
static void bad_frees_are_seen(void)
{
    option_value[option_on_error] = on_error_report;
    interrupt_slow_path();
    char *a = signal_safe_take(100, 16), *b = signal_safe_take(100, 16);
    EXPECT(a != NULL && b != NULL);
    memset(b, 0xff, 100);
    free(a);
    free(a);
    free(b + 16);
    free(b + 1);
    EXPECT_EQ(malloc_usable_size(a), 0);
    EXPECT_EQ(malloc_usable_size(b + 32), 0);
    EXPECT_EQ(malloc_usable_size(b), 112);
    char *d = signal_safe_take(5000, 16);
    EXPECT_MSG(d != NULL && (d + 5000 <= b || d >= b + 100), "a second free of one block gave another away");
    free(d);
    free(b);
    leave();
    option_value[option_on_error] = on_error_abort;
}

/* A mapping of its own cannot be looked up without the lock.  Refusing is right; a block without its bytes is not. */
static void a_handler_reallocs_a_mapping(void)
{
    char *mapping = malloc((size_t)20 << 20);
    EXPECT(mapping != NULL);
    memset(mapping, 9, 100000);
    interrupt_slow_path();
    char *moved = realloc(mapping, 5000);
    leave();
    if (moved == NULL)
        moved = mapping;
    for (int i = 0; i < 5000; i++)
        EXPECT_MSG(moved[i] == 9, "realloc of a mapping in a signal handler lost byte %d", i);
    free(moved);
}

/* All are back: the space starts over.  Used up: NULL and ENOMEM, and what was handed out is whole. */
static void the_space_is_used_again(void)
{
    static char *block[5000];
    void *first = signal_safe_take(100, 16);
    EXPECT(first != NULL);
    signal_safe_give(first);
    for (int round = 0; round < 3; round++) {
        size_t n = 0, size = 16u + 300u * (size_t)round;
        while ((block[n] = signal_safe_take(size, 16)) != NULL) {
            memset(block[n], (int)n, size);
            EXPECT(signal_safe_bytes(block[n]) >= size);
            EXPECT(++n < ARRAY_LEN(block) || round == 0);
            if (n == ARRAY_LEN(block))
                break;
        }
        EXPECT(n > 300);
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < size; k++)
                EXPECT_EQ(block[i][k], (char)i);
        for (size_t i = 0; i < n; i++)
            signal_safe_give(block[i]);
        void *again = signal_safe_take(100, 16);
        EXPECT(again == first);
        signal_safe_give(again);
    }
    EXPECT(signal_safe_take(SIZE_MAX, 16) == NULL);
    EXPECT(signal_safe_take(SIZE_MAX - 100, 16) == NULL);
    EXPECT(signal_safe_take((size_t)10 << 20, 16) == NULL);
    EXPECT(signal_safe_take(16, (size_t)1 << 20) == NULL);
    interrupt_slow_path();
    errno = 0;
    void *p = malloc((size_t)1 << 30);
    EXPECT(p == NULL && errno == ENOMEM);
    leave();
}

/* What handlers keep does not use the space up for ever: slow paths add to it. */
static void what_is_kept_does_not_use_it_up(void)
{
    static char *kept[1500];
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        interrupt_slow_path();
        EXPECT_MSG((kept[i] = signal_safe_take(1000, 16)) != NULL, "no more after %zu KiB", i);
        memset(kept[i], (int)i, 1000);
        void *passing = signal_safe_take(10000, 16);
        EXPECT(passing != NULL && is_signal_safe(passing));
        signal_safe_give(passing);
        leave();
    }
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        EXPECT(is_signal_safe(kept[i]) && malloc_usable_size(kept[i]) >= 1000);
        for (size_t k = 0; k < 1000; k++)
            EXPECT_EQ(kept[i][k], (char)i);
        free(kept[i]);
    }
}

/* Handlers of several threads at once. */
static void *as_several_handlers(void *seed)
{
    struct rng rng = {(uintptr_t)seed};
    EXPECT(slow_enter());
    for (int round = 0; round < 20000; round++) {
        struct {
            char *block;
            size_t size;
        } held[4];
        size_t n = 1 + rng_below(&rng, 4);
        for (size_t i = 0; i < n; i++) {
            held[i].size = 1 + rng_below(&rng, 500);
            size_t alignment = 16ul << rng_below(&rng, 4);
            held[i].block = signal_safe_take(held[i].size, alignment);
            if (held[i].block == NULL)
                continue;
            EXPECT_EQ((uintptr_t)held[i].block % alignment, 0);
            memset(held[i].block, (int)(uintptr_t)seed + (int)i, held[i].size);
        }
        for (size_t i = 0; i < n; i++)
            if (held[i].block != NULL) {
                for (size_t k = 0; k < held[i].size; k++)
                    EXPECT_EQ(held[i].block[k], (char)((int)(uintptr_t)seed + (int)i));
                free(held[i].block);
            }
    }
    slow_leave();
    return NULL;
}

static void several_at_once(void)
{
    pthread_t thread[4];
    void *first = signal_safe_take(64, 16);
    signal_safe_give(first);
    for (uintptr_t i = 0; i < 4; i++)
        EXPECT_EQ(pthread_create(&thread[i], NULL, as_several_handlers, (void *)(i * 10 + 1)), 0);
    for (int i = 0; i < 4; i++)
        EXPECT_EQ(pthread_join(thread[i], NULL), 0);
    void *again = signal_safe_take(64, 16);
    EXPECT(again == first); /* every block came back */
    signal_safe_give(again);
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(60);
    a_handler_allocates();
    a_handler_frees(48);
    a_handler_frees(1000);
    a_handler_frees(20000);
    a_handler_reallocs();
    the_space_is_used_again();
    several_at_once();
    what_is_kept_does_not_use_it_up();
    a_handler_reallocs_a_mapping();
    bad_frees_are_seen();
    shrinking_needs_no_memory();
    return 0;
}
