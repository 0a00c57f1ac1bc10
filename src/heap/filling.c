/* SPDX-License-Identifier: MIT */
#include "heap/filling.h"

#include <stdatomic.h>

#include "heap/window.h"
#include "options/options.h"
#include "os/os.h"

#define LOOKS 4u

static _Atomic bool fills;

static bool is_there(const char *address)
{
    void *page = (void *)align_down((uintptr_t)address, os_page_bytes);
    unsigned char there;
    return os_find_resident(page, os_page_bytes, &there) && there != 0;
}

/* The last slice of each quarter, where it begins: more than that the program may not have asked for. */
void filling_look(const void *block, size_t bytes)
{
    if (bytes < HUGE_PAGE_BYTES)
        return;
    bool is_full = true;
    for (size_t i = LOOKS; i > 0 && is_full; i--)
        is_full = is_there((const char *)block + bytes / LOOKS * i - SLICE_BYTES);
    atomic_store_explicit(&fills, is_full, memory_order_relaxed);
}

bool filling_expected(size_t bytes)
{
    return bytes >= HUGE_PAGE_BYTES && atomic_load_explicit(&fills, memory_order_relaxed) &&
           option_get(option_huge_pages) != huge_pages_off;
}
