/* SPDX-License-Identifier: MIT
 *
 * Each program in this folder commits one bug.  It first prints to stdout what the library must say on stderr, as
 * "expect: LINE" (several such lines are alternatives), then makes the call; expect_report.py compares the line letter
 * by letter and asks that the process died by SIGABRT.  With SUTLER_ON_ERROR=report the call returns instead, and
 * bug_survived() shows that the heap is as it was.
 *
 * Every program takes the name of the call that gets the bad pointer: free, realloc or malloc_usable_size.
 */
#ifndef TESTS_ERRORS_BUG_H
#define TESTS_ERRORS_BUG_H

#include "support/family.h"
#include "support/pattern.h"
#include "support/shadow.h"

#define FOREIGN  "not from this allocator"
#define INTERIOR "not the start of a block"

static inline const char *bug_call(int argc, char **argv)
{
    CHECK_MSG(argc >= 2, "usage: %s free|realloc|malloc_usable_size [SIZE]", argv[0]);
    return argv[1];
}

static inline size_t bug_size(int argc, char **argv, size_t otherwise)
{
    return argc >= 3 ? (size_t)strtoull(argv[2], NULL, 0) : otherwise;
}

static inline void bug_expect(const char *call, const char *what, const void *pointer, const char *reason)
{
    test_say("expect: sutler: %s(): %s 0x%llx (%s)\n", call, what, (unsigned long long)(uintptr_t)pointer, reason);
}

static inline void bug_pass(const char *call, void *pointer)
{
    pointer = opaque(pointer);
    if (strcmp(call, "free") == 0)
        free(pointer);
    else if (strcmp(call, "realloc") == 0)
        CHECK_MSG(realloc(pointer, 64) == NULL, "realloc of a bad pointer gave a block");
    else if (strcmp(call, "malloc_usable_size") == 0)
        CHECK_MSG(malloc_usable_size(pointer) == 0, "malloc_usable_size of a bad pointer is not 0");
    else
        FAIL("no call named %s", call);
}

/* After a report the heap is untouched: it still hands out distinct, aligned, writable memory. */
static inline void bug_survived(void)
{
    enum { COUNT = 4000 };
    static unsigned char *blocks[COUNT];
    shadow_create();
    for (size_t i = 0; i < COUNT; i++) {
        size_t size = i % 10 == 0 ? i * 20 : i % 300;
        CHECK((blocks[i] = malloc(size)) != NULL);
        shadow_claim(blocks[i], malloc_usable_size(blocks[i]));
        pattern_fill(blocks[i], size, i);
    }
    for (size_t i = 0; i < COUNT; i++) {
        pattern_verify(blocks[i], i % 10 == 0 ? i * 20 : i % 300, i);
        free(blocks[i]);
    }
    test_say("survived\n");
}

static inline int bug_commit(const char *call, void *pointer, const char *reason)
{
    bug_expect(call, "invalid pointer", pointer, reason);
    bug_pass(call, pointer);
    bug_survived();
    return 0;
}

#endif
