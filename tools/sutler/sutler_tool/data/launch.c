/* SPDX-License-Identifier: MIT
 *
 * Starts one program, watches it, and writes down what it cost.
 *
 * Why a program of its own: Linux carries the resident size of the process that calls fork+exec into the child's
 * ru_maxrss, so a program started from a large Python process never shows less memory than Python.  This launcher is
 * tiny, and being small it can also time from just before fork to the moment the child is reaped.
 *
 * What it does, in order: touch and free some memory (a virtual machine's host may have taken idle memory back, and the
 * first touch would land on whoever runs next); read the machine's cpu counters; start the program in a process group
 * of its own; sample the resident memory of the whole process tree, often enough to integrate it and to stop a runaway,
 * seldom enough that sampling costs under one percent of one processor; reap everything; write one line of key=value
 * pairs.  It never interprets what the program prints.
 *
 *   launch --report FILE [--timeout S] [--memory-limit BYTES] [--warm BYTES] [--sample-ms N] [--env K=V]... -- PROGRAM
 * ...
 *
 * What it leaves out: a program that daemonises is killed when its first process ends; memory is resident memory, not
 * proportional set size, so pages shared between processes of a tree count once per process in peak_tree_bytes.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TREE_MAX     4096
#define MANAGERS_MAX 256
#define MANAGER_NAME "sutler-manager"

struct manager {
    pid_t pid, tid;
    uint64_t run_ns, faults;
};

static struct manager managers[MANAGERS_MAX];
static size_t manager_count;
static uint64_t rss_peak_bytes, rss_samples;
static double rss_byte_seconds, rss_seconds;
static size_t page_size;

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static ssize_t read_file(const char *path, char *buffer, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t got = read(fd, buffer, size - 1);
    close(fd);
    buffer[got > 0 ? got : 0] = '\0';
    return got;
}

/* Seconds all processors together have spent doing something since boot, in ticks of 10 ms; a virtual machine's stolen
 * time counts as somebody else's work. */
static double machine_busy_seconds(void)
{
    char text[512];
    unsigned long long user, nice, system, idle, iowait, irq, softirq, steal = 0;
    if (read_file("/proc/stat", text, sizeof text) <= 0)
        return -1;
    if (sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &iowait, &irq,
               &softirq, &steal) < 7)
        return -1;
    return (double)(user + nice + system + irq + softirq + steal) / (double)sysconf(_SC_CLK_TCK);
}

static void warm_memory(size_t bytes)
{
    if (!bytes)
        return;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return;
    madvise(memory, bytes, MADV_HUGEPAGE);
    for (size_t i = 0; i < bytes; i += page_size)
        memory[i] = 1;
    munmap(memory, bytes);
}

/* The manager's own time: a thread named sutler-manager in any process of the tree.  What it does between the last
 * sample and the end of the process is not seen. */
static void manager_sample(pid_t pid, pid_t tid)
{
    char path[64], text[1024];
    unsigned long long minor = 0, major = 0;
    size_t i = 0;
    while (i < manager_count && (managers[i].pid != pid || managers[i].tid != tid))
        i++;
    if (i == MANAGERS_MAX)
        return;
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", pid, tid);
    if (read_file(path, text, sizeof text) <= 0)
        return;
    uint64_t run_ns = strtoull(text, NULL, 10);
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
    const char *rest = read_file(path, text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
    if (rest)
        sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %llu %*u %llu", &minor, &major);
    managers[i] = (struct manager){pid, tid, run_ns, minor + major};
    if (i == manager_count)
        manager_count++;
}

static bool is_manager(pid_t pid, pid_t tid)
{
    char path[64], text[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/comm", pid, tid);
    return read_file(path, text, sizeof text) > 0 && strncmp(text, MANAGER_NAME, strlen(MANAGER_NAME)) == 0;
}

/* Looks at every task of `pid`: adds its child processes to the list, and reads the manager's clock. */
static size_t process_walk(pid_t pid, pid_t *list, size_t count)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    if (!tasks)
        return count;
    for (struct dirent *entry; (entry = readdir(tasks));) {
        pid_t tid = (pid_t)atoi(entry->d_name);
        if (tid <= 0)
            continue;
        if (tid != pid && is_manager(pid, tid))
            manager_sample(pid, tid);
        snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, tid);
        if (read_file(path, text, sizeof text) <= 0)
            continue;
        char *end, *at = text;
        for (long child; (child = strtol(at, &end, 10)) > 0 && end != at; at = end)
            if (count < TREE_MAX)
                list[count++] = (pid_t)child;
    }
    closedir(tasks);
    return count;
}

