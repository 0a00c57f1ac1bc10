/* SPDX-License-Identifier: MIT
 *
 * Records how a program uses malloc: calls, sizes, lifetimes.
 *
 * Preloaded, it counts and passes every call on to the next malloc.  A table of its own (open addressing, mapped, never
 * through malloc) remembers when each live block was born; the clock is the number of bytes asked for so far, which is
 * what decides how far a block's neighbours have moved on.  One lock guards everything: the figures are exact, the
 * program is slower, and its times mean nothing.
 *
 * Each process of a tree writes one file, PREFIX.PID, at exit.  What is left out: blocks taken before the counters
 * stand (the dynamic linker's), what happens after the exit handlers, and processes that end without them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT      __attribute__((visibility("default")))
#define TABLE_BITS  25
#define BUCKETS     64
#define EARLY_BYTES 65536

enum call { CALL_MALLOC, CALL_CALLOC, CALL_REALLOC, CALL_ALIGNED, CALL_FREE, CALL_COUNT };
static const char *const call_names[CALL_COUNT] = {"malloc", "calloc", "realloc", "aligned", "free"};

struct live {
    uintptr_t address; /* 0: never used, 1: used once */
    uint64_t size, born_bytes;
};

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void (*next_free)(void *);
static int (*next_posix_memalign)(void **, size_t, size_t);
static void *(*next_aligned_alloc)(size_t, size_t);

static struct live *table;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t calls[CALL_COUNT], sizes[BUCKETS], size_bytes[BUCKETS], lifetimes[BUCKETS];
static uint64_t clock_bytes, live_bytes, live_blocks, peak_bytes, peak_blocks, untracked, failed;
static char early[EARLY_BYTES] __attribute__((aligned(16)));
static size_t early_used;
static bool resolving;

static unsigned bucket_of(uint64_t value)
{
    return value ? 64u - (unsigned)__builtin_clzll(value) - (__builtin_popcountll(value) == 1) : 0;
}

static void *early_take(size_t size)
{
    size_t rounded = (size + 31) & ~(size_t)15;
    if (rounded > EARLY_BYTES - early_used)
        return NULL;
    char *block = early + early_used + 16;
    memcpy(block - 16, &size, sizeof size);
    early_used += rounded + 16 > EARLY_BYTES - early_used ? EARLY_BYTES - early_used : rounded + 16;
    return block;
}

static bool is_early(const void *block)
{
    return (const char *)block >= early && (const char *)block < early + EARLY_BYTES;
}

static bool ready(void)
{
    if (__builtin_expect(next_free != NULL, 1))
        return true;
    if (resolving)
        return false;
    resolving = true; /* dlsym may call calloc: it is served from `early` */
    next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    next_calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
    next_realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
    next_posix_memalign = (int (*)(void **, size_t, size_t))dlsym(RTLD_NEXT, "posix_memalign");
    next_aligned_alloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "aligned_alloc");
    void *memory = mmap(NULL, sizeof(struct live) << TABLE_BITS, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    table = memory == MAP_FAILED ? NULL : memory;
    next_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    resolving = false;
    return true;
}

static size_t slot_of(uintptr_t address)
{
    return (size_t)((address >> 4) * 0x9E3779B97F4A7C15u >> (64 - TABLE_BITS));
}

static void born(enum call call, void *block, size_t size)
{
    int error = errno;
    pthread_mutex_lock(&lock);
    calls[call]++;
    if (!block) {
        failed++;
    } else {
        unsigned bucket = bucket_of(size);
        sizes[bucket]++;
        size_bytes[bucket] += size;
        size_t at = slot_of((uintptr_t)block), tries = 0;
        while (table && table[at].address > 1 && tries < 4096) {
            at = (at + 1) & ((1u << TABLE_BITS) - 1);
            tries++;
        }
        if (!table || tries == 4096) {
            untracked++;
        } else {
            table[at] = (struct live){(uintptr_t)block, size, clock_bytes};
            live_bytes += size;
            live_blocks++;
            if (live_bytes > peak_bytes)
                peak_bytes = live_bytes;
            if (live_blocks > peak_blocks)
                peak_blocks = live_blocks;
        }
        clock_bytes += size;
    }
    pthread_mutex_unlock(&lock);
    errno = error;
}

