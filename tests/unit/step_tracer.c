/* SPDX-License-Identifier: MIT */
#include "step.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "os/os.h"
#include "rcs/hot.h"
#include "step_control.h"
#include "unit.h"

#define PATH_MAX_POINTS 4000000u
#define STUCK_NS        20000000000ull /* no progress for this long is a deadlock */

extern const char __executable_start[], etext[];

unsigned step_waits;
static pid_t child;

static char where[256] = "start";

static uintptr_t ip_of(pid_t tid)
{
    errno = 0;
    long ip = ptrace(PTRACE_PEEKUSER, tid, offsetof(struct user_regs_struct, rip), NULL);
    EXPECT(errno == 0);
    return (uintptr_t)ip;
}

/* 'S' is asleep, 't' stopped by the tracer. */
static char state_of(pid_t tid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", child, tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return '?';
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    return end != NULL && end[1] == ' ' ? end[2] : '?';
}

static _Noreturn void give_up(pid_t tid, const char *what)
{
    char state_a = state_of(control->a), state_b = state_of(control->b);
    unit_say("FAILED: %s: %s (thread %c; A is in state %c, B in %c)\n", where, what, tid == control->a ? 'A' : 'B',
             state_a, state_b);
    kill(child, SIGKILL);
    abort();
}

/* What a stop means; everything that is not the end of the test by itself. */
static void expect_trap(pid_t tid, int status)
{
    if (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP)
        return;
    char text[96];
    if (WIFSTOPPED(status))
        snprintf(text, sizeof text, "signal %d at image offset 0x%lx", WSTOPSIG(status),
                 (unsigned long)(ip_of(tid) - (uintptr_t)__executable_start));
    else
        snprintf(text, sizeof text, "status 0x%x", (unsigned)status);
    give_up(tid, text);
}

/* True when `tid` has stopped. */
static bool poll_stop(pid_t tid)
{
    int status;
    pid_t got = waitpid(tid, &status, __WALL | WNOHANG);
    EXPECT_MSG(got >= 0, "waitpid: errno %d", errno);
    if (got == 0)
        return false;
    expect_trap(tid, status);
    return true;
}

static void wait_stop(pid_t tid)
{
    uint64_t begin = os_now_ns();
    for (unsigned turn = 0; !poll_stop(tid); turn++) {
        if (turn % 1024 == 1023 && os_now_ns() - begin > STUCK_NS)
            give_up(tid, "stuck");
        sched_yield();
    }
}

/* After a single step, which cannot hang; a test that steps for ever is ended by its watchdog. */
static void wait_step(pid_t tid)
{
    int status;
    EXPECT_EQ(waitpid(tid, &status, __WALL), tid);
    expect_trap(tid, status);
}

static bool is_at_mark(pid_t tid)
{
    return ip_of(tid) == (uintptr_t)step_mark_after;
}

static void resume(pid_t tid, int signal_number)
{
    EXPECT_EQ(ptrace(PTRACE_CONT, tid, NULL, (long)signal_number), 0);
}

static void run_to_mark(pid_t tid)
{
    resume(tid, 0);
    wait_stop(tid);
    if (!is_at_mark(tid))
        give_up(tid, "a trap that is no mark");
}

static void run_a_to(enum phase phase)
{
    run_to_mark(control->a);
    if (control->phase != phase)
        give_up(control->a, "the wrong mark");
}