static uint64_t tree_sample(void)
{
    static pid_t list[TREE_MAX];
    char path[64], text[256];
    size_t count = process_walk(getpid(), list, 0);
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned long long size, resident;
        snprintf(path, sizeof path, "/proc/%d/statm", list[i]);
        if (read_file(path, text, sizeof text) > 0 && sscanf(text, "%llu %llu", &size, &resident) == 2)
            total += resident * page_size;
        count = process_walk(list[i], list, count);
    }
    return total;
}

static void kill_tree(pid_t group)
{
    static pid_t list[TREE_MAX];
    if (group > 0)
        kill(-group, SIGKILL);
    size_t count = process_walk(getpid(), list, 0);
    for (size_t i = 0; i < count; i++) {
        count = process_walk(list[i], list, count);
        kill(list[i], SIGKILL);
    }
}

static void child_exec(char **argv, char **settings, size_t setting_count, int error_fd)
{
    sigset_t none;
    struct rlimit no_core = {0, 0};
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &no_core);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (size_t i = 0; i < setting_count; i++) {
        char *equals = strchr(settings[i], '=');
        if (!equals)
            continue;
        *equals = '\0';
        if (equals[1])
            setenv(settings[i], equals + 1, 1);
        else
            unsetenv(settings[i]);
    }
    execvp(argv[0], argv);
    int error = errno;
    if (write(error_fd, &error, sizeof error) < 0)
        _exit(126);
    _exit(127);
}

