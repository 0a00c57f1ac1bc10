/* SPDX-License-Identifier: MIT
 *
 * Why: a process that does nothing should let the processor sleep.  A heap is built and half of it freed; after
 * `settle_ms` (time for an allocator to finish what it has to do) the program sleeps `idle_ms` in one system call, and
 * the context switches of every other thread of the process in that time are counted from /proc.  There should be none.
 */
#define _GNU_SOURCE
#include "args.h"
#include "clock.h"
#include "heap.h"
#include "memory.h"
#include "result.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct directory_entry { /* as getdents64 fills it */
    uint64_t inode;
    int64_t next;
    unsigned short length;
    unsigned char type;
    char name[];
};

struct switches {
    uint64_t own, others, threads;
};

static uint64_t number_after(const char *text, const char *key)
{
    const char *found = strstr(text, key);
    return found ? strtoull(found + strlen(key), NULL, 10) : 0;
}

static uint64_t task_switches(const char *task)
{
    char path[64], text[8192];
    snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", task);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t length = read(file, text, sizeof(text) - 1);
    close(file);
    text[length > 0 ? length : 0] = 0;
    return number_after(text, "\nvoluntary_ctxt_switches:") + number_after(text, "nonvoluntary_ctxt_switches:");
}

/* opendir would allocate, and might wake the very thread that is being watched. */
static struct switches switches_read(void)
{
    struct switches sum = {0, 0, 0};
    char entries[8192];
    int directory = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (long length; (length = syscall(SYS_getdents64, directory, entries, sizeof(entries))) > 0;) {
        for (long offset = 0; offset < length;) {
            const struct directory_entry *entry = (const struct directory_entry *)(entries + offset);
            offset += entry->length;
            if (entry->name[0] == '.')
                continue;
            sum.threads++;
            if (strtol(entry->name, NULL, 10) == getpid())
                sum.own += task_switches(entry->name);
            else
                sum.others += task_switches(entry->name);
        }
    }
    close(directory);
    return sum;
}

int main(int argc, char **argv)
{
    uint64_t heap_mib = 64, settle_ms = 200, idle_ms = 500;
    const struct arg args[] = {
        {"heap_mib", ARG_COUNT, &heap_mib, "heap built, half of which is freed again"},
        {"settle_ms", ARG_COUNT, &settle_ms, "time before counting starts"},
        {"idle_ms", ARG_COUNT, &idle_ms, "time counted"},
    };
    ARGS_READ("idle", argc, argv, args);
    struct heap_block *kept = heap_fill(heap_mib / 2, args_seed());
    uint64_t errors = heap_free(heap_fill(heap_mib - heap_mib / 2, args_seed() + 1));
    clock_sleep_ms(settle_ms);
    struct switches before = switches_read();
    uint64_t begin_ns = clock_ns();
    clock_sleep_ms(idle_ms);
    uint64_t end_ns = clock_ns();
    struct switches after = switches_read();
    errors += heap_check(kept) + (after.threads == 0);
    result_begin("idle", after.threads, 1, end_ns - begin_ns);
    result_count("heap_mib", heap_mib);
    result_count("own_switches", after.own - before.own);
    result_count("other_switches", after.others - before.others);
    result_count("rss_kib", memory_rss_kib());
    return result_end(errors);
}
