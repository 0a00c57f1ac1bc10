/* SPDX-License-Identifier: MIT
 *
 * What was filled in small pages becomes huge pages: where it has been full for some rounds, most of it is in use,
 * and the system gives huge pages; one page at a time, and never one again that the system refused.
 */
#include "heap/collapse.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap/huge.h"
#include "heap/huge_price.h"
#include "heap/purge.h"
#include "heap/superblock.h"
#include "os/os.h"
#include "price.h"
#include "unit.h"

#define BYTES  1024u
#define BLOCKS ((48u << 20) / BYTES)
#define SECOND 1000000000ull

static unsigned char *block[BLOCKS];
static uint64_t now_ns;

/* ---- the system ---- */

static unsigned calls;
static int error; /* what it says instead of doing it */

int __real_os_collapse(void *address, size_t size);
int __wrap_os_collapse(void *address, size_t size);
int __wrap_os_collapse(void *address, size_t size)
{
    calls++;
    EXPECT((uintptr_t)address % HUGE_PAGE_BYTES == 0 && size == HUGE_PAGE_BYTES);
    unsigned char there[HUGE_PAGE_BYTES / OS_PAGE_BYTES_MIN];
    EXPECT(os_find_resident(address, size, there));
    for (size_t i = 0; i < HUGE_PAGE_BYTES / os_page_bytes; i++)
        EXPECT(there[i] != 0);
    if (error == 0)
        __real_os_collapse(address, size); /* it may have none to give */
    return error;
}

/* ---- the program ---- */

/* In small pages: whoever takes memory finds huge ones dear. */
static void fill(void)
{
    price_is_fair = false;
    for (unsigned i = 0; i < BLOCKS; i++)
        if (block[i] == NULL) {
            EXPECT((block[i] = malloc(BYTES)) != NULL);
            memset(block[i], (int)(i % 251), BYTES);
        }
    price_is_fair = true;
}

static void expect_content(void)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        for (unsigned at = 0; block[i] != NULL && at < BYTES; at++)
            EXPECT(block[i][at] == i % 251);
}

/* Of every `of` the first `count`. */
static void free_some(unsigned count, unsigned of)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        if (i % of < count) {
            free(block[i]);
            block[i] = NULL;
        }
}

static void free_all(void)
{
    bool changed;
    free_some(1, 1);
    while (heap_purge(purge_force, &changed) > 0 || changed) {
    }
}

/* ---- the manager ---- */

/* So many calls, a second between them; returns how many pages were made huge. */
static unsigned rounds(unsigned count)
{
    unsigned had = calls;
    for (unsigned i = 0; i < count; i++) {
        unsigned before = calls;
        pass_begin();
        collapse_next(now_ns += 2 * SECOND);
        pass_end();
        EXPECT(calls - before <= 1);
    }
    return calls - had;
}

/* Until nothing is expected of another call. */
static unsigned settle(void)
{
    unsigned had = calls, count = 0;
    uint64_t wait_ns;
    do {
        EXPECT(count++ < 2000);
        pass_begin();
        wait_ns = collapse_next(now_ns += 2 * SECOND);
        pass_end();
    } while (wait_ns != 0);
    return calls - had;
}

static void full_pages_become_huge(void)
{
    const unsigned most = BLOCKS * BYTES / HUGE_PAGE_BYTES;
    fill();
    EXPECT_EQ(rounds(1), 0); /* seen full for the first time */
    size_t before = collapse_bytes();
    unsigned made = settle();
    EXPECT_MSG(made >= most - 4 && made <= most, "%u", made); /* the first superblocks are short */
    EXPECT_EQ(collapse_bytes() - before, made * HUGE_PAGE_BYTES);
    expect_content();
    EXPECT_EQ(settle(), 0); /* they are now */
}

static void a_page_rests_after_another(void)
{
    free_all();
    fill();
    rounds(2);
    while (rounds(1) == 0) {
    }
    unsigned had = calls;
    pass_begin();
    uint64_t wait_ns = collapse_next(os_now_ns()); /* the clock's time: it says how long the page took */
    pass_end();
    EXPECT(wait_ns != 0 && calls == had);
    EXPECT(settle() > 0);
}

static void what_was_purged_may_again(void)
{
    free_all();
    EXPECT_EQ(settle(), 0);
    fill();
    EXPECT(settle() > 0);
    expect_content();
}

