/* SPDX-License-Identifier: MIT
 *
 * The managers' life alone (papers/engines/manager.c), with an engine that only counts: all are started by the first
 * need, each works on what is wished of it, and all stand still from a fork's prepare handler to its end.
 */
#include "../../engines/engine.h" /* not the tests' own */
#include "manager.h"
#include "say.h"
#include "support/check.h"
#include "support/proc.h"

#define MANAGERS 4

static uint32_t steps[MANAGERS], wishes[MANAGERS];

static bool wanted(void)
{
    return LOAD(&wishes[manager_number()]) != 0;
}

/* Works for as long as something is wished for. */
static void manage(void)
{
    manager_begin();
    do {
        while (wanted()) {
            __atomic_fetch_add(&steps[manager_number()], 1, __ATOMIC_RELAXED);
            manager_checkpoint();
        }
    } while (manager_sleep(wanted));
    manager_end();
}

const struct engine engine = {.name = "none", .manage = manage};

const char *engine_option(const char *name)
{
    return getenv(name);
}

static void all_move(void)
{
    for (int i = 0; i < MANAGERS; i++) {
        uint32_t before = LOAD(&steps[i]);
        while (LOAD(&steps[i]) == before)
            sleep_us(100);
    }
}

static void none_moves(void)
{
    uint32_t before[MANAGERS];
    for (int i = 0; i < MANAGERS; i++)
        before[i] = LOAD(&steps[i]);
    sleep_us(20000);
    for (int i = 0; i < MANAGERS; i++)
        CHECK_MSG(LOAD(&steps[i]) == before[i], "manager %d works", i);
}

static void wish(int which, uint32_t what)
{
    STORE(&wishes[which], what);
    manager_wake((unsigned)which);
}

int main(void)
{
    test_watchdog(60);
    manager_count = MANAGERS;
    CHECK(manager_ready());
    none_moves();
    for (int i = 0; i < MANAGERS; i++) {
        wish(i, 1);
        while (LOAD(&steps[i]) == 0)
            sleep_us(100);
        for (int j = i + 1; j < MANAGERS; j++)
            CHECK_MSG(LOAD(&steps[j]) == 0, "manager %d worked with %d", j, i);
    }
    for (int round = 0; round < 20; round++) {
        all_move();
        manager_pause();
        none_moves();
        manager_resume();
    }
    all_move();
    CHECK(manager_cpu_us() > 0);
    return 0;
}
