/* SPDX-License-Identifier: MIT
 *
 * Any call of the family at any size, in the middle of what programs do besides: fork, spawn, come near a memory limit,
 * map memory of their own beside the heap's, load plugins, cancel threads, take signals, sleep.  storm.c has a fixed
 * mixture; here the seed chooses which disturbances there are, so that each run is another program.  `--disturb MASK`
 * asks for certain ones (bits in the order of the table), to find out which are needed for a failure.
 */
#include "support/family.h"
#include "support/pattern.h"
#include "support/proc.h"
#include "support/rng.h"
#include <iconv.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { TABLE = 2048, WORKERS = 2, MAPS = 32, GENERATIONS = 3, CHILD_STEPS = 300 };

struct block {
    uint64_t key;
    size_t size; /* of content */
    unsigned char content[];
};

static struct block *table[TABLE];
static volatile int stop;
static uint64_t seed, handled, refused;
static bool may_be_refused; /* there is a limit now and then */
static int generation;      /* how many forks this process is away from the first */

/* ---- blocks ---- */

static size_t size_random(struct rng *rng)
{
    const size_t n = rng_below(rng, 200);
    return sizeof(struct block) + rng_size(rng, n < 140 ? 9 : n < 190 ? 13 : n < 198 ? 18 : 24);
}

static void *aligned(struct rng *rng, size_t size)
{
    const size_t alignment = (size_t)16 << rng_below(rng, 12);
    void *p = NULL;
    if (posix_memalign(&p, alignment, size) != 0)
        return NULL;
    CHECK_MSG((uintptr_t)p % alignment == 0, "%p is not aligned to %zu", p, alignment);
    return p;
}

static void *zeroed(size_t size)
{
    const unsigned char *p = calloc(1, size);
    const size_t stride = size < 64 * KIB ? 1 : 509;
    for (size_t i = 0; p != NULL && i < size; i += stride)
        CHECK_MSG(p[i] == 0, "calloc(1, %zu): byte %zu is %u", size, i, p[i]);
    return (void *)(uintptr_t)p;
}

