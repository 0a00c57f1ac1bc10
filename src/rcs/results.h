/* SPDX-License-Identifier: MIT
 *
 * What a section answers: shared by C (enum rcs_result) and assembly.
 */
#ifndef SUTLER_RCS_RESULTS_H
#define SUTLER_RCS_RESULTS_H

#define RCS_DONE 0
#define RCS_CHANGED 1
#define RCS_MOVED 2
#define RCS_ABORTED 3

#endif
