/* SPDX-License-Identifier: MIT
 *
 * What the tests of the manager share: finding the thread from outside (it is found the way anybody would find it, by
 * its name under /proc, never by asking the library), a hoard of blocks with known content that makes the manager busy
 * by growing and shrinking, and children in which a case runs: each has a manager of its own, not started yet.
 */
#ifndef TESTS_MANAGER_H
#define TESTS_MANAGER_H

#include "support/pattern.h"
#include "support/proc.h"
#include "support/rng.h"
#include <sys/syscall.h>
#include <sys/wait.h>

/* ---- the threads of a process; nothing here allocates ---- */

#define TASKS_MOST 64

/* Fills in their ids and returns how many there are. */
static inline int tasks_of(pid_t pid, pid_t *tasks)
{
    char path[64], entries[4096];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), count = 0;
    if (fd < 0)
        return 0;
    long length;
    while ((length = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0)
        for (long at = 0; at < length;) {
            const struct {
                uint64_t inode, next;
                unsigned short bytes;
                unsigned char type;
                char name[];
            } *entry = (void *)(entries + at);
            if (entry->name[0] != '.' && count < TASKS_MOST)
                tasks[count++] = atoi(entry->name);
            at += entry->bytes;
        }
    close(fd);
    return count;
}

static inline size_t task_read(pid_t pid, pid_t task, const char *file, char *text, size_t size)
{
    char path[96];
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)pid, (int)task, file);
    text[0] = 0;
    return proc_read(path, text, size);
}

/* The sum of both kinds of context switches. */
static inline unsigned long long switches_of(pid_t pid, pid_t task)
{
    char text[4096];
    CHECK(task_read(pid, task, "status", text, sizeof text) > 0);
    unsigned long long sum = 0;
    const char *row = text;
    for (int i = 0; i < 2; i++) {
        row = strstr(row, "ctxt_switches:");
        CHECK(row != NULL);
        row += strlen("ctxt_switches:");
        sum += strtoull(row, NULL, 10);
    }
    return sum;
}

/* Waits until the task of an idle program sleeps for good: two seconds go by without a switch (on a busy machine it may
 * wait for a processor for one); ten are plenty for the manager's clocks to run out.  Returns its count of switches. */
static inline unsigned long long task_settled(pid_t pid, pid_t task)
{
    unsigned long long last = 0, now = switches_of(pid, task);
    for (int i = 0; i < 15 && now != last; i++) {
        sleep_us(2000000);
        last = now;
        now = switches_of(pid, task);
    }
    return now;
}

/* Thread id of a process's manager; 0 if it has none. */
static inline pid_t manager_of(pid_t pid)
{
    pid_t tasks[TASKS_MOST];
    int count = tasks_of(pid, tasks);
    for (int i = 0; i < count; i++) {
        char name[64];
        if (task_read(pid, tasks[i], "comm", name, sizeof name) > 0 && strcmp(name, "sutler-manager\n") == 0)
            return tasks[i];
    }
    return 0;
}

/* ---- the hoard ---- */

#define HOARD_MOST ((size_t)1 << 20)

static unsigned char *hoard_block[HOARD_MOST];
static unsigned short hoard_size[HOARD_MOST];
static size_t hoard_count, hoard_hole, hoard_bytes; /* no hole is below hoard_hole */
static volatile uint64_t hoard_progress; /* blocks taken and freed */

static inline void hoard_grow(struct rng *rng, size_t bytes)
{
    for (size_t end = hoard_bytes + bytes; hoard_bytes < end;) {
        while (hoard_hole < hoard_count && hoard_block[hoard_hole] != NULL)
            hoard_hole++;
        size_t i = hoard_hole, size = 16 + rng_below(rng, 1000);
        CHECK(i < HOARD_MOST);
        hoard_count += i == hoard_count;
        hoard_block[i] = malloc(size);
        CHECK(hoard_block[i] != NULL);
        pattern_fill(hoard_block[i], size, i);
        hoard_size[i] = (unsigned short)size;
        hoard_bytes += size;
        hoard_progress++;
    }
}

