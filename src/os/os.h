/* SPDX-License-Identifier: MIT
 *
 * The only door to the system.  Everything above asks for memory, time, waiting and facts of the machine through these
 * functions.  None of them allocates, touches errno, or calls into libc in a way that could (getauxval and environ are
 * read-only).  All are safe from any thread; those marked [signal] also from a signal handler.
 */
#ifndef SUTLER_OS_OS_H
#define SUTLER_OS_OS_H

#include "base/compiler.h"

/* ---- memory.  Addresses and sizes are multiples of os_page_bytes. ---- */

/* Bytes of a page: 4 KiB, 16 KiB or 64 KiB.  Valid after os_init(). */
extern size_t os_page_bytes;
#define OS_PAGE_BYTES_MIN 4096u

/* Bytes of a huge page: what one table of pages maps, an eight-byte entry a page.  2, 32 or 512 MiB. */
static inline size_t os_huge_page_bytes(void)
{
    return os_page_bytes / 8 * os_page_bytes;
}

/* Learns the page size, where the vDSO's functions are, what standard error is, and whether a seccomp filter is in
 * force.  Idempotent. */
void os_init(void);

/* ---- system calls by need (docs/security.md) ---- */

/* True if a seccomp filter is in force on any thread, or nobody knows.  Cached: no system call. */
bool os_is_filtered(void);
/* Whether system calls that are not indispensable may be made, as the options say: true, even under a filter that was
 * there at the start; false, even without any filter. */
void os_allow_luxuries(bool allowed);
/* Whether they are made at present.  Where they are not, functions that need one behave as if the system gave no
 * answer. */
bool os_may_call_luxuries(void);
/* os_expect_filter: the program is about to install a filter; on return no thread is within a call it might forbid.
 * os_note_filter: whether it did.  If so, neither this process nor its children make luxuries any more. [signal] */
void os_expect_filter(void);
void os_note_filter(bool is_installed);

/* Maps `size` zeroed, private, readable and writable bytes exactly at `address`, where nothing may be mapped yet.
 * Returns 0; EEXIST if something is there (or the address cannot be used at all); ENOMEM. */
int os_map_at(void *address, size_t size);

/* The same at an address of the system's choice; NULL when there is no memory.  [signal] */
void *os_map(size_t size);

/* Whether pages, otherwise read only, may be written to.  Returns false if the system does not allow it. */
bool os_set_writable(void *address, size_t size, bool writable);

/* Makes the pages of a range trap whoever touches them, what they hold is lost; or ordinary again, then they read as
 * zero.  No mapping is split.  False where the system cannot (before Linux 6.13). */
bool os_guard(void *address, size_t size, bool guarded);

/* Gives a mapping, or a part of one, back.  Cannot fail in a way the caller could act on. */
void os_unmap(void *address, size_t size);
/* The same of memory that the program had: others may want to know (os/hooks.h). */
void os_give_back(void *address, size_t size);
/* False if the caller must leave that to the program's threads; os_purge is refused then. */
bool os_may_give_back(void);

/* Grows or shrinks a mapping, moving it if `may_move` (but not past hooks); NULL (and the mapping unchanged) if that is
 * not possible. */
void *os_remap(void *address, size_t old_size, size_t new_size, bool may_move);
/* Whether the range is one mapping to the system, which os_remap lengthens as a whole, or of several. */
bool os_is_one_mapping(void *address, size_t size);

/* A new mapping with the pages of this range, which stays mapped and reads as zeros from then on.  NULL (and nothing
 * changed) where that is not possible: before Linux 5.7, of locked memory, if the range was advised in part. */
void *os_move_pages(void *address, size_t size);

/* Returns the pages to the system now; they read as zero when touched again.  False if the system refused. */
bool os_purge(void *address, size_t size);
/* The same of memory that the program never had. */
bool os_wipe(void *address, size_t size);

struct os_range {
    void *address;
    size_t size;
};
#define OS_RANGES_MAX 256

