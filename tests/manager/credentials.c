/* SPDX-License-Identifier: MIT
 *
 * Calls that must see a process of only its own threads, each in a program that has a manager already and in one that
 * gets it afterwards.  What is asked of them all: no thread of the process keeps what the program gave up - user,
 * groups, capabilities, root directory, an unfiltered set of system calls - which is read from /proc/PID/task, for
 * every thread there, again and again while the heap goes on growing (and a manager is started anew); and no call fails
 * that succeeds in a process of one thread.
 */
#include "watch.h"
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define SOMEBODY 54321

/* ---- what every thread must have in common ---- */

static const char *const rows[] = {"Uid:", "Gid:", "Groups:", "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "NoNewPrivs:",
                                   "Seccomp:"};
#define ROWS (sizeof rows / sizeof rows[0])

static void row_of(const char *status, const char *name, char *row, size_t size)
{
    const char *at = strstr(status, name);
    size_t length = at == NULL ? 0 : strcspn(at, "\n");
    CHECK(length < size);
    memcpy(row, at == NULL ? "" : at, length);
    row[length] = 0;
}

/* The manager has no capability, whatever the program has. */
static bool is_renounced(const char *row)
{
    const char *value = row + strcspn(row, "\t");
    return (strncmp(row, "CapInh:", 7) == 0 || strncmp(row, "CapPrm:", 7) == 0 || strncmp(row, "CapEff:", 7) == 0) &&
           strspn(value, "\t0") == strlen(value);
}

/* Every thread of `pid` shows the rows its first thread shows; the manager shows no capabilities. */
static void all_threads_agree(pid_t pid)
{
    char first[4096], other[4096];
    pid_t tasks[TASKS_MOST];
    int count = tasks_of(pid, tasks);
    CHECK(count > 0 && task_read(pid, pid, "status", first, sizeof first) > 0);
    for (int i = 0; i < count; i++) {
        if (task_read(pid, tasks[i], "status", other, sizeof other) == 0)
            continue; /* gone meanwhile */
        for (size_t r = 0; r < ROWS; r++) {
            char wanted[1024], found[1024];
            row_of(first, rows[r], wanted, sizeof wanted);
            row_of(other, rows[r], found, sizeof found);
            bool is_manager = strstr(other, "Name:\tsutler-manager\n") != NULL;
            CHECK_MSG(!is_manager || strncmp(rows[r], "Cap", 3) != 0 || strcmp(rows[r], "CapBnd:") == 0 ||
                          is_renounced(found),
                      "the manager has capabilities: %s", found);
            if (is_renounced(found)) /* its name comes a moment later */
                continue;
            CHECK_MSG(strcmp(wanted, found) == 0, "thread %d of %d: %s, and the program: %s", i, count, found, wanted);
        }
    }
}

static void grow_and_agree(struct rng *rng)
{
    for (int i = 0; i < 6; i++) {
        all_threads_agree(getpid());
        hoard_grow(rng, 7 * MIB); /* together more than it takes to have a manager */
    }
    hoard_drop(5);
    all_threads_agree(getpid());
    hoard_check();
}

/* ---- calls ---- */

static void call_setuid(void)
{
    CHECK(setuid(SOMEBODY) == 0 && getuid() == SOMEBODY && geteuid() == SOMEBODY);
    CHECK(setuid(0) != 0);
}

static void call_seteuid(void)
{
    CHECK(seteuid(SOMEBODY) == 0 && geteuid() == SOMEBODY);
}

static void call_setreuid(void)
{
    CHECK(setreuid(SOMEBODY, SOMEBODY) == 0 && geteuid() == SOMEBODY);
}

static void call_setresuid(void)
{
    CHECK(setresuid(SOMEBODY, SOMEBODY, SOMEBODY) == 0 && geteuid() == SOMEBODY);
}

static void call_setgid(void)
{
    CHECK(setgid(SOMEBODY) == 0 && getegid() == SOMEBODY);
}

static void call_setegid(void)
{
    CHECK(setegid(SOMEBODY) == 0 && getegid() == SOMEBODY);
}

