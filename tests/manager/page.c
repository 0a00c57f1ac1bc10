/* SPDX-License-Identifier: MIT
 *
 * The statistics page as another process sees it: found by the name of its file among the manager's descriptors, mapped
 * read-only, read by the protocol sutler.h gives.
 *
 *   racing    a reader copies as fast as it can while the program changes: time and sequence never go back, and two copies
 *             with one sequence are one content.
 *   stepped   chance hardly ever meets a write that lasts a microsecond once a second.  So the manager is single-stepped
 *             through a whole write, and after every instruction the reader looks: with an even sequence it must find what
 *             was there before or what is there afterwards, and it must have found the odd one.
 *   forked    a child has neither the mapping nor the descriptor, and a page of its own once it has a manager.
 *   sealed    a reader who may open the file can neither cut it short (whoever has it mapped would end by SIGBUS) nor write.
 *   restarted managers that come and go leave no mapping and no descriptor behind.
 */
#include "watch.h"
#include <dirent.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>

/* ---- a program to look at: the child of this test ---- */

static pid_t program, program_manager;
static int program_go; /* closed: end */

static void program_start(uint64_t seed)
{
    int told[2], go[2];
    CHECK(pipe(told) == 0 && pipe(go) == 0);
    program = fork();
    CHECK(program >= 0);
    if (program == 0) {
        struct rng rng = {seed};
        test_watchdog(60);
        close(go[1]);
        CHECK(fcntl(go[0], F_SETFL, O_NONBLOCK) == 0);
        pid_t manager = manager_start(&rng);
        CHECK(write(told[1], &manager, sizeof manager) == sizeof manager);
        char byte;
        while (read(go[0], &byte, 1) != 0) {
            hoard_grow(&rng, 4 * MIB);
            if (hoard_bytes > 60 * MIB)
                hoard_drop(3);
            sleep_us(1000);
        }
        hoard_check();
        _exit(0);
    }
    close(go[0]);
    program_go = go[1];
    CHECK(read(told[0], &program_manager, sizeof program_manager) == sizeof program_manager);
}

static void program_end(void)
{
    int status;
    close(program_go);
    CHECK(waitpid(program, &status, 0) == program && status == 0);
}

/* The descriptor under which a manager has its page; -1 if it has none. */
static int page_fd(pid_t pid, pid_t manager)
{
    for (int fd = 0; fd < 64; fd++) {
        char path[96], target[256];
        snprintf(path, sizeof path, "/proc/%d/task/%d/fd/%d", (int)pid, (int)manager, fd);
        ssize_t length = readlink(path, target, sizeof target - 1);
        target[length < 0 ? 0 : length] = 0;
        if (strstr(target, "memfd:sutler-stats") != NULL)
            return fd;
    }
    return -1;
}

static const struct sutler_page *page_map(pid_t pid, pid_t manager)
{
    char path[96];
    int number = -1;
    for (int i = 0; i < 500 && (number = page_fd(pid, manager)) < 0; i++)
        sleep_us(2000); /* it has just been started */
    CHECK_MSG(number >= 0, "the manager has no page");
    snprintf(path, sizeof path, "/proc/%d/task/%d/fd/%d", (int)pid, (int)manager, number);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    const struct sutler_page *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(page != MAP_FAILED);
    close(fd);
    for (int i = 0; i < 500 && __atomic_load_n(&page->sequence, __ATOMIC_ACQUIRE) == 0; i++)
        sleep_us(2000);
    CHECK(memcmp(page->magic, SUTLER_PAGE_MAGIC, sizeof SUTLER_PAGE_MAGIC) == 0 && page->size == sizeof *page);
    return page;
}

/* Copies by the protocol; false if it was being written. */
static bool page_copy(const struct sutler_page *page, struct sutler_page *copy)
{
    uint32_t before = __atomic_load_n(&page->sequence, __ATOMIC_ACQUIRE);
    if (before % 2 != 0)
        return false;
    *copy = *(const volatile struct sutler_page *)page;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    copy->sequence = before;
    return __atomic_load_n(&page->sequence, __ATOMIC_RELAXED) == before;
}

