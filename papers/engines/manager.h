/* SPDX-License-Identifier: MIT
 *
 * Why: the second thread's life, for engines and for the entry layer (manager.c).
 */
#ifndef ENGINES_MANAGER_H
#define ENGINES_MANAGER_H

#include "base.h"

enum manager_state { MANAGER_ABSENT, MANAGER_STARTING, MANAGER_RUNNING, MANAGER_FAILED };
extern uint32_t manager_state;

/* One, or as many as SUTLER_ENGINE_MANAGERS says where the engine's start reads it.  Does not change after that. */
#define MANAGERS_MOST 8u
extern unsigned manager_count;
void managers_read(void); /* start.c */

/* By any thread that holds no lock; starts all.  False: there is none (yet). */
bool manager_start(void);

/* True when the manager can be asked; starts it if there is none yet. */
static inline bool manager_ready(void)
{
    return LIKELY(LOAD(&manager_state) == MANAGER_RUNNING) || manager_start();
}

/* By a manager, about itself.  manage() works between begin and end; a fork waits for end, sleep or checkpoint. */
void manager_begin(void);
void manager_end(void);
void manager_checkpoint(void);
bool manager_sleep(bool (*wanted)(void)); /* false: only managers are left, manage() must return */
bool manager_is_alone(void);
unsigned manager_number(void); /* from 0 */

/* By the program's threads. */
void manager_wake(unsigned which); /* after the work was published with plain stores */
bool manager_await(uint32_t *word, uint32_t value, uint32_t *waiting); /* false: *word is `value` still, go around */
void manager_answer(uint32_t *word, const uint32_t *waiting);          /* the manager, after *word was stored */

/* Of a forking thread: nothing of any manager's is half-done between pause and resume. */
void manager_pause(void);
void manager_resume(void);
void manager_forget(void); /* in the child */

void manager_main_ends(void);      /* the main thread does, others may go on */
void manager_main_is_silent(void); /* it will not say so */
uint64_t manager_cpu_us(void);

/* Brief spinning, then nothing: 0 where the process may run on one cpu only. */
extern unsigned engine_spins;
void engine_relax(unsigned *turn); /* one step of a wait that has no futex: spin, then yield, then sleep shortly */

#endif
