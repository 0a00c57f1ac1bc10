/* SPDX-License-Identifier: MIT
 *
 * Restartable critical sections (Dice & Garthwaite 2002, section 3.1) on Linux rseq.
 *
 * A section is a handful of plain loads and one store, the commit.  The kernel promises that between the section's
 * first instruction and its commit the thread was neither preempted nor moved to another cpu nor interrupted by a
 * signal; if it was, it resumes at the abort label, outside.  Per cid only one thread runs at a time, so data that is
 * only written by sections of one cid needs no lock and no atomic instruction.
 *
 * Heaps, not cids, own data: every section begins by reading heap_of_cid[cid].  To take a heap from the cid it belongs
 * to, store another heap there and fence; whoever was inside a section is restarted and sees the new one.
 *
 * Two modes behind one interface (rows of LFMalloc's Table 3; papers/policies has the third):
 *   rcs  heap by cid, sections
 *   cpu  "lock mode": heap by the cpu of the thread's last slow path; a lock per heap, held by whoever touches the heap
 */
#ifndef SUTLER_RCS_RCS_H
#define SUTLER_RCS_RCS_H

#include "base/compiler.h"
#include "rcs/hot.h"
#include "rcs/results.h"

struct heap;

enum sync_mode { sync_rcs, sync_cpu };

enum rcs_result {
    rcs_done = RCS_DONE,       /* committed */
    rcs_changed = RCS_CHANGED, /* *probe was not `expected` */
    rcs_moved = RCS_MOVED,     /* the caller's cid does not belong to `heap` (any more) */
    /* Interrupted before the commit; try again, but not for ever: a debugger may abort every time. */
    rcs_aborted = RCS_ABORTED,
};

/* Why the start-up probe chose a mode; for `doctor` and the statistics. */
enum rcs_verdict {
    rcs_usable,
    rcs_unfenced,    /* usable, but a seccomp filter is in force that may forbid the fence: it is not asked for */
    rcs_not_asked,      /* SUTLER_SYNC names another mode */
    rcs_no_libc,        /* libc registers no rseq area, nor can we (musl, glibc.pthread.rseq=0, Valgrind) */
    rcs_no_membarrier,  /* the kernel has no rseq fence, or forbids it */
    rcs_selftest_failed, /* a section did not do what it must */
    rcs_cpus_unknown     /* there can be more cpus than SLOT_MAX */
};

/* Which heap each cid (or cpu) uses now; `slot_count` entries, never NULL after rcs_start.  If the system may not be
 * asked how many cpus there can be, there are SLOT_MAX: no kernel can be configured for more. */
#define SLOT_MAX 8192
extern struct heap *heap_of_cid[SLOT_MAX + 1];
extern unsigned slot_count;
/* Two entries that are always empty, and may be the same: the last of the array; and the one behind the slots,
 * slot_nobody, the cid of threads that own no heap: every section they try finds itself "moved". */
extern unsigned slot_nobody;
extern enum sync_mode sync_mode;
extern enum rcs_verdict rcs_verdict;
extern uint64_t rcs_restarts; /* sections the kernel aborted; counted where it sends them */

/* Chooses the mode, fills heap_of_cid with `empty`, registers the fence.  Called once, single-threaded. */
void rcs_start(enum sync_mode wanted, struct heap *empty);

/* The slot of heap_of_cid the caller should use at this moment; a hint in every mode. */
unsigned sync_slot(void);
/* The same in rcs mode alone, inline. */
static inline unsigned sync_cid(void)
{
    return *(volatile uint32_t *)((char *)own_thread_pointer() + hot.cid);
}
/* For what cids have `count` of, though there may be more of them: which one the caller should use; a hint, too. */
static inline unsigned sync_slot_among(unsigned count)
{
    return (likely(sync_mode == sync_rcs) ? sync_cid() : sync_slot()) % count;
}
/* In lock mode: what it answered the calling thread last; SLOT_MAX, where there is an empty heap, if it was not asked
 * yet.  To ask which cpu one runs on can cost more than the rest of a malloc. */
extern THREAD_SHARED uint32_t sync_slot_last;

/* In one section: heap_of_cid[cid] == heap and *probe == expected, then *target = value.  Uninterrupted or not at all.
 * Only sections of the same heap may write *probe and *target meanwhile. */
enum rcs_result rcs_compare_and_store(struct heap *heap, const uint64_t *probe, uint64_t expected, uint64_t *target,
                                      uint64_t value);

/* Unless it is 0 the calling thread runs no sections: it may be the child of a vfork, which the system does not
 * restart, and whose cid another thread may have by now (vforks nest, and are counted); or it has no rseq area that the
 * system knows of, and never will. */
extern THREAD_SHARED uint8_t rcs_suspended;
#define RCS_HAS_NO_AREA 0x80u
static inline bool rcs_is_suspended(void)
{
    return unlikely(rcs_suspended != 0);
}
static inline bool rcs_is_in_vfork(void)
{
    return (rcs_suspended & ~RCS_HAS_NO_AREA) != 0;
}

/* Returns after every section that was running anywhere in the process when it was called has ended or been restarted.
 * Costs 0.3 to 26 us.  Does nothing in lock mode, where locks do the work, and where the system refuses it (under a
 * seccomp filter) in a process that never had another thread than the caller: there it is needless. */
bool rcs_fence(void);
/* False where the fence is refused: then every heap stays with its cid. */
bool rcs_has_fence(void);
/* True if that stays so when the process gets more threads. */
bool rcs_keeps_fence(void);
/* Before the manager begins. */
void rcs_expect_manager(void);

#endif
