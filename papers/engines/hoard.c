/* SPDX-License-Identifier: MIT
 *
 * Why: the allocator of Bloemendal & Scott's report (2013) as it describes itself, beside which Sutler's lock mode
 * (SUTLER_SYNC=thread) shares the policy but not the sizes.  It is no engine but a malloc library of its own,
 * build/<preset>/engines/libhoard.so, to be preloaded, or to be driven by an engine like any other.  The numbers are
 * the report's sections.
 *
 *   1.1  superblocks of a page; nine size classes, powers of two from 8 to 2,048; four groups by fullness; heaps, a
 *        multiple of the processors, each with a lock; a global heap
 *   1.2  a superblock begins at a cache line and belongs to one heap
 *   1.3  superblocks emptier than a threshold go to the global heap, where any thread may get them
 *   1.5  freed blocks are reused last in, first out
 *   1.6  whoever frees a block locks the heap that its superblock belongs to
 *
 * The report gives no figures for these, so they are Hoard's own (Berger et al. 2000): twice as many heaps as
 * processors, a thread's by a hash; a heap keeps K = 4 superblocks and a quarter of what it holds before it gives
 * anything up.  Larger blocks are mapped one by one.  Pages are never given back, except large blocks'.
 *
 * A block's header is at the beginning of the page of the byte before it: of its superblock, or of itself where it is
 * large.
 *
 * Locks: a heap's, then the global heap's.  A superblock's `heap` changes with both of these held, the rest of it with
 * the lock of its heap.  fork takes all of them.
 */
#include "base.h"
#include "counts.h"
#include "sync.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE           ((size_t)4096)
#define HEADER         ((size_t)64)
#define SMALLEST_SHIFT 3u
#define CLASSES        9u
#define LARGEST        ((size_t)1 << (SMALLEST_SHIFT + CLASSES - 1))
#define GROUPS         4u
#define FULL           GROUPS       /* those that are full, */
#define EMPTY          (GROUPS + 1) /* and those that are empty, have lists of their own */
#define HEAPS_MOST     64u
#define KEPT           (4 * PAGE)   /* Hoard's K x S */
#define CHUNK          (64 * PAGE)  /* so much is asked of the system at a time */

struct free_block {
    struct free_block *next;
};

struct superblock {
    bool is_large;
    uint8_t class, group;
    uint16_t blocks, used, fresh; /* fresh: blocks from here on were never given out */
    struct heap *heap;
    struct free_block *free;
    struct superblock *previous, *next; /* in its group */
};

struct large {
    bool is_large;
    void *mapping;
    size_t mapped_bytes, usable_bytes;
};

_Static_assert(sizeof(struct superblock) <= HEADER && sizeof(struct large) <= HEADER, "headers fit");

struct heap {
    _Alignas(64) struct mutex lock;
    size_t used_bytes, held_bytes;
    struct superblock *groups[CLASSES][GROUPS + 2];
};

static struct heap heaps[HEAPS_MOST], global;
static uint32_t heap_count; /* 0: not known yet */

static struct {
    struct mutex lock;
    char *next, *end;
} pages;

/* --------------------------------------------------------------------------------------------------------------
 * sizes */

static size_t block_bytes(unsigned class)
{
    return (size_t)1 << (class + SMALLEST_SHIFT);
}

static unsigned class_of(size_t size)
{
    return size <= block_bytes(0) ? 0 : 64u - (unsigned)__builtin_clzl(size - 1) - SMALLEST_SHIFT;
}

static void *header_of(void *block)
{
    return (void *)(((uintptr_t)block - 1) & ~(uintptr_t)(PAGE - 1));
}

/* -------------------------------------------------------------------------------------------- superblocks, heap
 * locked */

static unsigned group_of(const struct superblock *superblock)
{
    return superblock->used == 0 ? EMPTY : superblock->used * GROUPS / superblock->blocks; /* FULL where all are */
}

static void link_in(struct heap *heap, struct superblock *superblock)
{
    superblock->group = (uint8_t)group_of(superblock);
    struct superblock **list = &heap->groups[superblock->class][superblock->group];
    superblock->previous = NULL;
    superblock->next = *list;
    if (*list != NULL)
        (*list)->previous = superblock;
    *list = superblock;
}

static void take_out(struct heap *heap, struct superblock *superblock)
{
    if (superblock->previous != NULL)
        superblock->previous->next = superblock->next;
    else
        heap->groups[superblock->class][superblock->group] = superblock->next;
    if (superblock->next != NULL)
        superblock->next->previous = superblock->previous;
}

static void regroup(struct heap *heap, struct superblock *superblock)
{
    if (superblock->group == group_of(superblock))
        return;
    take_out(heap, superblock);
    link_in(heap, superblock);
}

/* Both heaps locked. */
static void move(struct superblock *superblock, struct heap *from, struct heap *to)
{
    size_t bytes = block_bytes(superblock->class);
    take_out(from, superblock);
    from->used_bytes -= superblock->used * bytes;
    from->held_bytes -= superblock->blocks * bytes;
    to->used_bytes += superblock->used * bytes;
    to->held_bytes += superblock->blocks * bytes;
    STORE(&superblock->heap, to);
    link_in(to, superblock);
}

