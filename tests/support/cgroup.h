/* SPDX-License-Identifier: MIT
 *
 * Control groups for tests: a real one with a limit, made below the test's own, so that it allows no more than that;
 * and a file system of the test's own in their place, with whatever files it wants, in a mount namespace nobody else
 * sees.
 */
#ifndef TESTS_CGROUP_H
#define TESTS_CGROUP_H

#include "support/proc.h"
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define CGROUPS "/sys/fs/cgroup"

/* ---- a real group with a limit of memory; of version 2 or, where the memory controller belongs to that, 1 ---- */

static char group[1024];

static inline bool group_write(const char *file, const char *value)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", group, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);
    if (fd >= 0)
        close(fd);
    return good;
}

/* Below the directory of the group that /proc/self/cgroup names in the row with `key`. */
static inline bool group_make_below(const char *mount_point, const char *key, const char *limit_file,
                                    size_t limit_bytes)
{
    char text[4096], value[32];
    proc_read("/proc/self/cgroup", text, sizeof text);
    const char *row = strstr(text, key);
    if (row == NULL)
        return false;
    row += strlen(key);
    snprintf(group, sizeof group, "%s%.*s", mount_point, (int)strcspn(row, "\n"), row);
    group_write("cgroup.subtree_control", "+memory"); /* version 2; refused where it is so already, or cannot be */
    size_t length = strlen(group);
    snprintf(group + length, sizeof group - length, "%ssutler-test-%d", group[length - 1] == '/' ? "" : "/", getpid());
    if (mkdir(group, 0755) != 0)
        return false;
    snprintf(value, sizeof value, "%zu", limit_bytes);
    if (group_write(limit_file, value))
        return true;
    rmdir(group);
    return false;
}

static inline bool group_make(size_t limit_bytes)
{
    return group_make_below("/sys/fs/cgroup", "0::", "memory.max", limit_bytes) ||
           group_make_below("/sys/fs/cgroup/memory", ":memory:", "memory.limit_in_bytes", limit_bytes);
}

static inline void group_remove(void)
{
    for (int i = 0; i < 200 && rmdir(group) != 0; i++)
        sleep_us(10000);
}

/* By a child: from here on it counts there.  No swap, where there is such a thing. */
static inline void group_enter(void)
{
    char own[32];
    snprintf(own, sizeof own, "%d", getpid());
    if (!group_write("cgroup.procs", own) || !group_write("memory.swap.max", "0"))
        errno = 0;
}

enum fate { fate_done, fate_killed, fate_other };
static const char *const fate_name[] = {"ends well", "is killed", "fails"};

/* Runs a program in the group, under a library or, if that is NULL, the system's malloc. */
static inline enum fate group_run(const char *library, const char *const *arguments)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        group_enter();
        if (library != NULL) {
            setenv("LD_PRELOAD", library, 1);
        } else {
            unsetenv("LD_PRELOAD");
            unsetenv("TEST_EXPECT_SUTLER");
        }
        execv(arguments[0], (char *const *)arguments);
        _exit(99);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return fate_killed;
    if (status == 0)
        return fate_done;
    test_say("%s ended with status 0x%x\n", library == NULL ? "the system's malloc" : library, (unsigned)status);
    return fate_other;
}

/* ---- files of our own ---- */

static inline void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK_MSG(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s: errno %d", path, errno);
    close(fd);
}

/* A file system of our own instead of the control groups. */
static inline void own_groups(void)
{
    char text[64];
    uid_t user = getuid();
    gid_t user_group = getgid();
    bool root = geteuid() == 0;
    if (unshare(root ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0)
        SKIP("no mount namespace is to be had: errno %d", errno);
    if (!root) {
        write_file("/proc/self/setgroups", "deny");
        snprintf(text, sizeof text, "0 %u 1", user);
        write_file("/proc/self/uid_map", text);
        snprintf(text, sizeof text, "0 %u 1", user_group);
        write_file("/proc/self/gid_map", text);
    }
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || mount("none", CGROUPS, "tmpfs", 0, NULL) != 0)
        SKIP("nothing may be mounted over the control groups: errno %d", errno);
}

/* The path of a file of the process's own group of version 2 or, for memory, 1; its directories are made. */
static inline void own_group_path(int version, const char *file, char *whole, size_t size)
{
    char text[4096] = "\n", path[4096] = CGROUPS;
    CHECK(proc_read("/proc/self/cgroup", text + 1, sizeof text - 1) > 0);
    const char *row = strstr(text, version == 2 ? "\n0::" : ":memory:");
    if (row == NULL)
        SKIP("no control groups of version %d here", version);
    if (version == 1) {
        strcat(path, "/memory");
        mkdir(path, 0755);
    }
    size_t length = strlen(path);
    row = strchr(row, '/');
    for (; row != NULL && *row != '\n' && *row != 0; row++) {
        if (*row == '/' && path[length - 1] != '/')
            mkdir(path, 0755);
        path[length++] = *row;
        path[length] = 0;
    }
    mkdir(path, 0755);
    snprintf(whole, size, "%s/%s", path, file);
}

static inline void own_group_write_of(int version, const char *file, const char *value)
{
    char path[4200];
    own_group_path(version, file, path, sizeof path);
    write_file(path, value);
}

#endif
