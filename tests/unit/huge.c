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

/* The system makes huge pages where nobody asked for them. */
static bool makes_all_huge = false;

bool __wrap_os_makes_all_pages_huge(void);
bool __wrap_os_makes_all_pages_huge(void)
{
    return makes_all_huge;
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

/* Huge pages of [start, end), and of the region, of which a part is there. */
static unsigned broken_in(uintptr_t start, uintptr_t end)
{
    unsigned broken = 0;
    for (uintptr_t at = align_up(start, HUGE_PAGE_BYTES); at + HUGE_PAGE_BYTES <= end; at += HUGE_PAGE_BYTES) {
        const size_t there = region_contains((void *)at) ? huge_count_there((void *)at, HUGE_PAGE_BYTES) : 0;
        broken += there != 0 && there != HUGE_PAGE_BYTES / os_page_bytes;
    }
    return broken;
}

struct broken {
    unsigned all, asked_for, told_small; /* the system is asked for huge ones there, or told not to make any */
};

/* What of the region is broken. */
static struct broken count_broken(void)
{
    char line[512];
    uintptr_t start, end;
    unsigned here = 0;
    struct broken broken = {0};
    FILE *file = fopen("/proc/self/smaps", "r");
    EXPECT(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
            here = broken_in(start, end);
            broken.all += here;
        } else if (strncmp(line, "VmFlags:", 8) == 0) {
            broken.asked_for += strstr(line, " hg") != NULL ? here : 0;
            broken.told_small += strstr(line, " nh") != NULL ? here : 0;
        }
    }
    fclose(file);
    return broken;
}

/* Of many large blocks every fourth is left. */
static struct broken break_large_blocks(size_t bytes, unsigned blocks)
{
    char *large[256];
    EXPECT(blocks <= ARRAY_LEN(large));
    for (unsigned i = 0; i < blocks; i++) {
        EXPECT((large[i] = malloc(bytes)) != NULL);
        memset(large[i], 1, bytes);
    }
    for (unsigned i = 0; i < blocks; i++)
        if (i % 4 != 0)
            free(large[i]);
    purge(purge_force);
    struct broken broken = count_broken();
    for (unsigned i = 0; i < blocks; i += 4)
        free(large[i]);
    return broken;
}

static void large_blocks_are_not_brought_back(void)
{
    struct broken before = count_broken(), broken = break_large_blocks(3100u << 10, 40);
    EXPECT_MSG(broken.all > before.all + 10 && broken.asked_for == 0, "%u, %u, %u", before.all, broken.all,
               broken.asked_for);

    before = count_broken();
    if (before.told_small == 0) /* those of small blocks are: this is an emulator that knows no advice */
        return;
    makes_all_huge = true;
    broken = break_large_blocks(700u << 10, 256); /* for which none are asked */
    EXPECT_MSG(broken.told_small > before.told_small + 10 &&
                   broken.all - broken.told_small <= before.all - before.told_small,
               "%u of %u, %u of %u", before.told_small, before.all, broken.told_small, broken.all);
    makes_all_huge = false;
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
    struct broken broken = count_broken();
    EXPECT_MSG(broken.all > 10 && broken.asked_for == 0, "%u, %u", broken.all, broken.asked_for);
    large_blocks_are_not_brought_back();

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