/* The fullest one with room, as in Hoard, so that the others can become empty. */
static struct superblock *find(struct heap *heap, unsigned class)
{
    for (unsigned group = GROUPS; group-- > 0;) {
        if (heap->groups[class][group] != NULL)
            return heap->groups[class][group];
    }
    return heap->groups[class][EMPTY];
}

static void set_up(struct superblock *superblock, unsigned class)
{
    *superblock = (struct superblock){.class = (uint8_t)class, .heap = superblock->heap};
    superblock->blocks = (uint16_t)((PAGE - HEADER) / block_bytes(class));
}

/* One of any class without a block in use becomes one of this class. */
static struct superblock *find_empty(unsigned class)
{
    for (unsigned other = 0; other < CLASSES; other++) {
        struct superblock *superblock = global.groups[other][EMPTY];
        if (superblock == NULL)
            continue;
        take_out(&global, superblock);
        global.held_bytes -= superblock->blocks * block_bytes(other);
        set_up(superblock, class);
        global.held_bytes += superblock->blocks * block_bytes(class);
        link_in(&global, superblock);
        return superblock;
    }
    return NULL;
}

static bool take_from_global(struct heap *heap, unsigned class)
{
    mutex_lock(&global.lock);
    struct superblock *superblock = find(&global, class);
    if (superblock == NULL)
        superblock = find_empty(class);
    if (superblock != NULL)
        move(superblock, &global, heap);
    mutex_unlock(&global.lock);
    return superblock != NULL;
}

static void *map(size_t bytes)
{
    void *mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mapping != MAP_FAILED ? mapping : NULL;
}

static void *new_page(void)
{
    void *page = NULL;
    mutex_lock(&pages.lock);
    if (pages.next == pages.end) {
        pages.next = map(CHUNK);
        pages.end = pages.next != NULL ? pages.next + CHUNK : NULL;
    }
    if (pages.next != NULL) {
        page = pages.next;
        pages.next += PAGE;
    }
    mutex_unlock(&pages.lock);
    return page;
}

static bool take_from_system(struct heap *heap, unsigned class)
{
    struct superblock *superblock = new_page();
    if (superblock == NULL)
        return false;
    set_up(superblock, class);
    STORE(&superblock->heap, heap);
    heap->held_bytes += superblock->blocks * block_bytes(class);
    link_in(heap, superblock);
    return true;
}

/* --------------------------------------------------------------------------------------------------------------
 * fork */

static void fork_prepare(void)
{
    for (unsigned i = 0; i < HEAPS_MOST; i++)
        mutex_lock(&heaps[i].lock);
    mutex_lock(&global.lock);
    mutex_lock(&pages.lock);
}

static void fork_parent(void)
{
    mutex_unlock(&pages.lock);
    mutex_unlock(&global.lock);
    for (unsigned i = 0; i < HEAPS_MOST; i++)
        mutex_unlock(&heaps[i].lock);
}

static void fork_child(void)
{
    pages.lock = global.lock = (struct mutex){0};
    for (unsigned i = 0; i < HEAPS_MOST; i++)
        heaps[i].lock = (struct mutex){0};
}

/* ---------------------------------------------------------------------------------------------------- small blocks */

/* Before the first thread is started, by the library's constructor or by who asks before that. */
static __attribute__((noinline)) uint32_t count_heaps(void)
{
    cpu_set_t cpus;
    uint32_t count = 2 * (sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? (uint32_t)CPU_COUNT(&cpus) : 1);
    STORE_RELAXED(&heap_count, count < HEAPS_MOST ? count : HEAPS_MOST);
    return LOAD_RELAXED(&heap_count);
}

/* Linked to be the first constructor of all (-z initfirst): `prepare` handlers are called in the reverse order, so that
 * ours comes last, and no other library's waits for a thread that waits for our locks. */
static __attribute__((constructor)) void hoard_constructor(void)
{
    count_heaps();
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}

static struct heap *my_heap(void)
{
    uint32_t count = LOAD_RELAXED(&heap_count);
    if (UNLIKELY(count == 0))
        count = count_heaps();
    uint64_t hash = (uint64_t)(uintptr_t)pthread_self() * 0x9e3779b97f4a7c15u;
    return &heaps[(hash >> 32) * count >> 32];
}

static void *small_malloc(unsigned class)
{
    struct heap *heap = my_heap();
    mutex_lock(&heap->lock);
    struct superblock *superblock = find(heap, class);
    if (UNLIKELY(superblock == NULL) && (take_from_global(heap, class) || take_from_system(heap, class)))
        superblock = find(heap, class);
    void *block = NULL;
    if (LIKELY(superblock != NULL)) {
        block = superblock->free;
        if (block != NULL)
            superblock->free = superblock->free->next;
        else
            block = (char *)superblock + HEADER + superblock->fresh++ * block_bytes(class);
        superblock->used++;
        heap->used_bytes += block_bytes(class);
        regroup(heap, superblock);
    }
    mutex_unlock(&heap->lock);
    return block;
}