/* The same for many ranges at a quarter of the price each (process_madvise, where it may be used on oneself).  False if
 * any of them was refused. */
bool os_purge_ranges(const struct os_range *ranges, size_t count);

/* Makes the system put a page there.  What the page holds stays, even while another thread writes to it. */
void os_touch(void *page);

/* The same for many, whatever access to them is allowed: false where it is forbidden, nothing is mapped, or the system
 * cannot (before Linux 5.14). */
bool os_populate(void *address, size_t size);
/* Makes huge pages of what lies in these, whole ones, pages that are not there included; what they hold stays.  Who
 * shares a page with a child of a fork has a copy then.  0; ENOMEM or EBUSY: there is no huge page; EAGAIN: not at the
 * moment; EINVAL: these cannot be. */
int os_collapse(void *address, size_t size);
/* True if the system makes huge pages wherever it was not told to make none.  Asked once. */
bool os_makes_all_pages_huge(void);
/* True if the system can (Linux 6.1), and leaves huge pages to who asks for them: neither everywhere nor nowhere.
 * Asked once; one thread. */
bool os_may_collapse(void);
/* A descriptor that tells about the process's pages; negative if it cannot be had.  Within need_begins (filter.h). */
long os_pages_open(void);
/* The same for os_owns_pages, where no filter may forbid it; and closes it. */
long os_pagemap_open(void);
void os_pagemap_close(long pagemap);
/* True if all of these pages are there, and nobody else has them: no child of a fork, nor all who read zeros.  False
 * where it is not known. */
bool os_owns_pages(long pagemap, void *address, size_t size);

/* Which pages are resident, a byte each, 0 or 1; false if that is not known. */
bool os_find_resident(void *address, size_t size, unsigned char *there);
/* Whether the page of this address is, any address; false if that is not known. */
bool os_is_resident(const void *address);

/* Copies the OS_PEEK_BYTES at each of so many addresses, one after the other.  False if one cannot be read, as where
 * the program has protected its page, or that is not known. */
#define OS_PEEK_BYTES 64u
#define OS_PEEKS_MAX  16u
bool os_peek(char *to, const char *const *from, size_t count);

/* Splits the huge page that holds this page, if there is one: purging a part of a whole one frees nothing. */
void os_split_huge(void *page);

/* From now on the system may take the pages whenever it wants memory, until they are written to again.  What they hold
 * is lost.  False if the system cannot. */
bool os_give_up(void *address, size_t size);

/* Asks for huge pages in the range, or for none from here on: hints.  False where the system knows none. */
bool os_advise_huge(void *address, size_t size);
bool os_advise_small(void *address, size_t size);

/* Makes the range read as zero in a forked child; false where the system cannot. */
bool os_wipe_on_fork(void *address, size_t size);

/* Whether a forked child has the range not at all, or a copy as usual; false where the system cannot change it. */
bool os_keep_from_children(void *address, size_t size, bool keep);

/* The beginning of a small file, NUL-terminated, in `text`, which is returned; "" if it cannot be read. */
const char *os_read_file(const char *path, char *text, size_t size);
/* The same for a report somebody has asked for: where no filter is in force, whatever the options say. */
const char *os_read_file_for_report(const char *path, char *text, size_t size);

/* Opens a file for reading; -errno on failure.  And how many files were opened since the start. */
long os_open(const char *path);
uint64_t os_file_opens(void);
/* Whether it can be opened. */
bool os_file_is_there(const char *path);

/* Bytes the process may still use before the machine, or one of its control groups, is short of memory; SIZE_MAX if
 * that is not known, or no group has a limit.  And the cpu time its control groups allow it, in percent of one cpu. */
size_t os_machine_headroom(void);
size_t os_groups_headroom(void);
/* False: it is in control groups, and what limits they set cannot be read (a container without /sys). */
bool os_groups_are_known(void);
/* Whether the process may map as much as it likes, without touching it: no limit of its own, and no strict
 * overcommit. */
