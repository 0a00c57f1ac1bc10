/* SPDX-License-Identifier: MIT
 *
 * The proof, at the start: a section that waits for a signal which it has a timer send.  The interrupt comes to the cpu
 * the section runs on, and the same thread goes on there afterwards: only an abort tells it that something came in
 * between.  The kernel decides on this abort where it decides on those of preempted sections, on its way back from an
 * interrupt to the program; 6.19 forgets both.  So if the section is preempted before the signal comes, that proves it
 * as well.
 */
#include "rcs/restart.h"

#if defined(__aarch64__)
#include "os/os.h"

/* Waits longer if the signal was too early or too late for the section: the machine may be slow, or emulated. */
#define DELAY_NS     20000ul
#define DELAY_NS_MAX (DELAY_NS << 10)
#define TURNS_A_NS   4

bool restart_is_proven(void)
{
    enum rcs_result result = rcs_done;
    bool went_on = false;
    if (os_is_filtered())
        return false; /* the calls that this takes could end the process */
    for (uint64_t delay_ns = DELAY_NS; result != rcs_aborted && !went_on && delay_ns <= DELAY_NS_MAX; delay_ns *= 2) {
        struct os_interruption interruption = {0};
        if (!os_interrupt_begin(&interruption, delay_ns))
            return false;
        result = rcs_linger(&interruption.inside, &interruption.happened, delay_ns * TURNS_A_NS);
        os_interrupt_end(&interruption);
        went_on = result == rcs_changed && interruption.was_inside;
    }
    rcs_restarts = 0; /* only those count that cost a program something */
    return result == rcs_aborted;
}

/* Before 6.9 two threads could be given the same mm_cid at once: the kernel counted on a memory barrier when it
 * switches to another process, which aarch64 has not.  Some earlier releases were corrected, too; which ones does not
 * matter, for the cpu's number serves as well, but for locality. */
bool mm_cid_is_sound(void)
{
    return os_kernel_release() >= 6009;
}
#endif
