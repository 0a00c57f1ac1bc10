/* SPDX-License-Identifier: MIT
 *
 * Why: the caller's side (see predict.h and client.h): counting and timing at first, then looking for answers, and giving
 * up when that does not pay.
 *
 * Whether it pays is measured as it is used.  Some calls are timed from beginning to end (`with`), some are not looked up
 * at all and only the original is timed (`plain`).  A review compares the two every 10 ms.  A gain counts if it is two per
 * cent, and more than the clock does not see.  Seven reviews in a row without a gain, or one after 80 ms without, and this
 * thread gives the function up: for good if it never paid, else for 100 ms, and then for twice as long each time, up to
 * 10 s.  When four threads have given up for good, or the function takes less than the floor, nobody asks any more.  A
 * single measurement counts as at most 16 times the usual, so that a preemption decides nothing.
 */
#include "client.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REVIEW_NS        10000000
#define HIDDEN_NS        150 /* of a call's cost: lines on their way between processors, which the clock does not see */
#define BAD_REVIEWS      7u
#define PATIENCE_NS      80000000
#define VOTES            4u
#define REST_NS          100000000
#define REST_MOST_NS     10000000000
#define CALLS_A_TRY      64u /* to start the second thread */
#define SAMPLE_MOST      16u
#define TIME_ALL_NS      1000   /* a function that takes as long is timed at every call, else at every eighth */
#define PLAIN_OFTEN_NS   1000000

enum { WATCHED = 1, PLAIN, TIMED, UNTIMED };

#define ORDER_WITHIN_THREAD() __atomic_signal_fence(__ATOMIC_SEQ_CST)

static char gave_up_mark;
#define GAVE_UP ((struct predict_client *)(void *)&gave_up_mark)

static __thread struct {
    struct predict_client *clients[PREDICT_FUNCTIONS];
    uint32_t inside; /* of this file: a signal handler goes to the original */
} mine __attribute__((tls_model("initial-exec")));

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;
static char main_thread_mark;
static uint32_t slots_used;
static struct predict_function *functions[PREDICT_FUNCTIONS]; /* NULL: closed.  Under the manager's lock */
static uint64_t first_ticks, first_ns, blocked_at_start;

/* -------------------------------------------------------------------------------------------------------- time */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The clock's rate is what it was since the start. */
static uint64_t ticks_of_ns(uint64_t ns)
{
    uint64_t ticks = ticks_now() - first_ticks, passed_ns = now_ns() - first_ns;
    return (uint64_t)((unsigned __int128)ns * ticks / (passed_ns != 0 ? passed_ns : 1));
}

static uint64_t ns_of_ticks(uint64_t ticks)
{
    uint64_t passed = ticks_now() - first_ticks, ns = now_ns() - first_ns;
    return (uint64_t)((unsigned __int128)ticks * ns / (passed != 0 ? passed : 1));
}

/* -------------------------------------------------------------------------------------------- counts, giving up */

static void add_counts(struct predict_client *client)
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
    add_counts(client);
    if (!client->listed) {
        client_free(client);
        return;
    }
    STORE(&client->x_retired, 1);
    manager_wake();
}

static void give_up(struct predict_client *client)
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

/* -------------------------------------------------------------------------------------------- watching, starting */

static struct predict_client *client_new(struct predict_function *function)
{
    struct predict_client *client =
        mmap(NULL, sizeof *client, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (client == MAP_FAILED || pthread_setspecific(thread_key, &main_thread_mark) != 0) {
        if (client != MAP_FAILED)
            munmap(client, sizeof *client);
        mine.clients[function->slot] = GAVE_UP;
        return NULL;
    }
    client->function = function;
    client->bytes = sizeof *client;
    return mine.clients[function->slot] = client;
}

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

static uint64_t blocked_signals(void)
{
    uint64_t blocked = UINT64_MAX;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &blocked, sizeof blocked);
    return blocked;
}

