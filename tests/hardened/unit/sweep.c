/* SPDX-License-Identifier: MIT
 *
 * The second tier, place by place: `sweep CASE`.  A block is freed while a pointer to it lies somewhere: it must not be handed
 * out again, and must be once the pointer is gone.  In memory of the test itself the address is kept as its complement.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sutler/sutler.h"

#define MIB   ((size_t)1 << 20)
#define LARGE ((size_t)128 << 10)

static size_t size = 100;
static uintptr_t hidden; /* the complement of the freed block's address */

static void fail(const char *what)
{
    fprintf(stderr, "FAILED: %s\n", what);
    _exit(1);
}

static void expect(bool seen, const char *what)
{
    if (!seen)
        fail(what);
}

/* ---- the library ---- */

static size_t (*purge)(void);
static int (*stats_get)(struct sutler_stats *, size_t);

static struct sutler_stats stats(void)
{
    struct sutler_stats s;
    if (stats_get(&s, sizeof s) != 0)
        fail("sutler_stats_get");
    return s;
}

/* ---- whether the block comes again ---- */

/* What calls have left on the stack. */
static __attribute__((noinline)) void wash_stack(void)
{
    volatile char dirt[65536];
    for (size_t i = 0; i < sizeof dirt; i++)
        dirt[i] = 0;
}

static __attribute__((noinline)) bool is_readable(const void *p)
{
    char byte;
    struct iovec local = {&byte, 1}, remote = {(void *)p, 1};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1;
}

/* Sweeps, and takes what there is.  Where a large block comes to lie again cannot be told, but while it is kept its pages are
 * guarded. */
static __attribute__((noinline)) bool is_handed_out(void)
{
    enum { MOST = 20000 };
    static uintptr_t taken[MOST];
    static size_t most, size_before;
    const size_t more = size > LARGE ? 16 : size > 10000 ? 300 : 2000;
    most = size == size_before ? most + more : more; /* all that was taken the last time, and more */
    size_before = size;
    bool found = false;
    size_t count = 0;
    purge();
    if (size > LARGE && is_readable((void *)~hidden))
        return true;
    while (count < most && count < MOST && !found) {
        taken[count] = ~(uintptr_t)malloc(size);
        found = taken[count++] - hidden < size; /* its first byte is in the new block */
    }
    while (count > 0)
        free((void *)~taken[--count]);
    return found;
}

static __attribute__((noinline)) void take_block(void)
{
    static uintptr_t taken[128]; /* of its superblock a few others are in use: it will be looked at for free blocks */
    const int count = size <= LARGE ? 128 : 2;
    for (int i = 0; i < count; i++)
        taken[i] = ~(uintptr_t)malloc(size);
    for (int i = 0; i < count; i++)
        if (i != 1 && (i % 8 != 0 || size > LARGE))
            free((void *)~taken[i]);
    hidden = taken[1];
}

static __attribute__((noinline)) void free_block(void)
{
    free((void *)~hidden);
}

/* In the caller's frame, so that there is none above what is washed. */
static inline __attribute__((always_inline)) void expect_kept(void)
{
    wash_stack();
    expect(!is_handed_out(), "a block was handed out to which there is a pointer");
    expect(!is_handed_out(), "a block was handed out to which there is a pointer, the second time");
}

static inline __attribute__((always_inline)) void expect_free(void)
{
    wash_stack();
    expect(is_handed_out(), "a block to which there is no pointer did not come again");
}

/* Freed with a pointer `offset` bytes into the block at `place`, which is cleared then. */
static __attribute__((noinline)) void put(void *volatile *place, size_t offset)
{
    *place = (char *)~hidden + offset;
}

static void keep_in(void *volatile *place, size_t offset)
{
    take_block();
    put(place, offset);
    free_block();
    expect_kept();
    *place = NULL;
    expect_free();
}

/* ---- places ---- */

static void *volatile zeroed_global;
static void *volatile set_global = &size;
static __thread void *volatile thread_local;

static void nowhere(void)
{
    take_block();
    free_block();
    expect_free();
}

