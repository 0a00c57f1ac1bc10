/* SPDX-License-Identifier: MIT */
#include "hardened/trace.h"

#include <stdatomic.h>

#include "base/bits.h"
#include "hardened/own.h"
#include "marks/marks.h"
#include "os/os.h"

static struct freed *_Atomic ring; /* marks.trace entries */
static _Atomic uint64_t total;

static COLD struct freed *start(void)
{
    size_t bytes = align_up(marks.trace * sizeof(struct freed), os_page_bytes);
    struct freed *made = os_map(bytes), *none = NULL;
    if (made == NULL)
        return NULL;
    if (!atomic_compare_exchange_strong(&ring, &none, made)) {
        os_unmap(made, bytes);
        return none;
    }
    own_note(made, bytes); /* what was freed is not pointed to by that */
    return made;
}

/* An entry that is being overwritten is one of two frees, or a mix of both: a report is no proof. */
void trace_free(const void *p, size_t size, const void *caller)
{
    struct freed *r = atomic_load(&ring);
    if (r == NULL && (r = start()) == NULL)
        return;
    uint64_t number = atomic_fetch_add(&total, 1) + 1;
    r[number % marks.trace] = (struct freed){p, size, caller, os_thread_id(), number};
}

struct freed trace_find(const void *p)
{
    struct freed *r = atomic_load(&ring), found = {0};
    for (uint32_t i = 0; r != NULL && i < marks.trace; i++)
        if (r[i].block == p && r[i].number > found.number)
            found = r[i];
    return found;
}

uint64_t trace_total(void)
{
    return atomic_load(&total);
}
