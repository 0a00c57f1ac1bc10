/* SPDX-License-Identifier: MIT
 *
 * Why: what the files of the caller's side (see client.h) have of each other.  All of it is for the calling thread's
 * own clients, within predict_ask() and predict_done(), but where it says otherwise.
 */
#ifndef PREDICT_CALLER_H
#define PREDICT_CALLER_H

#include "client.h"

#define CALLS_A_TRY 64u /* for what is not worth a look at the clock each time */

/* The clients of the calling thread. */
struct mine {
    struct predict_client *clients[PREDICT_FUNCTIONS];
    uint32_t inside; /* of predict_ask() or predict_done(): a signal handler goes to the original */
};
extern __thread struct mine mine __attribute__((tls_model("initial-exec")));

extern char gave_up_mark;
#define GAVE_UP ((struct predict_client *)(void *)&gave_up_mark)

static inline bool is_client(const struct predict_client *client)
{
    return client != NULL && client != GAVE_UP;
}

/* clock.c */
void clock_begin(void);
uint64_t now_ns(void);
uint64_t ticks_of_ns(uint64_t ns);
uint64_t ns_of_ticks(uint64_t ticks);

/* life.c */
struct predict_client *client_new(struct predict_function *function); /* watched; GAVE_UP if there is no memory */
bool may_be_in_handler(void);
void stop_before_exit(void); /* what a function uses is destroyed by exit() only when nothing is computed any more */

/* watch.c */
void client_watch(struct predict_client *client, uint64_t ticks); /* a call took so long; the client may be gone */

/* trial.c: whether it pays */
void client_add_counts(struct predict_client *client);
void client_give_up(struct predict_client *client); /* it is gone */
void trial_add(const struct predict_client *client, uint64_t *sum, uint64_t *count, uint64_t ticks);
bool trial_is_due(const struct predict_client *client, uint64_t now);
bool trial_review(struct predict_client *client, uint64_t now); /* false: given up, or for a time */
bool trial_is_resting(struct predict_client *client);

/* history.c */
void history_tell(struct predict_client *client, uint64_t number, const uint64_t *key);
void history_publish(struct predict_client *client);

/* answers.c */
struct answer *answer_find(struct predict_client *client, uint64_t number, const uint64_t *key);
bool answer_is_there(struct predict_client *client, struct answer *answer);
void answer_take(struct predict_call *call, const struct predict_function *function, const uint64_t *result,
                 uint32_t flags, int error);

/* memo.c */
bool memo_make(struct predict_client *client);
bool memo_ask(struct predict_client *client, struct predict_call *call);
void memo_keep(struct predict_client *client, struct predict_call *call);

/* options.c */
struct predict_options options_whole(struct predict_options options); /* with the defaults, within the limits */

#endif
