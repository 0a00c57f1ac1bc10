/* SPDX-License-Identifier: MIT
 *
 * No false ENOMEM.  Under a limit on address space or on data a program fills what is left with blocks of one kind,
 * frees some, and asks for every size up to 1 MiB.  A refusal is false
 *   - if the system, asked directly, maps as much (rounded to 64 KiB) at once; or
 *   - if so much of what the program had, and freed, lies in a row: known from its own books.  A run of slices that may
 *     begin with a superblock's first slice, which stays while a block of it is in use, has to be twice as long.
 *
 * Each case is a process of its own.  The limit is set in it after its first malloc, or before it is executed.
 *   --all 1    every limit, headroom, kind and pattern, instead of some of each
 *   --step N   sizes asked for, N apart on the average
 */
#include "support/check.h"
#include "support/proc.h"
#include "support/rng.h"
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define SLICE (64 * KIB)
#define BLOCKS_MAX (1u << 18)
#define LOOKS_MAX 40 /* refusals looked into, of each phase: it takes sorting all blocks */

struct block {
    uintptr_t start, end;
    bool live;
};

/* All blocks ever had in the first filling, which stay as memory that was the program's; then those that are live. */
static struct block filled[BLOCKS_MAX], live[BLOCKS_MAX * 2];
static size_t filled_count, live_count;

static const struct kind {
    const char *name;
    size_t least, most; /* bytes of its blocks */
} kinds[] = {
    {"small", 1000, 1000},       {"slice4", 5000, 5000},          {"slice15", 20000, 20000},
    {"slice63", 40000, 40000},   {"slice63b", 100000, 131072},    {"span", 140000, 140000},
    {"spans", 131073, 16 * MIB}, {"mapping", 16 * MIB, 24 * MIB},
};
enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };
static const unsigned headrooms[] = {1, 2, 8, 64, 512, 4096};
enum { every_second, all_but_16th, at_random, all, PATTERN_COUNT };
static const char *const patterns[] = {"every second", "all but every 16th", "at random", "all"};

static struct {
    int limit;
    unsigned headroom_mib, kind, pattern;
    size_t step;
} the;

static struct rng rng;

/* ---- the books ---- */

static void swap(struct block *a, struct block *b)
{
    struct block t = *a;
    *a = *b;
    *b = t;
}

static void sift(struct block *blocks, size_t root, size_t count)
{
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && blocks[child + 1].start > blocks[child].start)
            child++;
        if (blocks[root].start >= blocks[child].start)
            return;
        swap(&blocks[root], &blocks[child]);
    }
}

/* qsort may allocate. */
static void sort(struct block *blocks, size_t count)
{
    for (size_t i = count / 2; i-- > 0;)
        sift(blocks, i, count);
    for (size_t end = count; end > 1;) {
        swap(&blocks[0], &blocks[--end]);
        sift(blocks, 0, end);
    }
}

/* That many slices, or those between the two addresses, if they are more. */
static size_t longer(size_t slices, uintptr_t from, uintptr_t to)
{
    from = (from + SLICE - 1) / SLICE;
    to /= SLICE;
    return to > from + slices ? to - from : slices;
}

/* The longest run of slices of what was the program's in which no block lies. */
static size_t longest_run(void)
{
    size_t longest = 0, l = 0;
    uintptr_t at = 0;
    sort(live, live_count);
    for (size_t i = 0, next; i < filled_count; i = next) {
        uintptr_t end = filled[i].end;
        at = at < filled[i].start ? filled[i].start : at;
        for (next = i + 1; next < filled_count && filled[next].start - end < SLICE; next++)
            end = filled[next].end; /* nothing else fits in between */
        for (; l < live_count && live[l].start < end; l++) {
            longest = longer(longest, at, live[l].start);
            at = live[l].end > at ? live[l].end : at;
        }
        longest = longer(longest, at, end);
    }
    return longest;
}

static void list_live(const struct block *block)
{
    CHECK(live_count < sizeof live / sizeof live[0]);
    live[live_count++] = *block;
}

static bool take(size_t size, struct block *block)
{
    errno = 0;
    char *p = malloc(size);
    if (p == NULL) {
        CHECK(errno == ENOMEM);
        return false;
    }
    *block = (struct block){(uintptr_t)p, (uintptr_t)p + malloc_usable_size(p), true};
    p[0] = p[size - 1] = (char)size;
    return true;
}

/* ---- the oracle ---- */

static void *map(size_t bytes)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void refused(size_t size, unsigned *looks)
{
    size_t slices = (size + SLICE - 1) / SLICE;
    void *probe = map(slices * SLICE);
    if (probe != MAP_FAILED)
        FAIL("malloc(%zu) is refused; mmap is not", size);
    if (kinds[the.kind].least >= 16 * MIB || ++*looks > LOOKS_MAX)
        return; /* what was mapped is the system's again, and may be mapped elsewhere by now */
    bool in_superblocks = the.kind > 0 && kinds[the.kind].least < 128 * KIB;
    size_t run = longest_run(), enough = in_superblocks ? 2 * slices + 1 : slices;
    if (run >= enough)
        FAIL("malloc(%zu) is refused; %zu KiB that were freed lie in a row", size, run * SLICE / KIB);
}

/* ---- a case ---- */

static void fill(void)
{
    const struct kind *kind = &kinds[the.kind];
    /* Blocks that are touched, or small, fill a part; the program has the rest. */
    size_t most = (kind->least < 16 * KIB ? 24 : kind->least < 128 * KIB ? 256 : 8192) * MIB, bytes = 0;
    struct block block;
    while (bytes < most && filled_count < BLOCKS_MAX) {
        size_t size = kind->least + rng_below(&rng, kind->most - kind->least + 1);
        if (!take(size, &block))
            break;
        filled[filled_count++] = block;
        bytes += size;
    }
    for (size_t size = 4096 * MIB; size >= SLICE;)
        if (map(size) == MAP_FAILED)
            size /= 2;
    sort(filled, filled_count);
}