bool os_may_map_freely(void);
/* Part of the last ten seconds in which some task waited for memory. */
unsigned os_memory_stall_percent(void);
unsigned os_cpu_quota_percent(void);
/* Whether more tasks want to run now than the machine has processors, the caller included; false if that is not
 * known. */
bool os_cpus_are_busy(void);

/* Zeroed memory behind a file of this name in the caller's file descriptor table, for other processes to map; a forked
 * child has not got it.  NULL if there can be none.  The descriptor stays open. */
void *os_shared_page(const char *name, size_t size);

/* The most memory the process has had resident so far; 0 if the system does not tell. */
size_t os_resident_peak_bytes(void);

/* Resident memory of the process in bytes, or 0 if /proc is not to be read. */
size_t os_resident_bytes(void);

/* ---- waiting ---- */

/* Sleeps while *word == expected; may return at any time.  [signal] */
void os_futex_wait(_Atomic uint32_t *word, uint32_t expected);
void os_futex_wake_one(_Atomic uint32_t *word);
void os_futex_wake_all(_Atomic uint32_t *word);
/* The same for at most `timeout_ns`. */
void os_futex_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
/* Sleeps for so long, or less.  It is a wait nobody ends: filters let through what locks need. */
void os_sleep(uint64_t ns);
/* For a word the kernel clears when a thread ends. */
void os_futex_wait_shared(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void os_futex_wake_all_shared(_Atomic uint32_t *word);
/* Sleeps while neither word changes, the second one cleared by the kernel; until `end_ns` of os_now_ns at most.  False
 * if the system cannot. */
bool os_futex_wait_either(_Atomic uint32_t *word, uint32_t expected, _Atomic uint32_t *cleared, uint32_t until,
                          uint64_t end_ns);

/* ---- threads and cpus ---- */

/* One more than the largest cpu number the kernel can ever use, rounded up to 64; 0 if the system is not to be
 * asked. */
unsigned os_cpu_limit(void);

/* Cpu the caller runs on at this moment; 0 if the system does not tell. */
unsigned os_current_cpu(void);

/* Where the caller runs at this moment; a thread without libc's data may ask, too. */
#define OS_CPU_UNKNOWN UINT32_MAX
struct os_place {
    unsigned cpu, node;
};
struct os_place os_current_place(void);
/* The cpu where this thread runs, or ran last; OS_CPU_UNKNOWN if the system does not tell.  Reads a file. */
unsigned os_cpu_of(uint32_t tid);
/* Moves the caller off this cpu, if it runs there, to another one that it may run on.  Which cpus it may run on stays
 * as it is.  Returns whether it tried. */
bool os_leave_cpu(unsigned cpu);

/* Whether nobody has set a memory policy for the calling thread; and the NUMA node where its new pages should lie from
 * now on. */
bool os_has_default_memory_policy(void);
void os_prefer_node(unsigned node);

void os_yield(void);

/* How many cpus a thread may run on (`tid` 0: the caller); 0 if this process has no such thread (any more). */
unsigned os_cpus_allowed(uint32_t tid);
/* The caller's thread id, and its process's; 0 if not known. */
uint32_t os_thread_id(void);
uint32_t os_process_id(void);

/* For a thread made by a raw clone.  The first fills in what libc's code expects to find at the thread pointer.  The
 * second, called by the thread, names it, moves it to the root directory so that it keeps no other busy, and gives it
 * an empty file descriptor table of its own; false if it cannot: then the thread must not open files. */
void os_thread_block_prepare(void *thread_pointer);
bool os_thread_settle(const char *name);
/* How many threads the process has, as the system counts; 0 if it does not tell. */
unsigned os_thread_count(void);
/* Waits until the process no longer counts a thread that is ending: its futex is woken a little before. */
void os_thread_wait_gone(uint32_t tid);
/* Cpu time of the calling thread. */
uint64_t os_thread_cpu_us(void);
/* The word that holds the id of the process's first thread.  When that thread ends the kernel clears it and wakes one
 * thread that waits for it.  Only the first thread can ask: NULL to others, or if the system does not tell. */
_Atomic uint32_t *os_leader_word(void);
/* True if the process's first thread has ended, with *status, and nobody but the caller is left. */
bool os_is_alone(int *status);
/* Points to a byte of libc's that is not 0 while it knows that there is one thread (glibc 2.32); never NULL. */
const volatile char *os_single_threaded(void);
/* Ends the calling thread; the status of a process's last thread is the process's. */
_Noreturn void os_thread_exit(int status);
/* True if the process has privileges an ordinary user has not, or got them by its file, or if that is not known. */
bool os_is_privileged(void);
/* Blocks all signals of the calling thread; the value restores them.  Under a filter, where there is no manager either,
 * neither does anything. */
uint64_t os_block_signals(void);
void os_restore_signals(uint64_t signals);

/* rseq(2): registers the calling thread's area, if it is not registered.  False when the system lacks it, the thread
 * has another one, or a filter is in force. */
bool os_rseq_register(void *area, uint32_t bytes, uint32_t signature);
/* membarrier(2): registers for, and issues, the fence that restarts every restartable section running in this process.
 * False when the system lacks it, or a filter is in force: then os_has_rseq_fence() says so beforehand. */
bool os_has_rseq_fence(void);
bool os_rseq_fence_register(void);
bool os_rseq_fence(void);
/* The same for a barrier that orders the memory accesses of every thread of this process that is running. */
bool os_fence_register(void);
bool os_fence(void);

/* ---- aarch64 only (aarch64.c) ---- */

/* The kernel's release, major * 1000 + minor: 6012 for 6.12.  0 if the system does not tell. */
unsigned os_kernel_release(void);

/* The caller has a signal interrupt it once, `delay_ns` (less than a second) from now.  Only one such interruption may
 * be under way. */
struct os_interruption {
    _Atomic uint32_t inside;     /* the caller's: whether it is where it wants to be interrupted */
    _Atomic uint32_t happened;   /* the signal was delivered */
    _Atomic uint32_t was_inside; /* and `inside` was this */
    int timer;
    void (*handler_before)(int);
    unsigned long flags_before;
    uint64_t mask_before, signals_before;
};
/* False if the system cannot; then there is nothing to end. */
bool os_interrupt_begin(struct os_interruption *i, uint64_t delay_ns);
void os_interrupt_end(struct os_interruption *i);

/* ---- time and environment ---- */

/* A duplicate of `fd`, closed on exec, with a number programs do not use; `fd` itself if there can be none. */
int os_keep_fd(int fd);

/* Remembers what standard error is.  A part of os_init. */
void os_note_standard_error(void);
/* Standard error, or `kept`, a duplicate of it (or itself), if its number still stands for what it did at the start;
 * else -1: the program has closed it, and the number may be that of a file of its own. */
int os_standard_error(int kept);
/* The same, but also where the program has most likely put something else there to be written to: a terminal or a pipe,
 * its standard output, or a file it appends to. */
bool os_standard_error_is_written(void);
/* For a thread with a table of files of its own, the manager: the process's standard error, if it is what it was at the
 * start, or a terminal or a pipe; to be closed.  Negative if it cannot be had. */
long os_open_standard_error(void);

/* Nanoseconds of a monotonic clock with the resolution of the timer tick or better.  [signal] */
uint64_t os_now_ns(void);

/* False if the process was started with its addresses where they always are (setarch -R, a debugger's default). */
bool os_is_randomized(void);

/* Thirty-two random bits: a hash of those the kernel gave the process at its start, the clock and the stack address. */
uint32_t os_random(void);

/* Calls `visit` with every NAME=VALUE that begins with `prefix`; nothing when the process runs with raised privileges
 * (AT_SECURE).  Works before libc's own environ is set. */
void os_env_each(const char *prefix, void (*visit)(const char *entry));

#endif
