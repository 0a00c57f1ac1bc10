/* SPDX-License-Identifier: MIT
 *
 * What the engines' tests share: proof that the engine and the backend that were asked for are the ones that serve, since a
 * test that passes over glibc proves nothing about an engine.
 */
#ifndef TESTS_ENGINES_ENGINE_H
#define TESTS_ENGINES_ENGINE_H

#include "support/check.h"
#include "support/pattern.h"
#include "support/rng.h"

extern const char *sutler_engine_name(void) __attribute__((weak));
extern const char *sutler_engine_backend(void) __attribute__((weak));

static inline void engine_begin(unsigned watchdog_seconds)
{
    const char *engine = getenv("TEST_ENGINE"), *backend = getenv("TEST_BACKEND");
    test_watchdog(watchdog_seconds);
    if (engine != NULL) {
        CHECK_MSG(sutler_engine_name != NULL, "no engine serves malloc");
        CHECK_MSG(strcmp(sutler_engine_name(), engine) == 0, "engine %s serves, not %s", sutler_engine_name(), engine);
    }
    if (backend != NULL) {
        CHECK_MSG(strstr(sutler_engine_backend(), backend) != NULL, "%s is the backend, not %s", sutler_engine_backend(),
                  backend);
    }
}

#endif