static void racing(uint64_t seed)
{
    program_start(seed);
    const struct sutler_page *page = page_map(program, program_manager);
    struct sutler_page last = {.sequence = 0}, copy;
    uint64_t end = now_ms() + 2500, copies = 0, contents = 0;
    while (now_ms() < end)
        for (int i = 0; i < 1000; i++) {
            if (!page_copy(page, &copy))
                continue;
            copies++;
            CHECK(copy.sequence >= last.sequence && copy.written_ns >= last.written_ns);
            CHECK(copy.stats.manager_cpu_us >= last.stats.manager_cpu_us);
            if (copy.sequence == last.sequence)
                CHECK_MSG(memcmp(&copy, &last, sizeof copy) == 0, "two contents with one sequence");
            else
                contents++;
            last = copy;
        }
    CHECK_MSG(contents >= 2, "%d contents in 3 s of a changing heap", (int)contents);
    CHECK(last.stats.size == sizeof last.stats && last.stats.live_bytes >= 8 * MIB);
    program_end();
    test_say("(%llu copies of %llu contents) ", (unsigned long long)copies, (unsigned long long)contents);
}

/* Where the program has the page. */
static uintptr_t page_address(void)
{
    char path[64], line[1024];
    unsigned long long address = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)program);
    FILE *maps = fopen(path, "re");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL)
        if (strstr(line, "sutler-stats") != NULL)
            address = strtoull(line, NULL, 16);
    fclose(maps);
    CHECK(address != 0);
    return (uintptr_t)address;
}

/* Has the manager stop after its next store to the sequence, or (0) no longer; false where the processor's watchpoints
 * are not to be had: then every step of the way there is a single one. */
static bool watch_sequence(uintptr_t address)
{
#if defined(__x86_64__)
    size_t registers = offsetof(struct user, u_debugreg);
    const long writes_of_four_bytes = 0xd0001;
    return ptrace(PTRACE_POKEUSER, program_manager, registers, address) == 0 &&
           ptrace(PTRACE_POKEUSER, program_manager, registers + 7 * sizeof(long),
                  address == 0 ? 0 : writes_of_four_bytes) == 0;
#else
    (void)address;
    return false;
#endif
}

/* Until the manager stops for us. */
static void wait_stop(void)
{
    int status;
    CHECK(waitpid(program_manager, &status, __WALL) == program_manager);
    CHECK_MSG(WIFSTOPPED(status), "the manager ended with status 0x%x", (unsigned)status);
}

static void stepped(uint64_t seed)
{
    program_start(seed);
    const struct sutler_page *page = page_map(program, program_manager);
    struct sutler_page before, copy;
    if (ptrace(PTRACE_SEIZE, program_manager, NULL, NULL) != 0)
        SKIP("no thread may be traced here: errno %d", errno);
    CHECK(ptrace(PTRACE_INTERRUPT, program_manager, NULL, NULL) == 0);
    wait_stop();
    if (!page_copy(page, &before))
        SKIP("stopped in the middle of a write");
    if (watch_sequence(page_address() + offsetof(struct sutler_page, sequence))) {
        CHECK(ptrace(PTRACE_CONT, program_manager, NULL, NULL) == 0);
        wait_stop();
        watch_sequence(0);
        copy = *page;
        CHECK_MSG(copy.sequence == before.sequence + 1, "the first store makes it odd");
        copy.sequence = before.sequence;
        CHECK_MSG(memcmp(&copy, &before, sizeof copy) == 0, "changed before the sequence said so");
    }
    /* Steps until the sequence is even again, and another. */
    long steps = 0, odd = 0;
    for (uint32_t now = before.sequence; now % 2 != 0 || now == before.sequence; steps++) {
        CHECK_MSG(steps < 20000000, "nothing was written");
        if (ptrace(PTRACE_SINGLESTEP, program_manager, NULL, NULL) != 0)
            SKIP("no single steps here: errno %d", errno);
        wait_stop();
        now = __atomic_load_n(&page->sequence, __ATOMIC_ACQUIRE);
        odd += now % 2;
        if (now == before.sequence)
            CHECK_MSG(page_copy(page, &copy) && memcmp(&copy, &before, sizeof copy) == 0,
                      "changed %ld steps in, before the sequence said so", steps);
        else if (now % 2 == 0)
            CHECK(now == before.sequence + 2 && page_copy(page, &copy));
        else
            CHECK(!page_copy(page, &copy));
    }
    CHECK(odd > 0);
    CHECK(copy.written_ns > before.written_ns);
    /* Complete: the next steps change nothing. */
    for (int i = 0; i < 2000 && page->sequence == copy.sequence; i++) {
        struct sutler_page again;
        CHECK(page_copy(page, &again) && memcmp(&again, &copy, sizeof again) == 0);
        CHECK(ptrace(PTRACE_SINGLESTEP, program_manager, NULL, NULL) == 0);
        wait_stop();
    }
    CHECK(ptrace(PTRACE_DETACH, program_manager, NULL, NULL) == 0);
    program_end();
    test_say("(%ld steps, %ld of them inside) ", steps, odd);
}