static void global(void)
{
    keep_in(&zeroed_global, 0);
    keep_in(&set_global, 0);
}

static void interior(void)
{
    keep_in(&zeroed_global, 1);
    keep_in(&zeroed_global, size - 1);
    keep_in(&zeroed_global, size); /* one past the end */
}

static void stack(void)
{
    void *volatile here = NULL;
    keep_in(&here, 0);
}

static void heap(void)
{
    void *volatile *node = calloc(1, 64);
    keep_in(&node[3], 0);
    node = realloc((void *)node, MIB);
    node[20000] = NULL;
    keep_in(&node[20000], 0);
    free((void *)node);
}

static void own_thread_local(void)
{
    keep_in(&thread_local, 0);
}

static void mapping(void)
{
    void *volatile *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    keep_in(&page[100], 0);
    take_block();
    put(&page[0], 0);
    mprotect((void *)page, 4096, PROT_READ);
    free_block();
    expect_kept();
    munmap((void *)page, 4096);
    expect_free();
}

/* Tells how many huge pages the machine has set aside, and has it set aside `count`; -1: that may not be done. */
static long set_aside(long count)
{
    long before = -1;
    FILE *file = fopen("/proc/sys/vm/nr_hugepages", "r+");
    if (file == NULL)
        return -1;
    if (fscanf(file, "%ld", &before) == 1) {
        rewind(file);
        fprintf(file, "%ld\n", count);
    }
    fclose(file);
    return before;
}

/* The system may refuse to look into pages of this kind as it does into others. */
static void hugetlb(void)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB;
    long before = -1;
    void *place = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (place == MAP_FAILED) {
        before = set_aside(4);
        place = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, flags, -1, 0);
    }
    if (place != MAP_FAILED) {
        void *volatile *page = place;
        keep_in(&page[100], 0);
        keep_in(&page[200000], 0);
        munmap(place, 2 * MIB);
    }
    if (before >= 0)
        set_aside(before);
    if (place == MAP_FAILED) {
        puts("SKIPPED: no page of hugetlbfs is to be had");
        exit(77);
    }
}

static void shared_mapping(void)
{
    void *volatile *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    take_block();
    put(page, 0);
    free_block();
    expect_free(); /* it is not looked at */
}

static __attribute__((noinline)) void free_cycle(void)
{
    void **a = malloc(size), **b = malloc(size);
    *a = b;
    *b = a;
    hidden = ~(uintptr_t)a;
    free(b);
    free(a);
}

static void cycle(void)
{
    free_cycle();
    expect_free();
}

static void large(void)
{
    static const size_t sizes[] = {5000, 100000, 200000, 1048576, 32 * 1048576};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size = sizes[i];
        nowhere();
        keep_in(&zeroed_global, 0);
        keep_in(&zeroed_global, size / 2);
        keep_in(&zeroed_global, size);
    }
}

/* ---- other threads ---- */

static atomic_int ready, leave;

static void await(atomic_int *flag)
{
    while (!atomic_load(flag))
        usleep(1000);
}

static pthread_t leader;

static void *without_leader(void *unused)
{
    pthread_join(leader, NULL);
    keep_in(&zeroed_global, 0);
    void *volatile here = unused;
    keep_in(&here, 0);
    _exit(0);
}

/* The first thread has ended: of its own memory the system shows nothing. */
static void leader_gone(void)
{
    pthread_t thread;
    leader = pthread_self();
    expect(pthread_create(&thread, NULL, without_leader, NULL) == 0, "a thread");
    pthread_exit(NULL);
}

static void with_thread(void *(*work)(void *))
{
    pthread_t thread;
    take_block();
    pthread_create(&thread, NULL, work, NULL);
    await(&ready);
    free_block();
    expect_kept();
    atomic_store(&leave, 1);
    pthread_join(thread, NULL);
    expect_free();
    atomic_store(&ready, 0);
    atomic_store(&leave, 0);
}

static void *on_its_stack(void *unused)
{
    void *volatile here;
    put(&here, 0);
    atomic_store(&ready, 1);
    await(&leave);
    here = unused;
    return NULL;
}

