/* SPDX-License-Identifier: MIT
 *
 * Why: what the worker computed ahead, looked for by the caller (client.h).
 */
#include "caller.h"

#include <errno.h>
#include <string.h>

/* The answer for this call, perhaps still being computed; those for calls that are over are dropped. */
struct answer *answer_find(struct predict_client *client, uint64_t number, const uint64_t *key)
{
    struct answer *found = NULL;
    uint64_t wrong = 0, head = client->answers_head, tail = LOAD(&client->x_answers_tail),
             valid = LOAD(&client->x_valid_from);
    if (head < valid)
        head = valid;
    for (; head < tail && found == NULL; head++) {
        struct answer *answer = &client->answers[head % ANSWER_SLOTS];
        if (predict_keys_equal(answer->key, key, client->function->words))
            found = answer;
        else if (answer->number > number)
            break;
        else
            wrong |= answer->number == number;
    }
    client->wrong += wrong;
    /* The sooner the worker knows, the fewer are wrong, or the sooner it can go on guessing. */
    if (wrong || (head == tail && LOAD_RELAXED(&client->x_stalled)))
        history_publish(client);
    if (head != client->answers_head) {
        client->answers_head = head;
        STORE(&client->x_answers_head, head);
    }
    return found;
}

/* An answer that is being computed is waited for if it was begun about half of the function's time ago; a younger one
 * is not: to compute it here takes little longer, and the worker gets ahead meanwhile. */
bool answer_is_there(struct predict_client *client, struct answer *answer)
{
    uint32_t state = LOAD(&answer->x_state);
    uint64_t now = state == ANSWER_PENDING ? ticks_now() : 0;
    if (state == ANSWER_PENDING && now - answer->began < client->cost_ticks / 2)
        STORE_RELAXED(&client->x_refused, client->x_refused + 1);
    else if (state == ANSWER_PENDING && engine_spins > 0) {
        while ((state = LOAD(&answer->x_state)) == ANSWER_PENDING && ticks_now() - now < client->cost_ticks)
            engine_pause();
    }
    client->late += state != ANSWER_READY;
    return state == ANSWER_READY;
}

void answer_take(struct predict_call *call, const struct predict_function *function, const uint64_t *result,
                 uint32_t flags, int error)
{
    memcpy(call->result, result, function->results * sizeof *result);
    fp_raise_flags(flags);
    if (error != 0)
        errno = error;
}

static bool is_settled(struct predict_client *client)
{
    if (LOAD(&client->x_history_head) != client->history_next)
        return false;
    uint64_t valid = LOAD(&client->x_valid_from), tail = LOAD(&client->x_answers_tail);
    if (client->answers_head < valid) {
        client->answers_head = valid;
        STORE(&client->x_answers_head, valid);
    }
    if (!LOAD(&client->x_stalled) && tail - client->answers_head < client->function->options.ahead)
        return false;
    return tail == client->answers_head || LOAD(&client->answers[(tail - 1) % ANSWER_SLOTS].x_state) != ANSWER_PENDING;
}

EXPORT bool predict_settle(struct predict_function *function, unsigned ms)
{
    struct predict_client *client = mine.clients[function->slot];
    if (!is_client(client) || !client->listed)
        return false;
    history_publish(client);
    uint64_t end = now_ns() + ms * UINT64_C(1000000);
    bool settled;
    for (unsigned turn = 0; !(settled = is_settled(client)) && now_ns() < end;) {
        manager_wake(0);
        engine_relax(&turn);
    }
    return settled;
}
