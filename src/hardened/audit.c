/* SPDX-License-Identifier: MIT
 *
 * The manager's look behind live blocks: a block that is never freed never has its canary looked at by the program.  A
 * run goes on where the last one ended, for as long as its budget lasts, and every block's turn comes while the heap
 * changes.
 *
 * While a state says that its block is live the canary is whole: malloc sets the state last, free and realloc change
 * it first.  So a broken canary counts if the state was the same before and after it was read; and because the block
 * may have been freed and handed out again in between, if that is so several times.
 *
 * The program takes no lock for any of that.  But a superblock is released, and lends slices (lend.h), under its heap's
 * lock or in a pass.  Both are held, for a few blocks at a time: what lies there afterwards may be guarded.
 */
#include "base/bits.h"
#include "hardened/hardened.h"
#include "hardened/report.h"
#include "heap/heap.h"
#include "heap/pass.h"
#include "manager/jobs.h"
#include "os/os.h"

#define LOOKS_MAX     3
#define LOOK_SPACE_NS 20000u
/* So many at a time, each of which may not be in a cache: some 20 us. */
#define HELD_BLOCKS   256u

static uint32_t next_slice;

/* Whether a block of so many bytes at `p` is the superblock's still.  Next to a look at the block, which is in no
 * cache, this costs nothing. */
static bool is_own(const struct superblock *s, const char *p, size_t bytes)
{
    return slice_kind(&s->slice) == slice_superblock && s->block_bytes == bytes && superblock_of(p) == s &&
           superblock_of(p + bytes - 1) == s;
}

/* The live block at `p`, whose state this was, of `bytes` is written behind. */
static bool is_broken(const void *p, uint8_t state, size_t bytes)
{
    size_t slack = state_slack(p, state, bytes);
    return slack <= bytes && !canary_is_whole(p, bytes - slack, slack);
}

/* Keeps the superblock one, and as it is; NULL if it is none, or somebody has it in hand. */
static struct heap *hold(struct superblock *s)
{
    pass_begin();
    struct heap *h = superblock_owner(s);
    if (h != NULL) {
        lock_take(&h->lock);
        if (slice_kind(&s->slice) == slice_superblock && superblock_owner(s) == h)
            return h;
        lock_release(&h->lock);
    }
    pass_end();
    return NULL;
}

static void let_go(struct heap *h)
{
    lock_release(&h->lock);
    pass_end();
}

static void pause(void)
{
    const uint64_t end_ns = os_now_ns() + LOOK_SPACE_NS;
    while (os_now_ns() < end_ns)
        cpu_relax();
}

/* Where errors are reported and the program goes on, it hears once of what lies at an address, or again after
 * others. */
static bool was_told(const void *p)
{
    static const void *told[16];
    static unsigned next;
    for (unsigned i = 0; i < ARRAY_LEN(told); i++)
        if (told[i] == p)
            return true;
    told[next++ % ARRAY_LEN(told)] = p;
    return false;
}

static COLD void look_again(const void *p, struct superblock *s, size_t bytes)
{
    const uint8_t state = state_get(p);
    for (int i = 0; i < LOOKS_MAX; i++) {
        pause();
        struct heap *h = hold(s);
        if (h == NULL)
            return;
        bool is_as_before =
            state_is_live(state) && state_get(p) == state && is_own(s, p, bytes) && is_broken(p, state, bytes);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        is_as_before = is_as_before && state_get(p) == state;
        let_go(h);
        if (!is_as_before)
            return;
    }
    if (!was_told(p))
        report_overflow("audit", p);
}

/* Looks at blocks from number `first` on; returns the number behind the last, and in *broken the last if it is. */
static size_t look_at_some(const struct superblock *s, size_t first, const char **broken)
{
    const size_t bytes = s->block_bytes, end = min_size(s->blocks, first + HELD_BLOCKS);
    const char *p = (const char *)s->base + first * bytes;
    for (size_t i = first; i < end; i++, p += bytes) {
        uint8_t state = state_get(p);
        if (state_is_live(state) && is_own(s, p, bytes) && unlikely(is_broken(p, state, bytes))) {
            *broken = p;
            return i + 1;
        }
    }
    return end;
}

static void audit_superblock(struct superblock *s)
{
    for (size_t next = 0, blocks = 1; next < blocks;) {
        const char *broken = NULL;
        struct heap *h = hold(s);
        if (h == NULL)
            return;
        const size_t bytes = s->block_bytes;
        blocks = s->blocks;
        next = look_at_some(s, next, &broken);
        let_go(h);
        if (broken != NULL)
            look_again(broken, s, bytes);
    }
}

bool audit_run(uint64_t budget_ns)
{
    if (!mitigated(mitigation_audit) || !mitigated(mitigation_canary))
        return false;
    const uint64_t end_ns = os_now_ns() + budget_ns;
    uint32_t slice = region_slice_from(next_slice);
    while (slice != SLICE_END && os_now_ns() < end_ns) {
        if (slice_kind(slice_at(slice)) == slice_superblock)
            audit_superblock(superblock_at_slice(slice));
        slice = region_slice_from(slice + 1);
    }
    next_slice = slice == SLICE_END ? 0 : slice;
    return slice != SLICE_END;
}
