/* SPDX-License-Identifier: MIT
 *
 * Sutler's public interface.
 *
 * A program needs none of this: preloading or linking the library replaces malloc and its family (and the C++
 * operators) as they are declared in <stdlib.h> and <malloc.h>.  This header is for programs that want to ask or
 * steer the allocator.  Every function is safe to call from any thread, at any time after main() has begun; none but
 * sutler_manager_park(), sutler_manager_resume() and sutler_core_calls_only() may be called from a signal handler.  A
 * program that may run without the library declares the functions weak (-DSUTLER_WEAK) and tests `sutler_is_active` for
 * NULL.
 */
#ifndef SUTLER_H
#define SUTLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SUTLER_VERSION_MAJOR 0
#define SUTLER_VERSION_MINOR 1
#define SUTLER_VERSION_PATCH 0

#ifdef SUTLER_WEAK
#define SUTLER_API __attribute__((visibility("default"), weak))
#else
#define SUTLER_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* "MAJOR.MINOR.PATCH" of the library that is loaded. */
SUTLER_API const char *sutler_version(void);

/* True if this library serves the process's malloc(); false if another definition of malloc() came first. */
SUTLER_API bool sutler_is_active(void);

/* Reads option `name` (the environment name without "SUTLER_", in lower case: "sync", "on_error") into `value`, a
 * buffer of `size` bytes, always NUL-terminated when size > 0.  Returns 0, or EINVAL for an unknown name, or ERANGE
 * when the value was truncated. */
SUTLER_API int sutler_option_get(const char *name, char *value, size_t size);

/* Sets option `name` for the rest of the process.  Returns 0; EINVAL for an unknown name or value; EPERM for an option
 * that is only read at start (those not marked * in docs/options.md). */
SUTLER_API int sutler_option_set(const char *name, const char *value);

/* Is handed each report of an error instead of standard error (or SUTLER_REPORT_FILE): one line, with
 * SUTLER_REPORT=long some, and a NUL behind it.  After that the process is aborted, or goes on (SUTLER_ON_ERROR).  A
 * hook is called wherever the error is found: in a signal handler, in the manager thread, with locks held.  So it does
 * what a signal handler may do, and neither allocates nor frees nor jumps out.  NULL takes it away.  Not to be called
 * by two threads at once. */
typedef void sutler_report_hook(const char *text, size_t length);
SUTLER_API void sutler_report_to(sutler_report_hook *hook);

/* Returns every wholly free page the allocator holds to the system and reports how many bytes that was. */
SUTLER_API size_t sutler_purge(void);

/* Stops the manager thread and waits until it is gone; until sutler_manager_resume() has been called as often, none is
 * started.  For code that must find only its own threads in the process: changes of credentials, namespaces or seccomp
 * filters by system calls of its own (libc's functions do it themselves), checkpointing.  Can be called in a signal
 * handler; where that interrupted the allocator it does not wait. */
SUTLER_API void sutler_manager_park(void);
SUTLER_API void sutler_manager_resume(void);

/* From now on there is no manager in this process, and the library makes no system call but those of the core set of
 * docs/security.md.  For a program that is about to install a seccomp filter by a system call of its own, or is linked
 * with the static library (in the shared one libc's prctl and syscall see to it themselves). */
SUTLER_API void sutler_core_calls_only(void);

/* A snapshot of the heap, all sizes in bytes.  Taken without stopping other threads: figures that belong together can
 * be apart by what was in flight. */
