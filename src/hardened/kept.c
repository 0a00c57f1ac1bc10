/* SPDX-License-Identifier: MIT */
#include "hardened/kept.h"

#include <stdatomic.h>

#include "base/bits.h"
#include "hardened/own.h"
#include "heap/layout.h"
#include "marks/marks.h"
#include "os/lock.h"
#include "os/os.h"
#include "rcs/rcs.h"

#define PLACES      509u /* and three words, 512 */
#define BATCH_BYTES ((size_t)256 << 10)
#define CHUNK_LEAST ((size_t)64) /* batches mapped at once */
#define CHUNK_SMALL ((size_t)8)  /* and if there is no memory for so many */
#define TURN_NS     100000ull    /* how long to wait for another to map them, so many times */
#define TURNS_MOST  200u         /* it may be without a cpu, among a thousand threads */
#define AHEAD 16u /* places whose blocks' lines are asked for in advance */
#define GONE        ((void *)1) /* what a place holds whose block was resolved */

/* {sixteens of bytes << COUNT_BITS | places taken}; PLACES or more: it is closed. */
#define COUNT_BITS 16
#define COUNT_MASK ((1u << COUNT_BITS) - 1)

struct batch {
    _Atomic uintptr_t next;
    _Atomic uint64_t taken;
    uint32_t places; /* taken, since it was closed */
    uint32_t left;   /* of those, not resolved when last looked at; 0: it was not looked at */
    void *_Atomic place[PLACES];
};
_Static_assert(sizeof(struct batch) == 4096, "a page");

/* {address | GENERATION_MASK: how often a batch was opened}: a batch that is open again is not taken for what it
 * was. */
#define GENERATION_MASK ((uintptr_t)4095)
static _Atomic uintptr_t open_of_slot[SLOT_MAX + 1];
static _Atomic uintptr_t openings;
static _Atomic uintptr_t closed; /* a stack that is only taken as a whole */
/* Batches to open, all of them closed: {address >> 12 << TAG_BITS | tag}, so that a pop notices who came in between. */
#define TAG_BITS 27
static _Atomic uint64_t spare;

/* The first page of what is mapped at once; the batches that were never opened are the last of these pages. */
struct chunk {
    _Atomic size_t used; /* pages, and more as often as there were none left */
    size_t pages, total; /* total: with those of all chunks before */
};
static struct chunk *_Atomic newest;
static struct lock mapping = LOCK_FREE(rank_tried);
static _Atomic bool is_short; /* the last mapping was refused */

static _Atomic size_t bytes_total, bytes_fresh, blocks_total;

/* In a pass: those to be looked at, and those that were. */
static struct batch *due, *seen;
static size_t bytes_collected; /* of bytes_fresh, since kept_collect */

/* ---- spare batches ---- */

static struct batch *batch_in(uint64_t word)
{
    return (struct batch *)(uintptr_t)(word >> TAG_BITS << 12);
}

static void give_spare(struct batch *b)
{
    uint64_t old = atomic_load(&spare), new;
    do {
        atomic_store(&b->next, (uintptr_t)batch_in(old));
        new = (uint64_t)((uintptr_t)b >> 12) << TAG_BITS | ((old + 1) & ((1u << TAG_BITS) - 1));
    } while (!atomic_compare_exchange_weak(&spare, &old, new));
}

/* In place of `full`.  The one thread whose turn it is makes it longer than that, so that there are few; others, who
 * could not wait for it, may be many. */
static bool map_chunk(struct chunk *full, bool is_one)
{
    const size_t total = full != NULL ? full->total : 0;
    size_t pages = is_one ? max_size(CHUNK_LEAST, total / 8) : CHUNK_LEAST;
    struct chunk *made = NULL;
    if (own_has_room() && (made = os_map(pages * sizeof(struct batch))) == NULL)
        made = os_map((pages = CHUNK_SMALL) * sizeof(struct batch));
    atomic_store(&is_short, made == NULL);
    if (made == NULL)
        return false;
    made->pages = pages;
    made->total = total + pages;
    atomic_store(&made->used, 1);
    if (atomic_compare_exchange_strong(&newest, &full, made))
        own_note(made, pages * sizeof(struct batch));
    else
        os_unmap(made, pages * sizeof(struct batch));
    return true;
}

