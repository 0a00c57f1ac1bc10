/* SPDX-License-Identifier: MIT
 *
 * A large block that grows in steps of a page is not copied at each: the page faults of all of it are a few times its
 * pages, not a hundred times.  Its bytes come along, what is added reads as zeros, and what lies behind its end cannot
 * be written to: neither then, nor when it is a little shorter, nor when it has grown back.  A signal handler asks for
 * the size of another one meanwhile, and must not wait for a lock that its thread holds.
 */
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#define PAGE  4096ul
#define FIRST (200ul << 10)
#define LAST  (40ul << 20)

#define OTHER (80ul << 20)

static sigjmp_buf out;
static char *other;
static volatile size_t size_seen;

static void ask(int unused)
{
    (void)unused;
    size_seen = malloc_usable_size(other);
}

static void fail(const char *what)
{
    fprintf(stderr, "FAILED: %s\n", what);
    _exit(1);
}

static void come_out(int number)
{
    siglongjmp(out, number);
}

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static char *grow(void)
{
    char *p = malloc(FIRST);
    const long before = faults();
    memset(p, 7, FIRST);
    for (size_t size = FIRST; size < LAST; size += PAGE) {
        p = realloc(p, size + PAGE);
        if (p == NULL)
            fail("no memory");
        for (size_t i = size; i < size + PAGE; i += 512)
            if (p[i] != 0)
                fail("what is added holds something");
        memset(p + size, 7, PAGE);
    }
    if (faults() - before > 6 * (long)(LAST / PAGE))
        fail("it was copied again and again");
    for (size_t i = 0; i < LAST; i++)
        if (p[i] != 7)
            fail("a byte has changed");
    return p;
}

static void expect_guarded(const char *p, size_t size)
{
    if (sigsetjmp(out, 1) == 0) {
        ((volatile char *)p)[size + 2 * PAGE] = 1;
        fail("what lies behind it can be written to");
    }
}

int main(void)
{
    const size_t little = LAST - 100 * PAGE;
    const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    other = malloc(OTHER);
    signal(SIGALRM, ask);
    setitimer(ITIMER_REAL, &often, NULL);
    char *const p = grow();
    setitimer(ITIMER_REAL, &never, NULL);
    if (size_seen != 0 && size_seen != OTHER)
        fail("the other one has another size");
    signal(SIGSEGV, come_out);
    expect_guarded(p, LAST);
    char *const shorter = realloc(p, little);
    expect_guarded(shorter, little);
    char *const again = realloc(shorter, LAST);
    expect_guarded(again, LAST);
    for (size_t i = little; i < LAST; i++)
        if (again[i] != 0)
            fail("what was cut off is there again");
    memset(again, 7, LAST);
    free(again);
    return 0;
}
