/* SPDX-License-Identifier: MIT */
#include "hardened/resolve.h"

#include "core/core.h"
#include "hardened/hardened.h"
#include "hardened/report.h"
#include "hardened/shadow.h"
#include "heap/heap.h"
#include "os/os.h"

/* A large block, whose pages are gone, counts for a part of its bytes: its addresses are kept. */
#define LARGE_PART 32u
/* Whole pages of a block of a superblock that are worth a system call. */
#define DROPPED_LEAST ((size_t)8 << 10)

struct resolved resolved;

struct kept {
    struct superblock *superblock; /* NULL: it is large */
    size_t bytes;
};

static inline struct kept look_at(const void *p)
{
    struct live live;
    struct superblock *s = region_contains(p) ? superblock_of(p) : NULL;
    if (s != NULL && (s->slice.kind == slice_superblock || s->slice.kind == slice_quarantine))
        return (struct kept){s, s->block_bytes};
    return (struct kept){NULL, large_kept(p, &live) ? live.bytes : 0};
}

static size_t cost_of_large(size_t bytes)
{
    return bytes / LARGE_PART & ~(size_t)(BLOCK_ALIGNMENT - 1);
}

static size_t cost_of(struct kept kept)
{
    return kept.superblock != NULL ? kept.bytes : cost_of_large(kept.bytes);
}

static _Atomic size_t pageless_bytes;

void resolve_note_freed(size_t bytes)
{
    atomic_fetch_add(&pageless_bytes, bytes);
}

size_t resolve_note_kept(size_t bytes)
{
    const size_t cost = cost_of_large(bytes);
    atomic_fetch_sub(&pageless_bytes, cost);
    return cost;
}

size_t resolve_pageless_bytes(void)
{
    return atomic_load(&pageless_bytes);
}

static void give_back_large(void *p, size_t bytes)
{
    atomic_fetch_sub(&pageless_bytes, bytes - cost_of_large(bytes));
    large_give_back(p);
}

void resolve_expect(void *p)
{
    if (!region_contains(p))
        shadow_add_outside((uintptr_t)p, look_at(p).bytes);
}

/* Nobody has written to it; a large one traps who does. */
static void check(void *p, struct kept kept)
{
    if (kept.superblock != NULL && unlikely(!is_clear(p, kept.bytes)) && mitigated(mitigation_check)) {
        report_written("free", p);
        clear_block(p, kept.bytes);
    }
}

static void hand_back(void *p, struct kept kept)
{
    if (kept.superblock == NULL)
        give_back_large(p, kept.bytes);
    else if (kept.superblock->slice.kind != slice_superblock)
        return; /* it was found damaged */
    else if (background_thread_is_caller())
        heap_push_remote(kept.superblock, p); /* a thread of no heap */
    else
        plain_free(p); /* which does not wait for a lock, in a slow path */
}

/* In a pass: nobody else counts. */
static void count_block(_Atomic uint64_t *blocks)
{
    atomic_store_explicit(blocks, atomic_load_explicit(blocks, memory_order_relaxed) + 1, memory_order_relaxed);
}

size_t resolve_unseen(void *p, bool is_first)
{
    (void)is_first;
    const struct kept kept = look_at(p);
    check(p, kept);
    hand_back(p, kept);
    count_block(&resolved.unseen_blocks);
    return cost_of(kept);
}

/* It may have to be kept for long.  It holds zeros, with pages or without. */
static void drop_pages(void *p, struct kept kept)
{
    const uintptr_t start = align_up((uintptr_t)p, os_page_bytes),
                    end = align_down((uintptr_t)p + kept.bytes, os_page_bytes);
    if (kept.superblock != NULL && end > start && end - start >= DROPPED_LEAST)
        os_purge((void *)start, end - start);
}

size_t resolve_seen(void *p, bool is_first)
{
    const struct kept kept = look_at(p);
    check(p, kept);
    if (!shadow_is_clear(p, kept.bytes)) {
        if (is_first)
            drop_pages(p, kept);
        return 0;
    }
    hand_back(p, kept);
    count_block(&resolved.blocks);
    return cost_of(kept);
}