static void *in_its_thread_local(void *unused)
{
    put(&thread_local, 0);
    atomic_store(&ready, 1);
    await(&leave);
    thread_local = unused;
    return NULL;
}

/* All signals that libc lets anybody block. */
static void *with_signals_blocked(void *unused)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    return on_its_stack(unused);
}

#if defined(__x86_64__)
static void *in_a_register(void *unused)
{
    int *flag = (int *)&leave, *tell = (int *)&ready;
    __asm__ volatile("movq %0, %%r12\n\tnotq %%r12\n\tmovl $1, (%2)\n"
                     "1:\tpause\n\tcmpl $0, (%1)\n\tje 1b\n\txorl %%r12d, %%r12d"
                     :
                     : "r"(hidden), "r"(flag), "r"(tell)
                     : "r12", "memory", "cc");
    wash_stack();
    return unused;
}

/* The same asleep in a system call. */
static void *in_a_register_asleep(void *unused)
{
    static const struct timespec moment = {0, 50000000};
    int *flag = (int *)&leave, *tell = (int *)&ready;
    __asm__ volatile("movq %0, %%r12\n\tnotq %%r12\n\tmovl $1, (%2)\n"
                     "1:\tmovl $35, %%eax\n\tmovq %3, %%rdi\n\txorl %%esi, %%esi\n\tsyscall\n\tcmpl $0, (%1)\n\tje 1b\n\t"
                     "xorl %%r12d, %%r12d"
                     :
                     : "r"(hidden), "r"(flag), "r"(tell), "r"(&moment)
                     : "r12", "rax", "rdi", "rsi", "rcx", "r11", "memory", "cc");
    wash_stack();
    return unused;
}

/* And in a vector register. */
static void *in_a_vector(void *unused)
{
    int *flag = (int *)&leave, *tell = (int *)&ready;
    __asm__ volatile("movq %0, %%r12\n\tnotq %%r12\n\tmovq %%r12, %%xmm7\n\txorl %%r12d, %%r12d\n\tmovl $1, (%2)\n"
                     "1:\tpause\n\tcmpl $0, (%1)\n\tje 1b\n\tpxor %%xmm7, %%xmm7"
                     :
                     : "r"(hidden), "r"(flag), "r"(tell)
                     : "r12", "xmm7", "memory", "cc");
    wash_stack();
    return unused;
}
#endif

static void threads(void)
{
    with_thread(on_its_stack);
    with_thread(in_its_thread_local);
    with_thread(with_signals_blocked);
}

static void registers(void)
{
#if defined(__x86_64__)
    bool found;
    take_block(); /* of the thread that sweeps itself */
    free_block();
    __asm__ volatile("movq %1, %%rbx\n\tnotq %%rbx\n\tcall *%2\n\txorl %%ebx, %%ebx"
                     : "=a"(found)
                     : "m"(hidden), "r"(is_handed_out)
                     : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
    expect(!found, "a block was handed out to which a register points");
    expect_free();
    with_thread(in_a_register);
    with_thread(in_a_register_asleep);
    with_thread(in_a_vector);
#endif
}

/* ---- the rest ---- */

static int end_of(void (*deed)(void))
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        deed();
        _exit(0);
    }
    waitpid(child, &status, 0);
    return status;
}

static void clear_and_expect_free(void)
{
    expect_kept();
    zeroed_global = NULL;
    expect_free();
    global();
}

static void in_child(void)
{
    take_block();
    put(&zeroed_global, 0);
    free_block();
    expect_kept();
    expect(end_of(clear_and_expect_free) == 0, "in a child: what its parent kept is kept, until the pointer is gone");
    expect_kept();
}

static void write_behind_freed(void)
{
    volatile char *p = malloc(40);
    free((void *)p);
    p[20] = 1;
    for (int i = 0; i < 10000; i++)
        free(malloc(40));
}

static void write_when_kept(void)
{
    take_block();
    put(&zeroed_global, 0);
    free_block();
    expect_kept();
    ((volatile char *)zeroed_global)[50] = 1;
    zeroed_global = NULL;
    is_handed_out();
}

