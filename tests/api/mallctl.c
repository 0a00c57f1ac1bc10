/* SPDX-License-Identifier: MIT
 *
 * What redis asks of jemalloc is answered for the heap that serves it, and what was not kept is not claimed: other
 * names are unknown.  mallocx with an arena or a cache works, and says once, in one line, that there is none.
 */
#include "support/family.h"
#include <pthread.h>
#include <sys/wait.h>

extern int mallctl(const char *name, void *old, size_t *old_length, void *new, size_t new_length) __attribute__((weak));
extern int mallctlnametomib(const char *name, size_t *mib, size_t *length) __attribute__((weak));
extern void malloc_stats_print(void (*write)(void *, const char *), void *opaque, const char *options)
    __attribute__((weak));

static size_t figure(const char *name)
{
    size_t value = 0, length = sizeof value;
    int error = mallctl(name, &value, &length, NULL, 0);
    CHECK_MSG(error == 0, "%s: error %d", name, error);
    return value;
}

static unsigned small_figure(const char *name)
{
    unsigned value = 0;
    size_t length = sizeof value;
    int error = mallctl(name, &value, &length, NULL, 0);
    CHECK_MSG(error == 0, "%s: error %d", name, error);
    return value;
}

static void refresh(void)
{
    uint64_t epoch = 1;
    size_t length = sizeof epoch;
    CHECK(mallctl("epoch", &epoch, &length, &epoch, length) == 0);
}

/* Bytes in free blocks, as redis computes it. */
static size_t small_fragmentation(void)
{
    char name[64];
    size_t bytes = 0;
    unsigned bins = small_figure("arenas.nbins");
    CHECK(bins > 10 && bins < 1000);
    for (unsigned bin = 0; bin < bins; bin++) {
        snprintf(name, sizeof name, "arenas.bin.%u.size", bin);
        size_t size = figure(name);
        snprintf(name, sizeof name, "stats.arenas.4096.bins.%u.curregs", bin);
        size_t regions = figure(name);
        snprintf(name, sizeof name, "stats.arenas.4096.bins.%u.curslabs", bin);
        size_t slabs = figure(name);
        snprintf(name, sizeof name, "arenas.bin.%u.nregs", bin);
        bytes += (small_figure(name) * slabs - regions) * size;
    }
    snprintf(name, sizeof name, "arenas.bin.%u.size", bins);
    size_t value, length = sizeof value;
    CHECK(mallctl(name, &value, &length, NULL, 0) == ENOENT);
    return bytes;
}

static void figures_are_of_this_heap(void)
{
    enum { COUNT = 40000, SIZE = 1000 };
    static char *block[COUNT];
    refresh();
    size_t before = figure("stats.allocated");
    for (int i = 0; i < COUNT; i++) {
        CHECK((block[i] = malloc(SIZE)) != NULL);
        memset(block[i], 1, SIZE);
    }
    CHECK_MSG(figure("stats.allocated") == before, "figures change without a new epoch");
    refresh();
    size_t allocated = figure("stats.allocated"), active = figure("stats.active"), resident = figure("stats.resident");
    CHECK_MSG(allocated - before >= (size_t)COUNT * SIZE && allocated - before <= (size_t)COUNT * SIZE * 5 / 4,
              "%zu allocated", allocated - before);
    CHECK_MSG(active >= allocated && active <= 2 * allocated && resident >= active && resident <= 3 * allocated,
              "allocated %zu, active %zu, resident %zu", allocated, active, resident);
    CHECK(figure("stats.arenas.4096.small.allocated") + figure("stats.arenas.4096.large.allocated") == allocated);
    CHECK(figure("stats.arenas.4096.pactive") * figure("arenas.page") <= active);
    for (int i = 0; i < COUNT; i += 2)
        free(block[i]);
    refresh();
    size_t holes = small_fragmentation();
    CHECK_MSG(holes >= (size_t)COUNT / 2 * SIZE && holes <= (size_t)COUNT * SIZE, "%zu bytes in free blocks", holes);
    for (int i = 1; i < COUNT; i += 2)
        free(block[i]);
}

