/* SPDX-License-Identifier: MIT */
#include "hardened/own.h"

#include <stdatomic.h>

#include "base/bits.h"
#include "os/os.h"

#define RANGES_MAX 128u
#define WORDS_BYTES 16u

static struct os_span range[RANGES_MAX]; /* `end` is stored last; 0: not yet */
static _Atomic unsigned ranges;

void own_note(const void *start, size_t bytes)
{
    const unsigned i = atomic_fetch_add(&ranges, 1);
    CHECK(i < RANGES_MAX);
    range[i].start = align_up((uintptr_t)start, WORDS_BYTES); /* what goes on behind it begins with a whole word */
    __atomic_store_n(&range[i].end, align_down((uintptr_t)start + bytes, WORDS_BYTES), __ATOMIC_RELEASE);
}

bool own_has_room(void)
{
    return atomic_load(&ranges) < RANGES_MAX / 2; /* those who were told so note later, and at the start nobody asks */
}

/* Of this file's library, or program. */
extern const char __bss_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));

void own_note_variables(void)
{
    if (os_is_shared_library())
        own_note(__bss_start, (size_t)(_end - __bss_start));
}

void *own_map(size_t bytes)
{
    bytes = align_up(bytes, os_page_bytes);
    void *made = os_map(bytes);
    if (made != NULL)
        own_note(made, bytes);
    return made;
}

bool own_range_after(uintptr_t at, struct os_span *found)
{
    *found = (struct os_span){UINTPTR_MAX, UINTPTR_MAX};
    for (unsigned i = 0; i < min_size(atomic_load(&ranges), RANGES_MAX); i++) {
        uintptr_t end = __atomic_load_n(&range[i].end, __ATOMIC_ACQUIRE);
        if (end > at && range[i].start < found->start)
            *found = (struct os_span){range[i].start, end};
    }
    return found->start != UINTPTR_MAX;
}
