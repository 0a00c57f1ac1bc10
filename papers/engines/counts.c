/* SPDX-License-Identifier: MIT
 *
 * Why: see counts.h.
 */
#include "counts.h"

struct engine_counts engine_counts;