static void call_setregid(void)
{
    CHECK(setregid(SOMEBODY, SOMEBODY) == 0 && getegid() == SOMEBODY);
}

static void call_setresgid(void)
{
    CHECK(setresgid(SOMEBODY, SOMEBODY, SOMEBODY) == 0 && getegid() == SOMEBODY);
}

static void call_setgroups(void)
{
    gid_t groups[] = {SOMEBODY, SOMEBODY + 1};
    CHECK(setgroups(2, groups) == 0);
}

static void call_initgroups(void)
{
    CHECK(initgroups("nobody", SOMEBODY) == 0);
}

static void call_drop_all(void)
{
    call_setgroups();
    call_setresgid();
    call_setresuid();
}

static void call_capset(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
    extern int capset(void *, const void *); /* in libc, in no header of its own */
    CHECK(capset(&header, none) == 0);
}

static void call_bounding_set(void)
{
    CHECK(prctl(PR_CAPBSET_DROP, CAP_SYS_MODULE, 0, 0, 0) == 0);
}

static void call_no_new_privileges(void)
{
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
}

static void call_unshare_user(void)
{
    CHECK_MSG(unshare(CLONE_NEWUSER) == 0, "unshare(CLONE_NEWUSER): errno %d", errno);
}

static void call_unshare_mounts(void)
{
    CHECK_MSG(unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_FS | CLONE_FILES) == 0, "unshare: errno %d", errno);
}

/* Into the namespace of a child that has one of its own. */
static void enter_namespace(int kind, const char *file)
{
    int ready[2], done[2];
    char path[64], byte = 0;
    CHECK(pipe(ready) == 0 && pipe(done) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(done[1]);
        bool made = unshare(kind) == 0;
        CHECK(write(ready[1], made ? "y" : "n", 1) == 1);
        _exit(read(done[0], &byte, 1) != 0);
    }
    close(ready[1]);
    CHECK(read(ready[0], &byte, 1) == 1 && byte == 'y');
    snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)child, file);
    int namespace = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(namespace >= 0);
    CHECK_MSG(setns(namespace, kind) == 0, "setns(%s): errno %d", file, errno);
    close(namespace);
    close(done[1]);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
}

static void call_setns_mounts(void)
{
    enter_namespace(CLONE_NEWNS, "mnt");
}

static void call_setns_user(void)
{
    enter_namespace(CLONE_NEWUSER, "user");
}

static struct {
    const char *name;
    void (*call)(void);
    bool needs_root;
    int namespaces; /* such it makes: containers and chroot may forbid it */
} calls[] = {
    {"setuid", call_setuid, true, 0},
    {"seteuid", call_seteuid, true, 0},
    {"setreuid", call_setreuid, true, 0},
    {"setresuid", call_setresuid, true, 0},
    {"setgid", call_setgid, true, 0},
    {"setegid", call_setegid, true, 0},
    {"setregid", call_setregid, true, 0},
    {"setresgid", call_setresgid, true, 0},
    {"setgroups", call_setgroups, true, 0},
    {"initgroups", call_initgroups, true, 0},
    {"groups, then user", call_drop_all, true, 0},
    {"capset", call_capset, false, 0},
    {"the bounding set", call_bounding_set, true, 0},
    {"no_new_privs", call_no_new_privileges, false, 0},
    {"unshare a user namespace", call_unshare_user, false, CLONE_NEWUSER},
    {"unshare mounts", call_unshare_mounts, true, CLONE_NEWNS | CLONE_NEWUTS},
    {"setns, mounts", call_setns_mounts, true, CLONE_NEWNS},
    {"setns, user", call_setns_user, false, CLONE_NEWUSER},
};
#define CALLS (sizeof calls / sizeof calls[0])

static size_t call;

static void make_namespaces(uint64_t namespaces)
{
    _exit(unshare((int)namespaces) != 0);
}

static void after_start(uint64_t seed)
{
    struct rng rng = {seed};
    manager_start(&rng);
    calls[call].call();
    grow_and_agree(&rng);
}

static void before_start(uint64_t seed)
{
    struct rng rng = {seed};
    calls[call].call();
    grow_and_agree(&rng);
}

