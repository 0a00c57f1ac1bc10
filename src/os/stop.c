/* SPDX-License-Identifier: MIT */
#include "os/stop.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/bits.h"
#include "os/os.h"
#include "os/syscall.h"

#define STOP_SIGNAL 33
/* Threads that can be stopped at once. */
#define THREADS_MAX 32768u
#define EMPTY_LISTS 4u       /* lists in a row without anybody new, which may be short: then there is nobody */
#define LOOK_NS     1000000u /* how long to wait for answers before looking who has ended */

/* The kernel's own layouts. */
struct action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

/* The number of the stop that is in force; 0: none.  Threads sleep on it. */
static _Atomic uint32_t stop_in_force;
static uint32_t stops;
/* Of those that were asked to stop: who, and the last stop each has come to.  A late answer names a stop that is
 * over. */
static uint32_t thread_id[THREADS_MAX];
static _Atomic uint32_t stopped_for[THREADS_MAX];
static unsigned asked;
static _Atomic uint32_t answers; /* the caller sleeps on it */

static struct action before; /* libc's, for signals that are not ours */
static uint32_t process;
static uint64_t mask_before; /* the caller's */

/* ---- in the threads ---- */

/* Whatever it does is allowed in a signal handler: it touches no errno and no thread-local variable. */
static void on_stop(int number, siginfo_t *info, void *context)
{
    if (info->si_code != SI_QUEUE || (uint32_t)info->si_pid != process) {
        if ((uintptr_t)before.handler > (uintptr_t)SIG_IGN)
            before.handler(number, info, context);
        return;
    }
    const uint64_t value = (uintptr_t)info->si_value.sival_ptr;
    const uint32_t stop = (uint32_t)(value >> 32), place = (uint32_t)value % THREADS_MAX;
    if (atomic_load(&stop_in_force) != stop)
        return; /* it came too late */
    atomic_store(&stopped_for[place], stop);
    atomic_fetch_add(&answers, 1);
    os_futex_wake_one(&answers);
    while (atomic_load(&stop_in_force) == stop)
        os_futex_wait(&stop_in_force, stop);
}

#if defined(__x86_64__)
/* By these very bytes debuggers and unwinders know the frame below it for a signal's. */
void os_return_from_signal(void) __attribute__((visibility("hidden")));
__asm__(
    ".text\n\t.globl os_return_from_signal\n\t.hidden os_return_from_signal\n\t"
    ".type os_return_from_signal, %function\n"
    "os_return_from_signal:\n\tmovq $15, %rax\n\tsyscall\n\t.size os_return_from_signal, . - os_return_from_signal\n");
#define RESTORER_FLAG 0x04000000ul
#define RESTORER      os_return_from_signal
#else
#define RESTORER_FLAG 0ul
#define RESTORER      NULL
#endif

/* Another may have been put in its place: libc does so when it makes its first thread. */
static bool install(void)
{
    const struct action ours = {on_stop, SA_SIGINFO | SA_RESTART | SA_ONSTACK | RESTORER_FLAG, RESTORER, ~0ull};
    struct action now;
    if (sys_failed(sys_call(SYS_rt_sigaction, STOP_SIGNAL, 0, (long)&now, sizeof now.mask, 0, 0)))
        return false;
    if (now.handler == on_stop)
        return true;
    before = now;
    return !sys_failed(sys_call(SYS_rt_sigaction, STOP_SIGNAL, (long)&ours, (long)&before, sizeof ours.mask, 0, 0));
}

/* ---- who there is ---- */

