/* SPDX-License-Identifier: MIT
 *
 * Why: the switch-off.  Whether it pays is measured as it is used.  Some calls are timed from beginning to end
 * (`with`), some are not looked up at all and only the original is timed (`plain`).  A review compares the two every 10
 * ms.  A gain counts if it is two per cent, more than the clock does not see, and if there was an answer to gain by: a
 * loaded machine makes gains of nothing.  Seven reviews in a row without a gain, or one after 80 ms without, and this
 * thread gives the function up: for good if it never paid, else for 100 ms, and then for twice as long each time, up to
 * 10 s.  When four threads have given up for good, or the function takes less than the floor, nobody asks any more.  A
 * single measurement counts as at most 16 times the usual, so that a preemption decides nothing.
 */
#include "caller.h"

#define BAD_REVIEWS      7u
#define PATIENCE_NS      80000000
#define VOTES            4u
#define REST_NS          100000000
#define REST_MOST_NS     10000000000
#define SAMPLE_MOST      16u

void client_add_counts(struct predict_client *client)
{
    struct predict_function *function = client->function;
    struct {
        uint64_t *total, *own;
    } rows[] = {
        {&function->x_calls, &client->counted_calls}, {&function->x_hits, &client->hits},
        {&function->x_memo_hits, &client->memo_hits}, {&function->x_late, &client->late},
        {&function->x_wrong, &client->wrong},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        __atomic_fetch_add(rows[i].total, *rows[i].own, __ATOMIC_RELAXED);
        *rows[i].own = 0;
    }
}

/* The calling thread's client is nobody's business any more. */
static void retire(struct predict_client *client)
{
    client_add_counts(client);
    if (!client->listed) {
        client_free(client);
        return;
    }
    STORE(&client->x_retired, 1);
    manager_wake(0);
}

void client_give_up(struct predict_client *client)
{
    struct predict_function *function = client->function;
    if (client->running) {
        STORE_RELAXED(&function->x_off_after_us, ns_of_ticks(ticks_now() - client->running_since) / 1000);
        if (__atomic_add_fetch(&function->x_votes, 1, __ATOMIC_RELAXED) >= VOTES)
            STORE_RELAXED(&function->x_off, 1);
    }
    mine.clients[function->slot] = GAVE_UP;
    retire(client);
}

void trial_add(const struct predict_client *client, uint64_t *sum, uint64_t *count, uint64_t ticks)
{
    uint64_t most = client->cost_ticks * SAMPLE_MOST;
    *sum += ticks < most ? ticks : most;
    ++*count;
}

/* It has paid before, and may again: another process took the processor, or the program is in another phase. */
static void rest(struct predict_client *client, uint64_t now)
{
    uint64_t most = ticks_of_ns(REST_MOST_NS);
    client->rest_ticks = client->rest_ticks == 0 ? ticks_of_ns(REST_NS) : client->rest_ticks * 2;
    if (client->rest_ticks > most)
        client->rest_ticks = most;
    client->rest_until = now + client->rest_ticks;
    client->resting = true;
}

bool trial_is_resting(struct predict_client *client)
{
    if (++client->rest_calls % CALLS_A_TRY != 0)
        return true;
    uint64_t now = ticks_now();
    if (now < client->rest_until)
        return true;
    client->resting = false;
    client->bad_reviews = 0;
    client->paid_until = now;
    client->trial = (struct trial){.began = now};
    return false;
}

/* False: given up, or for a time. */
bool trial_review(struct predict_client *client, uint64_t now)
{
    struct trial *trial = &client->trial;
    if (client->function->options.mode == PREDICT_FORCED || trial->with_calls < 8 || trial->plain_calls == 0)
        return true;
    uint64_t with = trial->with_ticks / trial->with_calls, plain = trial->plain_ticks / trial->plain_calls;
    bool pays = trial->answers != 0 && with + with / 50 + client->hidden_ticks < plain && !worker_is_crowded();
    client->cost_ticks = (client->cost_ticks * 3 + plain) / 4 + 1;
    *trial = (struct trial){.began = now};
    client_add_counts(client);
    if (pays) {
        client->bad_reviews = 0;
        client->paid_until = now;
        client->paid = true;
        client->rest_ticks = 0;
        return true;
    }
    client->bad_reviews++;
    if (client->bad_reviews < BAD_REVIEWS && now - client->paid_until < ticks_of_ns(PATIENCE_NS))
        return true;
    if (client->paid) {
        rest(client, now);
        return false;
    }
    client_give_up(client);
    return false;
}

bool trial_is_due(const struct predict_client *client, uint64_t now)
{
    return client->trial.with_calls >= 8 && now - client->trial.began > client->review_ticks;
}