static volatile bool workers_stop;

static void *worker(void *argument)
{
    struct rng rng = {(uintptr_t)argument};
    while (!workers_stop)
        free(malloc(rng_size(&rng, 16)));
    return NULL;
}

/* The C library changes the threads it knows of by a signal, the manager goes: both at once. */
static void among_threads(uint64_t seed)
{
    struct rng rng = {seed};
    pthread_t threads[3];
    manager_start(&rng);
    for (uintptr_t i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, worker, (void *)(i + 1)) == 0);
    call_drop_all();
    grow_and_agree(&rng);
    workers_stop = true;
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* Changed from several threads at once, and back again, while another forks and the heap grows. */
static void *back_and_forth(void *argument)
{
    (void)argument;
    for (int i = 0; i < 100; i++) {
        CHECK(setegid(SOMEBODY) == 0);
        CHECK(setegid(0) == 0);
    }
    return NULL;
}

static void at_once(uint64_t seed)
{
    struct rng rng = {seed};
    pthread_t threads[2];
    manager_start(&rng);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, back_and_forth, NULL) == 0);
    for (int i = 0; i < 30; i++) {
        hoard_grow(&rng, 2 * MIB);
        int status;
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            test_watchdog(30);
            hoard_grow(&rng, MIB);
            hoard_drop(0);
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        hoard_drop(3);
    }
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(setegid(0) == 0);
    grow_and_agree(&rng);
}

/* A child forked while another thread is in one of the calls is not in it: it gets a manager. */
static void *in_and_out(void *argument)
{
    while (!workers_stop)
        CHECK(seteuid(geteuid()) == 0);
    return argument;
}

static void forked_meanwhile(uint64_t seed)
{
    struct rng rng = {seed};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, in_and_out, NULL) == 0);
    for (int i = 0; i < 8; i++) {
        int status;
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            test_watchdog(30);
            manager_start(&rng);
            _exit(0);
        }
        CHECK_MSG(waitpid(child, &status, 0) == child && status == 0, "child %d ended with status 0x%x", i,
                  (unsigned)status);
    }
    workers_stop = true;
    CHECK(pthread_join(thread, NULL) == 0);
}

/* What a vfork child gives up on its way to exec is its own; its parent's memory is not. */
static void vfork_child_gives_up(uint64_t seed)
{
    struct rng rng = {seed};
    int status;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0)
        SKIP("given up already");
    pid_t child = vfork();
    CHECK(child >= 0);
    if (child == 0) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        _exit(seteuid(geteuid()) == 0 ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0);
    manager_start(&rng);
}

/* ---- the program's place in the file system ---- */

/* Only outside can it be seen, by the parent: in the new root there is no /proc. */
static void all_threads_have_root(pid_t pid, const char *root)
{
    pid_t tasks[TASKS_MOST];
    int count = tasks_of(pid, tasks);
    CHECK(count > 0);
    for (int i = 0; i < count; i++) {
        char path[96], target[256];
        snprintf(path, sizeof path, "/proc/%d/task/%d/root", (int)pid, (int)tasks[i]);
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length < 0)
            continue;
        target[length] = 0;
        CHECK_MSG(strcmp(target, root) == 0, "thread %d of %d has the root directory %s", i, count, target);
    }
}

