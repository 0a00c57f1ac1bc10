/* SPDX-License-Identifier: MIT
 *
 * Counting the heap by walking its descriptors: nothing is counted on the fast paths.
 */
#ifndef SUTLER_CORE_SNAPSHOT_H
#define SUTLER_CORE_SNAPSHOT_H

#include "sutler/sutler.h"

/* Takes no lock; other threads go on, so figures can be apart by what was in flight. */
void snapshot_take(struct sutler_stats *stats);

/* Facts that are words: sync mode and why, version. */
void snapshot_write(int fd, bool json);

#endif
