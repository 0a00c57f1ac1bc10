/* SPDX-License-Identifier: MIT
 *
 * The probe: may restartable sections be used in this process, and by which field is the cid read?
 */
#include "rcs/rcs.h"

#include <stdatomic.h>
#include <sys/auxv.h>
#if __has_include(<linux/rseq.h>)
#include <linux/rseq.h>
#endif

#include "base/bits.h"
#include "base/tally.h"
#include "os/lock.h"
#include "os/os.h"
#include "rcs/area.h"
#include "rcs/hot.h"
#include "rcs/restart.h"

#if __has_include(<linux/rseq.h>)
_Static_assert(offsetof(struct rseq, cpu_id) == RSEQ_CPU_ID, "shared with assembly");
_Static_assert(offsetof(struct rseq, rseq_cs) == RSEQ_CS, "shared with assembly");
#endif

unsigned slot_count, slot_nobody;
enum sync_mode sync_mode = sync_cpu;
enum rcs_verdict rcs_verdict = rcs_not_asked;

#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif

/* The areas are the library's own. */
static bool is_own;

/* mm_cid is there if the kernel fills 28 bytes and as many are registered.  glibc 2.35-2.40 registers 32 whatever it
 * reports in __rseq_size, which is 32 or 20. */
static bool has_mm_cid(void)
{
    return getauxval(AT_RSEQ_FEATURE_SIZE) >= 28 && (is_own || __rseq_size >= 28 || __rseq_size == 20) &&
           mm_cid_is_sound();
}

/* Whether the calling thread has an area, and where. */
static bool find_area(void)
{
    is_own = !area_is_of_libc();
    if (is_own ? !area_register() : __rseq_size == 0)
        return false;
    hot.rseq = is_own ? area_offset() : __rseq_offset;
    return *(volatile int32_t *)((char *)own_thread_pointer() + hot.rseq + RSEQ_CPU_ID) >= 0;
}

/* Two sections that commit and one that must not. */
static bool selftest(struct heap *empty)
{
    uint64_t probe = 1, target = 0;
    struct heap *nobody = (struct heap *)&probe;
    for (int attempt = 0; attempt < 16; attempt++) {
        enum rcs_result r = rcs_compare_and_store(empty, &probe, 1, &target, 7);
        if (r == rcs_aborted)
            continue;
        return r == rcs_done && target == 7 && rcs_compare_and_store(empty, &probe, 2, &target, 8) != rcs_done &&
               rcs_compare_and_store(nobody, &probe, 1, &target, 9) != rcs_done && target == 7;
    }
    return false;
}

static enum rcs_verdict probe(enum sync_mode wanted, struct heap *empty)
{
    if (wanted != sync_rcs)
        return rcs_not_asked;
    if (!find_area())
        return rcs_no_libc;
    hot.cid = hot.rseq + (has_mm_cid() ? RSEQ_MM_CID : RSEQ_CPU_ID);
    if (sync_cid() >= slot_count)
        return rcs_no_libc;
    bool fenced = os_has_rseq_fence();
    if (fenced && (!os_rseq_fence_register() || !os_rseq_fence()))
        return rcs_no_membarrier;
    if (!selftest(empty) || !restart_is_proven())
        return rcs_selftest_failed;
    return fenced ? rcs_usable : rcs_unfenced;
}

void rcs_start(enum sync_mode wanted, struct heap *empty)
{
    const unsigned limit = os_cpu_limit();
    slot_count = limit == 0 || limit > SLOT_MAX ? SLOT_MAX : limit;
    for (unsigned slot = 0; slot <= slot_count; slot++)
        heap_of_cid[slot] = empty;
    heap_of_cid[SLOT_MAX] = empty;
    slot_nobody = slot_count;
    /* A section reads heap_of_cid[cid] unchecked. */
    bool covered = limit <= slot_count;
    rcs_verdict = wanted == sync_rcs && !covered ? rcs_cpus_unknown : probe(wanted, empty);
    if (rcs_verdict == rcs_usable || rcs_verdict == rcs_unfenced)
        sync_mode = sync_rcs;
    else
        lock_allow_quick_release();
}

THREAD_SHARED uint32_t sync_slot_last = SLOT_MAX;
THREAD_SHARED uint8_t rcs_suspended;

/* Of a thread that has not registered its area.  If that cannot be done the thread runs no sections, ever. */
static COLD unsigned slot_of_newcomer(void)
{
    if (!rcs_is_suspended()) {
        if (area_register())
            return sync_cid();
        rcs_suspended = RCS_HAS_NO_AREA;
    }
    return os_current_cpu() % slot_count;
}

unsigned sync_slot(void)
{
    if (sync_mode == sync_rcs) {
        unsigned cid = sync_cid();
        return likely(cid != SLOT_MAX) || !is_own ? cid : slot_of_newcomer();
    }
    sync_slot_last = os_current_cpu() % slot_count;
    return sync_slot_last;
}

/* libc does not know of the manager. */
static _Atomic bool had_manager;

void rcs_expect_manager(void)
{
    atomic_store(&had_manager, true);
}

/* No thread but the caller may be in a section; nor is the caller, which a signal would have restarted. */
static bool is_alone(void)
{
    return *os_single_threaded() != 0 && !atomic_load(&had_manager);
}

bool rcs_keeps_fence(void)
{
    return sync_mode != sync_rcs || os_has_rseq_fence();
}

bool rcs_has_fence(void)
{
    return rcs_keeps_fence() || is_alone();
}

bool rcs_fence(void)
{
    TALLY(fences);
    return sync_mode != sync_rcs || os_rseq_fence() || is_alone();
}