static void changes_root(uint64_t seed, bool start_before)
{
    struct rng rng = {seed};
    char directory[] = "/tmp/sutler-root-XXXXXX", byte;
    if (geteuid() != 0)
        SKIP("needs root");
    CHECK(mkdtemp(directory) != NULL);
    int changed[2], seen[2];
    CHECK(pipe(changed) == 0 && pipe(seen) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        test_watchdog(30);
        if (start_before)
            manager_start(&rng);
        CHECK(chroot(directory) == 0 && chdir("/") == 0);
        for (int i = 0; i < 12; i++) {
            hoard_grow(&rng, 8 * MIB);
            CHECK(write(changed[1], "x", 1) == 1 && read(seen[0], &byte, 1) == 1);
        }
        hoard_check();
        _exit(0);
    }
    close(changed[1]);
    while (read(changed[0], &byte, 1) == 1) {
        all_threads_have_root(child, directory);
        CHECK(write(seen[1], "x", 1) == 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    rmdir(directory);
}

static void chroot_after_start(uint64_t seed)
{
    changes_root(seed, true);
}

static void chroot_before_start(uint64_t seed)
{
    changes_root(seed, false);
}

/* A directory the program has left can be unmounted: nobody else in the process works in it. */
static void leaves_directory(uint64_t seed)
{
    struct rng rng = {seed};
    char directory[] = "/tmp/sutler-mount-XXXXXX";
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        SKIP("needs root, to mount");
    CHECK(mkdtemp(directory) != NULL && mount("none", directory, "tmpfs", 0, NULL) == 0);
    CHECK(chdir(directory) == 0);
    manager_start(&rng);
    CHECK(chdir("/") == 0);
    int result = umount(directory), error = errno;
    umount2(directory, MNT_DETACH);
    rmdir(directory);
    CHECK_MSG(result == 0, "umount: errno %d", error);
}

/* ---- a sandbox in which making a thread is death ---- */

static void install_filter(void)
{
    static struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        SKIP("seccomp filters are not to be had here: errno %d", errno);
}

/* As libseccomp does: no_new_privs by prctl, the filter by the system call itself. */
static void install_filter_raw(void)
{
    static struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
        SKIP("seccomp filters are not to be had here: errno %d", errno);
}

static void live_without_threads(struct rng *rng)
{
    for (int i = 0; i < 5; i++) {
        all_threads_agree(getpid());
        hoard_grow(rng, 16 * MIB);
        hoard_drop(4);
        sutler_purge();
    }
    hoard_check();
}

static void sandbox_after_start(uint64_t seed)
{
    struct rng rng = {seed};
    manager_start(&rng);
    call_no_new_privileges();
    install_filter();
    live_without_threads(&rng);
}

static void sandbox_before_start(uint64_t seed)
{
    struct rng rng = {seed};
    call_no_new_privileges();
    install_filter();
    live_without_threads(&rng);
}

static void raw_sandbox_after_start(uint64_t seed)
{
    struct rng rng = {seed};
    manager_start(&rng);
    call_no_new_privileges();
    install_filter_raw();
    live_without_threads(&rng);
}

static void raw_sandbox_before_start(uint64_t seed)
{
    struct rng rng = {seed};
    call_no_new_privileges();
    install_filter_raw();
    live_without_threads(&rng);
}

int main(int argc, char **argv)
{
    test_begin(120);
    uint64_t seed = test_seed_from(NULL);
    bool good = true;
    for (call = 0; call < CALLS; call++) {
        if (calls[call].needs_root && geteuid() != 0) {
            test_say("%s: skipped, needs root\n", calls[call].name);
            continue;
        }
        if (in_child(make_namespaces, (uint64_t)calls[call].namespaces) != 0) {
            test_say("%s: skipped, such namespaces cannot be made here\n", calls[call].name);
            continue;
        }
        int after = in_child(after_start, seed + call), before = in_child(before_start, seed + call);
        if (after != 0 || before != 0)
            test_say("FAILED %s: status %d with a manager running, %d before there is one\n", calls[call].name, after,
                     before);
        good &= after == 0 && before == 0;
    }
    static const struct manager_case cases[] = {
        {"among_threads", among_threads},
        {"at_once", at_once},
        {"forked_meanwhile", forked_meanwhile},
        {"vfork_child_gives_up", vfork_child_gives_up},
        {"chroot_after_start", chroot_after_start},
        {"chroot_before_start", chroot_before_start},
        {"leaves_directory", leaves_directory},
        {"sandbox_after_start", sandbox_after_start},
        {"sandbox_before_start", sandbox_before_start},
        {"raw_sandbox_after_start", raw_sandbox_after_start},
        {"raw_sandbox_before_start", raw_sandbox_before_start},
    };
    int rest = cases_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
    return good && (rest == 0 || rest == TEST_SKIPPED) ? 0 : 1;
}
