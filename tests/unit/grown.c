/* SPDX-License-Identifier: MIT
 *
 * A span that grows among others becomes a mapping, and its pages move along: what was not touched does not come into
 * being, nothing is left behind, and where it cannot be done the block is as it was.
 */
#include "heap/grown.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include "heap/large.h"
#include "heap/region.h"
#include "heap/span.h"
#include "os/os.h"
#include "unit.h"

#define BLOCK_BYTES (4 * GROWN_BYTES_MIN)
#define EVERY (BLOCK_BYTES / 8) /* one page of so many bytes is touched */
#define COUNT 8

static bool refuse_remaps;
static unsigned remaps;

/* The linker wraps it. */
void *__real_os_remap(void *address, size_t old_size, size_t new_size, bool may_move);
void *__wrap_os_remap(void *address, size_t old_size, size_t new_size, bool may_move);
void *__wrap_os_remap(void *address, size_t old_size, size_t new_size, bool may_move)
{
    remaps++;
    return refuse_remaps ? NULL : __real_os_remap(address, old_size, new_size, may_move);
}

/* A block with another right behind it, which is sparsely filled; the rest stays. */
static char *sparse_among_others(void)
{
    char *block[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        EXPECT((block[i] = malloc(BLOCK_BYTES)) != NULL && region_contains(block[i]));
    for (size_t i = 0; i < COUNT * COUNT; i++)
        if (block[i / COUNT] + BLOCK_BYTES == block[i % COUNT]) {
            for (size_t at = 0; at < BLOCK_BYTES; at += EVERY)
                block[i / COUNT][at] = (char)(1 + at / EVERY);
            return block[i / COUNT];
        }
    FAIL("no two blocks side by side");
}

static void expect_filled(const char *block)
{
    for (size_t at = 0; at < BLOCK_BYTES; at++)
        EXPECT_EQ(block[at], at % EVERY == 0 ? (char)(1 + at / EVERY) : 0);
}

static size_t pages_there(const char *block)
{
    static unsigned char there[BLOCK_BYTES >> 12];
    size_t count = 0;
    EXPECT(os_find_resident((char *)block, BLOCK_BYTES, there));
    for (size_t i = 0; i < BLOCK_BYTES / os_page_bytes; i++)
        count += there[i];
    return count;
}

static bool can_move(void)
{
    char *old = os_map(os_page_bytes);
    EXPECT(old != NULL);
    char *new = os_move_pages(old, os_page_bytes);
    os_unmap(old, os_page_bytes);
    if (new != NULL)
        os_unmap(new, os_page_bytes);
    return new != NULL;
}

static void pages_move_by(size_t more)
{
    char *span = sparse_among_others();
    const size_t before = pages_there(span), dirty = span_dirty_bytes();
    EXPECT(grown_suits_mapping(BLOCK_BYTES + more));
    char *mapping = realloc(span, BLOCK_BYTES + more);
    EXPECT(mapping != NULL && !region_contains(mapping) && mapping_bytes(mapping, true) >= BLOCK_BYTES + more);
    unit_say("%zu pages there before, %zu after\n", before, pages_there(mapping));
    EXPECT_EQ(pages_there(mapping), before);
    EXPECT_EQ(pages_there(span), 0);
    EXPECT_EQ(span_dirty_bytes(), dirty); /* what it had is not counted as free memory with pages */
    EXPECT(slice_at(slice_of(span))->kind != slice_large);
    expect_filled(mapping);
    memset(mapping, 7, BLOCK_BYTES + more);
    char *again = calloc(1, BLOCK_BYTES);
    EXPECT(again != NULL);
    for (size_t at = 0; at < BLOCK_BYTES; at++)
        EXPECT_EQ(again[at], 0);
    free(again);
}

static void pages_move_at_a_step(void)
{
    pages_move_by(BLOCK_BYTES / 8);
}

static void pages_move_at_a_doubling(void)
{
    pages_move_by(BLOCK_BYTES);
}

/* What is cut off goes back, though it lies in the room that growing in steps brings; and that is not cut off. */
static void what_shrinks_is_cut(void)
{
    const size_t most = BLOCK_BYTES + BLOCK_BYTES / 8, less = most - most / 4, step = os_page_bytes;
    char *p = realloc(sparse_among_others(), most);
    EXPECT(p != NULL && mapping_bytes(p, true) == align_up(most, HUGE_PAGE_BYTES));
    EXPECT((p = realloc(p, most + step)) != NULL && mapping_bytes(p, true) == align_up(most, HUGE_PAGE_BYTES));
    EXPECT((p = realloc(p, less)) != NULL && mapping_bytes(p, true) == align_up(less, os_page_bytes));
    EXPECT((p = realloc(p, less + step)) != NULL && mapping_bytes(p, true) == align_up(less + step, HUGE_PAGE_BYTES));
    EXPECT((p = realloc(p, less + 2 * step)) != NULL);
    EXPECT_EQ(mapping_bytes(p, true), align_up(less + step, HUGE_PAGE_BYTES));
    free(p);
}

/* One that is made a little longer and shorter again where a huge page ends, and so gets room for another one. */
static void what_swings_stays(void)
{
    const size_t end = align_up(2 * BLOCK_BYTES, HUGE_PAGE_BYTES), turns = 100;
    char *p = sparse_among_others();
    for (size_t i = 0; i < turns; i++) {
        EXPECT((p = realloc(p, end + os_page_bytes)) != NULL && mapping_bytes(p, true) > end);
        EXPECT((p = realloc(p, end / 2 + os_page_bytes)) != NULL && mapping_bytes(p, true) > end / 2);
    }
    unit_say("%u remaps in %zu turns\n", remaps, turns);
    EXPECT(remaps < turns / 2);
    free(p);
}

/* Where address space is limited, room is not to use it up. */
static void room_is_short_under_a_limit(void)
{
    const size_t most = BLOCK_BYTES + os_page_bytes;
    char *span = sparse_among_others();
    EXPECT(setrlimit(RLIMIT_AS, &(struct rlimit){(rlim_t)64 << 30, (rlim_t)64 << 30}) == 0);
    char *p = realloc(span, most);
    EXPECT(p != NULL && mapping_bytes(p, true) >= most && mapping_bytes(p, true) <= most + most / 8);
    free(p);
}

/* It goes to a new place, and back. */
static void what_cannot_be_lengthened_goes_back(void)
{
    char *span = sparse_among_others();
    const size_t blocks = large_counts().mapping_blocks;
    refuse_remaps = true;
    EXPECT(large_move_out(span, 2 * BLOCK_BYTES) == NULL);
    refuse_remaps = false;
    EXPECT_EQ(large_counts().mapping_blocks, blocks);
    EXPECT(large_span_bytes(span) == BLOCK_BYTES && slice_at(slice_of(span))->kind == slice_large);
    expect_filled(span);
    free(span);
}

/* Each in a child: for what it does to itself, and where nothing was learned yet of how large blocks are filled. */
static void in_a_child(void (*run)(void))
{
    int status;
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        run();
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Room for the move, but not for what is to be added. */
static void without_memory_it_stays(void)
{
    char *span = sparse_among_others();
    const size_t more = 64 * BLOCK_BYTES, before = pages_there(span);
    const rlim_t most = unit_status_bytes("VmSize") + BLOCK_BYTES + BLOCK_BYTES / 2;
    EXPECT(setrlimit(RLIMIT_AS, &(struct rlimit){most, most}) == 0);
    errno = 0;
    EXPECT(large_move_out(span, BLOCK_BYTES + more) == NULL && large_take_mapping(BLOCK_BYTES + more) == NULL);
    EXPECT(large_span_bytes(span) == BLOCK_BYTES && slice_at(slice_of(span))->kind == slice_large);
    EXPECT(realloc(span, BLOCK_BYTES + more) == NULL && errno == ENOMEM);
    EXPECT(realloc(span, (size_t)1 << 60) == NULL && errno == ENOMEM);
    EXPECT_EQ(pages_there(span), before);
    expect_filled(span);
    free(span);
}

/* A program that locked its memory, lest it ever wait for a page, keeps it locked. */
static void what_is_locked_stays_so(void)
{
    char *span = sparse_among_others();
    if (mlockall(MCL_CURRENT) != 0) {
        unit_say("memory cannot be locked here: not tried\n");
        return;
    }
    /* Of address space: "Locked" in smaps is less where other processes have the same pages of libraries. */
    const size_t before = unit_status_bytes("VmLck");
    EXPECT(before > 0);
    EXPECT(os_move_pages(span, BLOCK_BYTES) == NULL);
    char *grown = realloc(span, BLOCK_BYTES + BLOCK_BYTES / 8);
    EXPECT(grown != NULL);
    expect_filled(grown);
    EXPECT(unit_status_bytes("VmLck") >= before);
    free(grown);
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(120);
    if (!can_move()) {
        unit_say("the system cannot move pages and leave the place mapped: skipped\n");
        return 77;
    }
    in_a_child(without_memory_it_stays);
    in_a_child(what_cannot_be_lengthened_goes_back);
    in_a_child(what_shrinks_is_cut);
    in_a_child(what_swings_stays);
    in_a_child(room_is_short_under_a_limit);
    in_a_child(what_is_locked_stays_so);
    in_a_child(pages_move_at_a_step);
    in_a_child(pages_move_at_a_doubling);
    return 0;
}