/* Mappings of this process that show the page, and all of them.  Allocates nothing: that could start a manager. */
static int own_mappings(int *all)
{
    static char text[(size_t)1 << 20];
    int pages = 0;
    *all = 0;
    CHECK(proc_read("/proc/self/maps", text, sizeof text) > 0);
    /* What follows on another is counted with it: a heap is one range, of which some parts are asked to be huge
     * pages. */
    unsigned long start, end, last = 0;
    for (const char *at = text; sscanf(at, "%lx-%lx", &start, &end) == 2; at = strchr(at, '\n') + 1, last = end)
        *all += start != last;
    for (const char *at = text; (at = strstr(at, "sutler-stats")) != NULL; at++)
        pages++;
    return pages;
}

static ino_t page_inode(pid_t manager)
{
    char path[96];
    struct stat file;
    int fd = -1, all;
    for (int i = 0; i < 500 && ((fd = page_fd(getpid(), manager)) < 0 || own_mappings(&all) == 0); i++)
        sleep_us(2000);
    snprintf(path, sizeof path, "/proc/self/task/%d/fd/%d", (int)manager, fd);
    CHECK(fd >= 0 && stat(path, &file) == 0);
    return file.st_ino;
}

static void child_of(struct rng *rng, ino_t inode)
{
    int all;
    test_watchdog(30);
    CHECK(own_mappings(&all) == 0);
    CHECK_MSG(page_fd(getpid(), getpid()) < 0, "the child has the descriptor");
    pid_t manager = manager_start(rng);
    CHECK_MSG(page_inode(manager) != inode, "parent and child write the same page");
    CHECK(own_mappings(&all) == 1);
    hoard_check();
    _exit(0);
}

static void forked(uint64_t seed)
{
    struct rng rng = {seed};
    int all, status;
    ino_t inode = page_inode(manager_start(&rng));
    CHECK(own_mappings(&all) == 1);
    for (int i = 0; i < 4; i++) {
        pid_t child = i % 2 == 0 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        CHECK(child >= 0);
        if (child == 0)
            child_of(&rng, inode);
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        hoard_grow(&rng, MIB);
    }
    /* It left for the forks, and comes back with a page. */
    for (int i = 0; i < 500 && own_mappings(&all) == 0; i++) {
        manager_awaited(&rng);
        sleep_us(2000);
    }
    CHECK(own_mappings(&all) == 1);
}

static void sealed(uint64_t seed)
{
    char path[96], byte = 1;
    program_start(seed);
    const struct sutler_page *page = page_map(program, program_manager);
    snprintf(path, sizeof path, "/proc/%d/task/%d/fd/%d", (int)program, (int)program_manager,
             page_fd(program, program_manager));
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
        CHECK_MSG(ftruncate(fd, 0) != 0, "a reader has cut the page off");
        CHECK_MSG(pwrite(fd, &byte, 1, 0) != 1, "a reader has written to the page");
        CHECK_MSG(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED,
                  "a reader may write to it");
        close(fd);
    }
    CHECK(memcmp(page->magic, SUTLER_PAGE_MAGIC, sizeof SUTLER_PAGE_MAGIC) == 0);
    program_end();
}

static void restarted(uint64_t seed)
{
    struct rng rng = {seed};
    int first, all, after;
    manager_start(&rng);
    sutler_manager_park();
    pid_t tasks[TASKS_MOST];
    CHECK(tasks_of(getpid(), tasks) == 1 && own_mappings(&first) == 0);
    for (int i = 0; i < 12; i++) {
        sutler_manager_resume();
        hoard_drop(0);
        manager_start(&rng);
        sutler_manager_park();
        sutler_manager_park();
        CHECK(tasks_of(getpid(), tasks) == 1 && own_mappings(&all) == 0);
        sutler_manager_resume();
        CHECK(tasks_of(getpid(), tasks) == 1);
    }
    CHECK_MSG(all <= first + 6, "%d mappings became %d", first, all);
    after = dup(0);
    CHECK_MSG(after < 16, "%d descriptors are open", after);
}

int main(int argc, char **argv)
{
    test_begin(120);
    static const struct manager_case cases[] = {
        {"racing", racing},
        {"stepped", stepped},
        {"forked", forked},
        {"sealed", sealed},
        {"restarted", restarted},
    };
    return cases_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