static void the_rest_is_unknown(void)
{
    size_t value[2], length = sizeof value[0];
    static const char *const names[] = {"thread.allocatedp", "opt.narenas", "prof.active", "arena.0.extent_hooks",
                                        "arena.0.destroy",   "stats",       "",            "stats.allocated2"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        CHECK_MSG(mallctl(names[i], value, &length, NULL, 0) == ENOENT, "%s is answered", names[i]);
    CHECK(mallctlnametomib("stats.allocated", value, &length) == ENOENT);
    length = 4;
    CHECK(mallctl("stats.allocated", value, &length, NULL, 0) == EINVAL);
    CHECK(mallctl("stats.allocated", NULL, NULL, value, sizeof value[0]) == EPERM);
    bool on = true;
    CHECK(mallctl("background_thread", NULL, NULL, &on, 1) == 0);
    CHECK(small_figure("arenas.narenas") == 1);
    CHECK(mallctl("arena.1.purge", NULL, NULL, NULL, 0) == 0);
    void *hooks = NULL;
    CHECK_MSG(mallctl("arenas.create", value, &length, &hooks, sizeof hooks) == EPERM,
              "an arena with hooks is not kept");
    CHECK(small_figure("arenas.create") == 1 && small_figure("arenas.narenas") == 2);
    CHECK(figure("stats.arenas.1.small.allocated") == 0);
}

static char printed[8192];

static void collect(void *unused, const char *text)
{
    (void)unused;
    strncat(printed, text, sizeof printed - strlen(printed) - 1);
}

/* What mallocx writes on standard error. */
static size_t told_by(int flags, int times)
{
    static char text[4096];
    int ends[2], saved = dup(2);
    CHECK(pipe(ends) == 0 && saved >= 0);
    dup2(1, 2); /* a line is written there only if it is where it was, or the standard output */
    int out = dup(1);
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    for (int i = 0; i < times; i++)
        free(mallocx(100, flags));
    dup2(out, 1);
    dup2(saved, 2);
    close(ends[1]);
    close(out);
    close(saved);
    ssize_t length = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    text[length < 0 ? 0 : length] = 0;
    CHECK(length <= 0 || (strstr(text, "arenas") != NULL && strchr(text, '\n') == text + length - 1));
    return (size_t)length;
}

static _Atomic bool is_over;

static void *ask_without_end(void *unused)
{
    while (!is_over)
        mallctl("epoch", NULL, NULL, &(uint64_t){1}, sizeof(uint64_t));
    return unused;
}

/* A child is not to wait for a thread of its parent's that was taking the figures. */
static void a_child_can_ask(void)
{
    enum { FORKS = 300, BLOCKS = 8000 };
    static void *block[BLOCKS];
    pthread_t thread;
    for (int i = 0; i < BLOCKS; i++)
        CHECK((block[i] = malloc(120000)) != NULL); /* the figures take a while */
    CHECK(pthread_create(&thread, NULL, ask_without_end, NULL) == 0);
    for (int i = 0; i < FORKS; i++) {
        int status;
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            size_t allocated, length = sizeof allocated;
            alarm(10);
            _exit(mallctl("stats.allocated", &allocated, &length, NULL, 0) == 0 ? 0 : 1);
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    is_over = true;
    CHECK(pthread_join(thread, NULL) == 0);
    for (int i = 0; i < BLOCKS; i++)
        free(block[i]);
}

int main(void)
{
    test_begin(60);
    bool has =
        FAMILY_HAS(mallctl) & FAMILY_HAS(mallctlnametomib) & FAMILY_HAS(malloc_stats_print) & FAMILY_HAS(mallocx);
    if (!has || !test_is_sutler())
        SKIP("another malloc");
    figures_are_of_this_heap();
    the_rest_is_unknown();
    a_child_can_ask();
    malloc_stats_print(collect, NULL, "");
    CHECK(strstr(printed, "live_bytes: ") != NULL);
    const int arena_0 = 1 << 20, arena_3 = 4 << 20, no_cache = 1 << 8, cache_0 = 2 << 8;
    CHECK(told_by(arena_0 | no_cache, 3) == 0);
    CHECK_MSG(told_by(arena_3, 3) > 0, "mallocx does not say that there are no arenas");
    CHECK_MSG(told_by(arena_3 | cache_0, 3) == 0, "it says so more than once");
    return 0;
}
