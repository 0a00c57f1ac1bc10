/* SPDX-License-Identifier: MIT */
#include "heap/filling.h"

#include "base/bits.h"
#include "heap/huge.h"
#include "heap/huge_price.h"
#include "heap/huge_policy.h"

#define WATCHED_MAX 64
/* A block that nobody goes on filling for so long is watched no more. */
#define WATCH_NS 5000000000ull

/* A block in a word: 36 bits for the number of its first page, 28 for how many it has; 0: none. */
#define COUNT_BITS 28
static _Atomic uint64_t watched[WATCHED_MAX];
static _Atomic uint32_t noted[WATCHED_MAX]; /* so often: the same block may come again */
_Atomic bool filling_is_new;
static _Atomic uint64_t in_hand; /* the block that the manager brings a piece of */
/* Who took the last one, and where. */
static _Atomic uint32_t noted_by;
static _Atomic unsigned noted_node;

/* What the manager knows of each. */
static struct progress {
    uint64_t block;
    uint32_t noted;
    uint64_t since_ns; /* when it was seen for the first time, or seen further filled than before */
    bool is_filling; /* from the front; else it is not known yet */
    /* Huge pages, counted from the first whole one in the block: the one that tells when the next lead is due; the
     * first that is to be brought; the first that is not asked for. */
    size_t mark, next, asked;
    size_t filled; /* when the last mark was reached */
    struct os_place filled_at; /* where the thread that took a block ran then */
} progress[WATCHED_MAX];
static unsigned in_hand_by; /* which of them that is */

static uint64_t to_word(const void *block, size_t bytes)
{
    uintptr_t page = (uintptr_t)block / OS_PAGE_BYTES_MIN;
    size_t pages = bytes / OS_PAGE_BYTES_MIN;
    return page >> (64 - COUNT_BITS) != 0 || pages >> COUNT_BITS != 0 ? 0 : page << COUNT_BITS | pages;
}

static char *address_of(uint64_t block)
{
    return (char *)((uintptr_t)(block >> COUNT_BITS) * OS_PAGE_BYTES_MIN);
}

static size_t bytes_of(uint64_t block)
{
    return (size_t)(block & ((1ul << COUNT_BITS) - 1)) * OS_PAGE_BYTES_MIN;
}

/* The whole huge pages in it. */
static char *first_of(uint64_t block)
{
    return (char *)align_up((uintptr_t)address_of(block), HUGE_PAGE_BYTES);
}

static size_t pages_of(uint64_t block)
{
    char *end = address_of(block) + bytes_of(block);
    return end < first_of(block) ? 0 : (size_t)(end - first_of(block)) / HUGE_PAGE_BYTES;
}

/* The last is never brought: it tells whether the block is full. */
static size_t last_of(uint64_t block)
{
    return pages_of(block) - 1;
}

/* ---- by whoever takes and gives blocks ---- */

static bool watch(const void *block, size_t bytes)
{
    const uint64_t word = to_word(block, bytes);
    if (bytes < FILLING_BYTES_MIN || word == 0 || pages_of(word) < 2)
        return false;
    for (unsigned i = 0; i < WATCHED_MAX; i++) {
        uint64_t none = 0;
        if (atomic_load_explicit(&watched[i], memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&watched[i], &none, word)) {
            atomic_fetch_add(&noted[i], 1);
            return true;
        }
    }
    return false;
}

void filling_note(const void *block, size_t bytes)
{
    if (!huge_policy_tells(bytes) || !watch(block, bytes))
        return;
    atomic_store_explicit(&noted_by, os_thread_id(), memory_order_relaxed);
    atomic_store_explicit(&noted_node, os_current_place().node, memory_order_relaxed);
    atomic_store(&filling_is_new, true);
    demand_raise();
}

bool filling_forget(const void *block)
{
    const uint64_t moment_ns = 20000;
    bool was_watched = false;
    for (unsigned i = 0; i < WATCHED_MAX; i++) {
        uint64_t word = atomic_load_explicit(&watched[i], memory_order_relaxed);
        if (word == 0 || address_of(word) != block)
            continue;
        uint64_t seen = word;
        was_watched |= atomic_compare_exchange_strong(&watched[i], &seen, 0);
        while (atomic_load(&in_hand) == word) /* partner of take_in_hand */
            os_sleep(moment_ns);
    }
    return was_watched;
}

void filling_go_on(const void *block, size_t bytes)
{
    if (watch(block, bytes))
        demand_raise(); /* the manager may have seen none meanwhile */
}

void filling_recover(void)
{
    for (unsigned i = 0; i < WATCHED_MAX; i++)
        atomic_store(&watched[i], 0);
    atomic_store(&in_hand, 0);
    atomic_store(&filling_is_new, false);
}

/* ---- by the manager ---- */

/* True if the block is still there, and stays so until it is let go. */
static bool take_in_hand(unsigned i, uint64_t block)
{
    atomic_store(&in_hand, block);
    if (atomic_load(&watched[i]) == block)
        return true;
    atomic_store(&in_hand, 0);
    return false;
}

static char *huge_page(const struct progress *p, size_t i)
{
    return first_of(p->block) + i * HUGE_PAGE_BYTES;
}