static void written(void)
{
    int status = end_of(write_when_kept);
    expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "a write to a kept block is found when it is given back");
}

/* Blocks come and go, as many bytes as that. */
static void churn(size_t bytes)
{
    static char *kept[64];
    for (size_t i = 0; bytes > 0; i++) {
        size_t n = 100 + i * 37 % 3000;
        free(kept[i % 64]);
        kept[i % 64] = malloc(n);
        kept[i % 64][0] = 1;
        bytes -= n < bytes ? n : bytes;
    }
}

static void bounded(void)
{
    churn(400 * MIB);
    expect(stats().kept_bytes < 40 * MIB, "what is kept is bounded");
    expect(stats().sweeps > 0 && stats().failed_sweeps == 0, "by sweeps");
    expect(stats().unswept_blocks == 0, "and nothing was given back without one");
}

static void use_all_cpus(void)
{
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    sched_setaffinity(0, sizeof all, &all);
}

enum { CROWD = 1000, CROWD_BLOCKS = 5000 };
static pthread_barrier_t all_there;

static void *free_many(void *unused)
{
    uintptr_t *p = malloc(CROWD_BLOCKS * sizeof *p);
    for (int i = 0; i < CROWD_BLOCKS; i++)
        p[i] = ~(uintptr_t)malloc(16 + 16 * (size_t)(i % 4));
    pthread_barrier_wait(&all_there);
    for (int i = 0; i < CROWD_BLOCKS; i++)
        free((void *)~p[i]);
    free(p);
    return unused;
}

static size_t most_address_space(void)
{
    char line[256];
    size_t kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmPeak: %zu", &kib) == 1)
            break;
    fclose(file);
    return kib << 10;
}

/* All of them want room to write down what they keep, at the same time. */
static void crowd(void)
{
    pthread_t thread[CROWD];
    pthread_attr_t small;
    const size_t live = CROWD * (size_t)CROWD_BLOCKS * (40 + sizeof(uintptr_t)), stacks = CROWD * (size_t)65536;
    const struct rlimit bound = {16 * live, 16 * live}; /* so that a failure does not take the machine with it */
    use_all_cpus();
    setrlimit(RLIMIT_AS, &bound);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_barrier_init(&all_there, NULL, CROWD);
    for (int i = 0; i < CROWD; i++)
        expect(pthread_create(&thread[i], &small, free_many, NULL) == 0, "a thread");
    for (int i = 0; i < CROWD; i++)
        pthread_join(thread[i], NULL);
    expect(most_address_space() < 4 * live + stacks, "what many threads keep at once takes no more room than it has to");
}

static atomic_uint asked, answered;

static void *answer(void *unused)
{
    while (!atomic_load(&leave)) {
        atomic_store(&answered, atomic_load(&asked));
        sched_yield();
    }
    return unused;
}

static void ask(int number)
{
    const unsigned question = atomic_fetch_add(&asked, (unsigned)(number == SIGALRM)) + 1;
    while (atomic_load(&answered) != question)
        sched_yield();
}

