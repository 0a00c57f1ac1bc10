/* SPDX-License-Identifier: MIT
 *
 * Malloc in a signal handler that interrupted the allocator's own slow path: it must not wait for locks its own thread
 * may hold, so it gets signal-safe blocks, and what it frees goes to remote lists.  The handler's situation is made by
 * slow_enter(), with the locks really held.
 */
#include "heap/signal_safe.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#include "heap/large.h"
#include "heap/mapping_table.h"
#include "heap/span.h"
#include "inspect.h"
#include "options/options.h"
#include "os/errors.h"
#include "unit.h"

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
    EXPECT(signal_safe_contains(a) && signal_safe_contains(b) && signal_safe_contains(e));
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
    EXPECT(a != NULL && signal_safe_contains(a));
    for (int i = 0; i < 1000; i++)
        EXPECT_EQ(a[i], 1);
    free(NULL);
    free(b);
    leave();
    EXPECT(d[3999] == 3 && e[69999] == 4);
    a = realloc(a, 10000); /* outside again it moves to the heap */
    EXPECT(a != NULL && !signal_safe_contains(a));
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
    span = realloc(span, 2000000); /* more than a chunk */
    EXPECT(span != NULL && signal_safe_contains(span) && span[0] == 8 && span[299999] == 8);
    span = realloc(span, 1000);
    EXPECT(span != NULL && span[0] == 8 && span[999] == 8);
    leave();
    free(small);
    free(span);
    free(mapping);
    expect_heaps_sound();
}

/* The fast path finds none of this class, whichever cid the thread is moved to.  Lost: it is one of the process's last
 * acts. */
static void empty_lists(unsigned c)
{
    for (unsigned slot = 0; slot <= SLOT_MAX; slot++) {
        struct heap *h = heap_of_cid[slot];
        if (h != NULL && h->active[c]->freelist != 0)
            h->active[c]->freelist = 0;
    }
}

static bool is_out_of_memory;

int __real_os_map_at(void *address, size_t size);
int __wrap_os_map_at(void *address, size_t size);
int __wrap_os_map_at(void *address, size_t size)
{
    return is_out_of_memory ? ENOMEM : __real_os_map_at(address, size);
}

/* All that can be had without another chunk, which is all there is: nothing was lost.  Returns how many. */
static size_t take_all(void **block, size_t most)
{
    size_t n = 0, bytes = 0;
    for (size_t cell = 1ul << 31; cell >= 64; cell /= 2)
        for (void *p; n < most && (p = signal_safe_take(cell - 16, 16)) != NULL; bytes += cell)
            block[n++] = p;
    EXPECT(n < most);
    EXPECT_MSG(bytes + 64 == signal_safe_mapped_bytes(), "%zu of %zu bytes are there", bytes,
               signal_safe_mapped_bytes());
    return n;
}

/* A block that need not grow can stay where it is: realloc to less never fails.  Where no memory is to be had handlers
 * still have the first chunk; and what is refused costs nothing that could be had later. */
static void shrinking_needs_no_memory(void)
{
    char *span = malloc(300000), *small = malloc(9000);
    EXPECT(span != NULL && small != NULL);
    memset(span, 8, 300000);
    memset(small, 7, 9000);
    interrupt_slow_path();
    static void *all[300000];
    const size_t mapped = signal_safe_mapped_bytes();
    is_out_of_memory = true;
    size_t n = take_all(all, ARRAY_LEN(all));
    EXPECT(n > 100);
    if (sync_mode == sync_rcs)
        empty_lists(size_class_of(1000));
    errno = 5;
    EXPECT(realloc(span, 1000) == span && errno == 5 && span[0] == 8 && span[299999] == 8);
    EXPECT(realloc(small, 1000) == small && errno == 5 && small[8999] == 7);
    for (int i = 0; i < 50000; i++)
        EXPECT(realloc(small, 100000) == NULL && errno == ENOMEM);
    is_out_of_memory = false;
    EXPECT_EQ(signal_safe_mapped_bytes(), mapped);
    char *large = realloc(small, 100000);
    EXPECT(large != NULL && signal_safe_contains(large) && large[8999] == 7);
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
    char before[16];
    memcpy(before, b - 16, 16);
    memset(b - 16, 0x41, 8); /* by the block before it, which is too long */
    EXPECT_EQ(malloc_usable_size(b), 0);
    free(b);
    memcpy(b - 16, before, 16);
    EXPECT_EQ(malloc_usable_size(b), 112);
    char *d = signal_safe_take(5000, 16);
    EXPECT_MSG(d != NULL && (d + 5000 <= b || d >= b + 100), "a second free of one block gave another away");
    free(d);
    free(b);
    leave();
    option_value[option_on_error] = on_error_abort;
}

