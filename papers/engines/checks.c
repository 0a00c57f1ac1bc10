/* SPDX-License-Identifier: MIT
 *
 * Why: MMT's strongest result is not a faster malloc but free checking: PHKmalloc's security checks cost 21 % on the
 * program's thread and 1 % on MMT's server (MMT V-D, figure 11).  To repeat that over any backend the checks are a
 * layer of their own:
 *
 *   SUTLER_CHECKS=inline     around the engine: the program's thread pays.  With the `direct` engine this is PHKmalloc as is.
 *   SUTLER_CHECKS=offloaded  around the backend: whoever calls the backend pays, which in an engine is its second thread.
 *   SUTLER_CHECKS=off        (default) nothing.
 *   SUTLER_CHECKS_OPTIONS    PHKmalloc's letters, upper case on, lower case off; default AJZ:
 *                            A abort on an error (else report it and ignore the call), J fill freed and new memory with
 *                            0xd0, Z fill new memory with zeros.
 *
 * What is detected: free, realloc and malloc_usable_size of what is no block (wild or interior pointers), and of what
 * was freed already.  PHKmalloc answers that from its page directory; over a foreign backend it takes a table of all
 * blocks: open addressing by address, in shards with a lock each.  A freed block's row stays, marked, until the address
 * is handed out again or the shard is rebuilt: that tells a second free from a wild one.
 *
 * Limits, PHKmalloc's too: a second free after the address was handed out again looks like a proper one.  Offloaded,
 * there is more of that: the server may hand the address out again, into a bucket, before it sees the second free; an
 * error is reported when the server comes to it, after free() returned; and blocks that an engine's bins reuse without
 * asking the backend (lock-free bins) are not seen at all, nor is their memory filled.  If the table cannot grow (no
 * memory), the layer says so once and stops judging.
 *
 * fork: the snapshot is taken without the shards' locks, since other prepare handlers may wait for threads that are in
 * our malloc (around.h).  Instead nothing is done meanwhile that a snapshot could catch half-done: a row is complete
 * with its last store, and no shard is rebuilt.  So each is made roomy before, and only if a fork takes so long that
 * one fills up does the layer stop judging.
 */
#include "checks.h"
#include "around.h"
#include "say.h"
#include "sync.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define SHARDS     64u
#define FIRST_ROWS 1024u
#define JUNK       0xd0

/* size is the requested one, in the upper bits; bit 0: live. */
struct row {
    uintptr_t block;
    size_t size_live;
};

struct shard {
    _Alignas(64) struct mutex lock;
    struct row *rows;
    size_t room;
    size_t used, live; /* in a forked child perhaps one off */
};

bool checks_inline, checks_offloaded;

static struct shard shards[SHARDS];
static struct backend below;
static bool option_abort = true, option_junk = true, option_zero = true;
static bool blind;

static size_t hash_of(uintptr_t block)
{
    return (size_t)((block >> 3) * 0x9e3779b97f4a7c15u >> 20);
}

static struct shard *shard_locked(const void *block)
{
    struct shard *shard = &shards[hash_of((uintptr_t)block) % SHARDS];
    mutex_lock(&shard->lock);
    return shard;
}

/* The row of this block, or the empty one where it would go. */
static struct row *find_locked(const struct shard *shard, uintptr_t block)
{
    size_t i = hash_of(block) / SHARDS & (shard->room - 1);
    while (shard->rows[i].block != 0 && shard->rows[i].block != block)
        i = (i + 1) & (shard->room - 1);
    return &shard->rows[i];
}