static void free_some(void)
{
    for (size_t i = 0; i < filled_count; i++) {
        bool goes = the.pattern == every_second  ? i % 2 == 0
                    : the.pattern == all_but_16th ? i % 16 != 0
                    : the.pattern == at_random    ? rng_below(&rng, 4) != 0
                                                  : true;
        if (goes)
            free((void *)filled[i].start);
        else
            list_live(&filled[i]);
    }
}

/* Every size, up and down, each freed at once. */
static size_t ask(void)
{
    unsigned looks = 0;
    size_t refusals = 0;
    for (int down = 0; down < 2; down++)
        for (size_t at = 1 + rng_below(&rng, the.step); at <= MIB; at += 1 + rng_below(&rng, 2 * the.step)) {
            struct block block;
            size_t size = down ? MIB + 1 - at : at;
            if (take(size, &block)) {
                free((void *)block.start);
            } else {
                refused(size, &looks);
                refusals++;
            }
        }
    return refusals;
}

/* Any size: those that are spans are kept, until none can be had. */
static size_t keep(void)
{
    unsigned looks = 0;
    size_t kept = 0;
    for (size_t most = MIB; most >= SLICE;) {
        struct block block;
        size_t size = most / 2 + 1 + rng_below(&rng, most / 2);
        if (take(size, &block)) {
            if (size > 128 * KIB && kept < BLOCKS_MAX) {
                list_live(&block);
                kept++;
                continue;
            }
            free((void *)block.start);
        } else {
            refused(size, &looks);
        }
        most -= most / 32;
        looks -= looks > LOOKS_MAX ? LOOKS_MAX / 4 : 0;
    }
    return kept;
}

static void run_case(void)
{
    fill();
    free_some();
    size_t refusals = ask(), kept = keep();
    test_say("%s %u MiB, %s, %s: %zu blocks, %zu sizes refused, %zu kept\n",
             the.limit == RLIMIT_AS ? "address space" : "data", the.headroom_mib, kinds[the.kind].name,
             patterns[the.pattern], filled_count, refusals, kept);
}

static void set_limit(void)
{
    struct rlimit bound;
    bound.rlim_cur = bound.rlim_max =
        proc_status_bytes(the.limit == RLIMIT_AS ? "VmSize" : "VmData") + the.headroom_mib * MIB;
    CHECK(setrlimit(the.limit, &bound) == 0);
}

/* --case limit headroom kind pattern step seed after */
static int child(char **text)
{
    the.limit = atoi(text[0]);
    the.headroom_mib = (unsigned)atoi(text[1]);
    the.kind = (unsigned)atoi(text[2]);
    the.pattern = (unsigned)atoi(text[3]);
    the.step = strtoull(text[4], NULL, 10);
    rng = (struct rng){strtoull(text[5], NULL, 10)};
    free(opaque(malloc(100)));
    if (atoi(text[6]) != 0)
        set_limit();
    run_case();
    return 0;
}

/* ---- all cases ---- */

static void start(int limit, unsigned headroom, unsigned kind, unsigned pattern, size_t step, bool after)
{
    char text[7][24];
    unsigned long long value[7] = {(unsigned)limit, headroom, kind, pattern, step, rng_next(&rng), after};
    char *arguments[] = {"address_space", "--case", text[0], text[1], text[2],
                         text[3],         text[4],  text[5], text[6], NULL};
    for (int i = 0; i < 7; i++)
        snprintf(text[i], sizeof text[i], "%llu", value[i]);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        the.limit = limit;
        the.headroom_mib = headroom;
        if (!after) /* about what the same program takes before it does anything */
            set_limit();
        execv("/proc/self/exe", arguments);
        _exit(126);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_MSG(status == 0, "limit %d, %u MiB %s start, %s, %s freed: wait status 0x%x", limit, headroom,
              after ? "after" : "before", kinds[kind].name, patterns[pattern], (unsigned)status);
}

static void start_all(size_t step)
{
    for (unsigned h = 0; h < sizeof headrooms / sizeof headrooms[0]; h++)
        for (unsigned kind = 0; kind < KIND_COUNT; kind++)
            for (unsigned pattern = 0; pattern < PATTERN_COUNT; pattern++)
                for (int way = 0; way < 4; way++)
                    start(way % 2 != 0 ? RLIMIT_AS : RLIMIT_DATA, headrooms[h], kind, pattern, step, way < 2);
}

/* Each kind, each headroom and each pattern somewhere. */
static void start_some(size_t step)
{
    for (unsigned i = 0; i < 2 * KIND_COUNT; i++) {
        unsigned kind = i % KIND_COUNT, pattern = (unsigned)rng_below(&rng, PATTERN_COUNT);
        unsigned least = kinds[kind].least >= 16 * MIB ? 3 : 0; /* some of them have to fit */
        unsigned headroom = headrooms[least + rng_below(&rng, 5 - least)];
        start(i % 3 == 0 ? RLIMIT_DATA : RLIMIT_AS, headroom, kind, pattern, step, i % 2 == i / KIND_COUNT);
    }
}

int main(int argc, char **argv)
{
    test_begin(600);
    if (argc == 9 && strcmp(argv[1], "--case") == 0)
        return child(argv + 2);
    rng = (struct rng){test_seed_from(NULL)};
    size_t step = test_option(argc, argv, "--step", 8192);
    if (test_option(argc, argv, "--all", 0) != 0)
        start_all(step);
    else
        start_some(step);
    return 0;
}