/* A thread must not be made in a signal handler.  In one, a signal is blocked that the process did not begin with. */
static bool may_be_in_handler(void)
{
    return (blocked_signals() & ~blocked_at_start) != 0;
}

static unsigned processors(void)
{
    cpu_set_t cpus;
    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? (unsigned)CPU_COUNT(&cpus) : 2;
}

static bool make_memos(struct predict_client *client)
{
    client->memo_bytes = client->function->options.memo * sizeof *client->memos;
    client->memos =
        mmap(NULL, client->memo_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (client->memos == MAP_FAILED)
        client->memos = NULL;
    return client->memos != NULL;
}

static void start(struct predict_client *client)
{
    struct predict_function *function = client->function;
    const struct predict_options *options = &function->options;
    bool alone = options->mode != PREDICT_FORCED && processors() < 2;
    if (!alone && (may_be_in_handler() || !manager_ready())) {
        if (LOAD(&manager_state) == MANAGER_FAILED)
            give_up(client);
        return;
    }
    bool remembers = options->memo != 0 && make_memos(client);
    if (alone && !remembers) {
        give_up(client);
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
    __atomic_fetch_add(&function->x_threads, 1, __ATOMIC_RELAXED);
    if (!alone) {
        predictor_start(&client->predictor, function->words, function->kinds, options->order);
        client_arrive(client);
    }
}

static void watch(struct predict_client *client, uint64_t ticks)
{
    const struct predict_options *options = &client->function->options;
    if (client->calls < COST_SAMPLES)
        client->samples[client->calls] = ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX;
    client->calls++;
    client->counted_calls++;
    if (client->calls == COST_SAMPLES && is_below_floor(client) && options->mode != PREDICT_FORCED) {
        STORE_RELAXED(&client->function->x_off, 1);
        give_up(client);
    } else if (client->calls >= options->threshold && (client->calls - options->threshold) % CALLS_A_TRY == 0) {
        int saved = errno;
        start(client);
        errno = saved;
    }
}

/* ---------------------------------------------------------------------------------------------------- reviewing */

static void add_sample(const struct predict_client *client, uint64_t *sum, uint64_t *count, uint64_t ticks)
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

static bool is_resting(struct predict_client *client)
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
static bool review(struct predict_client *client, uint64_t now)
{
    struct trial *trial = &client->trial;
    if (client->function->options.mode == PREDICT_FORCED || trial->with_calls < 8 || trial->plain_calls == 0)
        return true;
    uint64_t with = trial->with_ticks / trial->with_calls, plain = trial->plain_ticks / trial->plain_calls;
    bool pays = with + with / 50 + client->hidden_ticks < plain && !worker_is_crowded();
    client->cost_ticks = (client->cost_ticks * 3 + plain) / 4 + 1;
    *trial = (struct trial){.began = now};
    add_counts(client);
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
    int saved = errno;
    give_up(client);
    errno = saved;
    return false;
}

static bool review_is_due(const struct predict_client *client, uint64_t now)
{
    return client->trial.with_calls >= 8 && now - client->trial.began > client->review_ticks;
}

/* ------------------------------------------------------------------------------------------------------ running */

static void publish_history(struct predict_client *client)
{
    if (!client->listed)
        return;
    client->history_published = client->history_next;
    STORE(&client->x_history_tail, client->history_next);
    manager_wake();
}

static void tell_history(struct predict_client *client, uint64_t number, const uint64_t *key)
{
    if (client->history_next - LOAD(&client->x_history_head) < HISTORY_SLOTS) {
        struct history *entry = &client->history[client->history_next++ % HISTORY_SLOTS];
        entry->number = number;
        memcpy(entry->key, key, client->function->words * sizeof *key);
    }
    if (client->history_next - client->history_published >= client->function->options.handover)
        publish_history(client);
}

/* The answer for this call, perhaps still being computed; those for calls that are over are dropped. */
static struct answer *find_answer(struct predict_client *client, uint64_t number, const uint64_t *key)
{
    struct answer *found = NULL;
    uint64_t wrong = 0, head = client->answers_head, tail = LOAD(&client->x_answers_tail), valid = LOAD(&client->x_valid_from);
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
        publish_history(client);
    if (head != client->answers_head) {
        client->answers_head = head;
        STORE(&client->x_answers_head, head);
    }
    return found;
}

/* An answer that is being computed is waited for if it was begun about half of the function's time ago; a younger one is
 * not: to compute it here takes little longer, and the worker gets ahead meanwhile. */
static bool is_there(struct predict_client *client, struct answer *answer)
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

static void take(struct predict_call *call, const struct predict_function *function, const uint64_t *result,
                 uint32_t flags, int error)
{
    memcpy(call->result, result, function->results * sizeof *result);
    fp_raise_flags(flags);
    if (error != 0)
        errno = error;
}

static struct memo *memo_of(struct predict_client *client, const uint64_t *key)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < client->function->words; i++)
        hash = (hash ^ key[i] ^ hash >> 29) * UINT64_C(0x9E3779B97F4A7C15);
    return &client->memos[(hash >> 32) & (client->function->options.memo - 1)];
}