static inline void hoard_check(void)
{
    for (size_t i = 0; i < hoard_count; i++)
        if (hoard_block[i] != NULL)
            pattern_verify(hoard_block[i], hoard_size[i], i);
}

/* Frees all but every `keep`th block (0: all), each seen to be as it was written. */
static inline void hoard_drop(size_t keep)
{
    for (size_t i = 0; i < hoard_count; i++) {
        if (hoard_block[i] == NULL || (keep != 0 && i % keep == 0))
            continue;
        pattern_verify(hoard_block[i], hoard_size[i], i);
        free(hoard_block[i]);
        hoard_block[i] = NULL;
        hoard_bytes -= hoard_size[i];
        hoard_progress++;
    }
    while (hoard_count > 0 && hoard_block[hoard_count - 1] == NULL)
        hoard_count--;
    hoard_hole = 0;
}

/* ---- the manager, started by growing ---- */

#define START_BYTES (40 * MIB) /* more than it takes to have one */

/* Grows until the manager is there; 0 if that does not happen. */
static inline pid_t manager_try(struct rng *rng)
{
    hoard_grow(rng, START_BYTES);
    pid_t task = 0;
    for (int i = 0; i < 500 && (task = manager_of(getpid())) == 0; i++) {
        if (i < 48)
            hoard_grow(rng, MIB); /* the door was locked; or a forked child has so far filled what its parent had freed */
        sleep_us(2000); /* the name is the thread's own first act */
    }
    return task;
}

/* The manager, that may have left for a fork, once it is back while the program goes on; 0 if it does not come. */
static inline pid_t manager_awaited(struct rng *rng)
{
    pid_t manager = 0;
    for (int i = 0; i < 1000 && (manager = manager_of(getpid())) == 0; i++) {
        hoard_drop(0);
        hoard_grow(rng, START_BYTES);
        sleep_us(2000);
    }
    return manager;
}

/* On a full machine it waits for a processor to be spare. */
static inline pid_t manager_start(struct rng *rng)
{
    pid_t task = manager_try(rng);
    if (task == 0)
        task = manager_awaited(rng);
    CHECK_MSG(task != 0, "%zu MiB in use and no manager", hoard_bytes / MIB);
    return task;
}

/* That growing starts none: the name comes late, so other threads than the program's own `threads` count as well. */
static inline void manager_never(struct rng *rng, int threads)
{
    hoard_grow(rng, START_BYTES);
    for (int i = 0; i < 20; i++) {
        pid_t tasks[TASKS_MOST];
        CHECK_MSG(manager_of(getpid()) == 0 && tasks_of(getpid(), tasks) == threads, "a manager was started");
        hoard_grow(rng, MIB);
        sleep_us(2000);
    }
}

/* ---- cases ---- */

/* Runs `body` in a child; its exit status, or 128 + the signal that ended it.  A hang ends by the child's own
 * watchdog. */
static inline int in_child(void (*body)(uint64_t seed), uint64_t seed)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        test_watchdog(60);
        body(seed);
        _exit(0);
    }
    int status;
    while (waitpid(child, &status, 0) < 0)
        CHECK(errno == EINTR);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

struct manager_case {
    const char *name;
    void (*body)(uint64_t seed);
};

/* Every case, or the one named by "--only".  Passed if none failed and not all were skipped. */
static inline int cases_run(int argc, char **argv, const struct manager_case *cases, size_t count)
{
    const char *only = argc > 2 && strcmp(argv[1], "--only") == 0 ? argv[2] : NULL;
    uint64_t seed = test_seed_from(NULL);
    size_t failed = 0, passed = 0;
    for (size_t i = 0; i < count; i++) {
        if (only != NULL && strcmp(only, cases[i].name) != 0)
            continue;
        int status = in_child(cases[i].body, seed + i);
        test_say("%s: %s", cases[i].name, status == 0 ? "passed\n" : status == TEST_SKIPPED ? "skipped\n" : "");
        if (status != 0 && status != TEST_SKIPPED)
            test_say("FAILED, status %d\n", status);
        failed += status != 0 && status != TEST_SKIPPED;
        passed += status == 0;
    }
    return failed > 0 ? 1 : passed > 0 ? 0 : TEST_SKIPPED;
}

#endif
