/* SPDX-License-Identifier: MIT
 *
 * The lock-free bins without a second thread: whatever would wake the manager calls it, and a library that only
 * remembers is below.  So what a refresh does, and in which order, is the same in every run: `emptiest`, `foresee`,
 * several heaps.
 */
#include "backend.h"
#include "counts.h"
#include "lock_free_bins.h"
#include "manager.h"
#include "say.h"
#include "support/check.h"
#include "thread.h"

/* ------------------------------------------------------------------------------------- a library below that
 * remembers */

#define ARENA   ((size_t)256 << 20)
#define RECORDS 100000u

static unsigned char arena[ARENA] __attribute__((aligned(4096)));
static size_t arena_used;
static uint32_t asked_for[RECORDS], asked; /* sizes, in the order they were asked for */
static uint32_t given_back;

static void *below_malloc(size_t size)
{
    size_t room = (size + 16 + 15) & ~(size_t)15;
    CHECK(arena_used + room <= ARENA && asked < RECORDS);
    unsigned char *block = arena + arena_used + 16;
    ((size_t *)(void *)block)[-1] = size;
    arena_used += room;
    asked_for[asked++] = (uint32_t)size;
    return block;
}

static void below_free(void *block)
{
    given_back += block != NULL;
}

static size_t below_usable(void *block)
{
    return ((size_t *)block)[-1];
}

struct backend backend = {.malloc = below_malloc, .free = below_free, .usable = below_usable};

/* ---------------------------------------------------------------------------------------- the manager, called in
 * place */

uint32_t manager_state = MANAGER_RUNNING;
unsigned manager_count = 1;
unsigned engine_spins;

static unsigned number;
static bool at_work;

unsigned manager_number(void)
{
    return number;
}

void manager_wake(unsigned which)
{
    struct heap *mine = lfb_mine;
    if (at_work)
        return;
    at_work = true;
    number = which;
    engine.manage();
    lfb_mine = mine;
    at_work = false;
}

bool manager_sleep(bool (*wanted)(void))
{
    CHECK(!wanted());
    return false;
}

bool manager_await(uint32_t *word, uint32_t value, uint32_t *waiting)
{
    (void)waiting;
    CHECK_MSG(LOAD(word) != value, "a miss was not answered");
    return true;
}

bool manager_start(void)
{
    return true;
}

void engine_relax(unsigned *turn)
{
    ++*turn;
}

void managers_read(void)
{
    const char *count = getenv("TEST_HEAPS");
    manager_count = count != NULL ? (unsigned)atoi(count) : 1;
}

const char *engine_option(const char *name)
{
    return getenv(name);
}

void engine_say(const char *format, ...)
{
    FAIL("%s", format);
}

void manager_begin(void) {}
void manager_end(void) {}
void manager_checkpoint(void) {}
void manager_pause(void) {}
void manager_resume(void) {}
void manager_answer(uint32_t *word, const uint32_t *waiting) { (void)word, (void)waiting; }
void engine_thread_own(void *mine) { (void)mine; }

/* ------------------------------------------------------------------------------------------------------------- the
 * cases */

#define MOST 4000

static void *blocks[MOST];

static void start(const char *options)
{
    setenv("SUTLER_LFB", options, 1);
    engine.start();
}

/* So many at once, and all back; `hold` of them are live at once. */
static void take_and_free(size_t size, int hold)
{
    for (int i = 0; i < hold; i++)
        blocks[i] = engine.allocate(size);
    for (int i = 0; i < hold; i++)
        engine.release(blocks[i]);
}

static struct bin *bin_of(size_t size)
{
    for (unsigned i = 0; i < LFB_SHIFTED; i += 2) {
        if (lfb_block_bytes(i) >= size)
            return &lfb_heaps[0].bins[i];
    }
    FAIL("no bin");
}

static void refresh(void)
{
    lfb_heaps[0].refresh_wanted = 1;
    manager_wake(0);
}

/* app. E: the bins a refresh begins with are the emptiest, or, without the option, the first ones. */
static void emptiest(const char *options, const uint32_t order[3])
{
    static const struct {
        size_t bytes;
        int left;
    } bins[] = {{16, 60 /* of 160: less than half */}, {256, 30 /* a quarter */}, {4096, 5 /* an eighth */}, {8192, 100}};
    start(options);
    for (int i = 0; i < 4; i++) {
        take_and_free(bins[i].bytes, 2);
        bin_of(bins[i].bytes)->size = i < 3 ? 160 : 240;
    }
    refresh(); /* all are half full */
    for (int i = 0; i < 4; i++) {
        struct bin *bin = bin_of(bins[i].bytes);
        while (bin_available(bin) > bins[i].left)
            CHECK(bin_reserve(bin, 1) == 1 && bin_pop(bin, 1) != NULL);
    }
    asked = 0;
    refresh();
    uint32_t sizes = 0;
    for (uint32_t i = 0; i < asked; i++) {
        if (i > 0 && asked_for[i] == asked_for[i - 1])
            continue;
        CHECK_MSG(sizes < 4 && asked_for[i] == (sizes < 3 ? order[sizes] : 8192), "number %u is %u", sizes,
                  asked_for[i]);
        sizes++;
    }
    CHECK(sizes == 4 && asked == 20 + 50 + 75 + 20);
}