/* Whose it is may change until the lock is ours. */
static struct heap *lock_heap_of(struct superblock *superblock)
{
    for (;;) {
        struct heap *heap = LOAD(&superblock->heap);
        mutex_lock(&heap->lock);
        if (LIKELY(LOAD_RELAXED(&superblock->heap) == heap))
            return heap;
        mutex_unlock(&heap->lock);
    }
}

/* Of this class one less than a quarter full, if the heap holds too much; else NULL. */
static struct superblock *superfluous(const struct heap *heap, unsigned class)
{
    if (heap->used_bytes + KEPT >= heap->held_bytes || heap->used_bytes >= heap->held_bytes / 4 * 3)
        return NULL;
    struct superblock *empty = heap->groups[class][EMPTY];
    return empty != NULL ? empty : heap->groups[class][0];
}

static void small_free(struct superblock *superblock, struct free_block *block)
{
    struct heap *heap = lock_heap_of(superblock);
    unsigned class = superblock->class;
    block->next = superblock->free;
    superblock->free = block;
    superblock->used--;
    heap->used_bytes -= block_bytes(class);
    regroup(heap, superblock);
    struct superblock *give = heap != &global ? superfluous(heap, class) : NULL;
    if (give != NULL) {
        mutex_lock(&global.lock);
        move(give, heap, &global);
        mutex_unlock(&global.lock);
    }
    mutex_unlock(&heap->lock);
}

/* ------------------------------------------------------------------------------------------------------- large
 * blocks */

/* Below a page the alignment is kept within the mapping's first page, else the block begins a page. */
static void *large_malloc(size_t alignment, size_t size)
{
    size_t bytes;
    if (alignment < HEADER)
        alignment = HEADER;
    if (__builtin_add_overflow(size, (alignment < PAGE ? PAGE : 2 * PAGE + alignment) + PAGE, &bytes))
        return NULL;
    bytes &= ~(PAGE - 1);
    char *mapping = map(bytes);
    if (mapping == NULL)
        return NULL;
    uintptr_t first = (uintptr_t)mapping + (alignment < PAGE ? HEADER : PAGE);
    void *block = (void *)((first + alignment - 1) & ~(uintptr_t)(alignment - 1));
    *(struct large *)header_of(block) = (struct large){true, mapping, bytes, (size_t)(mapping + bytes - (char *)block)};
    return block;
}

static struct large *large_of(void *block)
{
    struct large *large = header_of(block);
    return large->is_large ? large : NULL;
}

/* ----------------------------------------------------------------------------------------------------- the
 * interface */

static void *or_enomem(void *block)
{
    if (UNLIKELY(block == NULL))
        errno = ENOMEM;
    return block;
}

EXPORT void *malloc(size_t size)
{
    return or_enomem(LIKELY(size <= LARGEST) ? small_malloc(class_of(size)) : large_malloc(1, size));
}

EXPORT void free(void *block)
{
    if (block == NULL)
        return;
    int saved = errno;
    struct large *large = large_of(block);
    if (large != NULL)
        munmap(large->mapping, large->mapped_bytes);
    else
        small_free(header_of(block), block);
    errno = saved;
}

EXPORT void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    void *block = malloc(bytes);
    return block != NULL && bytes <= LARGEST ? memset(block, 0, bytes) : block; /* a mapping is zero */
}

EXPORT size_t malloc_usable_size(void *block)
{
    if (block == NULL)
        return 0;
    struct large *large = large_of(block);
    return large != NULL ? large->usable_bytes : block_bytes(((struct superblock *)header_of(block))->class);
}

EXPORT void *realloc(void *block, size_t size)
{
    if (block == NULL)
        return malloc(size);
    if (size == 0) {
        free(block);
        return NULL;
    }
    size_t held = malloc_usable_size(block);
    if (size <= held && size >= held / 2)
        return block;
    void *fresh = malloc(size);
    if (fresh == NULL)
        return NULL;
    memcpy(fresh, block, held < size ? held : size);
    free(block);
    return fresh;
}

EXPORT int posix_memalign(void **result, size_t alignment, size_t size)
{
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0)
        return EINVAL;
    bool is_small = size <= LARGEST && alignment <= 16;
    void *block =
        is_small ? small_malloc(class_of(size < alignment ? alignment : size)) : large_malloc(alignment, size);
    if (block == NULL)
        return ENOMEM;
    *result = block;
    return 0;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    void *block = NULL;
    int error = posix_memalign(&block, alignment < sizeof(void *) ? sizeof(void *) : alignment, size);
    if (error != 0)
        errno = error;
    return block;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

EXPORT void *valloc(size_t size)
{
    return memalign(PAGE, size);
}

EXPORT void *pvalloc(size_t size)
{
    return memalign(PAGE, (size + PAGE - 1) & ~(PAGE - 1));
}

/* For the programs of bench/ (tell.c says it for engines): figure 6 as a number. */
EXPORT void sutler_engine_counts(void (*each)(const char *name, uint64_t value));
EXPORT void sutler_engine_counts(void (*each)(const char *name, uint64_t value))
{
    each("lock_waits", engine_counts.lock_waits);
}
