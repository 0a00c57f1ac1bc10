/* SPDX-License-Identifier: MIT
 *
 * What the sections of malloc and free answer when they are called as functions: shared by C and assembly.
 */
#ifndef SUTLER_CORE_RESULTS_H
#define SUTLER_CORE_RESULTS_H

/* enum hot_pushed */
#define HOT_PUSHED 0
#define HOT_PUSHED_NOTIFY 1
#define HOT_FOREIGN 2
#define HOT_DOUBLE 3
#define HOT_ABORTED 4

/* hot_send, where it does not return a chain. */
#define SEND_KEPT 0
#define SEND_REFUSED 1
#define SEND_DOUBLE 2

#endif
