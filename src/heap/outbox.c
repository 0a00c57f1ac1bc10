/* SPDX-License-Identifier: MIT */
#include "heap/outbox.h"

#include "heap/pass.h"
#include "heap/remote.h"

/* Heaps whose outboxes are closed at once: one fence for all of them. */
#define CLOSED_MAX 64u
#define TRIES_MAX 4

struct heap *outbox_deliver(uint64_t chain)
{
    struct superblock *s = superblock_of(freelist_top(chain));
    struct heap *owner = superblock_owner(s); /* for the caller: afterwards `s` may be no superblock any more */
    const enum remote_pushed pushed = heap_push_remote_chain(s, chain);
    if (pushed == remote_damaged) /* the chain is dropped; its blocks count as live for ever */
        damage_report("free", "in superblock", superblock_start(s), "a freed block was written to");
    return owner;
}

uint64_t outbox_take(struct heap *h, unsigned i)
{
    ASSERT(lock_is_mine(&h->lock));
    uint64_t *chain = &h->chain[i], list;
    for (int tries = 0; h->outbox != NULL && tries < TRIES_MAX; tries++) {
        list = __atomic_load_n(chain, __ATOMIC_RELAXED);
        if (list == 0)
            return 0;
        enum rcs_result result = rcs_compare_and_store(h, chain, list, chain, 0);
        if (result == rcs_done)
            return list;
        if (result == rcs_moved)
            return 0;
    }
    return 0;
}

void outbox_send(struct heap *h)
{
    ASSERT(lock_is_mine(&h->lock));
    if (h->outbox == NULL || rcs_is_suspended())
        return;
    for (unsigned i = 0; i < OUTBOX_CHAINS; i++) {
        uint64_t chain = outbox_take(h, i);
        if (chain != 0)
            outbox_deliver(chain);
    }
}

/* ---- in a pass ---- */

/* 0 of an empty one. */
static uint32_t look_of(const struct heap *h)
{
    uint64_t look = 0;
    for (unsigned i = 0; i < OUTBOX_CHAINS; i++)
        look += __atomic_load_n(&h->chain[i], __ATOMIC_RELAXED) << (i % 8);
    return look == 0 ? 0 : (uint32_t)(look ^ look >> 32) | 1;
}

/* Worth closing now? */
static bool is_wanted(struct heap *h, bool all, bool *changed)
{
    uint32_t look = look_of(h);
    bool same = look == h->outbox_look;
    h->outbox_look = look;
    if (look == 0)
        return false;
    *changed |= !same;
    return all || same;
}

/* NULL: closes it. */
static void set_outbox(struct heap *h, uint64_t *chains)
{
    lock_take(&h->lock);
    __atomic_store_n(&h->outbox, chains, __ATOMIC_RELEASE);
    lock_release(&h->lock);
}

static void empty(struct heap *h)
{
    for (unsigned i = 0; i < OUTBOX_CHAINS; i++) {
        uint64_t chain = h->chain[i];
        h->chain[i] = 0;
        if (chain != 0)
            outbox_deliver(chain);
    }
}

void outboxes_send_of(unsigned first, unsigned end, bool all, bool *changed)
{
    ASSERT(lock_is_mine(&pass_lock));
    struct heap *closed[CLOSED_MAX];
    if (!rcs_has_fence())
        return;
    for (unsigned next = first; next < end;) {
        unsigned count = 0;
        for (; next < end && count < CLOSED_MAX; next++) {
            struct heap *h = heap_list[next];
            if (h->outbox == NULL || !is_wanted(h, all, changed))
                continue;
            set_outbox(h, NULL);
            closed[count++] = h;
        }
        bool fenced = count > 0 && rcs_fence();
        for (unsigned i = 0; i < count; i++) {
            if (fenced)
                empty(closed[i]);
            set_outbox(closed[i], closed[i]->chain);
        }
    }
}

void outboxes_send(bool all, bool *changed)
{
    outboxes_send_of(0, atomic_load_explicit(&heap_total, memory_order_acquire), all, changed);
}

void outboxes_recover(void)
{
    for (unsigned i = 0; i < heap_total; i++)
        outbox_start(heap_list[i]);
}