static void set_timer(suseconds_t every_us)
{
    const struct itimerval timer = {{0, every_us}, {0, every_us}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* A signal handler of the thread that sweeps waits for another, as runtimes do that suspend threads: that one must not be stopped. */
static void handler(void)
{
    pthread_t thread;
    const struct sigaction action = {.sa_handler = ask, .sa_flags = SA_RESTART};
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    use_all_cpus();
    pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
    pthread_create(&thread, NULL, answer, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
    sigaction(SIGALRM, &action, NULL);
    set_timer(1000);
    while (stats().sweeps < 100)
        churn(MIB);
    set_timer(0);
    atomic_store(&leave, 1);
    pthread_join(thread, NULL);
    expect(atomic_load(&asked) > 0, "the handler ran");
}

/* A filter that allows everything: but nobody can know that. */
static void install_filter(void)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {1, &allow};
    expect(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0,
           "a filter can be installed");
}

static void filtered(void)
{
    churn(20 * MIB);
    const uint64_t sweeps = stats().sweeps;
    expect(sweeps > 0, "there are sweeps before there is a filter");
    install_filter();
    churn(400 * MIB);
    expect(stats().sweeps == sweeps, "under a filter there are none");
    expect(stats().kept_bytes < 40 * MIB, "and what is kept is bounded");
}

/* A filter that is there before the program. */
static void filtered_before(void)
{
    if (getenv("SWEEP_TEST_FILTERED") == NULL) {
        setenv("SWEEP_TEST_FILTERED", "1", 1);
        install_filter();
        execl("/proc/self/exe", "sweep", "filtered_before", (char *)NULL);
        fail("exec");
    }
    churn(100 * MIB);
    expect(stats().sweeps == 0 && stats().failed_sweeps == 0 && stats().kept_blocks == 0, "there are no sweeps");
    expect(end_of(write_behind_freed) != 0, "and the first tier is there");
}

static void *block_truly(void *unused)
{
    uint64_t all = ~0ull;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof all);
    return on_its_stack(unused);
}

static bool is_auto(void)
{
    const char *word = getenv("SUTLER_SWEEP");
    return word != NULL && strcmp(word, "auto") == 0;
}

/* A thread that cannot be stopped, by no means of libc's. */
static void unstoppable(void)
{
    pthread_t thread;
    take_block();
    pthread_create(&thread, NULL, block_truly, NULL);
    await(&ready);
    free_block();
    expect_kept();
    expect(stats().failed_sweeps > 0 && stats().sweeps == 0, "no sweep can be made");
    churn(60 * MIB);
    if (is_auto())
        expect(stats().kept_bytes < 40 * MIB && stats().unswept_blocks > 0, "what is kept is bounded all the same");
    else
        expect(stats().unswept_blocks == 0, "nothing is given back");
    atomic_store(&leave, 1);
    pthread_join(thread, NULL);
    is_handed_out();
    expect(stats().sweeps > 0, "when it is gone there are sweeps");
}

static void churn_and_expect_sweeps(void)
{
    const uint64_t sweeps = stats().sweeps;
    churn(60 * MIB);
    expect(stats().sweeps > sweeps, "in a child there are sweeps at once, though its parent could make none");
}

/* What kept its parent from sweeping is not in the child. */
static void fork_unstoppable(void)
{
    enum { FAILURES = 6 }; /* by then the parent would try again in some seconds */
    pthread_t thread;
    pthread_create(&thread, NULL, block_truly, NULL);
    await(&ready);
    while (stats().failed_sweeps < FAILURES)
        purge();
    expect(end_of(churn_and_expect_sweeps) == 0, "the child");
    atomic_store(&leave, 1);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } row[] = {{"nowhere", nowhere},   {"global", global},     {"interior", interior}, {"stack", stack},
               {"heap", heap},         {"thread_local", own_thread_local}, {"mapping", mapping},
               {"hugetlb", hugetlb},   {"shared", shared_mapping}, {"cycle", cycle},   {"large", large},       {"threads", threads},
               {"registers", registers}, {"fork", in_child},   {"written", written},   {"bounded", bounded},
               {"filtered", filtered}, {"filtered_before", filtered_before}, {"unstoppable", unstoppable},
               {"fork_unstoppable", fork_unstoppable}, {"crowd", crowd}, {"handler", handler}, {"leader_gone", leader_gone}};
    cpu_set_t one; /* a block freed on one cpu may be handed out on that alone */
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    purge = (size_t(*)(void))dlsym(RTLD_DEFAULT, "sutler_purge");
    stats_get = (int (*)(struct sutler_stats *, size_t))dlsym(RTLD_DEFAULT, "sutler_stats_get");
    if (purge == NULL || stats_get == NULL)
        fail("the library is not there");
    for (size_t i = 0; argc == 2 && i < sizeof row / sizeof row[0]; i++)
        if (strcmp(argv[1], row[i].name) == 0) {
            row[i].run();
            return 0;
        }
    fail("which case?");
}
