/* SPDX-License-Identifier: MIT
 *
 * What depends on the size of a page, whatever it is: valloc and pvalloc, and what is said of the size of mappings.
 */
#include <malloc.h>

#include "support/check.h"
#include "support/family.h"

static size_t page;

/* The block stays: a freed mapping may serve a smaller request as it is. */
static void mappings_are_whole_pages(size_t size)
{
    size_t good = FAMILY_HAS(malloc_good_size) ? malloc_good_size(size) : 0;
    char *block = opaque(malloc(size));
    CHECK(block != NULL);
    size_t usable = malloc_usable_size(block);
    CHECK(usable >= size);
    /* Of ours it holds until the manager finds that memory is ample, or not any more (heap/ample.h). */
    const char *manager = getenv("SUTLER_MANAGER");
    const bool holds = !test_is_sutler() || (manager != NULL && strcmp(manager, "off") == 0);
    if (FAMILY_HAS(malloc_good_size) && holds)
        CHECK_MSG(good == usable, "malloc_good_size(%zu) = %zu, malloc gives %zu", size, good, usable);
    if (FAMILY_HAS(nallocx) && holds)
        CHECK_MSG(nallocx(size, 0) == usable, "nallocx(%zu, 0) = %zu, malloc gives %zu", size, nallocx(size, 0),
                  usable);
    if (test_is_sutler())
        CHECK_MSG(usable % page == 0, "%zu bytes are no whole pages", usable);
    block[0] = block[usable - 1] = 7;
    block = realloc(block, size + 3 * page);
    CHECK(block != NULL && block[0] == 7 && block[usable - 1] == 7);
    block[malloc_usable_size(block) - 1] = 1;
}

static void aligned_to_pages(void)
{
    for (size_t size = 0; size <= 4 * page; size += page / 2 + 1) {
        char *block = valloc(size);
        CHECK(block != NULL && (uintptr_t)block % page == 0);
        char *whole = pvalloc(size);
        CHECK(whole != NULL && (uintptr_t)whole % page == 0 &&
              malloc_usable_size(whole) >= (size + page - 1) / page * page);
        memset(block, 1, size);
        memset(whole, 2, malloc_usable_size(whole));
        for (size_t i = 0; i < size; i++)
            CHECK(block[i] == 1);
        free(block);
        free(whole);
    }
}

int main(void)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
    test_begin(60);
    mappings_are_whole_pages(20 * MIB + 1); /* perhaps the first call of all */
    mappings_are_whole_pages(20 * MIB + 5000);
    mappings_are_whole_pages(33 * MIB + 20000);
    aligned_to_pages();
    return 0;
}
