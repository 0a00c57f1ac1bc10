/* SPDX-License-Identifier: MIT
 *
 * The system calls the library makes, by need: the tables of docs/security.md (tests/tool/test_docs.py compares them,
 * and both with the sources).  Tests run it under filters made of them that end the process at any other call.
 */
#ifndef TESTS_CALL_SETS_H
#define TESTS_CALL_SETS_H

/* What a malloc is made of. */
#define CALLS_CORE(CALL) CALL(mmap) CALL(munmap) CALL(mremap) CALL(madvise) CALL(mprotect) CALL(futex)

/* Once, at the start of every process. */
#define CALLS_START(CALL) CALL(prctl) CALL(openat) CALL(read) CALL(close)

/* Where there is something to say. */
#define CALLS_REPORT(CALL) CALL(write)

/* Only where no filter is in force; SUTLER_MANAGER=off makes these as well. */
#define CALLS_PLAIN(CALL)                                                                                              \
    CALL(sched_getaffinity) CALL(membarrier) CALL(getpid) CALL(fcntl) CALL(fstat) CALL(openat) CALL(read) CALL(close)

/* The same at the start on aarch64, whose kernels are asked for a proof. */
#define CALLS_AARCH64(CALL)                                                                                            \
    CALL(uname) CALL(timer_create) CALL(timer_settime) CALL(timer_delete) CALL(rt_sigaction) CALL(rt_sigprocmask)

/* The same in each thread, where libc is too old to do it. */
#define CALLS_AREAS(CALL) CALL(rseq)

/* Where no filter is in force, in the hardened library with SUTLER_SWEEP. */
#define CALLS_SWEEP(CALL)                                                                                              \
    CALL(userfaultfd) CALL(ioctl) CALL(pread64) CALL(process_vm_readv) CALL(rt_tgsigqueueinfo) CALL(rt_sigaction)      \
    CALL(rt_sigprocmask) CALL(getdents64) CALL(openat) CALL(read) CALL(close) CALL(getpid) CALL(gettid)

/* Only where no filter is in force, or the operator vouches for it. */
#define CALLS_LUXURIES(CALL)                                                                                           \
    CALL(mincore) CALL(process_madvise) CALL(process_vm_readv) CALL(gettid) CALL(getcpu) CALL(getrusage)               \
    CALL(sched_yield) CALL(openat) CALL(read) CALL(close)

/* The manager's thread, and the program's for its sake. */
#define CALLS_MANAGER(CALL)                                                                                            \
    CALL(clone) CALL(close_range) CALL(chdir) CALL(prctl) CALL(exit) CALL(openat) CALL(read) CALL(close)               \
    CALL(newfstatat) CALL(memfd_create) CALL(ftruncate) CALL(sched_getaffinity) CALL(sched_setaffinity)                \
    CALL(get_mempolicy) CALL(set_mempolicy) CALL(clock_gettime) CALL(futex_waitv) CALL(geteuid) CALL(gettid)           \
    CALL(getpid) CALL(tgkill) CALL(rt_sigprocmask) CALL(capset) CALL(getpriority) CALL(setpriority)                    \
    CALL(sched_getscheduler) CALL(sched_setscheduler) CALL(fcntl) CALL(pread64)

#endif
