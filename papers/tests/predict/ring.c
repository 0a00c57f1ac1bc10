/* SPDX-License-Identifier: MIT
 *
 * The ring of answers with as many in it as there may be: the caller's side and the worker's in one thread, so that the
 * worker goes as far as it may at the very moment when the caller has found its answer and not yet read it.
 */
#include "../../predict/worker.c" /* its inside: one answer at a time */

#include "caller.h"
#include "support/check.h"

__thread struct mine mine __attribute__((tls_model("initial-exec")));
char gave_up_mark;
uint32_t manager_state = MANAGER_RUNNING;
unsigned engine_spins;

void manager_begin(void) {}
void manager_end(void) {}
void manager_checkpoint(void) {}
void manager_pause(void) {}
void manager_resume(void) {}
void manager_forget(void) {}
void manager_wake(unsigned which) { (void)which; }
void engine_relax(unsigned *turn) { ++*turn; }

bool manager_sleep(bool (*wanted_by_worker)(void))
{
    return wanted_by_worker();
}

static bool twice(void *unused, const uint64_t *key, uint64_t *result)
{
    (void)unused;
    *result = *key * 2;
    return true;
}

static struct predict_function function = {
    .compute = twice, .words = 2, .results = 1, .kinds = {PREDICT_INTEGER}, .options = {.ahead = AHEAD_MOST}};
static struct predict_client client = {.function = &function, .cost_ticks = 1000000};

/* The calls that the caller has told of: their arguments go up by `step`. */
static void tell(uint64_t first, uint64_t step)
{
    for (uint64_t i = 0; i < 20; i++) {
        uint64_t key[2] = {first + i * step, fp_environment()};
        STORE(&client.x_begun, client.calls + 1);
        history_tell(&client, client.calls++, key);
    }
    STORE(&client.x_history_tail, client.history_next);
    CHECK(learn_history(&client));
}

static uint64_t fill(void)
{
    while (answer_one(&client))
        ;
    return client.x_answers_tail - LOAD(&client.x_valid_from);
}

/* The next calls are as foreseen: each answer is still there when it is read. */
static void take(uint64_t next, uint64_t step, size_t calls)
{
    for (size_t i = 0; i < calls; i++, next += step) {
        uint64_t key[2] = {next, fp_environment()};
        struct predict_call call;
        STORE(&client.x_begun, client.calls + 1);
        struct answer *answer = answer_find(&client, client.calls++, key);
        CHECK_MSG(answer != NULL, "call %zu was not foreseen", i);
        fill();
        CHECK(answer_is_there(&client, answer));
        answer_take(&call, &function, answer->result, answer->flags, answer->error);
        CHECK_MSG(call.result[0] == next * 2, "call %zu got the answer of another", i);
    }
}

int main(void)
{
    test_watchdog(60);
    clock_begin();
    predictor_start(&client.predictor, function.words, function.kinds, 3);
    tell(1000, 3);
    CHECK(fill() == AHEAD_MOST);
    take(1000 + 20 * 3, 3, 1000);
    tell(5000000, 7); /* another history: all that was computed is void, and in the way until the caller comes by */
    CHECK(fill() >= AHEAD_MOST / 2);
    take(5000000 + 20 * 7, 7, 1000);
    CHECK_MSG(fill() - (client.answers_head - client.x_valid_from) == AHEAD_MOST, "fewer are kept ahead than may be");
    return 0;
}
