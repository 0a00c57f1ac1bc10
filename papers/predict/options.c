/* SPDX-License-Identifier: MIT
 *
 * Why: the options of predict.h: what stands for nothing, what is too much, and what the environment says.
 */
#include "caller.h"

#include <stdlib.h>
#include <string.h>

static uint32_t or_default(uint32_t value, uint32_t otherwise, uint32_t most)
{
    return value == 0 ? otherwise : value < most ? value : most;
}

struct predict_options options_whole(struct predict_options options)
{
    options.ahead = or_default(options.ahead, 32, AHEAD_MOST);
    options.handover = or_default(options.handover, 4, 64);
    options.order = or_default(options.order, 3, CONTEXT_ORDER);
    options.threshold = or_default(options.threshold, 512, UINT32_MAX);
    options.floor_ns = or_default(options.floor_ns, 400, UINT32_MAX);
    if (options.threshold < COST_SAMPLES + 1)
        options.threshold = COST_SAMPLES + 1;
    options.memo = or_default(options.memo, 0, 1u << 20);
    while ((options.memo & (options.memo - 1)) != 0) /* down to a power of two */
        options.memo &= options.memo - 1;
    return options;
}

static uint32_t number_from_environment(const char *name)
{
    const char *text = secure_getenv(name);
    return text != NULL ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

EXPORT struct predict_options predict_options_from_environment(void)
{
    const char *mode = secure_getenv("SUTLER_PREDICT");
    return (struct predict_options){
        .mode = mode == NULL ? PREDICT_AUTO
                : strcmp(mode, "off") == 0 ? PREDICT_OFF
                : strcmp(mode, "force") == 0 ? PREDICT_FORCED : PREDICT_AUTO,
        .ahead = number_from_environment("SUTLER_PREDICT_AHEAD"),
        .handover = number_from_environment("SUTLER_PREDICT_HANDOVER"),
        .memo = number_from_environment("SUTLER_PREDICT_MEMO"),
        .order = number_from_environment("SUTLER_PREDICT_ORDER"),
        .threshold = number_from_environment("SUTLER_PREDICT_THRESHOLD"),
        .floor_ns = number_from_environment("SUTLER_PREDICT_FLOOR_NS"),
    };
}
