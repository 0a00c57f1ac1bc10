/* SPDX-License-Identifier: MIT */
#include "heap/audit.h"

static const char *check_shape(const struct superblock *s)
{
    if (s->slice.kind != slice_superblock || s->class >= CLASS_COUNT)
        return "a superblock's descriptor says that it is none";
    const struct size_class *row = &size_class[s->class];
    if (s->block_bytes != row->bytes || s->reciprocal != row->reciprocal || s->blocks == 0 || s->blocks > row->blocks)
        return "a superblock's blocks are not those of its class";
    if (s->base + (size_t)s->blocks * s->block_bytes !=
        (uintptr_t)superblock_start(s) + superblock_slices(s) * SLICE_BYTES)
        return "a superblock's last block does not end where it ends";
    return NULL;
}

static const char *check_slices(const struct superblock *s)
{
    for (unsigned i = 1; i < superblock_slices(s); i++) {
        if (!superblock_has_slice(s, i) && !s->has_lent)
            return "a slice of a superblock belongs to something else";
        if (superblock_has_slice(s, i) && s[i].owner != 0)
            return "a later slice of a superblock has an owner";
    }
    return NULL;
}

static const char *check_carved(const struct superblock *s)
{
    unsigned carved = 0;
    for (unsigned i = 0; i < s->blocks; i++)
        carved += superblock_is_block(s, superblock_block(s, i));
    if (carved != s->carved)
        return "a superblock's carved blocks are miscounted";
    return s->whole_bytes == superblock_count_whole(s) ? NULL : "a superblock's first blocks are miscounted";
}

/* Marks the blocks of a sound list in `seen`.  Returns NULL if all of them exist and none was marked before. */
static const char *mark_blocks(const struct superblock *s, uint64_t list, uint64_t *seen)
{
    for (uint64_t at = list; at != 0; at = next_get(freelist_top(at))) {
        unsigned i = superblock_block_number(s, freelist_top(at));
        if (!superblock_is_block(s, freelist_top(at)))
            return "a block that does not exist on a list";
        if ((seen[i / 64] >> (i % 64) & 1) != 0)
            return "a block on both lists of its superblock";
        seen[i / 64] |= 1ull << (i % 64);
    }
    return NULL;
}

static const char *check_lists(const struct superblock *s)
{
    uint64_t local = superblock_freelist(s), remote = atomic_load(&s->x_remote) & ~(uint64_t)REMOTE_ARMED;
    uint64_t seen[SUPERBLOCK_BLOCKS_MAX / 64] = {0};
    if (superblock_check_list(s, local) != NULL || superblock_check_list(s, remote) != NULL)
        return NULL;
    const char *wrong = mark_blocks(s, local, seen);
    return wrong != NULL ? wrong : mark_blocks(s, remote, seen);
}

const char *superblock_check(const struct superblock *s)
{
    const char *wrong = check_shape(s);
    if (wrong == NULL)
        wrong = check_slices(s);
    if (wrong == NULL)
        wrong = check_carved(s);
    return wrong != NULL ? wrong : check_lists(s);
}

static bool is_linked(const struct superblock *s, const struct class_lists *lists)
{
    const uint32_t slice = superblock_first_slice(s);
    bool is_first = s->slice.prev == SLICE_NONE, is_last = s->slice.next == SLICE_NONE;
    return (is_first ? lists->head[s->group] == slice + 1 : slice_at(s->slice.prev)->next == slice) &&
           (is_last || slice_at(s->slice.next)->prev == slice);
}

const char *superblock_check_listed(const struct superblock *s, const struct heap *h)
{
    if (superblock_owner(s) != h)
        return "a superblock is listed by a heap that does not own it";
    if (h->active[s->class] == s)
        return "a superblock is active and listed";
    if (s->group >= group_count || !is_linked(s, &h->class[s->class]))
        return "a superblock is not linked on the list of its group";
    if ((s->threshold == THRESHOLD_NEVER) != (s->group == group_empty))
        return "a superblock's next step is not armed";
    return NULL;
}
