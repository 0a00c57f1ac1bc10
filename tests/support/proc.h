/* SPDX-License-Identifier: MIT
 *
 * What tests ask the kernel about themselves (resident memory, cpus, threads), read with open/read into a stack buffer
 * so that asking does not allocate and so does not disturb what is measured.
 */
#ifndef TESTS_PROC_H
#define TESTS_PROC_H

#include "check.h"
#include <fcntl.h>
#include <sched.h>

static inline size_t proc_read(const char *path, char *buffer, size_t most)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    size_t length = 0;
    ssize_t n;
    while (length + 1 < most && (n = read(fd, buffer + length, most - 1 - length)) > 0)
        length += (size_t)n;
    close(fd);
    buffer[length] = 0;
    return length;
}

/* The number in the row `name` of /proc/self/status; 0 when there is none.  Read in small parts: some tests ask on the
 * stack of a signal handler.
 */
static inline size_t proc_status_number(const char *name)
{
    char part[128], row[64]; /* longer rows are cut: the numbers asked for stand in short ones */
    const size_t length = strlen(name);
    size_t filled = 0;
    bool found = false;
    ssize_t n;
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    while (!found && (n = read(fd, part, sizeof part)) > 0)
        for (const char *c = part; c < part + n && !found; c++) {
            if (*c != '\n') {
                if (filled < sizeof row - 1)
                    row[filled++] = *c;
                continue;
            }
            row[filled] = 0;
            filled = 0;
            found = strncmp(row, name, length) == 0 && row[length] == ':';
        }
    close(fd);
    return found ? strtoul(row + length + 1, NULL, 10) : 0;
}

/* A "Name:   123 kB" row in bytes. */
static inline size_t proc_status_bytes(const char *name)
{
    return proc_status_number(name) * KIB;
}

/* Under a seccomp filter, as in most containers, there is no manager unless SUTLER_MANAGER=on. */
static inline bool proc_is_filtered(void)
{
    return proc_status_number("Seccomp") != 0;
}

/* Nor is there a fence where heaps go by cid: what threads left on other cpus stays there (decision 14). */
static inline bool proc_lacks_fence(void)
{
    const char *sync = getenv("SUTLER_SYNC");
    return proc_is_filtered() && (sync == NULL || strcmp(sync, "rcs") == 0);
}

/* From the row in kB: statm counts pages of the kernel, which under qemu-user are not those the process is told of. */
static inline size_t proc_resident_bytes(void)
{
    return proc_status_bytes("VmRSS");
}

/* The cpus this thread may run on, as a list; returns how many. */
static inline int proc_cpus(int *cpus, int capacity)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
    int count = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE && count < capacity; cpu++) {
        if (CPU_ISSET(cpu, &set))
            cpus[count++] = cpu;
    }
    return count;
}

static inline void proc_pin_tid(pid_t tid, int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(tid, sizeof set, &set); /* a thread that has just ended is no error */
}

static inline void sleep_us(unsigned microseconds)
{
    struct timespec time = {microseconds / 1000000, (long)(microseconds % 1000000) * 1000};
    nanosleep(&time, NULL);
}

static inline uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

#endif
