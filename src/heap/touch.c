/* SPDX-License-Identifier: MIT */
#include "heap/touch.h"

#include "os/os.h"

static _Atomic uintptr_t touching; /* the page the manager is about to touch; 0: none */

static bool touch_if_free(char *page)
{
    atomic_store(&touching, (uintptr_t)page); /* before the look at the flag: partner of touch_lasts */
    bool is_free = (__atomic_load_n(&descriptor_of(page)->flags, __ATOMIC_SEQ_CST) & FLAG_WARM) != 0;
    if (is_free)
        os_touch(page);
    atomic_store_explicit(&touching, 0, memory_order_release);
    return is_free;
}

enum touched touch_piece(const struct reserve_piece *piece)
{
    unsigned char there[RESERVE_PIECE_MAX / OS_PAGE_BYTES_MIN];
    char *start = piece->address;
    size_t pages = piece->bytes / os_page_bytes, touched = 1;
    if (!touch_if_free(start))
        return touched_taken;
    if (pages == 1 || !os_find_resident(start, piece->bytes, there))
        return touched_pages;
    for (size_t i = 1; i < pages; i++)
        if (!there[i]) {
            if (!touch_if_free(start + i * os_page_bytes))
                return touched_taken;
            touched++;
        }
    return touched == 1 ? touched_huge : touched_pages;
}

static bool is_touched(uint32_t first, size_t slices)
{
    uintptr_t page = atomic_load_explicit(&touching, memory_order_acquire);
    return page - (uintptr_t)slice_address(first) < slices << SLICE_SHIFT;
}

bool touch_is_beside(uint32_t first, size_t slices)
{
    uint32_t start = (uint32_t)align_down(first, HUGE_PAGE_SLICES);
    return is_touched(start, first + slices - start);
}

bool touch_lasts(uint32_t first, size_t slices)
{
    const int patience = 64;                   /* pauses: what a page takes */
    atomic_thread_fence(memory_order_seq_cst); /* the flags are written before the look: partner of touch_if_free */
    for (int i = 0; i < patience && is_touched(first, slices); i++)
        cpu_relax();
    return is_touched(first, slices);
}

void touch_await(uint32_t first, size_t slices)
{
    /* Who keeps the manager from running for a second (a debugger; a handler that made us a child in between) takes the
     * risk. */
    static _Atomic uint32_t never;
    const uint64_t moment_ns = 100000;
    for (int i = 0; i < 10000 && touch_lasts(first, slices); i++)
        os_futex_wait_for(&never, 0, moment_ns);
}

void touch_forget(void)
{
    atomic_store(&touching, 0);
}
