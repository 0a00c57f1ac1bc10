/* SPDX-License-Identifier: MIT */
#include "heap/ample.h"

#include <stdatomic.h>

#include "heap/demand.h"
#include "os/os.h"

/* Nothing may be kept until a manager says so. */
static _Atomic size_t ample_bytes;
static _Atomic uint64_t ample_until_ns;

void ample_allow(size_t bytes, uint64_t until_ns)
{
    atomic_store(&ample_until_ns, until_ns);
    atomic_store(&ample_bytes, bytes);
}

/* If the manager lives, what it allowed it allowed to this process. */
bool ample_for(size_t bytes)
{
    return atomic_load(&unmap_is_async) && bytes <= atomic_load(&ample_bytes) &&
           os_now_ns() < atomic_load(&ample_until_ns);
}
