/* SPDX-License-Identifier: MIT
 *
 * Some threads of a program have an rseq area of another library's, registered before their first malloc, or are
 * born under a filter that forbids to register one.  Where the library under test registers areas by itself (mode own)
 * it must do without in these threads; they exchange blocks with threads that have one, and fork.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/pattern.h"
#include "support/rng.h"

#if defined(__aarch64__)
#define SIGNATURE 0xd428bc00
#else
#define SIGNATURE 0x53053053
#endif
#define PLACES 4096
#define OPS 100000
#define PEAK_MIB_MAX 500 /* there are 5 MiB of blocks */

enum kind { plain, taken, filtered };

struct block {
    size_t size;
};

static struct block *_Atomic table[PLACES];
static uint64_t seed;
static _Atomic unsigned workers;
static _Atomic unsigned refused; /* threads that found an area registered already, by libc */

static struct block *make(struct rng *rng)
{
    size_t size = sizeof(struct block) + rng_below(rng, rng_below(rng, 100) == 0 ? 300000 : 2000);
    struct block *b = rng_below(rng, 8) == 0 ? calloc(1, size) : malloc(size);
    CHECK(b != NULL);
    b->size = size;
    pattern_fill_range(b, sizeof *b, size, size);
    return b;
}

static void drop(struct block *b, struct rng *rng)
{
    if (b == NULL)
        return;
    size_t size = b->size;
    pattern_expect(b, sizeof *b, size, size);
    if (rng_below(rng, 16) == 0) {
        b = realloc(b, size * 2);
        CHECK(b != NULL);
        pattern_expect(b, sizeof *b, size, size);
    }
    free(b);
}

static void exchange(struct rng *rng, unsigned ops)
{
    for (unsigned i = 0; i < ops; i++)
        drop(atomic_exchange(&table[rng_below(rng, PLACES)], make(rng)), rng);
}

static void fork_once(struct rng *rng)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        exchange(rng, 1000);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    child = vfork();
    if (child == 0)
        _exit(0);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static void take_area(void)
{
    static __thread uint32_t area[8] __attribute__((aligned(32)));
    area[1] = UINT32_MAX;
    if (syscall(SYS_rseq, area, sizeof area, 0, SIGNATURE) != 0)
        refused++;
}

/* The calling thread is killed if it asks for an area. */
static void forbid(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rseq, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void *work(void *kind)
{
    struct rng rng = {seed + ++workers};
    if ((enum kind)(uintptr_t)kind == taken)
        take_area();
    exchange(&rng, OPS / 2);
    fork_once(&rng);
    exchange(&rng, OPS / 2);
    return NULL;
}

static void run(enum kind first, enum kind second)
{
    const enum kind kind[] = {first, second, first, second};
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)kind[i]) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
}

int main(void)
{
    test_begin(100);
    seed = test_seed_from(NULL);
    run(plain, taken);
    forbid();
    run(filtered, filtered);
    for (int i = 0; i < PLACES; i++)
        free(table[i]);
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    CHECK_MSG(usage.ru_maxrss / 1024 < PEAK_MIB_MAX, "%ld MiB at the peak", usage.ru_maxrss / 1024);
    test_say("%u of 2 threads had an area of libc's\n", refused);
    return 0;
}
