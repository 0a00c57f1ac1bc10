/* SPDX-License-Identifier: MIT
 *
 * What the engines' tests share: proof that the engine and the backend that were asked for are the ones that serve,
 * since a test that passes over glibc proves nothing about an engine.
 */
#ifndef TESTS_ENGINES_ENGINE_H
#define TESTS_ENGINES_ENGINE_H

#include "support/check.h"
#include "support/pattern.h"
#include "support/rng.h"

#include <sys/time.h>

extern const char *sutler_engine_name(void) __attribute__((weak));
extern const char *sutler_engine_backend(void) __attribute__((weak));

static volatile sig_atomic_t engine_seconds;

static inline void engine_second_passed(int signal_number)
{
    if (--engine_seconds == 0)
        test_watchdog_fired(signal_number);
}

/* Instead of test_watchdog: counts seconds in which this process could run.  While it is stopped or frozen its timer
 * expires once, so that a machine that stands still is not taken for a hang.  Not inherited by a fork. */
static inline void engine_watchdog(unsigned seconds)
{
    const char *text = getenv("TEST_TIMEOUT");
    struct sigaction action = {.sa_handler = engine_second_passed, .sa_flags = SA_RESTART};
    struct itimerval every_second = {{1, 0}, {1, 0}};
    engine_seconds = text != NULL ? (sig_atomic_t)strtoul(text, NULL, 10) : (sig_atomic_t)seconds;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &every_second, NULL) == 0);
}

static inline void engine_begin(unsigned watchdog_seconds)
{
    const char *engine = getenv("TEST_ENGINE"), *backend = getenv("TEST_BACKEND");
    engine_watchdog(watchdog_seconds);
    if (engine != NULL) {
        CHECK_MSG(sutler_engine_name != NULL, "no engine serves malloc");
        CHECK_MSG(strcmp(sutler_engine_name(), engine) == 0, "engine %s serves, not %s", sutler_engine_name(), engine);
    }
    if (backend != NULL) {
        CHECK_MSG(strstr(sutler_engine_backend(), backend) != NULL, "%s is the backend, not %s",
                  sutler_engine_backend(), backend);
    }
}

#endif
