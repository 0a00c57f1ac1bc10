/* SPDX-License-Identifier: MIT
 *
 * The manager's look behind live blocks: a block that is never freed never has its canary looked at by the program.  A
 * run goes on where the last one ended, for as long as its budget lasts, and every block's turn comes while the heap
 * changes.
 *
 * Nothing is locked.  While a state says that its block is live the canary is whole: malloc sets the state last, free
 * and realloc change it first.  So a broken canary counts if the state was the same before and after it was read; and
 * because the block may have been freed and handed out again in between, if that is so several times.
 *
 * Nor does a superblock stay what it was: it may be released, and it may lend slices (lend.h), where blocks of others
 * lie then.  Their states are not looked at as if they were of its blocks.
 */
#include "hardened/hardened.h"
#include "hardened/report.h"
#include "manager/jobs.h"
#include "os/os.h"

#define LOOKS_MAX     3
#define LOOK_SPACE_NS  20000u

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

static void pause(void)
{
    const uint64_t end_ns = os_now_ns() + LOOK_SPACE_NS;
    while (os_now_ns() < end_ns)
        cpu_relax();
}

static COLD void look_again(const void *p, const struct superblock *s, size_t bytes)
{
    const uint8_t state = state_get(p);
    for (int i = 0; i < LOOKS_MAX; i++) {
        pause();
        bool is_as_before =
            state_is_live(state) && state_get(p) == state && is_own(s, p, bytes) && is_broken(p, state, bytes);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (!is_as_before || state_get(p) != state || !is_own(s, p, bytes))
            return;
    }
    report_overflow("audit", p);
}

static void audit_superblock(const struct superblock *s)
{
    const size_t bytes = s->block_bytes, blocks = s->blocks;
    const char *p = (const char *)s->base;
    for (size_t i = 0; i < blocks; i++, p += bytes) {
        uint8_t state = state_get(p);
        if (state_is_live(state) && is_own(s, p, bytes) && unlikely(is_broken(p, state, bytes)))
            look_again(p, s, bytes);
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
