/* SPDX-License-Identifier: MIT
 *
 * Why: the caller's side of a call (see predict.h and client.h).
 */
#include "caller.h"

enum { WATCHED = 1, PLAIN, TIMED, UNTIMED };

#define ORDER_WITHIN_THREAD() __atomic_signal_fence(__ATOMIC_SEQ_CST)

char gave_up_mark;
__thread struct mine mine __attribute__((tls_model("initial-exec")));

static bool ask_running(struct predict_client *client, struct predict_call *call)
{
    if (UNLIKELY(client->resting) && trial_is_resting(client)) {
        call->client = NULL;
        return false;
    }
    uint64_t number = client->calls;
    bool timed = (number & client->timed_mask) == 0;
    if (timed) {
        call->began = ticks_now();
        if (UNLIKELY(trial_is_due(client, call->began)) && !trial_review(client, call->began)) {
            call->client = NULL;
            return false;
        }
    }
    client->calls++;
    client->counted_calls++;
    STORE_RELAXED(&client->x_begun, client->calls);
    history_tell(client, number, call->key);
    if ((number & client->plain_mask) == client->plain_mask) {
        call->why = PLAIN;
        call->began = ticks_now();
        return false;
    }
    call->why = timed ? TIMED : UNTIMED;
    struct answer *answer = answer_find(client, number, call->key);
    if (answer != NULL && answer_is_there(client, answer)) {
        client->hits++;
        client->trial.answers++;
        answer_take(call, client->function, answer->result, answer->flags, answer->error);
    } else if (client->memos == NULL || !memo_ask(client, call)) {
        return false;
    }
    if (timed)
        trial_add(client, &client->trial.with_ticks, &client->trial.with_calls, ticks_now() - call->began);
    return true;
}

static bool ask_watched(struct predict_client *client, struct predict_call *call)
{
    call->why = WATCHED;
    call->began = client->calls < COST_SAMPLES ? ticks_now() : 0;
    return false;
}

EXPORT bool predict_ask(struct predict_function *function, struct predict_call *call)
{
    call->client = NULL;
    uint32_t environment = fp_environment();
    if (LOAD_RELAXED(&function->x_off) || mine.inside || !fp_environment_is_quiet(environment))
        return false;
    mine.inside = 1; /* first: a handler's call may end the client */
    ORDER_WITHIN_THREAD();
    struct predict_client *client = mine.clients[function->slot];
    bool answered = false;
    if (client == NULL)
        client = client_new(function);
    if (client != GAVE_UP) {
        call->key[function->words - 1] = environment;
        call->client = client;
        answered = client->running ? ask_running(client, call) : ask_watched(client, call);
    }
    ORDER_WITHIN_THREAD();
    mine.inside = 0;
    return answered;
}

static void client_done(struct predict_client *client, struct predict_call *call, uint64_t ticks)
{
    if (call->why == WATCHED)
        client_watch(client, ticks);
    else if (call->why == PLAIN)
        trial_add(client, &client->trial.plain_ticks, &client->trial.plain_calls, ticks);
    else if (client->memos != NULL)
        memo_keep(client, call);
    if (call->why == TIMED)
        trial_add(client, &client->trial.with_ticks, &client->trial.with_calls, ticks);
}

EXPORT void predict_done(struct predict_function *function, struct predict_call *call)
{
    if (call->client == NULL || mine.inside)
        return;
    uint64_t ticks = call->why == UNTIMED ? 0 : ticks_now() - call->began;
    mine.inside = 1;
    ORDER_WITHIN_THREAD();
    if (call->client == mine.clients[function->slot]) /* else it was ended since, in a fork or a handler */
        client_done(call->client, call, ticks);
    ORDER_WITHIN_THREAD();
    mine.inside = 0;
}
