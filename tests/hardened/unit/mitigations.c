/* SPDX-License-Identifier: MIT
 *
 * One case a row of src/marks/mitigations.def: `mitigations CASE on|off` expects what the row stops to be stopped, or
 * not to be.  The second is run with the row switched off, and shows that the first would fail without it.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/proc.h"
#include "sutler/sutler.h"

#define MADV_GUARD_INSTALL 102

static void fail(const char *what)
{
    fprintf(stderr, "FAILED: %s\n", what);
    _exit(1);
}

static void expect(bool seen, bool wanted, const char *what)
{
    if (seen != wanted)
        fail(what);
}

/* How a child that does this ends, and its last words. */
static int end_of(void (*deed)(void), char *words, size_t size)
{
    int ends[2], status = 0;
    if (pipe(ends) != 0)
        fail("pipe");
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        deed();
        _exit(0);
    }
    close(ends[1]);
    size_t used = 0;
    ssize_t got;
    while (used < size - 1 && (got = read(ends[0], words + used, size - 1 - used)) > 0)
        used += (size_t)got;
    words[used] = '\0';
    close(ends[0]);
    waitpid(child, &status, 0);
    return status;
}

/* Whether the child was ended by a line that contains `text`. */
static bool is_caught(void (*deed)(void), const char *text)
{
    char words[2000];
    int status = end_of(deed, words, sizeof words);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && strstr(words, text) != NULL;
}

static void write_behind(void)
{
    volatile char *p = malloc(24);
    p[24] = 0;
    free((void *)p);
}

static void canary(bool on)
{
    expect(is_caught(write_behind, "overflow"), on, "a byte behind the block, found at its free");
}

static void zero(bool on)
{
    volatile unsigned char *p = malloc(200);
    unsigned sum = 0;
    memset((void *)p, 0x5a, 200);
    free((void *)p);
    for (int i = 16; i < 200; i++)
        sum += p[i];
    expect(sum == 0, on, "a freed block holds zeros");
}

static void write_when_freed(void)
{
    volatile char *p = malloc(40);
    free((void *)p);
    p[20] = 1;
    for (int i = 0; i < 10000; i++)
        free(malloc(40));
}

static void check(bool on)
{
    expect(is_caught(write_when_freed, "write after free"), on, "a write to a freed block is found");
}

/* Whether one of the next few blocks of its class is the one that was freed. */
static bool comes_back_soon(size_t size, int frees)
{
    void *p = malloc(size);
    bool seen = false;
    free(p);
    for (int i = 0; i < frees; i++) {
        void *q = malloc(size);
        seen |= q == p;
        free(q);
    }
    return seen;
}

/* Of blocks freed one after the other, how many come back next to one that was freed next to them. */
static int in_order(size_t size)
{
    enum { COUNT = 400 };
    static void *freed[COUNT], *taken[COUNT];
    int followers = 0;
    for (int i = 0; i < COUNT; i++)
        freed[i] = malloc(size);
    for (int i = 0; i < COUNT; i++)
        free(freed[i]);
    for (int i = 0; i < COUNT; i++)
        taken[i] = malloc(size);
    for (int i = 0; i < COUNT - 1; i++)
        for (int k = 1; k < COUNT - 1; k++)
            followers += taken[i] == freed[k] && (taken[i + 1] == freed[k + 1] || taken[i + 1] == freed[k - 1]);
    for (int i = 0; i < COUNT; i++)
        free(taken[i]);
    return followers;
}

static void quarantine(bool on)
{
    bool returned = false;
    for (int round = 0; round < 50; round++)
        returned |= comes_back_soon(100, 8) || comes_back_soon(2000, 1);
    expect(!returned, on, "a freed block does not come back soon");
    expect(in_order(100) < 200, on, "blocks do not come back in the order they were freed in, nor the reverse");
}

/* What is in quarantine is released now and then, in the middle of everything. */
static void emptied(bool on)
{
    static size_t *block[600];
    for (size_t round = 0; round < 3000; round++) {
        const size_t count = round * 7919 % 600, size = 16 + round % 5 * 300;
        for (size_t i = 0; i < count; i++)
            *(block[i] = malloc(size)) = i;
        for (size_t i = 0; i < count; i++)
            expect(*block[i] == i, on, "no block is handed out twice");
        for (size_t i = 0; i < count; i++)
            free(block[i]);
        if (round % 3 == 0)
            malloc_trim(0);
    }
}

