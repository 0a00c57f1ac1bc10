/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/bits.h"
#include "hardened/hardened.h"
#include "os/os.h"

typedef words16 words16_anywhere __attribute__((aligned(1)));

static bool is_zero(const char *p, size_t bytes)
{
    const char *end = p + bytes;
    for (; end - p >= 256; p += 256) {
        words16 seen = {0, 0};
        for (unsigned i = 0; i < 256; i += 16)
            seen |= *(const words16_anywhere *)(p + i);
        if ((seen[0] | seen[1]) != 0)
            return false;
    }
    while (p < end && *p == 0)
        p++;
    return p == end;
}

void clear_by_pages(char *p, size_t bytes)
{
    char *end = p + bytes, *next;
    for (; p < end; p = next) {
        next = (char *)align_down((uintptr_t)p + os_page_bytes, os_page_bytes);
        next = next < end ? next : end;
        if (!is_zero(p, (size_t)(next - p)))
            memset(p, 0, (size_t)(next - p));
    }
}