static char told[300];

static void remember(const char *text, size_t length)
{
    EXPECT(length < sizeof told);
    memcpy(told, text, length);
}

/* Written to after it was freed: told; and what can no longer be trusted is not handed out. */
static void writes_to_freed_blocks_are_seen(void)
{
    static char *block[100];
    const size_t size = 3000;
    option_value[option_on_error] = on_error_report;
    error_to_hook(remember);
    for (size_t i = 0; i < ARRAY_LEN(block); i++)
        EXPECT((block[i] = signal_safe_take(size, 16)) != NULL);
    for (size_t i = 0; i < ARRAY_LEN(block); i++)
        signal_safe_give(block[i]);
    char *const last = block[ARRAY_LEN(block) - 1];
    memset(last - 16, 0x41, 8);
    char *again = signal_safe_take(size, 16), *another = signal_safe_take(size, 16);
    EXPECT(again == last && strstr(told, "malloc(): corrupted free list of signal handlers' blocks") != NULL);
    for (size_t i = 0; i < ARRAY_LEN(block); i++)
        EXPECT(another != NULL && another != block[i]);
    signal_safe_give(again);
    signal_safe_give(another);
    error_to_hook(NULL);
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

/* What was freed is taken again, and what is handed out meanwhile is whole. */
static void cells_are_used_again(void)
{
    static char *block[2000];
    size_t mapped = 0;
    for (int round = 0; round < 8; round++) {
        for (size_t i = 0; i < ARRAY_LEN(block); i++) {
            const size_t size = 1 + i * 7919 % 3000;
            EXPECT((block[i] = signal_safe_take(size, 16)) != NULL);
            EXPECT(signal_safe_bytes(block[i]) >= size && signal_safe_bytes(block[i]) < size + 16);
            memset(block[i], (int)i, size);
        }
        for (size_t i = 0; i < ARRAY_LEN(block); i++)
            for (size_t k = 0; k < 1 + i * 7919 % 3000; k++)
                EXPECT_EQ(block[i][k], (char)i);
        for (size_t i = 0; i < ARRAY_LEN(block); i++) {
            EXPECT(signal_safe_give(block[i]) && !signal_safe_give(block[i]));
            EXPECT(signal_safe_was_freed(block[i]) && signal_safe_bytes(block[i]) == 0);
        }
        EXPECT(round == 0 || signal_safe_mapped_bytes() == mapped);
        mapped = signal_safe_mapped_bytes();
    }
}

static void sizes_and_alignments_have_limits(void)
{
    EXPECT(signal_safe_take(SIZE_MAX, 16) == NULL);
    EXPECT(signal_safe_take(SIZE_MAX - 100, 16) == NULL);
    EXPECT(signal_safe_take((size_t)1 << 31, 16) == NULL);
    EXPECT(signal_safe_take(16, 128 * os_page_bytes) == NULL);
    for (size_t size = 16; size <= (size_t)64 << 20; size *= 3)
        for (size_t alignment = 16; alignment <= 64 * os_page_bytes; alignment *= 4) {
            char *p = signal_safe_take(size, alignment);
            EXPECT(p != NULL && (uintptr_t)p % alignment == 0 && signal_safe_bytes(p) >= size);
            p[0] = p[size - 1] = 1;
            signal_safe_give(p);
        }
    interrupt_slow_path();
    errno = 0;
    void *p = malloc((size_t)3 << 30);
    EXPECT(p == NULL && errno == ENOMEM);
    leave();
}

static void pages_of_large_cells_go_back(void)
{
    const size_t bytes = (size_t)8 << 20;
    char *p = signal_safe_take(bytes, 16);
    EXPECT(p != NULL);
    memset(p, 1, bytes);
    signal_safe_give(p);
    EXPECT(signal_safe_was_freed(p) && signal_safe_take(bytes, 16) == p);
    for (size_t i = os_page_bytes; i < bytes - os_page_bytes; i++)
        EXPECT_EQ(p[i], 0);
    signal_safe_give(p);
}

/* Somebody else's mapping where the next chunks would be: nothing of it is touched, nor taken for a block. */
static void other_mappings_are_passed_by(void)
{
    const size_t length = 3 * os_page_bytes, size = 300000;
    char *there = (char *)region_below() + align_up(signal_safe_mapped_bytes(), 1 << 20) + (4 << 20);
    char *theirs = mmap(there, length, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    EXPECT(theirs == there);
    memset(theirs, 0x5a, length);
    static char *block[40];
    bool is_past = false;
    for (size_t i = 0; i < ARRAY_LEN(block); i++) {
        EXPECT((block[i] = signal_safe_take(size, 16)) != NULL);
        EXPECT(block[i] + size <= theirs || block[i] >= theirs + length);
        memset(block[i], 1, size);
        is_past |= block[i] > theirs;
    }
    EXPECT(is_past && !signal_safe_contains(theirs) && signal_safe_bytes(theirs + 64) == 0);
    for (size_t i = 0; i < length; i++)
        EXPECT_EQ(theirs[i], 0x5a);
    for (size_t i = 0; i < ARRAY_LEN(block); i++)
        signal_safe_give(block[i]);
    EXPECT_EQ(munmap(theirs, length), 0);
}

/* However long the thread that was interrupted does not get on, and whatever handlers keep. */
static void handlers_get_on_by_themselves(void)
{
    static char *kept[20000];
    interrupt_slow_path();
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        EXPECT_MSG((kept[i] = signal_safe_take(1000, 16)) != NULL, "no more after %zu KiB", i);
        memset(kept[i], (int)i, 1000);
        void *passing = signal_safe_take(10000, 16);
        EXPECT(passing != NULL && signal_safe_contains(passing));
        signal_safe_give(passing);
    }
    leave();
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        EXPECT(signal_safe_contains(kept[i]) && malloc_usable_size(kept[i]) >= 1000);
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
            EXPECT((held[i].block = signal_safe_take(held[i].size, alignment)) != NULL);
            EXPECT_EQ((uintptr_t)held[i].block % alignment, 0);
            memset(held[i].block, (int)(uintptr_t)seed + (int)i, held[i].size);
        }
        for (size_t i = 0; i < n; i++) {
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
    const size_t mapped = signal_safe_mapped_bytes();
    for (uintptr_t i = 0; i < 4; i++)
        EXPECT_EQ(pthread_create(&thread[i], NULL, as_several_handlers, (void *)(i * 10 + 1)), 0);
    for (int i = 0; i < 4; i++)
        EXPECT_EQ(pthread_join(thread[i], NULL), 0);
    EXPECT_MSG(signal_safe_mapped_bytes() <= mapped + (1 << 20), "%zu bytes more are mapped: blocks were lost",
               signal_safe_mapped_bytes() - mapped);
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
    cells_are_used_again();
    sizes_and_alignments_have_limits();
    pages_of_large_cells_go_back();
    other_mappings_are_passed_by();
    several_at_once();
    handlers_get_on_by_themselves();
    a_handler_reallocs_a_mapping();
    bad_frees_are_seen();
    shrinking_needs_no_memory();
    writes_to_freed_blocks_are_seen();
    return 0;
}
