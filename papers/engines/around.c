/* SPDX-License-Identifier: MIT
 *
 * Why: see around.h.
 */
#include "around.h"

bool engine_running;
__thread int engine_bypass __attribute__((tls_model("initial-exec"))) = ENGINE_NEWCOMER;
uint32_t engine_forks;