/* A program that wants by turns 3,000 blocks of one size and 3,000 of another: misses in one such turn, after some. */
static uint64_t misses_of_phases(const char *options, int rounds)
{
    uint64_t before = 0;
    start(options);
    for (int round = 0; round < rounds; round++) {
        before = engine_counts.messages;
        take_and_free(64, 3000);
        take_and_free(200, 3000);
    }
    return engine_counts.messages - before;
}

static void foreseen(void)
{
    uint64_t misses = misses_of_phases("foresee", 5);
    CHECK_MSG(misses == 0, "%lu misses", (unsigned long)misses);
    const struct bin *next = bin_of(64);
    CHECK_MSG(next->expected > 900 && next->size >= next->expected, "%u expected, %u kept", next->expected, next->size);
}

/* What `foreseen` is held against. */
static void unforeseen(void)
{
    uint64_t misses = misses_of_phases("", 5);
    CHECK_MSG(misses > 10, "only %lu misses", (unsigned long)misses);
}

/* Bins that shrink while the other size is wanted are there again in time. */
static void shrunk_and_foreseen(void)
{
    uint64_t misses = misses_of_phases("shrink,foresee", 12);
    CHECK_MSG(misses == 0, "%lu misses", (unsigned long)misses);
}

/* Two heaps: what one thread frees the other does not get, and a bin that is not at rest in one heap keeps the other's
 * blocks from going back to the library. */
static void heaps(void)
{
    start("");
    CHECK(manager_count == 2);
    lfb_mine = &lfb_heaps[0];
    void *block = engine.allocate(100);
    lfb_mine = &lfb_heaps[1];
    void *other = engine.allocate(100);
    struct bin *here = &lfb_heaps[0].bins[2 * bin_for_request(100)],
               *there = &lfb_heaps[1].bins[2 * bin_for_request(100)];
    CHECK(here->pops == 1 && there->pops == 1);
    here->size = 0; /* full: what is freed now is the manager's */
    __atomic_fetch_add(&there->reserved, 1, __ATOMIC_SEQ_CST); /* a thread is between its reservation and its pop */
    lfb_mine = &lfb_heaps[0];
    given_back = 0;
    engine.release(block);
    lfb_heaps[0].free_wanted = 1;
    manager_wake(0);
    CHECK_MSG(given_back == 0, "given back while a thread of the other heap may look at it");
    __atomic_fetch_sub(&there->reserved, 1, __ATOMIC_SEQ_CST);
    lfb_heaps[0].free_wanted = 1;
    manager_wake(0);
    CHECK(given_back == 1);
    lfb_mine = &lfb_heaps[1];
    engine.release(other);
}

/* The child of a fork has every block of every heap. */
static void forked(void)
{
    start("foresee");
    for (unsigned h = 0; h < 2; h++) {
        lfb_mine = &lfb_heaps[h];
        take_and_free(100, 50);
    }
    struct bin *bin = &lfb_heaps[1].bins[2 * bin_for_request(100)];
    int64_t available = bin_available(bin);
    CHECK(available > 0);
    engine.fork_prepare();
    CHECK(bin_available(bin) == 0);
    engine.fork_child();
    CHECK(bin_available(bin) == available && bin->drawn == 0);
    take_and_free(100, 50);
    engine.fork_prepare();
    engine.fork_parent();
    CHECK(bin_available(bin) >= available);
}

int main(int argc, char **argv)
{
    test_watchdog(60);
    CHECK(argc == 2);
    const char *name = argv[1];
    if (strcmp(name, "emptiest") == 0)
        emptiest("emptiest", (const uint32_t[]){4096, 256, 16});
    else if (strcmp(name, "first_come") == 0)
        emptiest("", (const uint32_t[]){16, 256, 4096});
    else if (strcmp(name, "foreseen") == 0)
        foreseen();
    else if (strcmp(name, "unforeseen") == 0)
        unforeseen();
    else if (strcmp(name, "shrunk") == 0)
        shrunk_and_foreseen();
    else if (strcmp(name, "heaps") == 0)
        heaps();
    else if (strcmp(name, "forked") == 0)
        forked();
    else
        FAIL("no case %s", name);
    return 0;
}
