/* SPDX-License-Identifier: MIT
 *
 * Huge pages are broken for what is purged only where that is most of them, as long as the program works; once
 * it does not, and where they are broken already, everything goes, and khugepaged is not asked to bring it back.
 */
#include "heap/huge.h"

#include "heap/purge.h"
#include "heap/span.h"
#include "unit.h"

#define BYTES  1024u
#define BLOCKS ((96u << 20) / BYTES)
#define FIRST  ((32u << 20) / BYTES) /* from here on they lie where huge pages are asked for */
#define ALL    ((size_t)(BLOCKS - FIRST) * BYTES)

static char *block[BLOCKS];
static unsigned splits;

void __real_os_split_huge(void *page);
void __wrap_os_split_huge(void *page);
void __wrap_os_split_huge(void *page)
{
    splits += region_contains(page);
    __real_os_split_huge(page);
}

/* What the process holds is as much as the test says. */
static size_t resident = 0;

size_t __wrap_os_resident_peak_bytes(void);
size_t __wrap_os_resident_peak_bytes(void)
{
    return resident;
}

/* Huge pages are not asked for by what was opened alone. */
static void a_small_process_gets_none(void)
{
    static void *large[16];
    while (region_opened_bytes() < 24ul << 20)
        for (unsigned i = 0; i < ARRAY_LEN(large); i++)
            EXPECT((large[i] = malloc(8192)) != NULL);
    EXPECT_EQ(region_huge_from(), SLICE_END);
    resident = 8ul << 20;
}

static void fill_from(unsigned first)
{
    for (unsigned i = first; i < BLOCKS; i++) {
        EXPECT((block[i] = malloc(BYTES)) != NULL);
        memset(block[i], (char)i, BYTES);
        *(unsigned *)block[i] = i;
    }
}

/* Frees of every 64 blocks in a row, of which some lie on one page, the first `count`. */
static void free_of_64(unsigned from, unsigned count)
{
    for (unsigned i = FIRST; i < BLOCKS; i++)
        if (i % 64 >= from && i % 64 < from + count) {
            free(block[i]);
            block[i] = NULL;
        }
}

/* Passes until nothing is expected of another. */
static size_t purge(enum purge_what what)
{
    size_t bytes = 0, passes = 0, now;
    bool changed;
    do {
        EXPECT(passes++ < 20);
        bytes += now = heap_purge(what, &changed);
    } while (now > 0 || changed);
    return bytes;
}

static void expect_content(void)
{
    for (unsigned i = FIRST; i < BLOCKS; i++)
        EXPECT(block[i] == NULL || (*(unsigned *)block[i] == i && block[i][BYTES - 1] == (char)i));
}

/* Huge pages of [start, end) of which a part is there. */
static unsigned broken_in(uintptr_t start, uintptr_t end)
{
    unsigned broken = 0;
    for (uintptr_t at = align_up(start, HUGE_PAGE_BYTES); at + HUGE_PAGE_BYTES <= end; at += HUGE_PAGE_BYTES) {
        const size_t there = huge_count_there((void *)at, HUGE_PAGE_BYTES);
        broken += there != 0 && there != HUGE_PAGE_BYTES / os_page_bytes;
    }
    return broken;
}

/* Of the region, those of all that are broken for which the system is asked for huge ones; *all are broken. */
static unsigned broken_and_asked_for(unsigned *all)
{
    char line[512];
    uintptr_t start, end;
    unsigned broken = 0, asked = 0;
    FILE *file = fopen("/proc/self/smaps", "r");
    EXPECT(file != NULL);
    *all = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
            broken = region_contains((void *)start) ? broken_in(start, end) : 0;
            *all += broken;
        } else if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " hg") != NULL) {
            asked += broken;
        }
    }
    fclose(file);
    return asked;
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(120);
    if (!region_fits_huge_pages())
        SKIP("huge pages of %zu bytes are not asked for", os_huge_page_bytes());
    a_small_process_gets_none();
    fill_from(0);
    EXPECT(region_huge_from() < SLICE_END);
    purge(purge_idle);
    splits = 0;

    free_of_64(0, 24); /* six pages of sixteen */
    size_t given = purge(purge_decay);
    EXPECT_MSG(given <= ALL / 32, "%zu", given); /* a page at a border may be worth it */
    unsigned few = splits;
    given = purge(purge_idle);
    EXPECT_MSG(given >= ALL / 4, "%zu", given);
    EXPECT_MSG(splits > 10 * few, "%u, %u", few, splits);
    unsigned broken, asked = broken_and_asked_for(&broken);
    EXPECT_MSG(broken > 10 && asked == 0, "%u, %u", broken, asked);

    free_of_64(24, 16); /* they are broken by now */
    given = purge(purge_decay);
    EXPECT_MSG(given >= ALL / 5, "%zu", given);
    expect_content();

    for (unsigned i = FIRST; i < BLOCKS; i++)
        free(block[i]);
    purge(purge_force); /* whole again */
    fill_from(FIRST);
    free_of_64(0, 24);
    given = purge(purge_decay);
    EXPECT_MSG(given <= ALL / 32, "%zu", given); /* the few that did not go whole */
    free_of_64(24, 36);                          /* nearly everything goes: at once */
    given = purge(purge_decay);
    EXPECT_MSG(given >= ALL * 3 / 4, "%zu", given);
    expect_content();
    return 0;
}
