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

/* Where the quarters end. */
void filling_look(const void *block, size_t bytes, size_t slack)
{
    if (bytes < HUGE_PAGE_BYTES || option_get(option_huge_pages) == huge_pages_off)
        return;
    bool is_full = true;
    for (size_t i = LOOKS; i > 0 && is_full; i--)
        is_full = is_there((const char *)block + bytes / LOOKS * i - slack);
    atomic_store_explicit(&fills, is_full, memory_order_relaxed);
}

bool filling_expected(size_t bytes)
{
    return bytes >= HUGE_PAGE_BYTES && atomic_load_explicit(&fills, memory_order_relaxed) &&
           option_get(option_huge_pages) != huge_pages_off;
}
