/* SPDX-License-Identifier: MIT
 *
 * Signal handlers that take, resize and free large blocks, wherever they interrupt a thread that does the same: none
 * waits for ever.  In the middle of a slow path there may be none to be had, and NULL is an answer.
 */
#include "support/proc.h"
#include "support/rng.h"

static size_t size = 24 * MIB, size_in_handler = MIB;
static volatile sig_atomic_t handled, served;

static void *use(size_t bytes)
{
    unsigned char *p = malloc(bytes);
    if (p == NULL)
        return NULL;
    p[0] = 1;
    p[bytes - 1] = 2;
    unsigned char *q = realloc(p, bytes + bytes / 8);
    CHECK((q == NULL ? p : q)[0] == 1 && (q == NULL ? p : q)[bytes - 1] == 2);
    return q == NULL ? p : q;
}

static void handler(int number)
{
    (void)number;
    int saved = errno;
    void *p = use(size_in_handler);
    served += p != NULL;
    handled++;
    free(p);
    errno = saved;
}

int main(int argc, char **argv)
{
    test_begin(120);
    size = test_option(argc, argv, "--kib", 24 * 1024) * KIB;
    size_in_handler = test_option(argc, argv, "--handler-kib", 1024) * KIB;
    uint64_t end = now_ms() + test_option(argc, argv, "--ms", 3000);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGUSR1;
    timer_t timer;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    struct rng rng = {test_seed_from(NULL)};
    uint64_t rounds = 0;
    for (; now_ms() < end || handled < 50 || served == 0; rounds++) { /* on a loaded machine that takes longer */
        const struct itimerspec once = {.it_value.tv_nsec = 1000 + (long)rng_below(&rng, 300000)};
        CHECK(timer_settime(timer, 0, &once, NULL) == 0);
        void *p = use(size);
        CHECK(p != NULL);
        free(p);
    }
    CHECK(timer_delete(timer) == 0);
    test_say("%d of %d handlers had a mapping, %llu rounds beside them\n", (int)served, (int)handled,
             (unsigned long long)rounds);
    return 0;
}
