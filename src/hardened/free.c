/* SPDX-License-Identifier: MIT
 *
 * free and the C++ deletes of the hardened library.
 */
#include <stdlib.h>

#include "hardened/hardened.h"
#include "hardened/report.h"
#include "hardened/sweep.h"
#include "hardened/trace.h"

/* Whether the block is what the free says; told at once, the free goes on. */
static void compare(const void *p, struct live live, struct claim claim)
{
    if (mitigated(mitigation_family) && live.family != claim.family)
        report_family(claim.function, p, live.family, claim.family);
    if (!mitigated(mitigation_size))
        return;
    if (claim.has_size && claim.size != live.size)
        report_wrong_size(claim.function, p, live.size, claim.size);
    else if (claim.has_alignment && claim.alignment != 0 && (uintptr_t)p % claim.alignment != 0)
        report_misuse(claim.function, "wrong alignment", p, "the block has not the alignment it is freed with");
}

/* Only a block that was zero when it was handed out can tell. */
static bool is_slack_whole(const void *p, struct live live, size_t slack)
{
    bool was_zero = live.kind == block_superblock && mitigated(mitigation_zero);
    return !was_zero || slack_end_is_whole(p, live.bytes, slack);
}

void harden_check(const void *p, struct live live, struct claim claim)
{
    compare(p, live, claim);
    const size_t slack = live.bytes - live.size;
    if (mitigated(mitigation_canary) &&
        (!canary_is_whole(p, live.size, slack) || !is_slack_whole(p, live, slack)))
        report_overflow(claim.function, p);
}

/* ---- what leaves quarantine ---- */

static COLD void report_released(void *p, size_t bytes)
{
    report_written("free", p);
    clear_block(p, bytes);
}

static inline void release(void *p, size_t bytes)
{
    if (unlikely(marks.sweep != sweep_off)) {
        sweep_keep(p, bytes);
        return;
    }
    if (unlikely(!is_clear(p, bytes)) && mitigated(mitigation_check))
        report_released(p, bytes);
    plain_free(p);
}

NOINLINE void harden_release(void *p)
{
    release(p, superblock_of(p)->block_bytes);
}

/* ---- free ---- */

/* A cleared block of so many bytes goes into quarantine, and another leaves it.  While the fast paths are open. */
static inline void exchange_quickly(void *p, size_t bytes)
{
    const unsigned c = likely(bytes <= SMALL_BYTES_MAX) ? size_class_of_small[bytes] : size_class_of(bytes);
    void *leaves = quarantine_swap(p, c);
    if (unlikely(leaves == p))
        leaves = quarantine_exchange(c, p);
    if (likely(leaves != NULL))
        release(leaves, bytes);
}

void harden_retire(void *p, struct live live, const char *function, const void *caller)
{
    if (marks.trace != 0)
        trace_free(p, live.size, caller);
    if (!state_free(p)) {
        report_double_free(function, p);
        return;
    }
    if (mitigated(mitigation_zero))
        clear_block(p, live.bytes);
    if (mitigated(mitigation_quarantine))
        p = quarantine_exchange(size_class_of(live.bytes), p);
    if (p != NULL)
        release(p, live.bytes);
}

static NOINLINE void free_slowly(void *p, struct claim claim)
{
    if (p == NULL)
        return;
    uint8_t state = has_state(p) ? state_get(p) : 0;
    struct superblock *s = state_is_live(state) ? superblock_of(p) : NULL;
    if (s == NULL || s->slice.kind != slice_superblock) {
        large_unharden(p, claim);
        return;
    }
    struct live live = {.bytes = s->block_bytes, .family = state_family(state), .kind = block_superblock};
    live.size = live.bytes - state_slack(p, state, live.bytes);
    harden_check(p, live, claim);
    harden_retire(p, live, claim.function, claim.caller);
}

/* The quick way: a block of a superblock, with the mitigations that are usual, and nothing wrong.  False: nothing was
 * done. */
static inline __attribute__((always_inline)) bool free_quickly(void *p, bool has_size, size_t size)
{
    struct live live;
    if (unlikely(!find_quickly(p, &live)) || unlikely(!marks.usual) ||
        unlikely(has_size && size != live.size) ||
        unlikely(!canary_is_whole(p, live.size, live.bytes - live.size)) ||
        unlikely(!slack_end_is_whole(p, live.bytes, live.bytes - live.size)) ||
        unlikely(!state_free_from(p, live.state)))
        return false;
    clear_block(p, live.bytes);
    exchange_quickly(p, live.bytes);
    return true;
}

void harden_free(void *p, struct claim claim)
{
    free_slowly(p, claim);
}

/* Not in line: free itself needs no room for a claim. */
static NOINLINE void free_otherwise(void *p, const void *caller)
{
    free_slowly(p, (struct claim){.function = "free", .caller = caller});
}

void sutler_free(void *p)
{
    if (unlikely(!free_quickly(p, false, 0)))
        free_otherwise(p, __builtin_return_address(0));
}
ALSO(free, sutler_free)

/* Other names, and what more they say.  A size of jemalloc's is any from the one asked for to the block's. */
#define FREE(name, parameters, ...)                                                                                    \
    EXPORT void name parameters;                                                                                       \
    EXPORT void name parameters                                                                                        \
    {                                                                                                                  \
        struct claim claim = {.function = "free", .caller = __builtin_return_address(0), __VA_ARGS__};                 \
        if (claim.has_alignment || !free_quickly(p, claim.has_size, claim.size))                                       \
            free_slowly(p, claim);                                                                                     \
    }
#define SIZED     .has_size = true, .size = size
#define ALIGNED   .has_alignment = true, .alignment = alignment
#define BY_DELETE .family = family_new
#define BY_ARRAY  .family = family_array

FREE(free_sized, (void *p, size_t size), SIZED)
FREE(free_aligned_sized, (void *p, size_t alignment, size_t size), SIZED, ALIGNED)
FREE(_ZdlPv, (void *p), BY_DELETE)
FREE(_ZdaPv, (void *p), BY_ARRAY)
FREE(_ZdlPvm, (void *p, size_t size), BY_DELETE, SIZED)
FREE(_ZdaPvm, (void *p, size_t size), BY_ARRAY, SIZED)
FREE(_ZdlPvSt11align_val_t, (void *p, size_t alignment), BY_DELETE, ALIGNED)
FREE(_ZdaPvSt11align_val_t, (void *p, size_t alignment), BY_ARRAY, ALIGNED)
FREE(_ZdlPvmSt11align_val_t, (void *p, size_t size, size_t alignment), BY_DELETE, SIZED, ALIGNED)
FREE(_ZdaPvmSt11align_val_t, (void *p, size_t size, size_t alignment), BY_ARRAY, SIZED, ALIGNED)
FREE(_ZdlPvRKSt9nothrow_t, (void *p, const void *tag __attribute__((unused))), BY_DELETE)
FREE(_ZdaPvRKSt9nothrow_t, (void *p, const void *tag __attribute__((unused))), BY_ARRAY)
FREE(_ZdlPvSt11align_val_tRKSt9nothrow_t,
     (void *p, size_t alignment, const void *tag __attribute__((unused))), BY_DELETE, ALIGNED)
FREE(_ZdaPvSt11align_val_tRKSt9nothrow_t,
     (void *p, size_t alignment, const void *tag __attribute__((unused))), BY_ARRAY, ALIGNED)
ALSO(cfree, free)
ALSO(__libc_free, free)
ALSO(dallocx, free)
ALSO(sdallocx, free)
