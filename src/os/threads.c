/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#include "base/bits.h"
#include "os/filter.h"
#include "os/line.h"
#include "os/os.h"
#include "os/syscall.h"

unsigned os_cpu_limit(void)
{
    unsigned long mask[1024]; /* 65,536 cpus */
    long bytes = sys_call_if(need_plain, SYS_sched_getaffinity, 0, sizeof mask, (long)mask, 0, 0, 0);
    return sys_failed(bytes) ? 0 : (unsigned)align_up((size_t)bytes * 8, 64);
}

void os_yield(void)
{
    const uint64_t moment_ns = 1000;
    if (sys_failed(sys_call_if(need_luxury, SYS_sched_yield, 0, 0, 0, 0, 0, 0)))
        os_sleep(moment_ns);
}

static bool is_ours(uint32_t tid)
{
    return sys_call_if(need_luxury, SYS_tgkill, (long)os_process_id(), (long)tid, 0, 0, 0, 0) == 0;
}

unsigned os_cpus_allowed(uint32_t tid)
{
    unsigned long mask[128] = {0}; /* 8,192 cpus; on whatever stack a signal handler that allocates may have */
    if (tid != 0 && !is_ours(tid))
        return 0;
    long bytes = sys_call_if(need_luxury, SYS_sched_getaffinity, (long)tid, sizeof mask, (long)mask, 0, 0, 0);
    unsigned cpus = 0;
    for (long i = 0; i < bytes / (long)sizeof mask[0]; i++)
        cpus += (unsigned)__builtin_popcountl(mask[i]);
    return cpus;
}

unsigned os_thread_count(void)
{
    const unsigned links_of_its_own = 2; /* the directory has one more for each thread */
    struct stat tasks;
    long result = sys_call_if(need_luxury, SYS_newfstatat, AT_FDCWD, (long)"/proc/self/task", (long)&tasks, 0, 0, 0);
    return sys_failed(result) || tasks.st_nlink < links_of_its_own ? 0 : (unsigned)tasks.st_nlink - links_of_its_own;
}

bool os_is_privileged(void)
{
    long user = sys_call_if(need_luxury, SYS_geteuid, 0, 0, 0, 0, 0, 0);
    return sys_failed(user) || user == 0 || getauxval(AT_SECURE) != 0;
}

/* No thread can have this one blocked. */
#define SIGNALS_AS_THEY_WERE (1ull << (SIGKILL - 1))

uint64_t os_block_signals(void)
{
    uint64_t all = ~0ull, old = 0;
    long result = sys_call_if(need_luxury, SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&old, sizeof all, 0, 0);
    return sys_failed(result) ? SIGNALS_AS_THEY_WERE : old;
}

void os_restore_signals(uint64_t signals)
{
    if (signals == SIGNALS_AS_THEY_WERE)
        return;
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&signals, 0, sizeof signals, 0, 0);
}

void os_thread_block_prepare(void *thread_pointer)
{
#if defined(__x86_64__)
    /* %fs:0 and %fs:16 point to the block itself; %fs:40 is the stack protector's canary, %fs:48
     * libc's pointer guard. */
    const uintptr_t *own = (const uintptr_t *)own_thread_pointer();
    uintptr_t *block = thread_pointer;
    block[0] = block[2] = (uintptr_t)thread_pointer;
    block[5] = own[5];
    block[6] = own[6]; /* what libc encodes pointers with */
#else
    (void)thread_pointer;
#endif
}

bool os_thread_settle(const char *name)
{
    const unsigned close_range_unshare = 2;
    sys_call(SYS_chdir, (long)"/", 0, 0, 0, 0, 0);
    sys_call(SYS_prctl, PR_SET_NAME, (long)name, 0, 0, 0, 0);
    return !sys_failed(sys_call(SYS_close_range, 0, ~0u, close_range_unshare, 0, 0, 0));
}

void os_thread_wait_gone(uint32_t tid)
{
    /* Mostly some microseconds.  A debugger that looks at the thread can keep it there: not for ever. */
    const uint64_t moment_ns = 100000;
    const int soon = 100;
    for (int i = 0; i < 10000 && is_ours(tid); i++)
        if (i < soon)
            os_yield();
        else
            os_sleep(moment_ns);
}

uint64_t os_thread_cpu_us(void)
{
    struct timespec used = {0};
    sys_call(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)&used, 0, 0, 0, 0);
    return (uint64_t)used.tv_sec * 1000000u + (uint64_t)used.tv_nsec / 1000u;
}

static uint32_t id_of(enum need need, long number)
{
    long id = sys_call_if(need, number, 0, 0, 0, 0, 0, 0);
    return sys_failed(id) ? 0 : (uint32_t)id;
}

uint32_t os_thread_id(void)
{
    return id_of(need_luxury, SYS_gettid);
}

uint32_t os_process_id(void)
{
    return id_of(need_plain, SYS_getpid);
}

_Atomic uint32_t *os_leader_word(void)
{
    _Atomic uint32_t *word = NULL;
    uint32_t own = os_thread_id();
    if (own == 0 || own != os_process_id() ||
        sys_failed(sys_call_if(need_luxury, SYS_prctl, PR_GET_TID_ADDRESS, (long)&word, 0, 0, 0, 0)) || word == NULL)
        return NULL;
    return *word == own ? word : NULL;
}

