/* SPDX-License-Identifier: MIT
 *
 * Under a seccomp filter there is no fence, so what the heaps of other cids have stays theirs.  A program that never had
 * but one thread needs none: wherever that thread was moved, malloc_trim takes what it left free in any heap.  Once
 * there has been another thread it does not any more, and nothing breaks.
 */
#include "scale/heaps.h"
#include "support/allow_all.h"
#include <malloc.h>
#include <pthread.h>

enum { COUNT = 40000, SIZE = 500, KEPT_EACH = 512, TAKEN = 1000 };
static char *(*block)[COUNT];

/* Leaves in each heap COUNT blocks, of which all but a few are free. */
static void leave_free(unsigned heaps)
{
    for (unsigned i = 0; i < heaps; i++) {
        sutler_test_bind_cid(i);
        for (unsigned n = 0; n < COUNT; n++) {
            CHECK((block[i][n] = malloc(SIZE)) != NULL);
            memset(block[i][n], (int)(i + n), SIZE);
        }
    }
    for (unsigned i = 0; i < heaps; i++) {
        sutler_test_bind_cid(i);
        for (unsigned n = 0; n < COUNT; n++)
            if (n % KEPT_EACH != 0)
                free(block[i][n]);
    }
}

static void check_kept(unsigned heaps)
{
    for (unsigned i = 0; i < heaps; i++)
        for (unsigned n = 0; n < COUNT; n += KEPT_EACH) {
            CHECK(block[i][n][0] == (char)(i + n) && block[i][n][SIZE - 1] == (char)(i + n));
            free(block[i][n]);
        }
}

/* Another thread takes in its own heap what it can get, while the first trims. */
static void *take_and_give(void *heap)
{
    sutler_test_bind_cid(*(unsigned *)heap);
    for (int round = 0; round < 200; round++) {
        static char *p[TAKEN];
        for (size_t i = 0; i < TAKEN; i++) {
            CHECK((p[i] = malloc(SIZE)) != NULL);
            memset(p[i], (int)i, SIZE);
        }
        for (size_t i = 0; i < TAKEN; i++) {
            CHECK(p[i][0] == (char)i && p[i][SIZE - 1] == (char)i);
            free(p[i]);
        }
    }
    return NULL;
}

static void with_another_thread(unsigned heaps)
{
    pthread_t thread;
    leave_free(heaps);
    sutler_test_bind_cid(0);
    unsigned other = heaps - 1;
    CHECK(pthread_create(&thread, NULL, take_and_give, &other) == 0);
    for (int round = 0; round < 50; round++)
        malloc_trim(0);
    CHECK(pthread_join(thread, NULL) == 0);
    check_kept(heaps);
}

int main(int argc, char **argv)
{
    const unsigned heaps = (unsigned)test_option(argc, argv, "--heaps", 4);
    scale_begin(120);
    block = books(heaps * sizeof *block);
    if (!install_allow_all_filter())
        SKIP("no filters here");
    size_t before = proc_resident_bytes();
    leave_free(heaps);
    size_t full = proc_resident_bytes() - before;
    sutler_test_bind_cid(0);
    CHECK(malloc_trim(0) == 1);
    size_t rest = proc_resident_bytes() - before;
    /* What is kept keeps a page each. */
    const size_t most = full / 8 + heaps * sizeof *block;
    CHECK_MSG(rest <= most, "%zu KiB of %zu stay resident, not %zu at most", rest >> 10, full >> 10, most >> 10);
    check_kept(heaps);
    with_another_thread(heaps);
    return 0;
}