struct entry {
    uint64_t inode, next;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

static uint32_t number_in(const char *digits)
{
    uint32_t number = 0;
    for (; *digits >= '0' && *digits <= '9'; digits++)
        number = number * 10 + (uint32_t)(*digits - '0');
    return number;
}

/* It has ended, or ends, or runs in the system only (io_uring's workers), where it has no registers of the
 * program's. */
static bool needs_no_stop(uint32_t tid)
{
    const uint64_t exiting = 0x4, io_worker = 0x10, user_worker = 0x4000;
    char path[64] = "/proc/self/task/", digits[12], text[512];
    size_t length = 16, count = 0;
    for (uint32_t rest = tid; rest != 0; rest /= 10)
        digits[count++] = (char)('0' + rest % 10);
    while (count > 0)
        path[length++] = digits[--count];
    __builtin_memcpy(path + length, "/stat", sizeof "/stat");
    long fd = os_open(path);
    if (sys_failed(fd))
        return fd == -ENOENT || fd == -ESRCH;
    long n = sys_call(SYS_read, fd, (long)text, sizeof text - 1, 0, 0, 0);
    sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
    if (n <= 0)
        return n == -ESRCH;
    text[n] = '\0';
    while (n > 0 && text[n - 1] != ')')
        n--;
    const char *at = text + n; /* " state ppid pgrp session tty tpgid flags" */
    if (at[0] == ' ' && (at[1] == 'Z' || at[1] == 'X'))
        return true;
    for (int blanks = 0; *at != '\0' && blanks < 7; at++)
        blanks += *at == ' ';
    return (number_in(at) & (exiting | io_worker | user_worker)) != 0;
}

/* Among the first `known`; beginning at `*next`, for lists have the same order. */
static bool is_asked(uint32_t tid, unsigned known, unsigned *next)
{
    for (unsigned i = 0; i < known; i++) {
        unsigned place = *next < known ? *next : 0;
        *next = place + 1;
        if (thread_id[place] == tid)
            return true;
    }
    return false;
}

static bool ask(uint32_t tid, uint32_t stop)
{
    if (asked == THREADS_MAX || (asked == 0 && !install()))
        return false;
    const unsigned place = asked++;
    siginfo_t info = {.si_signo = STOP_SIGNAL, .si_code = SI_QUEUE};
    info.si_pid = (pid_t)process;
    info.si_value.sival_ptr = (void *)(uintptr_t)((uint64_t)stop << 32 | place);
    thread_id[place] = tid;
    atomic_store(&stopped_for[place], 0);
    if (sys_failed(sys_call(SYS_rt_tgsigqueueinfo, (long)process, (long)tid, STOP_SIGNAL, (long)&info, 0, 0)) &&
        needs_no_stop(tid))
        atomic_store(&stopped_for[place], stop);
    return true;
}

/* Asks all who were not asked yet; returns how many those were, or -1.  The kernel cuts a list short where a thread
 * ends while it is at that one: the list is whole if it has as many as there were before. */
static int ask_all(uint32_t own, uint32_t spared, uint32_t stop, bool *is_whole)
{
    static char text[32768] __attribute__((aligned(8)));
    const uint32_t threads = os_thread_count();
    const unsigned known = asked;
    unsigned next = 0, listed = 0;
    int count = 0;
    bool all = true;
    long fd = sys_call(SYS_openat, AT_FDCWD, (long)"/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, 0, 0), n;
    if (sys_failed(fd))
        return -1;
    while ((n = sys_call(SYS_getdents64, fd, (long)text, sizeof text, 0, 0, 0)) > 0)
        for (long at = 0; at < n; at += ((struct entry *)(text + at))->bytes) {
            uint32_t tid = number_in(((struct entry *)(text + at))->name);
            listed += tid != 0;
            if (tid == 0 || tid == own || tid == spared || is_asked(tid, known, &next))
                continue;
            all &= ask(tid, stop);
            count++;
        }
    sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
    *is_whole = threads > 0 && listed >= threads;
    return n < 0 || !all ? -1 : count;
}

static bool have_all_answered(uint32_t stop)
{
    for (unsigned i = 0; i < asked; i++)
        if (atomic_load(&stopped_for[i]) != stop)
            return false;
    return true;
}

static void excuse_those_gone(uint32_t stop)
{
    for (unsigned i = 0; i < asked; i++)
        if (atomic_load(&stopped_for[i]) != stop && needs_no_stop(thread_id[i]))
            atomic_store(&stopped_for[i], stop);
}

static bool await_all(uint32_t stop, uint64_t until_ns)
{
    uint64_t look_ns = os_now_ns() + LOOK_NS;
    for (;;) {
        uint32_t heard = atomic_load(&answers);
        if (have_all_answered(stop))
            return true;
        uint64_t now_ns = os_now_ns();
        if (now_ns >= until_ns)
            return false;
        if (now_ns >= look_ns) {
            look_ns = now_ns + LOOK_NS;
            excuse_those_gone(stop);
        } else {
            os_futex_wait_for(&answers, heard, look_ns - now_ns);
        }
    }
}

/* Whoever runs and is not known was made by one who is, before that one stopped, and is in the next list. */
static bool stop_all(uint32_t own, uint32_t spared, uint32_t stop, uint64_t until_ns)
{
    for (unsigned empty = 0; empty < EMPTY_LISTS;) {
        bool is_whole;
        int count = ask_all(own, spared, stop, &is_whole);
        if (count < 0 || !await_all(stop, until_ns))
            return false;
        if (count == 0 && is_whole)
            return true;
        empty = count == 0 ? empty + 1 : 0;
    }
    return true;
}

bool os_threads_stop(uint32_t spared, uint64_t most_ns)
{
    const uint64_t until_ns = os_now_ns() + most_ns;
    const uint32_t own = (uint32_t)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    process = (uint32_t)sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    const uint64_t all = ~0ull;
    if (sys_failed(sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&mask_before, sizeof all, 0, 0)))
        return false;
    asked = 0;
    stops = stops == UINT32_MAX ? 1 : stops + 1;
    atomic_store(&stop_in_force, stops);
    if (stop_all(own, spared, stops, until_ns))
        return true;
    os_threads_resume();
    return false;
}

void os_threads_resume(void)
{
    atomic_store(&stop_in_force, 0);
    os_futex_wake_all(&stop_in_force);
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask_before, 0, sizeof mask_before, 0, 0);
}
