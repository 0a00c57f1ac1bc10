/* SPDX-License-Identifier: MIT
 *
 * Why: what tests and tools ask an engine: its name, the library below it, and its counts.  A program that knows of the
 * last function (bench/support/result.c) asks for the figures at its end.
 */
#include "backend.h"
#include "counts.h"
#include "engine.h"
#include "manager.h"

#include <dlfcn.h>

EXPORT const char *sutler_engine_name(void);
EXPORT const char *sutler_engine_name(void)
{
    return engine.name;
}

EXPORT const char *sutler_engine_backend(void);
EXPORT const char *sutler_engine_backend(void)
{
    Dl_info info;
    void *function = *(void **)&backend.usable;
    return backend_is_open() && dladdr(function, &info) != 0 ? info.dli_fname : "";
}

EXPORT void sutler_engine_counts(void (*each)(const char *name, uint64_t value));
EXPORT void sutler_engine_counts(void (*each)(const char *name, uint64_t value))
{
    struct engine_counts counts = engine_counts;
    if (engine.counts != NULL)
        engine.counts(&counts);
    each("messages", counts.messages);
    each("handed", counts.handed);
    each("sleeps", counts.sleeps);
    each("wakes", counts.wakes);
    each("lock_waits", counts.lock_waits);
    each("buckets", counts.buckets);
    each("attended", counts.attended);
    each("manager_us", manager_cpu_us());
}
