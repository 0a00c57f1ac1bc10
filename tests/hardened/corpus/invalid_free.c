/* SPDX-License-Identifier: MIT
 *
 * Invalid free: a pointer that malloc never returned, or not to the start of a block.  The effect is that malloc hands
 * out that memory later, or a part of a live block.
 */
#include "corpus.h"

#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>

static struct crowd before, after;
static _Alignas(64) unsigned char global[4096];

/* Frees an address in memory of this size, and looks whether somebody gets it. */
static void give_invalid(unsigned char *address, size_t size)
{
    bug_begin();
    give(address);
    bug_end();
    crowd_take(&after, size);
    for (size_t i = 0; i < after.count; i++)
        effect((after.blocks[i] < address + size && address < after.blocks[i] + size) ||
               crowd_meets(&before, after.blocks[i], size));
    effect(crowd_overlaps(&after));
}

static void of_stack(const struct bug *bug)
{
    _Alignas(64) unsigned char local[4096] = {0};
    give_invalid(local + bug->at, bug->size);
}

static void of_global(const struct bug *bug)
{
    give_invalid(global + bug->at, bug->size);
}

static void of_text(const struct bug *bug)
{
    give_invalid((unsigned char *)of_text + bug->at, bug->size);
}

static void of_number(const struct bug *bug)
{
    bug_begin();
    give((void *)bug->at); // NOLINT
    bug_end();
}

static void of_own_mapping(const struct bug *bug)
{
    unsigned char *pages = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    give_invalid(pages + bug->at, bug->size);
}

static void of_unmapped(const struct bug *bug)
{
    unsigned char *pages = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages, MIB);
    give_invalid(pages + bug->at, bug->size);
}

static void inside(const struct bug *bug)
{
    crowd_take(&before, bug->size);
    give_invalid(before.blocks[before.count / 2] + bug->at, bug->size);
}

static void inside_freed(const struct bug *bug)
{
    crowd_take(&before, bug->size);
    unsigned char *block = take(bug->size);
    fill(block, bug->size, 'x');
    give(block);
    give_invalid(block + bug->at, bug->size);
}

static void inside_aligned(const struct bug *bug)
{
    give_invalid((unsigned char *)aligned_alloc(bug->length, bug->size) + bug->at, bug->size);
}

/* Memory of the allocator's that it has not handed out: far behind a new block. */
static void never_handed_out(const struct bug *bug)
{
    give_invalid((unsigned char *)take(bug->size) + bug->at, bug->size);
}

static void realloc_inside(const struct bug *bug)
{
    crowd_take(&before, bug->size);
    unsigned char *address = before.blocks[before.count / 2] + bug->at;
    bug_begin();
    unsigned char *moved = realloc(address, 2 * bug->size);
    bug_end();
    effect(moved == address || crowd_meets(&before, moved, 2 * bug->size));
}

static void usable_size_inside(const struct bug *bug)
{
    unsigned char *block = take(bug->size);
    bug_begin();
    size_t size = malloc_usable_size(block + bug->at);
    bug_end();
    effect(size > bug->size + 64);
}

/* A chunk as glibc's look, made in a buffer with a size in front: the "house of spirit". */
static void of_forged_chunk(const struct bug *bug)
{
    size_t *words = (size_t *)global;
    words[1] = 0x51;
    words[11] = 0x1234;
    give_invalid((unsigned char *)&words[2], bug->size);
}

const struct bug invalid_free[] = {
    {"stack", of_stack, 64, 128, 0},
    {"global", of_global, 64, 128, 0},
    {"text", of_text, 64, 0, 0},
    {"number_16", of_number, 0, 16, 0},
    {"number_odd", of_number, 0, 0x41414141, 0},
    {"own_mapping", of_own_mapping, 64, 4096, 0},
    {"unmapped", of_unmapped, 64, 4096, 0},
    {"by_1", inside, 64, 1, 0},
    {"by_8", inside, 64, 8, 0},
    {"by_16", inside, 64, 16, 0},
    {"in_front", inside, 64, -16, 0},
    {"middle_of_1000", inside, 1000, 512, 0},
    {"middle_of_20000", inside, 20000, 4096, 0},
    {"middle_of_100000", inside, 100000, 65536, 0},
    {"middle_of_1_mib", inside, MIB, 65536, 0},
    {"middle_of_32_mib", inside, 32 * MIB, 2 * MIB, 0},
    {"page_of_32_mib", inside, 32 * MIB, 4096, 0},
    {"inside_freed", inside_freed, 64, 16, 0},
    {"inside_freed_1_mib", inside_freed, MIB, 65536, 0},
    {"inside_aligned", inside_aligned, 8192, 64, 4096},
    {"never_handed_out", never_handed_out, 64, 48 * 1024, 0},
    {"far_behind", never_handed_out, 64, 64 * 1024 * 1024, 0},
    {"realloc_by_16", realloc_inside, 64, 16, 0},
    {"realloc_of_1_mib", realloc_inside, MIB, 65536, 0},
    {"usable_size_by_16", usable_size_inside, 64, 16, 0},
    {"forged_chunk", of_forged_chunk, 64, 0, 0},
    {0},
};