/* From the state on, the third field: pid (name) state ... */
static const char *stat_of(const char *path, char *text, size_t size)
{
    size_t end = text_length(os_read_file(path, text, size));
    while (end > 0 && text[end - 1] != ')')
        end--;
    return text_after_words(text + end, 1);
}

bool os_is_alone(int *status)
{
    char text[1024];
    const char *state = stat_of("/proc/self/stat", text, sizeof text);
    /* The number of threads is the 20th field, and the first thread's exit code the 52nd. */
    if (*state != 'Z' || text_number(text_after_words(state, 20 - 3)) > 2)
        return false;
    *status = (int)(text_number(text_after_words(state, 52 - 3)) >> 8 & 0xff);
    return true;
}

void os_thread_exit(int status)
{
    for (;;)
        sys_call(SYS_exit, status, 0, 0, 0, 0, 0);
}

unsigned os_cpu_of(uint32_t tid)
{
    char text[1024];
    struct line path = LINE_EMPTY;
    line_add(&path, "/proc/self/task/%lu/stat", (unsigned long)tid);
    size_t cpu = text_number(text_after_words(stat_of(line_end(&path), text, sizeof text), 39 - 3));
    return cpu > UINT32_MAX ? OS_CPU_UNKNOWN : (unsigned)cpu;
}

struct os_place os_current_place(void)
{
    struct os_place here;
    bool failed = sys_failed(sys_call_if(need_luxury, SYS_getcpu, (long)&here.cpu, (long)&here.node, 0, 0, 0, 0));
    return failed ? (struct os_place){OS_CPU_UNKNOWN, 0} : here;
}

/* Narrows the mask and widens it again.  If somebody else changes it in these microseconds, that change is lost. */
bool os_leave_cpu(unsigned cpu)
{
    unsigned long mask[128] = {0}, bit = 1ul << cpu % 64;
    if (cpu / 64 >= ARRAY_LEN(mask) || os_current_place().cpu != cpu)
        return false;
    long bytes = sys_call_if(need_luxury, SYS_sched_getaffinity, 0, sizeof mask, (long)mask, 0, 0, 0);
    if (sys_failed(bytes) || (mask[cpu / 64] & bit) == 0)
        return true;
    mask[cpu / 64] &= ~bit;
    if (sys_failed(sys_call_if(need_luxury, SYS_sched_setaffinity, 0, bytes, (long)mask, 0, 0, 0)))
        return true; /* there is no other */
    mask[cpu / 64] |= bit;
    sys_call_if(need_luxury, SYS_sched_setaffinity, 0, bytes, (long)mask, 0, 0, 0);
    return true;
}

bool os_has_default_memory_policy(void)
{
    int policy = -1; /* MPOL_DEFAULT is 0 */
    return !sys_failed(sys_call_if(need_luxury, SYS_get_mempolicy, (long)&policy, 0, 0, 0, 0, 0)) && policy == 0;
}

void os_prefer_node(unsigned node)
{
    const long preferred = 1; /* MPOL_PREFERRED */
    unsigned long mask[16] = {0};
    if (node < sizeof mask * 8) {
        mask[node / 64] = 1ul << (node % 64);
        sys_call_if(need_luxury, SYS_set_mempolicy, preferred, (long)mask, sizeof mask * 8, 0, 0, 0);
    }
}

extern char __libc_single_threaded __attribute__((weak));

const volatile char *os_single_threaded(void)
{
    static const char never;
    return &__libc_single_threaded != NULL ? &__libc_single_threaded : &never;
}

bool os_rseq_register(void *area, uint32_t bytes, uint32_t signature)
{
    const long result = sys_call_if(need_plain, SYS_rseq, (long)area, bytes, 0, signature, 0, 0);
    return !sys_failed(result) || result == -EBUSY; /* it is registered */
}

#define FENCE(name, command)                                                                                           \
    bool name(void)                                                                                                    \
    {                                                                                                                  \
        return !sys_failed(sys_call_if(need_plain, SYS_membarrier, command, 0, 0, 0, 0, 0));                           \
    }

FENCE(os_rseq_fence_register, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ)
FENCE(os_rseq_fence, MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ)
FENCE(os_fence_register, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
FENCE(os_fence, MEMBARRIER_CMD_PRIVATE_EXPEDITED)

/* libc makes its stack canary and its pointer guard of the same sixteen bytes: the answer must not give them away. */
uint32_t os_random(void)
{
    static _Atomic uint64_t asked;
    const char *given = (const char *)getauxval(AT_RANDOM);
    uint64_t seed[2] = {0}, answer = os_now_ns() ^ (uintptr_t)&seed ^ atomic_fetch_add(&asked, 1);
    if (given != NULL)
        __builtin_memcpy(seed, given, sizeof seed);
    for (size_t i = 0; i < ARRAY_LEN(seed); i++) {
        answer = (answer ^ seed[i]) * 0x9e3779b97f4a7c15ull;
        answer = (answer ^ answer >> 32) * 0xd6e8feb86659fd93ull;
        answer ^= answer >> 32;
    }
    return (uint32_t)answer;
}