/* errno and the flags are set aside until predict_done(), to see what the original does to them. */
static bool ask_memo(struct predict_client *client, struct predict_call *call)
{
    const struct memo *memo = memo_of(client, call->key);
    if (memo->used && predict_keys_equal(memo->key, call->key, client->function->words)) {
        client->memo_hits++;
        take(call, client->function, memo->result, memo->flags, memo->error);
        return true;
    }
    call->error = errno;
    errno = 0;
    call->flags = fp_take_flags();
    return false;
}

static void keep_memo(struct predict_client *client, struct predict_call *call)
{
    const struct predict_function *function = client->function;
    struct memo *memo = memo_of(client, call->key);
    memo->used = true;
    memo->flags = fp_take_flags();
    memo->error = errno;
    memcpy(memo->key, call->key, function->words * sizeof *memo->key);
    memcpy(memo->result, call->result, function->results * sizeof *memo->result);
    fp_raise_flags(memo->flags | call->flags);
    if (errno == 0)
        errno = call->error;
}

static bool ask_running(struct predict_client *client, struct predict_call *call)
{
    if (UNLIKELY(client->resting) && is_resting(client)) {
        call->client = NULL;
        return false;
    }
    uint64_t number = client->calls;
    bool timed = (number & client->timed_mask) == 0;
    if (timed) {
        call->began = ticks_now();
        if (UNLIKELY(review_is_due(client, call->began)) && !review(client, call->began)) {
            call->client = NULL;
            return false;
        }
    }
    client->calls++;
    client->counted_calls++;
    STORE_RELAXED(&client->x_begun, client->calls);
    tell_history(client, number, call->key);
    if ((number & client->plain_mask) == client->plain_mask) {
        call->why = PLAIN;
        call->began = ticks_now();
        return false;
    }
    call->why = timed ? TIMED : UNTIMED;
    struct answer *answer = find_answer(client, number, call->key);
    if (answer != NULL && is_there(client, answer)) {
        client->hits++;
        take(call, client->function, answer->result, answer->flags, answer->error);
    } else if (client->memos == NULL || !ask_memo(client, call)) {
        return false;
    }
    if (timed)
        add_sample(client, &client->trial.with_ticks, &client->trial.with_calls, ticks_now() - call->began);
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
    struct predict_client *client = mine.clients[function->slot];
    uint32_t environment = fp_environment();
    if (LOAD_RELAXED(&function->x_off) || client == GAVE_UP || mine.inside || !fp_environment_is_quiet(environment))
        return false;
    mine.inside = 1;
    ORDER_WITHIN_THREAD();
    call->key[function->words - 1] = environment;
    if (client == NULL)
        client = client_new(function);
    call->client = client;
    bool answered = client != NULL && (client->running ? ask_running(client, call) : ask_watched(client, call));
    ORDER_WITHIN_THREAD();
    mine.inside = 0;
    return answered;
}

