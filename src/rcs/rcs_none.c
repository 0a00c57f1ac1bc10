/* SPDX-License-Identifier: MIT
 *
 * Architectures without sections: the probe never chooses sync_rcs there, so this is never called.
 */
#include "rcs/rcs.h"

#if !defined(__x86_64__)
enum rcs_result rcs_compare_and_store(struct heap *heap, const uint64_t *probe, uint64_t expected, uint64_t *target,
                                      uint64_t value)
{
    (void)heap, (void)probe, (void)expected, (void)target, (void)value;
    return rcs_aborted;
}
#endif