struct sutler_stats {
    size_t size;              /* sizeof(struct sutler_stats) of the library that filled it */
    size_t live_bytes;        /* blocks in the program's hands, rounded up to their size class */
    size_t live_blocks;       /* how many those are */
    size_t free_bytes;        /* formatted but free blocks inside superblocks */
    size_t mapped_bytes;      /* address space opened for reading and writing */
    size_t span_bytes;        /* of those, in use as superblocks or large blocks */
    size_t dirty_bytes;       /* free spans whose pages have not been given back */
    size_t purged_bytes;      /* given back to the system since the start */
    size_t reserve_bytes;     /* free memory made ready ahead of demand, not yet taken */
    size_t provided_bytes;    /* made ready since the start */
    size_t wasted_bytes;      /* of those, given back without having been taken */
    size_t hit_bytes;         /* memory taken for new superblocks that was ready */
    size_t miss_bytes;        /* and that was not, and never used before */
    size_t superblocks;       /* superblocks in use, in all heaps */
    size_t heaps;             /* local heaps created */
    size_t large_blocks;      /* blocks above the largest size class */
    size_t large_bytes;       /* their bytes */
    uint64_t refills;         /* slow-path mallocs that replaced or refilled an active superblock */
    uint64_t remote_frees;    /* blocks freed by a thread of another heap */
    uint64_t takeovers;       /* heaps re-homed to another cid */
    uint64_t aborts;          /* restartable sections the kernel aborted */
    uint64_t manager_cpu_us;  /* cpu time the manager thread has used, microseconds */
    uint64_t lock_waits;      /* times a thread of the program found a lock held, or waited for the manager */
    uint64_t wait_us;         /* how long they waited in all, microseconds */
    uint64_t file_opens;      /* files the library has opened since the start: what limits leave, mostly */
    /* The hardened library's sweeps (SUTLER_SWEEP): */
    size_t kept_bytes;        /* freed blocks that wait for one, or to which a pointer was found; not in live_bytes.  Of
                                 large ones, whose pages are gone, a 32nd */
    size_t kept_blocks;       /* how many those are */
    uint64_t sweeps;          /* made since the start */
    uint64_t failed_sweeps;   /* not made, because a thread could not be stopped or memory not be read */
    uint64_t swept_bytes;     /* memory searched for pointers */
    uint64_t swept_blocks;    /* blocks given back because there was no pointer to them */
    uint64_t unswept_blocks;  /* blocks given back though nobody knew (SUTLER_SWEEP=auto) */
    uint64_t sweep_us;        /* how long the sweeps took, microseconds */
    uint64_t stop_us;         /* how long the program's threads were stopped for them, microseconds */
    uint64_t longest_stop_us; /* the longest of these stops */
    uint64_t inline_sweeps;   /* of the sweeps, those a thread of the program made, because there was no manager, or it
                                 did not keep up, or memory was short */
    uint64_t sweep_waits;     /* times a thread of the program waited for the manager's sweep */
    /* Of any library: */
    size_t collapsed_bytes;   /* filled in small pages, and made huge pages afterwards, since the start */
};

/* Fills `*stats` (at most `size` bytes of it, for callers built against an older header).  Returns 0, or EINVAL. */
SUTLER_API int sutler_stats_get(struct sutler_stats *stats, size_t size);

/* The first bytes of a page of live statistics, which the manager thread of a process keeps for other processes to
 * map: it is the memfd "sutler-stats" among the file descriptors of the thread "sutler-manager"
 * (/proc/PID/task/TID/fd).  Written about once a second while the heap changes.  To read: note `sequence`, try again
 * while it is odd, copy, and try again if it has changed meanwhile.  After `size` bytes follow the names of the
 * statistics, in their order, each with a blank behind it, and a NUL. */
#define SUTLER_PAGE_MAGIC "sutler1"
struct sutler_page {
    char magic[8];
    uint32_t size;       /* sizeof(struct sutler_page) of the library that wrote it */
    uint32_t sequence;
    uint64_t written_ns; /* CLOCK_MONOTONIC */
    struct sutler_stats stats;
};

/* Writes the readable report (`json` false) or the machine-readable one to file descriptor `fd`. */
SUTLER_API void sutler_stats_print(int fd, bool json);

#ifdef __cplusplus
}
#endif
#endif