EXPORT void predict_done(struct predict_function *function, struct predict_call *call)
{
    struct predict_client *client = call->client;
    if (client == NULL || client != mine.clients[function->slot] || mine.inside) /* a fork since, or a handler */
        return;
    uint64_t ticks = call->why == UNTIMED ? 0 : ticks_now() - call->began;
    mine.inside = 1;
    ORDER_WITHIN_THREAD();
    if (call->why == WATCHED)
        watch(client, ticks);
    else if (call->why == PLAIN)
        add_sample(client, &client->trial.plain_ticks, &client->trial.plain_calls, ticks);
    else if (client->memos != NULL)
        keep_memo(client, call);
    if (call->why == TIMED)
        add_sample(client, &client->trial.with_ticks, &client->trial.with_calls, ticks);
    ORDER_WITHIN_THREAD();
    mine.inside = 0;
}

/* -------------------------------------------------------------------------------------- threads, forks, functions */

static bool is_client(const struct predict_client *client)
{
    return client != NULL && client != GAVE_UP;
}

static void thread_ends(void *unused)
{
    (void)unused;
    manager_pause(); /* predict_close() may be at work on the same functions */
    for (size_t i = 0; i < PREDICT_FUNCTIONS; i++) {
        struct predict_client *client = mine.clients[i];
        mine.clients[i] = GAVE_UP;
        if (is_client(client) && functions[i] != NULL)
            add_counts(client);
        if (is_client(client) && client->listed)
            STORE(&client->x_retired, 1);
        else if (is_client(client))
            client_free(client);
    }
    manager_resume();
    manager_wake();
    if (syscall(SYS_gettid) == getpid())
        manager_main_ends();
}

static void fork_prepare(void)
{
    manager_pause();
}

static void fork_parent(void)
{
    manager_resume();
}

/* A handler that interrupted predict_ask may have forked: what that call is looking at must stay. */
static bool is_in_use(struct predict_client *client)
{
    return mine.inside != 0 && client->function != NULL && mine.clients[client->function->slot] == client;
}

/* The child has no second thread until it asks for one. */
static void fork_child(void)
{
    for (size_t i = 0; i < PREDICT_FUNCTIONS; i++) {
        struct predict_client *client = mine.clients[i];
        if (is_client(client) && !client->listed && mine.inside == 0)
            client_free(client);
    }
    worker_after_fork(is_in_use);
    for (size_t i = 0; i < PREDICT_FUNCTIONS; i++) {
        if (is_client(mine.clients[i]))
            mine.clients[i] = NULL;
    }
    pthread_setspecific(thread_key, &main_thread_mark);
}

static void begin(void)
{
    first_ticks = ticks_now();
    first_ns = now_ns();
    blocked_at_start = blocked_signals();
    if (pthread_key_create(&thread_key, thread_ends) != 0 || pthread_atfork(fork_prepare, fork_parent, fork_child) != 0)
        slots_used = PREDICT_FUNCTIONS;
    else
        pthread_setspecific(thread_key, &main_thread_mark);
}

static uint32_t or_default(uint32_t value, uint32_t otherwise, uint32_t most)
{
    return value == 0 ? otherwise : value < most ? value : most;
}