/* The program has come to the mark: the next lead lies behind it. */
static void advance(struct progress *p, uint64_t now_ns)
{
    const size_t most = FILLING_AHEAD_MAX / HUGE_PAGE_BYTES, least = FILLING_AHEAD_EXPECTED / HUGE_PAGE_BYTES;
    size_t filled = p->mark + 1, ahead = min_size(filled / 4, most);
    if (huge_policy_expects_full(bytes_of(p->block)))
        ahead = max_size(ahead, min_size(least, last_of(p->block) / 2));
    size_t pace = (filled - p->filled) * PREFAULT_LEAD_NS / max_size(now_ns - p->since_ns, 1);
    ahead = max_size(1, min_size(ahead, pace));
    p->filled = filled;
    p->next = filled;
    p->mark = min_size(filled + ahead, last_of(p->block));
}

/* Where the last block was filled, this one's beginning is enough. */
static void look_at_beginning(struct progress *p)
{
    if (huge_policy_expects_full(bytes_of(p->block))) {
        p->is_filling = os_is_resident(huge_page(p, 0));
    } else {
        p->is_filling = os_is_resident(huge_page(p, 1)) && huge_is_full(huge_page(p, 0));
        p->mark = p->is_filling;
    }
}

static void look_at(struct progress *p, uint64_t now_ns)
{
    if (!p->is_filling)
        look_at_beginning(p);
    while (p->is_filling && p->mark < last_of(p->block) && os_is_resident(huge_page(p, p->mark)))
        advance(p, now_ns);
    while (p->next < p->mark && os_is_resident(huge_page(p, p->next)))
        p->next++;
}

static bool is_full_to_the_last(const struct progress *p)
{
    return p->is_filling && p->mark == last_of(p->block) && os_is_resident(huge_page(p, p->mark));
}

/* The thread that took the last block. */
static struct os_place where_it_runs(void)
{
    return (struct os_place){.cpu = os_cpu_of(atomic_load_explicit(&noted_by, memory_order_relaxed)),
                             .node = atomic_load_explicit(&noted_node, memory_order_relaxed)};
}

enum filling filling_look(uint64_t now_ns)
{
    enum filling seen = filling_none;
    atomic_store(&filling_is_new, false);
    for (unsigned i = 0; i < WATCHED_MAX; i++) {
        struct progress *p = &progress[i];
        uint64_t block = atomic_load(&watched[i]);
        if (block == 0)
            continue;
        uint32_t times = atomic_load(&noted[i]);
        bool is_new = block != p->block || times != p->noted;
        if (is_new)
            *p = (struct progress){.block = block, .noted = times, .since_ns = now_ns};
        size_t filled = p->filled;
        look_at(p, now_ns);
        if (is_new || p->filled != filled)
            p->since_ns = now_ns;
        if (p->filled != filled)
            p->filled_at = where_it_runs();
        bool is_done = is_full_to_the_last(p);
        if (is_done)
            huge_policy_note_there(address_of(block), bytes_of(block));
        if (is_done || now_ns - p->since_ns > WATCH_NS)
            atomic_compare_exchange_strong(&watched[i], &block, 0);
        else
            seen = max_size(seen, p->since_ns == now_ns ? filling_goes_on : filling_rests);
    }
    return seen;
}

/* Also for what the program has filled in small pages: so what was asked for is one mapping of the system's, and it may
 * put these together later. */
static void ask_up_to(struct progress *p, size_t end)
{
    if (p->asked < end)
        huge_ask_run(huge_page(p, p->asked), (end - p->asked) * HUGE_PAGE_BYTES);
    p->asked = max_size(p->asked, end);
}

/* The program is not to wait for what has become dear; malloc may have asked for all of it. */
static void take_back(struct progress *p)
{
    huge_unask_run(huge_page(p, p->next), (pages_of(p->block) - p->next) * HUGE_PAGE_BYTES);
    p->asked = min_size(p->asked, p->next);
}

static bool is_due(unsigned i)
{
    const struct progress *p = &progress[i];
    return p->next < p->mark && p->block == atomic_load(&watched[i]);
}

bool filling_is_due(void)
{
    for (unsigned i = 0; i < WATCHED_MAX; i++)
        if (is_due(i))
            return true;
    return false;
}

/* Who has waited for the system to be told something was woken where that ran which kept it waiting: the manager would
 * interrupt the program for the whole lead. */
bool filling_next(struct prefault_piece *piece)
{
    for (unsigned i = 0; i < WATCHED_MAX; i++) {
        struct progress *p = &progress[i];
        if (!is_due(i))
            continue;
        os_leave_cpu(p->filled_at.cpu);
        if (!take_in_hand(i, p->block))
            continue;
        *piece = (struct prefault_piece){huge_page(p, p->next), HUGE_PAGE_BYTES, true, p->filled_at};
        in_hand_by = i;
        return true;
    }
    return false;
}

bool filling_bring(const struct prefault_piece *piece)
{
    struct progress *p = &progress[in_hand_by];
    ask_up_to(p, p->next + 1);
    uint64_t start_us = huge_price_clock_us();
    bool came = os_populate(piece->address, piece->bytes);
    uint64_t now_ns = os_now_ns();
    p->next++;
    if (came)
        huge_price_note_huge(huge_price_clock_us() - start_us, now_ns);
    if (!came || huge_price_is_dear(now_ns))
        take_back(p);
    else
        ask_up_to(p, pages_of(p->block)); /* at once: the program waits while the system is told */
    if (!came) /* the system cannot, or the program has forbidden it */
        atomic_compare_exchange_strong(&watched[in_hand_by], &(uint64_t){p->block}, 0);
    atomic_store(&in_hand, 0);
    return came;
}