static bool rebuild_locked(struct shard *shard)
{
    struct shard old = {.rows = shard->rows, .room = shard->room};
    size_t room = FIRST_ROWS;
    while (room < shard->live * 4)
        room *= 2;
    void *rows = mmap(NULL, room * sizeof(struct row), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (rows == MAP_FAILED)
        return false;
    shard->rows = rows;
    shard->room = room;
    shard->used = 0;
    for (size_t i = 0; i < old.room; i++) {
        if ((old.rows[i].size_live & 1) != 0) {
            *find_locked(shard, old.rows[i].block) = old.rows[i];
            shard->used++;
        }
    }
    if (old.rows != NULL)
        munmap(old.rows, old.room * sizeof(struct row));
    return true;
}

/* One row stays empty: searches end there. */
static bool has_room_locked(struct shard *shard)
{
    if (fork_is_under_way())
        return shard->used + 1 < shard->room;
    return shard->used * 4 < shard->room * 3 || rebuild_locked(shard);
}

static void record(void *block, size_t size)
{
    int saved = errno;
    struct shard *shard = shard_locked(block);
    if (has_room_locked(shard)) {
        struct row *row = find_locked(shard, (uintptr_t)block);
        shard->used += row->block == 0;
        shard->live += (row->size_live & 1) == 0;
        STORE(&row->size_live, size << 1 | 1);
        STORE(&row->block, (uintptr_t)block);
    } else if (!__atomic_exchange_n(&blind, true, __ATOMIC_RELAXED)) {
        engine_say("checks: no memory for the table of blocks; frees are no longer checked");
    }
    mutex_unlock(&shard->lock);
    errno = saved;
}

enum verdict { LIVE, FREED, UNKNOWN };

/* Gives the block's requested size; marks it freed if asked to. */
static enum verdict look_up(const void *block, bool and_free, size_t *size)
{
    struct shard *shard = shard_locked(block);
    enum verdict verdict = UNKNOWN;
    struct row *row = shard->room > 0 ? find_locked(shard, (uintptr_t)block) : NULL;
    if (row != NULL && row->block != 0) {
        verdict = (row->size_live & 1) != 0 ? LIVE : FREED;
        *size = row->size_live >> 1;
        if (and_free && verdict == LIVE) {
            row->size_live &= ~(size_t)1;
            shard->live--;
        }
    }
    mutex_unlock(&shard->lock);
    return verdict;
}

static bool judge(const char *function, const void *block, enum verdict verdict)
{
    if (LIKELY(verdict == LIVE) || blind)
        return true;
    if (verdict == FREED)
        engine_say("%s(): double free %p (block is already free)", function, block);
    else
        engine_say("%s(): invalid pointer %p (not from this allocator)", function, block);
    if (option_abort)
        engine_die();
    return false;
}

void *checks_allocated(void *block, size_t size)
{
    if (block == NULL)
        return NULL;
    record(block, size);
    if (option_zero)
        memset(block, 0, size);
    else if (option_junk)
        memset(block, JUNK, size);
    return block;
}

void *checks_allocated_zeroed(void *block, size_t size)
{
    if (block != NULL)
        record(block, size);
    return block;
}

bool checks_released(const char *function, void *block)
{
    size_t size = 0;
    if (!judge(function, block, look_up(block, true, &size)))
        return false;
    if (option_junk)
        memset(block, JUNK, size);
    return true;
}

bool checks_known(const char *function, void *block)
{
    size_t size;
    return judge(function, block, look_up(block, false, &size));
}

/* ------------------------------------------------------------------------------------------- the backend, with
 * checks */

static void *checked_malloc(size_t size)
{
    return checks_allocated(below.malloc(size), size);
}

static void checked_free(void *block)
{
    if (block != NULL && checks_released("free", block))
        below.free(block);
}

static void *checked_calloc(size_t count, size_t size)
{
    return checks_allocated_zeroed(below.calloc(count, size), count * size); /* NULL if that overflowed */
}

/* Marked free before, not after: at once after the call the old address may be somebody's new block. */
static void *checked_realloc(void *block, size_t size)
{
    size_t before = 0;
    if (!judge("realloc", block, look_up(block, true, &before)))
        return NULL;
    void *moved = below.realloc(block, size);
    if (moved == NULL && size > 0)
        record(block, before);
    else if (moved != NULL)
        record(moved, size);
    return moved;
}

static int checked_posix_memalign(void **result, size_t alignment, size_t size)
{
    int error = below.posix_memalign(result, alignment, size);
    if (error == 0)
        checks_allocated(*result, size);
    return error;
}

static void read_letters(const char *letters)
{
    for (; letters != NULL && *letters != '\0'; letters++) {
        switch (*letters) {
        case 'A': case 'a': option_abort = *letters == 'A'; break;
        case 'J': case 'j': option_junk = *letters == 'J'; break;
        case 'Z': case 'z': option_zero = *letters == 'Z'; break;
        default: engine_say("SUTLER_CHECKS_OPTIONS: unknown letter '%c' (A, J, Z or a, j, z); ignored", *letters);
        }
    }
}

struct backend checks_over(struct backend found)
{
    const char *mode = engine_option("SUTLER_CHECKS");
    if (mode == NULL || strcmp(mode, "off") == 0)
        return found;
    below = found;
    read_letters(engine_option("SUTLER_CHECKS_OPTIONS"));
    if (strcmp(mode, "inline") == 0) {
        checks_inline = true;
    } else if (strcmp(mode, "offloaded") == 0) {
        checks_offloaded = true;
        return (struct backend){checked_malloc, checked_free, checked_calloc, checked_realloc, checked_posix_memalign,
                                found.usable};
    } else {
        engine_say("SUTLER_CHECKS: unknown value '%s' (off, inline or offloaded); ignored", mode);
    }
    return found;
}

/* Takes each lock once: whoever was rebuilding is done, and nobody begins to. */
void checks_fork_prepare(void)
{
    for (struct shard *shard = shards; shard < shards + SHARDS && (checks_inline || checks_offloaded); shard++) {
        mutex_lock(&shard->lock);
        if (shard->used * 2 >= shard->room)
            rebuild_locked(shard);
        mutex_unlock(&shard->lock);
    }
}

void checks_fork_child(void)
{
    for (size_t i = 0; i < SHARDS; i++)
        shards[i].lock = (struct mutex){0};
}