int main(int argc, char **argv)
{
    const char *report_path = NULL, *outcome = "exit";
    double timeout = 0, sample = 0.02;
    uint64_t memory_limit = 0;
    size_t warm = 0, setting_count = 0;
    char **settings = calloc((size_t)argc + 1, sizeof *settings);
    int at = 1;
    page_size = (size_t)sysconf(_SC_PAGESIZE);
    for (; at + 1 < argc && strcmp(argv[at], "--") != 0; at += 2) {
        const char *value = argv[at + 1];
        if (!strcmp(argv[at], "--report"))
            report_path = value;
        else if (!strcmp(argv[at], "--timeout"))
            timeout = atof(value);
        else if (!strcmp(argv[at], "--memory-limit"))
            memory_limit = strtoull(value, NULL, 10);
        else if (!strcmp(argv[at], "--warm"))
            warm = strtoull(value, NULL, 10);
        else if (!strcmp(argv[at], "--sample-ms"))
            sample = atof(value) * 1e-3;
        else if (!strcmp(argv[at], "--env"))
            settings[setting_count++] = argv[at + 1];
        else
            break;
    }
    if (at + 1 >= argc || strcmp(argv[at], "--") != 0 || !report_path || !settings) {
        fprintf(stderr, "usage: launch --report FILE [OPTIONS] -- PROGRAM [ARGS...]\n");
        return 2;
    }
    FILE *report = fopen(report_path, "we");
    if (!report) {
        perror(report_path);
        return 2;
    }

    warm_memory(warm);
    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    sigaddset(&watched, SIGINT);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGHUP);
    sigprocmask(SIG_BLOCK, &watched, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int error_pipe[2];
    if (pipe2(error_pipe, O_CLOEXEC) < 0)
        return 2;

    double busy = machine_busy_seconds(), start = now_seconds(), end = start, last = start, next = start + sample;
    pid_t child = fork();
    if (child == 0)
        child_exec(argv + at + 1, settings, setting_count, error_pipe[1]);
    close(error_pipe[1]);
    if (child < 0)
        return 2;

    int status = 0, exec_error = 0;
    bool running = true, interrupted = false;
    while (running) {
        double now = now_seconds(), until = next;
        if (timeout > 0 && start + timeout < until)
            until = start + timeout;
        double wait = until > now ? until - now : 0;
        struct timespec pause = {(time_t)wait, (long)((wait - (double)(time_t)wait) * 1e9)};
        int signal = sigtimedwait(&watched, NULL, &pause);
        if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) {
            outcome = "interrupted";
            interrupted = true;
            kill_tree(child);
        }
        for (pid_t reaped; (reaped = waitpid(-1, &status, WNOHANG)) > 0;) {
            if (reaped == child) {
                end = now_seconds();
                running = false;
                break;
            }
        }
        now = now_seconds();
        if (!running)
            break;
        if (timeout > 0 && now >= start + timeout && !interrupted) {
            outcome = "timeout";
            timeout = 0;
            kill_tree(child);
        }
        if (now >= next) {
            uint64_t bytes = tree_sample();
            double after = now_seconds(), cost = after - now;
            rss_samples++;
            rss_byte_seconds += (double)bytes * (now - last);
            rss_seconds += now - last;
            last = now;
            if (bytes > rss_peak_bytes)
                rss_peak_bytes = bytes;
            if (memory_limit && bytes > memory_limit && strcmp(outcome, "exit") == 0) {
                outcome = "memory-limit";
                kill_tree(child);
            }
            next = after + (sample > 150 * cost ? sample : 150 * cost);
        }
    }
    double busy_after = machine_busy_seconds();
    kill_tree(child);
    for (pid_t reaped; (reaped = waitpid(-1, NULL, 0)) > 0 || (reaped < 0 && errno == EINTR);)
        ;
    if (read(error_pipe[0], &exec_error, sizeof exec_error) != sizeof exec_error)
        exec_error = 0;

    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    double user = (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec * 1e-6;
    double system = (double)used.ru_stime.tv_sec + (double)used.ru_stime.tv_usec * 1e-6;
    double foreign = busy >= 0 && busy_after >= 0 ? busy_after - busy - user - system : -1;
    uint64_t manager_ns = 0, manager_faults = 0;
    for (size_t i = 0; i < manager_count; i++) {
        manager_ns += managers[i].run_ns;
        manager_faults += managers[i].faults;
    }
    fprintf(report, "outcome=%s code=%d signal=%d exec_errno=%d wall_s=%.6f user_s=%.6f sys_s=%.6f ",
            exec_error ? "exec-failed" : outcome, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            WIFSIGNALED(status) ? WTERMSIG(status) : 0, exec_error, end - start, user, system);
    fprintf(report,
            "peak_bytes=%llu peak_tree_bytes=%llu minor_faults=%ld major_faults=%ld switches=%ld preemptions=%ld ",
            (unsigned long long)used.ru_maxrss * 1024, (unsigned long long)rss_peak_bytes, used.ru_minflt,
            used.ru_majflt, used.ru_nvcsw, used.ru_nivcsw);
    fprintf(report, "foreign_s=%.3f samples=%llu ", foreign < 0 && busy >= 0 ? 0.0 : foreign,
            (unsigned long long)rss_samples);
    if (rss_seconds > 0)
        fprintf(report, "mean_bytes=%.0f ", rss_byte_seconds / rss_seconds);
    if (manager_count)
        fprintf(report, "manager_s=%.6f manager_faults=%llu ", (double)manager_ns * 1e-9,
                (unsigned long long)manager_faults);
    fprintf(report, "\n");
    return fclose(report) == 0 && !interrupted ? 0 : 2;
}