void step_start(void)
{
    if (os_is_filtered())
        SKIP("under a filter a malloc that is stepped through takes a fresh superblock each time");
    control = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(control != MAP_FAILED);
    child = fork();
    EXPECT(child >= 0);
    if (child == 0)
        step_be_child();
    int status;
    EXPECT_EQ(waitpid(child, &status, __WALL), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        SKIP("ptrace is not permitted here");
    EXPECT(WIFSTOPPED(status));
    if (ptrace(PTRACE_SETOPTIONS, child, NULL, (long)(PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL)) != 0)
        SKIP("ptrace is not permitted here");
    resume(child, 0);
    for (int at_mark = 0; at_mark < 2;) {
        pid_t tid = waitpid(-1, &status, __WALL);
        EXPECT(tid > 0 && WIFSTOPPED(status));
        if (tid != child && WSTOPSIG(status) == SIGTRAP && status >> 16 == 0) {
            EXPECT(is_at_mark(tid));
            at_mark++;
            continue;
        }
        EXPECT_MSG(WSTOPSIG(status) == SIGSTOP || status >> 16 != 0, "the child stops with %d", WSTOPSIG(status));
        resume(tid, 0);
    }
    EXPECT(control->a != 0 && control->b != 0);
}

void step_end(void)
{
    control->quit = true;
    ptrace(PTRACE_DETACH, control->a, NULL, 0L);
    ptrace(PTRACE_DETACH, control->b, NULL, 0L);
    int status;
    for (;;) {
        pid_t tid = waitpid(child, &status, __WALL);
        EXPECT(tid == child);
        if (!WIFSTOPPED(status))
            break;
        resume(child, 0);
    }
    EXPECT_EQ(status, 0);
}

static void verify(void)
{
    control->job = job_verify;
    run_to_mark(control->b);
}

static bool is_in_section(uintptr_t ip)
{
    if (control->rseq_of_a == 0)
        return false;
    /* struct rseq_cs: version, flags, start, length, abort.  It is constant, so the tracer's copy will do. */
    const uint64_t *cs = (const uint64_t *)ptrace(PTRACE_PEEKDATA, control->a, control->rseq_of_a + RSEQ_CS, NULL);
    return cs != NULL && ip - cs[1] < cs[2];
}

static void add_point(struct step_path *path, uintptr_t ip, bool sections)
{
    static uint8_t *seen;
    size_t text_bytes = (size_t)(etext - __executable_start);
    if (seen == NULL)
        seen = unit_map(text_bytes);
    if (path->length == 0)
        memset(seen, 0, text_bytes);
    size_t offset = ip - (uintptr_t)__executable_start;
    if (offset >= text_bytes || ip == (uintptr_t)step_mark || ip == (uintptr_t)step_mark_after)
        return;
    path->point[path->length++] = (struct step_point){ip, sections && is_in_section(ip), !seen[offset]};
    seen[offset] = 1;
}

/* Waking a thread of another cpu at every step costs most of the time there is. */
static void share_cpu_with_child(bool share)
{
    static cpu_set_t own;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(step_cpu(), &set);
    if (share)
        sched_getaffinity(0, sizeof own, &own);
    sched_setaffinity(0, sizeof set, share ? &set : &own);
}

struct step_path step_through(unsigned scene, bool registered)
{
    static struct step_point *point;
    if (point == NULL)
        point = unit_map(PATH_MAX_POINTS * sizeof *point);
    share_cpu_with_child(true);
    pid_t a = control->a;
    struct step_path path = {0, point};
    snprintf(where, sizeof where, "stepping through '%s'", step_scene[scene].name);
    control->scene = scene;
    control->without_rseq = !registered;
    run_a_to(phase_set);
    for (unsigned steps = 0;; steps++) {
        add_point(&path, ip_of(a), !registered);
        if (steps >= PATH_MAX_POINTS)
            give_up(a, "does not come to an end");
        EXPECT_EQ(ptrace(PTRACE_SINGLESTEP, a, NULL, 0L), 0);
        wait_step(a);
        if (is_at_mark(a) && steps > 0)
            break;
    }
    share_cpu_with_child(false);
    run_a_to(phase_idle);
    verify();
    return path;
}

/* Runs A until it is about to execute the instruction at `address`, which it has not begun; false if it finished. */
static bool run_to(uintptr_t address)
{
    pid_t a = control->a;
    uintptr_t word_address = address & ~(uintptr_t)7;
    unsigned shift = (unsigned)(address - word_address) * 8;
    errno = 0;
    uint64_t word = (uint64_t)ptrace(PTRACE_PEEKTEXT, a, word_address, NULL);
    EXPECT(errno == 0);
    uint64_t trapped = (word & ~(0xffull << shift)) | 0xccull << shift;
    EXPECT_EQ(ptrace(PTRACE_POKETEXT, a, word_address, trapped), 0);
    resume(a, 0);
    wait_stop(a);
    EXPECT_EQ(ptrace(PTRACE_POKETEXT, a, word_address, word), 0);
    if (is_at_mark(a))
        return false;
    if (ip_of(a) != address + 1)
        give_up(a, "a trap that is no breakpoint");
    EXPECT_EQ(ptrace(PTRACE_POKEUSER, a, offsetof(struct user_regs_struct, rip), address), 0);
    return true;
}

/* A first stop from which the next arrival at point k's address is point k itself; k if the first arrival is. */
static unsigned stage_for(const struct step_path *path, unsigned k)
{
    unsigned last = k; /* the latest point before which the address does not come again */
    while (last > 0 && path->point[last - 1].address != path->point[k].address)
        last--;
    if (last == 0)
        return k;
    for (unsigned j = k; j-- > last;)
        if (path->point[j].is_first && !path->point[j].in_section)
            return j;
    return path->length; /* a loop: cannot be told apart by address */
}

static bool bring_a_to(const struct step_path *path, unsigned k)
{
    unsigned stage = stage_for(path, k);
    if (stage == path->length)
        return false;
    if (stage != k && !run_to(path->point[stage].address))
        return false;
    return run_to(path->point[k].address);
}

static void let_b_intrude(void)
{
    pid_t a = control->a, b = control->b;
    control->job = job_intrude;
    resume(b, 0);
    uint64_t begin = os_now_ns();
    for (unsigned asleep = 0; !poll_stop(b);) {
        /* B sleeps: it waits for a lock that A holds. */
        asleep = state_of(b) == 'S' ? asleep + 1 : 0;
        if (asleep == 3) {
            step_waits++;
            resume(a, 0);
            wait_stop(a);
            wait_stop(b);
            return;
        }
        if (os_now_ns() - begin > STUCK_NS)
            give_up(b, "stuck");
        sched_yield();
    }
    resume(a, 0);
    wait_stop(a);
}

bool step_stop_at(unsigned scene, const struct step_path *path, unsigned k, unsigned intruder, enum step_way way)
{
    pid_t a = control->a;
    snprintf(where, sizeof where, "'%s' stopped at point %u of %u (image offset 0x%lx%s), '%s' %s",
             step_scene[scene].name, k, path->length,
             (unsigned long)(path->point[k].address - (uintptr_t)__executable_start),
             path->point[k].in_section ? ", in a section" : "", step_intruder[intruder].name,
             way == step_to_handler ? "in a handler" : "on another thread");
    control->scene = scene;
    control->intruder = intruder;
    control->without_rseq = false;
    run_a_to(phase_set);
    bool there = bring_a_to(path, k);
    if (!there && control->phase == phase_set) {
        run_a_to(phase_performed); /* it did not even start */
    } else if (there && way == step_to_handler) {
        resume(a, SIGUSR1);
        wait_stop(a);
    } else if (there) {
        let_b_intrude();
    }
    if (!is_at_mark(a) || !is_at_mark(control->b) || control->phase != phase_performed)
        give_up(a, "a trap that is no mark, or the wrong one");
    run_a_to(phase_idle);
    verify();
    return there;
}