/* One thread maps, however many have come here.  None waits for long, as the one may be the caller itself, below a
 * signal; and none at all while there is no memory: each free would wait, and a signal handler that frees for longer
 * than its signal takes to come again never lets the one go on. */
static bool replace_chunk(struct chunk *full)
{
    bool is_one = false;
    for (unsigned i = 0; i < TURNS_MOST && atomic_load(&newest) == full && !(is_one = lock_try(&mapping)) &&
                         !atomic_load(&is_short);
         i++)
        os_sleep(TURN_NS);
    const bool done = atomic_load(&newest) != full || map_chunk(full, is_one);
    if (is_one)
        lock_release(&mapping);
    return done;
}

static struct batch *take_new(void)
{
    for (;;) {
        struct chunk *c = atomic_load(&newest);
        const size_t page = c != NULL ? atomic_fetch_add(&c->used, 1) : 0;
        if (c != NULL && page < c->pages)
            return (struct batch *)c + page;
        if (!replace_chunk(c))
            return NULL;
    }
}

static struct batch *take_spare(void)
{
    uint64_t old = atomic_load(&spare), new;
    struct batch *b;
    do {
        b = batch_in(old);
        if (b == NULL)
            return take_new();
        new = (uint64_t)(atomic_load(&b->next) >> 12) << TAG_BITS | ((old + 1) & ((1u << TAG_BITS) - 1));
    } while (!atomic_compare_exchange_weak(&spare, &old, new));
    return b;
}

/* ---- adding ---- */

static void push_closed(struct batch *b, uint64_t taken)
{
    const size_t bytes = (size_t)(taken >> COUNT_BITS) * BLOCK_ALIGNMENT;
    b->places = (uint32_t)min_size(taken & COUNT_MASK, PLACES);
    b->left = 0;
    uintptr_t old = atomic_load(&closed);
    do
        atomic_store(&b->next, old);
    while (!atomic_compare_exchange_weak(&closed, &old, (uintptr_t)b));
    atomic_fetch_add(&bytes_total, bytes);
    atomic_fetch_add(&bytes_fresh, bytes);
    atomic_fetch_add(&blocks_total, b->places);
}

/* By anybody: one of them finds that it was open, and says what it holds. */
static bool close_batch(struct batch *b)
{
    uint64_t taken = atomic_fetch_add(&b->taken, PLACES);
    unsigned places = (unsigned)taken & COUNT_MASK;
    if (places == 0)
        give_spare(b);
    else if (places < PLACES)
        push_closed(b, taken);
    return places > 0 && places < PLACES;
}

static inline struct batch *batch_of_slot(uintptr_t word)
{
    return (struct batch *)(word & ~GENERATION_MASK);
}

/* In place of `full`, which is closed or none.  False without memory. */
static COLD bool open_batch(unsigned slot, uintptr_t full)
{
    struct batch *b = take_spare();
    if (b == NULL)
        return false;
    atomic_store(&b->taken, 0); /* who had it in hand when it was open before may take a place from here on */
    const uintptr_t word = (uintptr_t)b | (atomic_fetch_add(&openings, 1) & GENERATION_MASK);
    if (!atomic_compare_exchange_strong(&open_of_slot[slot], &full, word))
        close_batch(b);
    return true;
}

enum kept_added kept_add(void *p, size_t bytes)
{
    const unsigned slot = sync_mode == sync_rcs ? sync_slot() : sync_slot_last;
    const uint64_t one = (uint64_t)(bytes / BLOCK_ALIGNMENT) << COUNT_BITS | 1;
    for (;;) {
        const uintptr_t word = atomic_load_explicit(&open_of_slot[slot], memory_order_acquire);
        struct batch *b = batch_of_slot(word);
        if (b != NULL && (atomic_load_explicit(&b->taken, memory_order_relaxed) & COUNT_MASK) < PLACES) {
            uint64_t taken = atomic_fetch_add(&b->taken, one);
            unsigned place = (unsigned)taken & COUNT_MASK;
            if (place < PLACES) {
                atomic_store_explicit(&b->place[place], p, memory_order_release);
                if (place + 1 == PLACES) {
                    push_closed(b, taken + one);
                    return kept_much;
                }
                const bool is_full = ((taken + one) >> COUNT_BITS) * BLOCK_ALIGNMENT >= BATCH_BYTES;
                return is_full && close_batch(b) ? kept_much : kept_noted;
            }
        }
        if (!open_batch(slot, word))
            return kept_no_room;
    }
}

