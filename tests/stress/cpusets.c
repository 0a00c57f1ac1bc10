/* SPDX-License-Identifier: MIT
 *
 * The cpu set changes while the program runs: the whole process is squeezed onto one cpu, onto another, and let go, as
 * container managers do.  Threads that start meanwhile see another number of cpus than the library saw at its start.  A
 * cpuset cgroup is used as well where the test may write one (root, version 1 or 2); affinity always.
 */
#include "stress/worker.h"
#include <dirent.h>
#include <sys/stat.h>

static void squeeze(const int *cpus, int from, int count)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < count; i++)
        CPU_SET(cpus[from + i], &set);
    DIR *tasks = opendir("/proc/self/task"); /* allocates: in the middle of the storm, on purpose */
    CHECK(tasks != NULL);
    struct dirent *entry;
    while ((entry = readdir(tasks)) != NULL) {
        if (entry->d_name[0] != '.')
            sched_setaffinity(atoi(entry->d_name), sizeof set, &set);
    }
    closedir(tasks);
}

static char group[256];

static bool write_text(const char *directory, const char *file, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return good;
}

/* A cpuset cgroup (version 1) of our own, this process in it; false where that is not allowed. */
static bool enter_group(void)
{
    char text[64];
    snprintf(group, sizeof group, "/sys/fs/cgroup/cpuset/sutler-test-%d", getpid());
    if (mkdir(group, 0755) != 0)
        return false;
    char mems[64], cpus[256];
    if (proc_read("/sys/fs/cgroup/cpuset/cpuset.mems", mems, sizeof mems) == 0 ||
        proc_read("/sys/fs/cgroup/cpuset/cpuset.cpus", cpus, sizeof cpus) == 0 ||
        !write_text(group, "cpuset.mems", mems) || !write_text(group, "cpuset.cpus", cpus)) {
        rmdir(group);
        return false;
    }
    snprintf(text, sizeof text, "%d", getpid());
    if (!write_text(group, "cgroup.procs", text)) {
        rmdir(group);
        return false;
    }
    return true;
}

static void leave_group(void)
{
    char text[64];
    snprintf(text, sizeof text, "%d", getpid());
    write_text("/sys/fs/cgroup/cpuset", "cgroup.procs", text);
    for (int i = 0; i < 100 && rmdir(group) != 0; i++)
        sleep_us(10000);
}

static void *newcomer(void *argument)
{
    struct rng rng = {(uintptr_t)argument};
    for (int i = 0; i < 200; i++)
        worker_step(&rng);
    return NULL;
}

static void newcomers(uint64_t seed)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, newcomer, (void *)(uintptr_t)seed) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

int main(int argc, char **argv)
{
    test_begin(300);
    uint64_t seed = test_seed_from(NULL);
    uint64_t milliseconds = test_option(argc, argv, "--ms", 3000);
    int cpus[64];
    int cpu_count = proc_cpus(cpus, 64);
    if (cpu_count < 2)
        SKIP("needs two cpus to take one away");
    shadow_create();
    struct rng rng = {seed};
    workers_start(5, seed);
    uint64_t end = now_ms() + milliseconds;
    while (now_ms() < end) {
        int count = 1 + (int)rng_below(&rng, (size_t)cpu_count);
        squeeze(cpus, (int)rng_below(&rng, (size_t)(cpu_count - count + 1)), count);
        newcomers(rng_next(&rng) | 1);
        sleep_us(3000);
    }
    squeeze(cpus, 0, cpu_count);
    if (enter_group()) {
        for (int i = 0; i < 50; i++) {
            char text[16];
            snprintf(text, sizeof text, "%d", cpus[rng_below(&rng, (size_t)cpu_count)]);
            CHECK(write_text(group, "cpuset.cpus", text));
            newcomers(rng_next(&rng) | 1);
            sleep_us(2000);
        }
        leave_group();
    } else {
        test_say("note: no cpuset cgroup may be made here, affinity only\n");
    }
    workers_finish();
    return 0;
}
