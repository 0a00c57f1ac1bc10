/* SPDX-License-Identifier: MIT
 *
 * A control group with a limit of 400 MiB, and a program that fills 120 MiB with blocks of one size after another.  Of
 * each size it keeps one block in 200, so it never has more than 140 MiB; but what it freed lies around those blocks,
 * and no block of another size fits in there.  It fills faster than anybody purges who does not stop it: the library
 * must not be killed for memory where the system's malloc is not.  With a manager, and where there is none.
 */
#include "support/cgroup.h"

#define LIMIT_MIB 400

/* ---- the program ---- */

/* A block larger than the group that is never touched, and freed when some memory was taken meanwhile: nothing came
 * back with it. */
static void take_untouched(void)
{
    enum { count = 40 * 1024 };
    static char *block[count];
    char *untouched = malloc(1000 * MIB);
    CHECK(untouched != NULL);
    for (size_t i = 0; i < count; i++) {
        CHECK((block[i] = malloc(KIB)) != NULL);
        memset(block[i], (int)i, KIB);
    }
    free(untouched);
    for (size_t i = 0; i < count; i++)
        free(block[i]);
}

static int program(size_t mib, size_t turns)
{
    static const size_t sizes[] = {48, 100, 200, 340, 500, 800, 1200, 2000, 3000, 5000, 8000, 12000, 20000, 30000};
    const size_t kept_part = 200, sizes_count = sizeof sizes / sizeof sizes[0];
    take_untouched();
    for (size_t turn = 0; turn < turns; turn++) {
        const size_t size = sizes[turn % sizes_count] + turn / sizes_count * 16, count = mib * MIB / size;
        char **block = malloc(count * sizeof *block);
        CHECK(block != NULL);
        for (size_t i = 0; i < count; i++) {
            CHECK((block[i] = malloc(size)) != NULL);
            memset(block[i], (int)i, size);
        }
        for (size_t i = 0; i < count; i++) {
            CHECK(block[i][0] == (char)i && block[i][size - 1] == (char)i);
            if (i % kept_part != 0)
                free(block[i]);
        }
        free(block);
    }
    return 0;
}

int main(int argc, char **argv)
{
    test_begin(0);
    const size_t mib = test_option(argc, argv, "--mib", 120), turns = test_option(argc, argv, "--turns", 28);
    if (test_option(argc, argv, "--inside", 0) != 0)
        return program(mib, turns);
    test_watchdog((unsigned)test_option(argc, argv, "--seconds", 200));
    const char *library = getenv("TEST_LIBRARY");
    if (library == NULL)
        SKIP("TEST_LIBRARY names no library");
    if (!group_make(test_option(argc, argv, "--limit", LIMIT_MIB) * MIB))
        SKIP("no control group with a memory limit can be made here");
    char mib_text[32], turns_text[32];
    snprintf(mib_text, sizeof mib_text, "%zu", mib);
    snprintf(turns_text, sizeof turns_text, "%zu", turns);
    const char *const inside[] = {argv[0], "--inside", "1", "--mib", mib_text, "--turns", turns_text, NULL};
    const enum fate system = group_run(NULL, inside), own = group_run(library, inside);
    group_remove();
    test_say("the system's malloc %s, the library %s\n", fate_name[system], fate_name[own]);
    if (system != fate_done)
        SKIP("there is not so much memory as the group may have");
    CHECK(own == fate_done);
    return 0;
}