static atomic_bool is_over;

static void fill_quarantine(void)
{
    for (int i = 0; i < 100; i++)
        free(malloc(100));
}

static size_t (*purge)(void);

static size_t live_blocks(void)
{
    static int (*get)(struct sutler_stats *, size_t);
    struct sutler_stats stats = {0};
    if (get == NULL)
        get = (int (*)(struct sutler_stats *, size_t))dlsym(RTLD_DEFAULT, "sutler_stats_get");
    if (get == NULL || get(&stats, sizeof stats) != 0)
        fail("there is no sutler_stats_get");
    return stats.live_blocks;
}

/* To the library what is in quarantine is live. */
static void expect_emptied(bool on)
{
    fill_quarantine();
    const size_t before = live_blocks();
    purge();
    expect(live_blocks() < before, on, "a purge empties the quarantine");
}

static void *purge_all_the_time(void *unused)
{
    while (!atomic_load(&is_over))
        purge();
    return unused;
}

/* A fork that comes while another thread empties the quarantine: the child has one all the same. */
static void quarantine_fork(bool on)
{
    pthread_t thread;
    if (proc_lacks_fence())
        SKIP("takes a fence, which there is none of under a seccomp filter");
    purge = (size_t(*)(void))dlsym(RTLD_DEFAULT, "sutler_purge");
    if (purge == NULL)
        fail("there is no sutler_purge");
    pthread_create(&thread, NULL, purge_all_the_time, NULL);
    for (int i = 0; i < 300; i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            quarantine(on);
            expect_emptied(on);
            _exit(0);
        }
        fill_quarantine();
        waitpid(child, &status, 0);
        expect(status == 0, on, "a child has a quarantine");
    }
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
}

/* Run without quarantine: a freed block is on a list. */
static void links(bool on)
{
    uint64_t *a = malloc(64), *b = malloc(64);
    free(a);
    free(b);
    const uint64_t inverse = 0xf1de83e19937733dull; /* of the factor links are mixed with */
    uint64_t link = __builtin_bswap64(*(volatile uint64_t *)b * inverse) ^ (uintptr_t)b;
    expect(link >> 16 != (uintptr_t)a, on, "the link does not tell where the other block is");
}

/* Of 128 blocks: few lie right behind the one before, but nearly all are behind the one 32 before, so that a program
 * that walks them goes forward. */
static void order(bool on)
{
    enum { blocks = 128, parts = 32 };
    char *block[blocks];
    int next = 0, forward = 0;
    for (int i = 0; i < blocks; i++) {
        block[i] = malloc(500);
        next += i > 0 && block[i] > block[i - 1] && block[i] - block[i - 1] <= 1024;
        forward += i >= parts && block[i] > block[i - parts];
    }
    expect(next < 100, on, "blocks do not follow each other");
    expect(forward > 80, true, "parts of them do");
}

static void write_far_behind(void)
{
    volatile char *p = malloc(300000);
    for (size_t i = 300000; i < 300000 + 70000; i += 512)
        p[i] = 1;
}

static void guard(bool on)
{
    char words[2000];
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (madvise(page, 4096, MADV_GUARD_INSTALL) != 0)
        SKIP("it takes a kernel that guards pages");
    int status = end_of(write_far_behind, words, sizeof words);
    expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, on, "a page behind a large block traps");
}

static size_t claimed;

static void free_with_claimed_size(void)
{
    void (*free_sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    if (free_sized == NULL)
        fail("there is no free_sized");
    free_sized(malloc(100), claimed);
}

static void size(bool on)
{
    const size_t wrong[] = {0, 99, 101, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        claimed = wrong[i];
        expect(is_caught(free_with_claimed_size, "wrong size"), on, "free_sized with another size");
    }
}

static void delete_from_malloc(void)
{
    void (*delete)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "_ZdlPv");
    if (delete == NULL)
        fail("there is no operator delete");
    delete (malloc(100));
}