size_t kept_bytes(void)
{
    return atomic_load_explicit(&bytes_total, memory_order_relaxed);
}

size_t kept_fresh_bytes(void)
{
    return atomic_load_explicit(&bytes_fresh, memory_order_relaxed);
}

size_t kept_blocks(void)
{
    return atomic_load_explicit(&blocks_total, memory_order_relaxed);
}

/* ---- by whoever sweeps ---- */

void kept_close_all(void)
{
    for (unsigned slot = 0; slot <= SLOT_MAX; slot++) {
        uintptr_t word = atomic_load(&open_of_slot[slot]);
        if (word != 0 && atomic_compare_exchange_strong(&open_of_slot[slot], &word, 0))
            close_batch(batch_of_slot(word));
    }
}

void kept_collect(void)
{
    struct batch *b = (struct batch *)atomic_exchange(&closed, 0);
    bytes_collected = atomic_load(&bytes_fresh);
    while (b != NULL || seen != NULL) {
        struct batch **from = b != NULL ? &b : &seen, *moved = *from;
        *from = (struct batch *)atomic_load(&moved->next);
        atomic_store(&moved->next, (uintptr_t)due);
        due = moved;
    }
}

void kept_judged(void)
{
    atomic_fetch_sub(&bytes_fresh, bytes_collected);
    bytes_collected = 0;
}

void kept_each(void (*visit)(void *p))
{
    for (struct batch *b = due; b != NULL; b = (struct batch *)atomic_load(&b->next))
        for (unsigned i = 0; i < b->places; i++) {
            void *p = atomic_load_explicit(&b->place[i], memory_order_acquire);
            if (p != NULL && p != GONE)
                visit(p);
        }
}

/* In an order that cannot be told. */
static void resolve_batch(struct batch *b, size_t (*resolve)(void *p, bool is_first))
{
    const uint32_t order = os_random();
    const bool is_first = b->left == 0;
    uint32_t left = 0, gone = 0;
    size_t gone_bytes = 0;
    for (unsigned i = 0; i < PLACES + 3; i++) {
        const unsigned n = (i ^ order) % (PLACES + 3), soon = ((i + AHEAD) ^ order) % (PLACES + 3);
        void *p = n < b->places ? atomic_load_explicit(&b->place[n], memory_order_acquire) : GONE;
        size_t bytes = 0;
        if (soon < b->places)
            __builtin_prefetch(atomic_load_explicit(&b->place[soon], memory_order_relaxed), 1);
        if (p == GONE)
            continue;
        if (p == NULL) { /* its store is on its way */
            left++;
            continue;
        }
        /* Before: a fork may lose it, not have it twice. */
        atomic_store_explicit(&b->place[n], GONE, memory_order_relaxed);
        if ((bytes = resolve(p, is_first)) != 0) {
            gone_bytes += bytes;
            gone++;
        } else {
            atomic_store_explicit(&b->place[n], p, memory_order_relaxed);
            left++;
        }
    }
    atomic_fetch_sub(&bytes_total, gone_bytes);
    atomic_fetch_sub(&blocks_total, gone);
    b->left = left;
}

static void reuse(struct batch *b)
{
    for (unsigned i = 0; i < b->places; i++)
        atomic_store_explicit(&b->place[i], NULL, memory_order_relaxed);
    give_spare(b);
}

static void put_by(struct batch *b)
{
    due = (struct batch *)atomic_load(&b->next);
    atomic_store(&b->next, (uintptr_t)seen);
    seen = b;
}

bool kept_resolve(size_t (*resolve)(void *p, bool is_first), uint64_t end_ns)
{
    while (due != NULL) {
        struct batch *b = due;
        resolve_batch(b, resolve);
        if (b->left != 0) {
            put_by(b);
        } else {
            due = (struct batch *)atomic_load(&b->next);
            reuse(b);
        }
        if (os_now_ns() >= end_ns)
            return due == NULL;
    }
    return true;
}

void kept_recover(void)
{
    lock_reset(&mapping);
}