static void died(void *block)
{
    int error = errno;
    pthread_mutex_lock(&lock);
    size_t at = slot_of((uintptr_t)block), tries = 0;
    while (table && table[at].address && table[at].address != (uintptr_t)block && tries < 4096) {
        at = (at + 1) & ((1u << TABLE_BITS) - 1);
        tries++;
    }
    if (table && table[at].address == (uintptr_t)block) {
        uint64_t age = clock_bytes - table[at].born_bytes;
        lifetimes[bucket_of(age)]++;
        live_bytes -= table[at].size;
        live_blocks--;
        table[at].address = 1;
    }
    pthread_mutex_unlock(&lock);
    errno = error;
}

EXPORT void *malloc(size_t size)
{
    if (!ready())
        return early_take(size);
    void *block = next_malloc(size);
    born(CALL_MALLOC, block, size);
    return block;
}

EXPORT void *calloc(size_t count, size_t size)
{
    if (!ready())
        return early_take(count * size);
    void *block = next_calloc(count, size);
    born(CALL_CALLOC, block, count * size);
    return block;
}

EXPORT void free(void *block)
{
    if (!block || is_early(block) || !ready())
        return;
    pthread_mutex_lock(&lock);
    calls[CALL_FREE]++;
    pthread_mutex_unlock(&lock);
    died(block);
    next_free(block);
}

EXPORT void *realloc(void *block, size_t size)
{
    if (!ready())
        return NULL;
    if (is_early(block)) {
        size_t old;
        memcpy(&old, (char *)block - 16, sizeof old);
        void *fresh = malloc(size);
        return fresh ? memcpy(fresh, block, old < size ? old : size) : NULL;
    }
    /* The old block is forgotten first: once realloc has returned, its address may already be another thread's. */
    if (block)
        died(block);
    void *fresh = next_realloc(block, size);
    if (fresh || size)
        born(CALL_REALLOC, fresh, size);
    return fresh;
}

EXPORT int posix_memalign(void **result, size_t alignment, size_t size)
{
    if (!ready())
        return ENOMEM;
    int error = next_posix_memalign(result, alignment, size);
    born(CALL_ALIGNED, error ? NULL : *result, size);
    return error;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    if (!ready())
        return NULL;
    void *block = next_aligned_alloc(alignment, size);
    born(CALL_ALIGNED, block, size);
    return block;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    return aligned_alloc(alignment, size);
}

static void after_fork_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    memset(calls, 0, sizeof calls);
    memset(sizes, 0, sizeof sizes);
    memset(size_bytes, 0, sizeof size_bytes);
    memset(lifetimes, 0, sizeof lifetimes);
    peak_bytes = live_bytes;
    peak_blocks = live_blocks;
}

static void fork_prepare(void)
{
    pthread_mutex_lock(&lock);
}

static void fork_parent(void)
{
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void begin(void)
{
    ready();
    pthread_atfork(fork_prepare, fork_parent, after_fork_in_child);
}

__attribute__((destructor)) static void end(void)
{
    const char *prefix = getenv("ALLOCATION_TRACE");
    char path[4096], text[16384];
    if (!prefix || snprintf(path, sizeof path, "%s.%d", prefix, (int)getpid()) >= (int)sizeof path)
        return;
    int length = 0;
    pthread_mutex_lock(&lock);
#define ADD(...) length += snprintf(text + length, sizeof text - (size_t)length, __VA_ARGS__)
    for (int i = 0; i < CALL_COUNT; i++)
        ADD("calls_%s=%llu ", call_names[i], (unsigned long long)calls[i]);
    ADD("bytes=%llu peak_bytes=%llu peak_blocks=%llu end_bytes=%llu end_blocks=%llu untracked=%llu failed=%llu",
        (unsigned long long)clock_bytes, (unsigned long long)peak_bytes, (unsigned long long)peak_blocks,
        (unsigned long long)live_bytes, (unsigned long long)live_blocks, (unsigned long long)untracked,
        (unsigned long long)failed);
    for (int i = 0; i < BUCKETS; i++) {
        if (sizes[i])
            ADD(" size_%d=%llu size_bytes_%d=%llu", i, (unsigned long long)sizes[i], i,
                (unsigned long long)size_bytes[i]);
        if (lifetimes[i])
            ADD(" life_%d=%llu", i, (unsigned long long)lifetimes[i]);
    }
    ADD("\n");
    pthread_mutex_unlock(&lock);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd >= 0 && write(fd, text, (size_t)length) != length)
        unlink(path);
    if (fd >= 0)
        close(fd);
}
