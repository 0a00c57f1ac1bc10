/* SPDX-License-Identifier: MIT */
#include "heap/grown.h"

#include <stdatomic.h>

#include "heap/mapping_table.h"
#include "heap/span.h"
#include "os/os.h"

/* Once a mapping that grew was freed, so many of the next blocks stay spans: what is freed of those is there for the
 * next ones, but a mapping's pages have to be had anew. */
#define GROWN_STAY 256u
static _Atomic unsigned left_to_stay;

/* Each is a mapping to the system, too, of which a process may have 65,530. */
#define GROWN_MAX 16384u

/* A mapping that is made shorter and longer so often, within so long each time, will be again. */
#define SWINGS   2u
#define SWING_NS 1000000000ull

bool grown_may_be_mapping(void)
{
    return mapping_table_count() < GROWN_MAX;
}

bool grown_suits_mapping(size_t bytes)
{
    if (!grown_may_be_mapping() || span_is_there(slices_for(bytes)))
        return false;
    const unsigned left = atomic_load_explicit(&left_to_stay, memory_order_relaxed);
    if (left > 0)
        atomic_store_explicit(&left_to_stay, left - 1, memory_order_relaxed);
    return left == 0;
}

void grown_note_freed(void)
{
    atomic_store_explicit(&left_to_stay, GROWN_STAY, memory_order_relaxed);
}

/* Made longer soon after it was made shorter. */
static void note_swing(struct mapping *m, uint64_t now_ns)
{
    if (m->cut_ns == 0 || now_ns - m->cut_ns > SWING_NS)
        return;
    m->swings = now_ns - m->swung_ns > SWING_NS ? 1 : SWINGS;
    m->swung_ns = now_ns;
}

void grown_note_resized(struct mapping *m, size_t bytes)
{
    ASSERT(lock_is_mine(&mapping_lock));
    const uint64_t now_ns = os_now_ns();
    if (bytes < m->bytes) {
        m->cut_ns = now_ns;
    } else if (bytes > m->bytes) {
        m->grew = true;
        note_swing(m, now_ns);
    }
}

bool grown_stays(struct mapping *m, size_t size)
{
    ASSERT(lock_is_mine(&mapping_lock) && size <= m->bytes);
    const bool is_cut = size < m->asked && m->bytes - size > m->bytes / 8;
    if (!is_cut)
        m->asked = size;
    return !is_cut || (size >= m->asked / 2 && m->swings == SWINGS && os_now_ns() - m->swung_ns <= SWING_NS);
}
