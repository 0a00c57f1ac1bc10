/* SPDX-License-Identifier: MIT
 *
 * Why: see memory.h.
 */
#define _GNU_SOURCE
#include "memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The number after `key` in a /proc file of "Key:   123 kB" lines; 0 if the file or the key is missing. */
static uint64_t proc_kib(const char *path, const char *key)
{
    char text[8192];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t length = read(file, text, sizeof(text) - 1);
    close(file);
    if (length <= 0)
        return 0;
    text[length] = 0;
    const char *found = strstr(text, key);
    return found ? strtoull(found + strlen(key), NULL, 10) : 0;
}

uint64_t memory_rss_kib(void)
{
    uint64_t exact = proc_kib("/proc/self/smaps_rollup", "\nRss:");
    return exact ? exact : proc_kib("/proc/self/status", "\nVmRSS:");
}

uint64_t memory_anonymous_kib(void)
{
    return proc_kib("/proc/self/smaps_rollup", "\nAnonymous:");
}

uint64_t memory_peak_kib(void)
{
    return proc_kib("/proc/self/status", "\nVmHWM:");
}

uint64_t memory_address_kib(void)
{
    return proc_kib("/proc/self/status", "\nVmSize:");
}

uint64_t memory_system_free_kib(void)
{
    return proc_kib("/proc/meminfo", "\nMemFree:");
}

static void *pages_map_as(size_t bytes, int flags)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        perror("mmap");
        exit(3);
    }
    return pages;
}

void *pages_map(size_t bytes)
{
    return pages_map_as(bytes, MAP_PRIVATE | MAP_POPULATE);
}

void *pages_map_shared(size_t bytes)
{
    return pages_map_as(bytes, MAP_SHARED | MAP_POPULATE);
}

void *pages_map_untouched(size_t bytes, int advice)
{
    const size_t huge = 2 << 20;
    char *map = pages_map_as(bytes + huge, MAP_PRIVATE);
    size_t before = (huge - (uintptr_t)map % huge) % huge;
    if (before > 0)
        munmap(map, before);
    munmap(map + before + bytes, huge - before);
    madvise(map + before, bytes, advice);
    return map + before;
}

void pages_touch(void *pages, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 4096)
        *((volatile char *)pages + at) = 1;
}

void pages_unmap(void *pages, size_t bytes)
{
    munmap(pages, bytes);
}