static struct predict_options whole(struct predict_options options)
{
    options.ahead = or_default(options.ahead, 32, ANSWER_SLOTS);
    options.handover = or_default(options.handover, 4, 64);
    options.order = or_default(options.order, 3, CONTEXT_ORDER);
    options.threshold = or_default(options.threshold, 512, UINT32_MAX);
    options.floor_ns = or_default(options.floor_ns, 400, UINT32_MAX);
    if (options.threshold < COST_SAMPLES + 1)
        options.threshold = COST_SAMPLES + 1;
    options.memo = or_default(options.memo, 0, 1u << 20);
    while ((options.memo & (options.memo - 1)) != 0) /* down to a power of two */
        options.memo &= options.memo - 1;
    return options;
}

EXPORT void predict_open(struct predict_function *function, const char *name, predict_compute *compute, void *context,
                         size_t arguments, size_t results, const enum predict_kind *kinds,
                         const struct predict_options *options)
{
    pthread_once(&once, begin);
    memset(function, 0, sizeof *function);
    function->name = name;
    function->compute = compute;
    function->context = context;
    function->words = (uint32_t)arguments + 1;
    function->results = (uint32_t)results;
    function->options = whole(options != NULL ? *options : (struct predict_options){0});
    for (size_t i = 0; i < arguments && i < PREDICT_ARGUMENTS; i++)
        function->kinds[i] = (uint8_t)kinds[i];
    uint32_t slot = __atomic_fetch_add(&slots_used, 1, __ATOMIC_RELAXED);
    bool fits = slot < PREDICT_FUNCTIONS && arguments <= PREDICT_ARGUMENTS && results <= PREDICT_RESULTS;
    function->slot = fits ? slot : 0;
    function->x_off = !fits || function->options.mode == PREDICT_OFF;
    if (fits)
        functions[slot] = function;
}

EXPORT void predict_close(struct predict_function *function)
{
    STORE(&function->x_off, 1);
    if (functions[function->slot] != function)
        return;
    manager_pause();
    functions[function->slot] = NULL;
    manager_resume();
    worker_forget(function);
}

EXPORT void predict_count(struct predict_function *function, struct predict_counts *counts)
{
    struct predict_client *client = mine.clients[function->slot];
    if (is_client(client) && client->function == function)
        add_counts(client);
    *counts = (struct predict_counts){
        .calls = LOAD_RELAXED(&function->x_calls),
        .hits = LOAD_RELAXED(&function->x_hits),
        .memo_hits = LOAD_RELAXED(&function->x_memo_hits),
        .late = LOAD_RELAXED(&function->x_late),
        .wrong = LOAD_RELAXED(&function->x_wrong),
        .threads = LOAD_RELAXED(&function->x_threads),
        .off_after_us = LOAD_RELAXED(&function->x_off_after_us),
        .off = LOAD_RELAXED(&function->x_off) != 0 || client == GAVE_UP,
    };
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
    publish_history(client);
    uint64_t end = now_ns() + ms * UINT64_C(1000000);
    bool settled;
    for (unsigned turn = 0; !(settled = is_settled(client)) && now_ns() < end;) {
        manager_wake();
        engine_relax(&turn);
    }
    return settled;
}

static uint32_t number_from_environment(const char *name)
{
    const char *text = secure_getenv(name);
    return text != NULL ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

EXPORT struct predict_options predict_options_from_environment(void)
{
    const char *mode = secure_getenv("SUTLER_PREDICT");
    return (struct predict_options){
        .mode = mode == NULL ? PREDICT_AUTO
                : strcmp(mode, "off") == 0 ? PREDICT_OFF
                : strcmp(mode, "force") == 0 ? PREDICT_FORCED : PREDICT_AUTO,
        .ahead = number_from_environment("SUTLER_PREDICT_AHEAD"),
        .handover = number_from_environment("SUTLER_PREDICT_HANDOVER"),
        .memo = number_from_environment("SUTLER_PREDICT_MEMO"),
        .order = number_from_environment("SUTLER_PREDICT_ORDER"),
        .threshold = number_from_environment("SUTLER_PREDICT_THRESHOLD"),
        .floor_ns = number_from_environment("SUTLER_PREDICT_FLOOR_NS"),
    };
}