static void family(bool on)
{
    expect(is_caught(delete_from_malloc, "mismatched free"), on, "delete for malloc");
}

static void write_behind_and_live_on(void)
{
    static void *kept[20000];
    volatile char *p = malloc(1000);
    p[1000] = 0;
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < 20000; i++)
            free(kept[i]), kept[i] = malloc(1000);
        nanosleep(&(struct timespec){0, 100000000}, NULL);
    }
}

static void audit(bool on)
{
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2 || proc_is_filtered())
        SKIP("it takes a manager: two cpus, and no seccomp filter");
    expect(is_caught(write_behind_and_live_on, "audit(): overflow"), on,
           "the manager finds what is written behind a block");
}

/* ---- what no row switches ---- */

static void *shared;
static void *free_it(void *unused)
{
    (void)unused;
    free(shared);
    return NULL;
}

static void free_twice_elsewhere(void)
{
    pthread_t thread;
    shared = malloc(1000);
    free(shared);
    for (int i = 0; i < 100000; i++)
        free(malloc(64));
    pthread_create(&thread, NULL, free_it, NULL);
    pthread_join(thread, NULL);
}

static void free_large_twice(void)
{
    void *p = malloc(40 << 20);
    free(p);
    free(p);
}

static void resize_freed(void)
{
    void *p = malloc(100);
    free(p);
    free(realloc(p, 200));
}

static void states(bool on)
{
    expect(is_caught(free_twice_elsewhere, "double free"), on, "a double free on another thread, later");
    expect(is_caught(free_large_twice, "double free"), on, "a double free of a mapping");
    expect(is_caught(resize_freed, "realloc(): double free"), on, "realloc of a freed block");
    for (size_t n = 0; n < 300000; n = n * 9 / 8 + 1) {
        void *p = malloc(n);
        expect(malloc_usable_size(p) == n, on, "the usable size is the one asked for");
        p = realloc(p, n + 3);
        expect(malloc_usable_size(p) == n + 3, on, "after realloc, too");
        free(p);
    }
}

/* Of a block with live ones before and behind it. */
static void free_interior(void)
{
    enum { BLOCKS = 64, CLASS = 112 };
    char *row[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        row[i] = malloc(100);
    for (int i = 0; i < BLOCKS; i++) {
        int neighbours = 0;
        for (int k = 0; k < BLOCKS; k++)
            neighbours += row[k] - row[i] == CLASS || row[i] - row[k] == CLASS;
        if (neighbours == 2)
            free(row[i] + 48);
    }
}

static void *volatile first_freed;

static __attribute__((noinline)) void free_first(void)
{
    free(first_freed);
    __asm__ volatile(""); /* no tail call: the report names this function */
}

static void free_twice_later(void)
{
    first_freed = malloc(100);
    free_first();
    for (int i = 0; i < 3; i++)
        free(malloc(50));
    free_first();
}

static bool all_are_in(const char *words, const char *const *part)
{
    for (; *part != NULL; part++)
        if (strstr(words, *part) == NULL) {
            fprintf(stderr, "no '%s' in:\n%s", *part, words);
            return false;
        }
    return true;
}

static void report(bool on)
{
    static const char *const overflow[] = {"live block 0x", "24 bytes asked for, class of 32, from malloc", NULL};
    static const char *const interior[] = {"48 bytes into the block at 0x",
                                           "100 bytes asked for, class of 112, from malloc", "before it 0x",
                                           "behind it 0x", NULL};
    char words[2000], thread[50], caller[50];
    end_of(write_behind, words, sizeof words);
    expect(all_are_in(words, overflow), on, "a long report names the block");
    end_of(free_interior, words, sizeof words);
    expect(all_are_in(words, interior), on, "that the pointer leads into, and its neighbours");
    end_of(free_twice_later, words, sizeof words);
    const char *by = strstr(words, "freed by thread "), *at = strstr(words, " at 0x");
    const char *const twice[] = {"freed block 0x", ": class of 112", "it had 100 bytes and was freed by thread ",
                                 ", 3 frees ago", NULL};
    expect(all_are_in(words, twice), on, "and of a freed one its class, the size it had, and when it was freed");
    expect(by != NULL && sscanf(by, "freed by thread %49[0-9]", thread) == 1 && atoi(thread) != getpid(), on,
           "by whom"); /* a child has another number */
    expect(at != NULL && sscanf(at, " at %49[0-9a-fx]", caller) == 1 &&
               strtoull(caller, NULL, 16) - (uintptr_t)free_first < 64, on, "and where");
}

/* ---- where reports go: SUTLER_REPORT_FILE, and the program's hook ---- */

static void (*report_to)(void (*hook)(const char *text, size_t length));

static void tell_parent(const char *text, size_t length)
{
    static const char prefix[] = "heard: ";
    if (write(2, prefix, sizeof prefix - 1) < 0 || write(2, text, length) < 0)
        _exit(3);
}

static void write_behind_with_hook(void)
{
    report_to(tell_parent);
    write_behind();
}

static void fail_in_hook(const char *text, size_t length)
{
    tell_parent(text, length);
    write_behind();
}

static void write_behind_with_bad_hook(void)
{
    report_to(fail_in_hook);
    write_behind();
}

static void hook(bool on)
{
    char words[2000];
    report_to = (void (*)(void (*)(const char *, size_t)))dlsym(RTLD_DEFAULT, "sutler_report_to");
    if (report_to == NULL)
        fail("there is no sutler_report_to");
    expect(is_caught(write_behind_with_hook, "heard: sutler: free(): overflow 0x"), on, "the hook is told");
    end_of(write_behind_with_hook, words, sizeof words);
    expect(strstr(words, "\nsutler") == NULL, on, "and standard error is not");
    expect(is_caught(write_behind_with_bad_hook, "\nsutler: free(): overflow 0x"), on,
           "an error in the hook goes to standard error");
}

static size_t read_file(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "r");
    size_t length = file != NULL ? fread(text, 1, size - 1, file) : 0;
    text[length] = '\0';
    if (file != NULL)
        fclose(file);
    return length;
}

