/* SPDX-License-Identifier: MIT
 *
 * A superblock that was found damaged, with SUTLER_ON_ERROR=report: its live blocks stay live, and frees to them are
 * ignored.  Run with SUTLER_HARDEN=-quarantine,-check, so that a link can be overwritten where malloc finds it.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE 100u

static unsigned reports;
static bool is_damage;

static void hear(const char *text, size_t length)
{
    reports++;
    is_damage |= memmem(text, length, "corrupted free list", 19) != NULL;
}

static void expect(bool seen, const char *what)
{
    if (!seen) {
        fprintf(stderr, "FAILED: %s\n", what);
        _exit(1);
    }
}

static bool is_filled(const char *p, size_t size, char c)
{
    for (size_t i = 0; i < size; i++)
        if (p[i] != c)
            return false;
    return true;
}

enum { COUNT = 200 };
static char *block[COUNT];

/* Blocks of one superblock, and one of them freed and written to: malloc comes upon it. */
static void damage(void)
{
    for (int i = 0; i < COUNT; i++)
        memset(block[i] = malloc(SIZE), 'a', SIZE);
    char *volatile freed = block[COUNT - 1];
    free(freed);
    memset(freed, 0x41, 8);
    for (int i = 0; i < 5000 && !is_damage; i++)
        expect(malloc(SIZE) != NULL, "there is memory elsewhere");
    expect(is_damage, "the superblock was found damaged");
}

static void use(char *p)
{
    reports = 0;
    expect(malloc_usable_size(p) == SIZE, "a live block has its size");
    expect(realloc(p, SIZE - 4) == p && is_filled(p, SIZE - 4, 'a'), "it can be resized in place");
    char *q = realloc(p, 1000);
    expect(q != NULL && q != p && is_filled(q, SIZE - 4, 'a'), "and be moved");
    free(q);
    expect(reports == 0, "without a word");
}

int main(void)
{
    void (*report_to)(void (*)(const char *, size_t)) =
        (void (*)(void (*)(const char *, size_t)))dlsym(RTLD_DEFAULT, "sutler_report_to");
    expect(report_to != NULL, "there is no sutler_report_to");
    report_to(hear);
    damage();
    for (int i = 0; i < COUNT - 1; i++)
        if (i % 2 == 0)
            use(block[i]);
    reports = 0;
    for (int i = 0; i < COUNT - 1; i++)
        if (i % 2 == 1)
            free(block[i]);
    expect(reports == 0, "frees of its live blocks are ignored");
    free(block[1]);
    expect(reports == 1, "but not when they are freed already");
    for (int i = 0; i < 5000; i++) {
        char *p = malloc(SIZE);
        for (int k = 0; k < COUNT; k++)
            expect(p != block[k], "its memory is not used again");
    }
    return 0;
}