/* Half of each page is free, though all of it is there. */
static void what_will_be_purged_is_not(void)
{
    free_all();
    fill();
    free_some(32, 64);
    EXPECT_EQ(settle(), 0);
}

/* A quarter of each page was purged: then it is not all there. */
static void what_is_not_there_is_not(void)
{
    bool changed;
    free_all();
    fill();
    free_some(32, 128);
    heap_purge(purge_force, &changed);
    EXPECT_EQ(settle(), 0);
    fill();
    EXPECT_EQ(rounds(4), 0); /* split once: more looks */
    EXPECT(settle() > 0);
    expect_content();
}

static void what_cannot_be_is_asked_for_once(void)
{
    free_all();
    fill();
    error = EINVAL;
    size_t before = collapse_bytes();
    EXPECT(settle() > 0);
    EXPECT_EQ(settle(), 0);
    error = 0;
    EXPECT_EQ(settle(), 0);
    EXPECT_EQ(collapse_bytes(), before);
    expect_content();
    what_was_purged_may_again();
}

static void what_cannot_be_now_is_asked_for_twice(void)
{
    free_all();
    fill();
    error = EAGAIN;
    unsigned first = rounds(6);
    EXPECT_MSG(first > 0 && first < 6, "%u", first);
    unsigned all = first + settle();
    EXPECT_MSG(all >= 30 && all <= 48, "%u", all); /* of 24 pages; the first ones of a class are short */
    EXPECT_EQ(settle(), 0);
    error = 0;
}

/* After one refusal there are none for all, until one was seen again. */
static void where_there_are_none_nothing_is_tried(void)
{
    free_all();
    fill();
    error = ENOMEM;
    EXPECT_EQ(settle(), 1);
    error = 0;
    EXPECT_EQ(rounds(20), 0);
    huge_price_note_huge(100, now_ns);
    EXPECT(settle() > 20);
}

/* A child of a fork has all of it, too: to make a huge page would copy it. */
static void what_is_shared_is_not(void)
{
    int pipes[2];
    free_all();
    fill();
    EXPECT_EQ(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        char end;
        close(pipes[1]);
        _exit(read(pipes[0], &end, 1) != 0);
    }
    close(pipes[0]);
    EXPECT_EQ(rounds(6), 0);
    close(pipes[1]);
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    EXPECT(settle() > 0); /* now it is its own */
    expect_content();
}

/* Blocks that were cleared by the system, and only read: the page of zeros is there, but takes no memory. */
static void what_was_only_read_is_not(void)
{
    enum { BIG = 64 << 10, COUNT = (32 << 20) / BIG };
    static volatile unsigned char *read_only[COUNT];
    free_all();
    settle();
    price_is_fair = false;
    for (unsigned i = 0; i < COUNT; i++) {
        EXPECT((read_only[i] = calloc(1, BIG)) != NULL);
        for (unsigned at = 0; at < BIG; at += OS_PAGE_BYTES_MIN)
            EXPECT_EQ(read_only[i][at], 0);
    }
    price_is_fair = true;
    EXPECT_EQ(settle(), 0);
    for (unsigned i = 0; i < COUNT; i++)
        free((void *)read_only[i]);
}

static void not_while_they_are_dear(void)
{
    free_all();
    fill();
    price_is_fair = false;
    EXPECT_EQ(rounds(20), 0);
    price_is_fair = true;
    huge_price_note_refused(now_ns);
    EXPECT_EQ(rounds(20), 0); /* there are none */
    huge_price_note_huge(100, now_ns);
    EXPECT(settle() > 0);
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(120);
    if (!region_fits_huge_pages())
        SKIP("huge pages of %zu bytes are not asked for", os_huge_page_bytes());
    if (!os_may_collapse())
        SKIP("the system does not make huge pages of small ones, or all pages or none are huge");
    now_ns = os_now_ns();
    huge_price_note_huge(100, now_ns);
    full_pages_become_huge();
    a_page_rests_after_another();
    what_was_purged_may_again();
    what_will_be_purged_is_not();
    what_is_not_there_is_not();
    what_cannot_be_is_asked_for_once();
    what_cannot_be_now_is_asked_for_twice();
    where_there_are_none_nothing_is_tried();
    what_is_shared_is_not();
    what_was_only_read_is_not();
    not_while_they_are_dear();
    return 0;
}