/* Reports follow each other in the file; where it cannot be written they go to standard error. */
static void file(bool on)
{
    static char path[] = "/tmp/sutler-report-XXXXXX";
    char words[2000];
    if (proc_is_filtered())
        SKIP("under a seccomp filter standard error is told");
    if (getenv("SUTLER_REPORT_FILE") == NULL) {
        close(mkstemp(path));
        setenv("SUTLER_REPORT_FILE", path, 1);
        execl("/proc/self/exe", "mitigations", "file", "on", (char *)NULL);
        fail("exec");
    }
    const char *name = getenv("SUTLER_REPORT_FILE");
    if (name[0] == '/' && strstr(name, "missing") != NULL) {
        expect(is_caught(write_behind, "overflow"), on, "a file that cannot be written: standard error");
        return;
    }
    int status = end_of(write_behind, words, sizeof words);
    expect(WIFSIGNALED(status) && words[0] == '\0', on, "standard error is told nothing");
    end_of(free_large_twice, words, sizeof words);
    read_file(name, words, sizeof words);
    unlink(name);
    expect(strstr(words, "sutler: free(): overflow 0x") == words &&
               strstr(words, "\nsutler: free(): double free 0x") != NULL,
           on, "the file has both reports");
    setenv("SUTLER_REPORT_FILE", "/missing/report", 1);
    execl("/proc/self/exe", "mitigations", "file", "on", (char *)NULL);
    fail("exec");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(bool on);
    } row[] = {{"canary", canary}, {"zero", zero},   {"check", check}, {"quarantine", quarantine},
               {"links", links},   {"order", order}, {"guard", guard}, {"size", size},
               {"family", family}, {"audit", audit}, {"states", states}, {"report", report},
               {"hook", hook},     {"file", file},   {"quarantine_fork", quarantine_fork},
               {"emptied", emptied}};
    for (size_t i = 0; argc == 3 && i < sizeof row / sizeof row[0]; i++)
        if (strcmp(argv[1], row[i].name) == 0) {
            row[i].run(strcmp(argv[2], "on") == 0);
            return 0;
        }
    fail("which case?");
}