static struct block *take(struct rng *rng)
{
    const size_t size = size_random(rng), how = rng_below(rng, 8);
    struct block *b = how == 0 ? aligned(rng, size) : how == 1 ? zeroed(size) : malloc(size);
    if (b == NULL) {
        CHECK_MSG(may_be_refused, "%zu bytes were refused", size);
        __atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    CHECK(malloc_usable_size(b) >= size);
    b->key = rng_next(rng);
    b->size = size - sizeof *b;
    pattern_fill_sparse(b->content, b->size, b->key);
    return b;
}

/* Verified, and now and then resized before. */
static void give(struct rng *rng, struct block *b)
{
    pattern_verify_sparse(b->content, b->size, b->size, b->key);
    if (rng_below(rng, 8) == 0) {
        const size_t size = size_random(rng), had = b->size, kept = size - sizeof *b < had ? size - sizeof *b : had;
        struct block *resized = realloc(b, size);
        CHECK(resized != NULL || may_be_refused);
        if (resized != NULL) {
            b = resized;
            pattern_verify_sparse(b->content, had, kept, b->key);
        }
    }
    free(b);
}

static void step(struct rng *rng)
{
    struct block *b = rng_below(rng, 64) == 0 ? NULL : take(rng);
    b = __atomic_exchange_n(&table[rng_below(rng, TABLE)], b, __ATOMIC_ACQ_REL);
    if (b != NULL)
        give(rng, b);
}

static void steps(struct rng *rng, int count)
{
    while (count-- > 0)
        step(rng);
}

/* ---- threads ---- */

static pthread_key_t last_words; /* a thread frees and allocates after its end, too */

static void say_last_words(void *p)
{
    free(p);
    free(malloc(100));
}

static void *work(void *argument)
{
    struct rng rng = {seed + (uintptr_t)argument};
    while (!stop)
        steps(&rng, 64);
    return NULL;
}

static void *visit(void *argument)
{
    struct rng rng = {seed + (uintptr_t)argument};
    CHECK(pthread_setspecific(last_words, malloc(40)) == 0);
    steps(&rng, 100);
    return malloc(13);
}

static void *await_cancellation(void *argument)
{
    struct rng rng = {seed + (uintptr_t)argument};
    CHECK(pthread_setspecific(last_words, malloc(40)) == 0);
    for (;;) {
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        steps(&rng, 16);
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
        pthread_testcancel();
    }
}

/* False if there is no memory for one. */
static bool start(pthread_t *thread, void *(*run)(void *), struct rng *rng)
{
    const int error = pthread_create(thread, NULL, run, (void *)(uintptr_t)rng_next(rng));
    CHECK_MSG(error == 0 || may_be_refused, "pthread_create: %d", error);
    return error == 0;
}

/* ---- disturbances, one a turn ---- */

static void visitors(struct rng *rng)
{
    pthread_t thread[4];
    size_t count = 0;
    while (count < 4 && start(&thread[count], visit, rng))
        count++;
    while (count > 0) {
        void *left;
        CHECK(pthread_join(thread[--count], &left) == 0);
        free(left);
    }
}

static void cancelled(struct rng *rng)
{
    pthread_t thread;
    if (!start(&thread, await_cancellation, rng))
        return;
    sleep_us((unsigned)rng_below(rng, 500));
    CHECK(pthread_cancel(thread) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static int status_of(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        CHECK(errno == EINTR);
    return status;
}

static void forked(struct rng *rng)
{
    if (generation == GENERATIONS || rng_below(rng, 3) != 0)
        return;
    const pid_t child = fork();
    CHECK(child >= 0 || may_be_refused);
    if (child == 0) {
        alarm(60);
        generation++;
        steps(rng, CHILD_STEPS);
        visitors(rng);
        forked(rng);
        _exit(0);
    }
    const int status = child > 0 ? status_of(child) : 0;
    CHECK_MSG(status == 0, "a child ended with status 0x%x", (unsigned)status);
}

static void spawned(struct rng *rng)
{
    (void)rng;
    char *arguments[] = {(char *)"true", NULL}, *environment[] = {NULL};
    pid_t child;
    const int error = posix_spawnp(&child, "true", NULL, NULL, arguments, environment);
    const int status = error == 0 ? status_of(child) : 0;
    CHECK_MSG((error == 0 && status == 0) || may_be_refused, "true: error %d, status 0x%x", error, (unsigned)status);
}

static void looked_at(struct rng *rng)
{
    if (rng_below(rng, 2) == 0)
        malloc_trim(rng_below(rng, 8 * MIB));
    else
        CHECK(mallinfo2().arena > 0 || !test_is_sutler());
}

static void asleep(struct rng *rng)
{
    sleep_us((unsigned)rng_below(rng, 20000));
}

/* Lowers the limit to what is there and a little, or lifts it again. */
static void limited(struct rng *rng)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
    const bool is_low = limit.rlim_cur != limit.rlim_max;
    const size_t now = proc_status_bytes("VmSize");
    limit.rlim_cur = is_low ? limit.rlim_max : now + rng_below(rng, 2) * rng_below(rng, 16 * MIB);
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

/* Memory of the program's own, where it likes; now and then that is where the heap would have grown. */
static void mapped(struct rng *rng)
{
    static struct {
        unsigned char *start;
        size_t size;
    } map[MAPS];
    const size_t i = rng_below(rng, MAPS);
    if (map[i].start != NULL) {
        pattern_verify_sparse(map[i].start, map[i].size, map[i].size, i);
        CHECK(munmap(map[i].start, map[i].size) == 0);
        map[i].start = NULL;
        return;
    }
    void *near = malloc(1), *hint = NULL;
    if (rng_below(rng, 2) == 0 && near != NULL)
        hint = (void *)(((uintptr_t)near & ~(uintptr_t)4095) + rng_below(rng, 64) * MIB);
    free(near);
    map[i].size = (1 + rng_below(rng, 2000)) * 4096;
    void *start = mmap(hint, map[i].size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(start != MAP_FAILED || may_be_refused);
    if (start == MAP_FAILED)
        return;
    map[i].start = start;
    pattern_fill_sparse(start, map[i].size, i);
}

/* The C library loads a plugin for it and forgets it again.  Whether it can do without memory is not asked here. */
static void plugged_in(struct rng *rng)
{
    if (may_be_refused)
        return;
    static const char *const set[] = {"EUC-JP", "BIG5", "KOI8-R", "ISO-8859-7"};
    iconv_t converter = iconv_open(set[rng_below(rng, 4)], "UTF-8");
    if (converter != (iconv_t)-1)
        iconv_close(converter);
}

static void moved(struct rng *rng)
{
    static int cpus[64], count; /* before it is moved: then it may run on one */
    if (count == 0)
        count = proc_cpus(cpus, 64);
    proc_pin_tid(0, cpus[rng_below(rng, (size_t)count)]);
}

static void handle(int number)
{
    const int saved = errno;
    struct rng rng = {seed + __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED) * 31 + (uint64_t)number};
    for (int i = 0; i < 3; i++) {
        unsigned char *p = malloc(1 + rng_below(&rng, 3000));
        if (p != NULL) /* in the middle of a slow path there may be none to be had */
            p[0] = 1;
        free(p);
    }
    errno = saved;
}

static void interrupted(struct rng *rng)
{
    const int often_us = 1000 + (int)rng_below(rng, 9000);
    const struct itimerval timer = {{0, often_us}, {0, often_us}};
    CHECK(setitimer(ITIMER_PROF, &timer, NULL) == 0);
}

static const struct disturbance {
    const char *name;
    void (*turn)(struct rng *rng);
} disturbances[] = {
    {"visitors", visitors}, {"cancelled", cancelled}, {"forked", forked},         {"spawned", spawned},
    {"looked_at", looked_at}, {"asleep", asleep},     {"limited", limited},       {"mapped", mapped},
    {"plugged_in", plugged_in}, {"moved", moved},     {"interrupted", interrupted},
};
#define DISTURBANCES (sizeof disturbances / sizeof *disturbances)

static bool is_on(size_t mask, void (*turn)(struct rng *rng))
{
    for (size_t i = 0; i < DISTURBANCES; i++)
        if (disturbances[i].turn == turn)
            return (mask >> i & 1) != 0;
    return false;
}

/* About half of them. */
static size_t choose(struct rng *rng)
{
    return rng_below(rng, (size_t)1 << DISTURBANCES);
}

static void run(struct rng *rng, size_t mask, uint64_t end_ms)
{
    pthread_t worker[WORKERS];
    may_be_refused = is_on(mask, limited);
    for (size_t i = 0; i < WORKERS; i++)
        CHECK(pthread_create(&worker[i], NULL, work, (void *)(uintptr_t)(i * 77)) == 0);
    while (now_ms() < end_ms) {
        const size_t i = rng_below(rng, 2 * DISTURBANCES);
        steps(rng, 100);
        if (i < DISTURBANCES && (mask >> i & 1) != 0)
            disturbances[i].turn(rng);
    }
    const struct itimerval off = {{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_PROF, &off, NULL) == 0);
    stop = 1;
    for (size_t i = 0; i < WORKERS; i++)
        CHECK(pthread_join(worker[i], NULL) == 0);
}

int main(int argc, char **argv)
{
    test_begin(200);
    if (!test_is_sutler())
        SKIP("only the library promises malloc in signal handlers");
    seed = test_seed_from(NULL);
    struct rng rng = {seed};
    const size_t mask = test_option(argc, argv, "--disturb", choose(&rng));
    for (size_t i = 0; i < DISTURBANCES; i++)
        if ((mask >> i & 1) != 0)
            test_say("%s ", disturbances[i].name);
    test_say("(--disturb %zu)\n", mask);
    CHECK(pthread_key_create(&last_words, say_last_words) == 0);
    const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGPROF, &action, NULL) == 0);
    cancelled(&rng); /* the C library loads what it needs for it, and aborts if it cannot */
    run(&rng, mask, now_ms() + test_option(argc, argv, "--ms", 2000));
    for (size_t i = 0; i < TABLE; i++)
        if (table[i] != NULL)
            give(&rng, table[i]);
    test_say("%llu signals handled, %llu requests refused\n", (unsigned long long)handled, (unsigned long long)refused);
    return 0;
}
