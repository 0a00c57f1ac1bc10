/* SPDX-License-Identifier: MIT
 *
 * Why: the first calls of a function in a thread are counted and timed; from the threshold on, a function slow enough
 * gets the second thread.
 */
#include "caller.h"

#include <errno.h>
#include <sched.h>

#define REVIEW_NS        10000000
#define HIDDEN_NS        150 /* of a call's cost: lines on their way between processors, which the clock does not see */
#define TIME_ALL_NS      1000 /* a function that takes as long is timed at every call, else at every eighth */
#define PLAIN_OFTEN_NS   1000000

/* The median of the first calls decides: those below the floor can never pay, in no thread. */
static bool is_below_floor(struct predict_client *client)
{
    for (unsigned i = 1; i < COST_SAMPLES; i++) { /* no qsort: it may call malloc */
        uint32_t sample = client->samples[i], j = i;
        for (; j > 0 && client->samples[j - 1] > sample; j--)
            client->samples[j] = client->samples[j - 1];
        client->samples[j] = sample;
    }
    client->cost_ticks = client->samples[COST_SAMPLES / 2] + 1u;
    return client->cost_ticks < ticks_of_ns(client->function->options.floor_ns);
}

static unsigned processors(void)
{
    cpu_set_t cpus;
    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? (unsigned)CPU_COUNT(&cpus) : 2;
}

static void start(struct predict_client *client)
{
    struct predict_function *function = client->function;
    const struct predict_options *options = &function->options;
    bool alone = options->mode != PREDICT_FORCED && processors() < 2;
    if (!alone && (may_be_in_handler() || !manager_ready())) {
        if (LOAD(&manager_state) == MANAGER_FAILED)
            client_give_up(client);
        return;
    }
    bool remembers = options->memo != 0 && memo_make(client);
    if (alone && !remembers) {
        client_give_up(client);
        return;
    }
    uint64_t cost_ns = ns_of_ticks(client->cost_ticks);
    client->timed_mask = cost_ns >= TIME_ALL_NS ? 0 : 7;
    client->plain_mask = options->mode == PREDICT_FORCED ? UINT32_MAX : cost_ns >= PLAIN_OFTEN_NS ? 7 : 63;
    client->review_ticks = ticks_of_ns(REVIEW_NS);
    client->hidden_ticks = ticks_of_ns(HIDDEN_NS);
    client->running_since = client->paid_until = client->trial.began = ticks_now();
    client->running = true;
    client->calls = 0;
    if (__atomic_fetch_add(&function->x_threads, 1, __ATOMIC_RELAXED) == 0)
        stop_before_exit(); /* what the function has made by now will be there until then */
    if (!alone) {
        predictor_start(&client->predictor, function->words, function->kinds, options->order);
        client_arrive(client);
    }
}

void client_watch(struct predict_client *client, uint64_t ticks)
{
    const struct predict_options *options = &client->function->options;
    if (client->calls < COST_SAMPLES)
        client->samples[client->calls] = ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX;
    client->calls++;
    client->counted_calls++;
    if (client->calls == COST_SAMPLES && is_below_floor(client) && options->mode != PREDICT_FORCED) {
        STORE_RELAXED(&client->function->x_off, 1);
        client_give_up(client);
    } else if (client->calls >= options->threshold && (client->calls - options->threshold) % CALLS_A_TRY == 0) {
        int saved = errno;
        start(client);
        errno = saved;
    }
}
