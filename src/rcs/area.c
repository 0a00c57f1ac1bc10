/* SPDX-License-Identifier: MIT */
#include "rcs/area.h"

#include "os/os.h"
#include "rcs/hot.h"
#include "rcs/rcs.h"

/* The first version of the kernel's struct rseq: what it fills of it today is 28 bytes. */
#define AREA_BYTES 32

bool area_register_again(void)
{
    char *const thread = own_thread_pointer();
    if (os_rseq_register(thread + hot.rseq, AREA_BYTES, RSEQ_SIGNATURE))
        return true;
    __atomic_store_n((uint32_t *)(thread + hot.cid), SLOT_MAX, __ATOMIC_RELAXED);
    return false;
}

bool area_is_of_libc(void)
{
    return &__rseq_offset != NULL && &__rseq_size != NULL;
}

#ifdef SUTLER_REGISTERS_AREAS
/* The kernel may write to it whenever the thread runs.  glibc keeps a thread's variables until the kernel has left the
 * thread for good. */
THREAD_LOCAL uint32_t area[AREA_BYTES / sizeof(uint32_t)] __attribute__((aligned(AREA_BYTES))) = {
    [RSEQ_CPU_ID / sizeof(uint32_t)] = SLOT_MAX,
    [RSEQ_MM_CID / sizeof(uint32_t)] = SLOT_MAX,
};

bool area_register(void)
{
    return os_rseq_register(area, AREA_BYTES, RSEQ_SIGNATURE);
}

ptrdiff_t area_offset(void)
{
    return (char *)area - (char *)own_thread_pointer();
}
#else
bool area_register(void)
{
    return false;
}

ptrdiff_t area_offset(void)
{
    return 0;
}
#endif
