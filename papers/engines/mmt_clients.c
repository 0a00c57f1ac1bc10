/* SPDX-License-Identifier: MIT
 *
 * Why: see mmt_clients.h.
 */
#include "mmt_clients.h"
#include "manager.h"
#include "thread.h"

#include <sys/mman.h>

struct mmt_design mmt_design;
struct mmt_options mmt_options = {.queue = MMT_QUEUE};
struct client *mmt_clients;
uint32_t mmt_owned, mmt_arrivals;

static struct client *clients_at_fork;

__thread struct client *my_client __attribute__((tls_model("initial-exec")));
static __thread bool client_ended __attribute__((tls_model("initial-exec")));

static bool adopt(struct client *client)
{
    uint32_t retired = CLIENT_RETIRED;
    return LOAD(&client->owner) == CLIENT_RETIRED &&
           __atomic_compare_exchange_n(&client->owner, &retired, CLIENT_OWNED, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

/* One that has its buckets still, if there is one. */
static struct client *adopt_any(void)
{
    for (int warm = 1; warm >= 0; warm--) {
        for (struct client *client = LOAD(&mmt_clients); client != NULL; client = client->next) {
            if ((!warm || LOAD_RELAXED(&client->attended)) && adopt(client))
                return client;
        }
    }
    return NULL;
}

/* The servers get new clients in turn. */
static struct client *client_new(void)
{
    static uint32_t created;
    struct client *client =
        mmap(NULL, sizeof *client, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (client == MAP_FAILED)
        return NULL;
    client->owner = CLIENT_OWNED;
    client->server = __atomic_fetch_add(&created, 1, __ATOMIC_RELAXED) % manager_count;
    client->next = LOAD(&mmt_clients);
    while (!__atomic_compare_exchange_n(&mmt_clients, &client->next, client, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
    return client;
}

struct client *client_get_slow(void)
{
    if (client_ended)
        return NULL;
    struct client *client = adopt_any();
    if (client == NULL)
        client = client_new();
    if (client == NULL)
        return NULL;
    __atomic_fetch_add(&mmt_owned, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&mmt_arrivals, 1, __ATOMIC_RELEASE);
    my_client = client;
    engine_thread_own(client);
    return client;
}

void client_retire(struct client *client)
{
    client_ended = true;
    my_client = NULL;
    __atomic_fetch_sub(&mmt_owned, 1, __ATOMIC_RELAXED);
    STORE(&client->owner, CLIENT_RETIRED);
}

/* Retired clients are held, or one of them could be adopted and change while the snapshot is made. */
void clients_fork_prepare(void)
{
    clients_at_fork = LOAD(&mmt_clients);
    for (struct client *client = clients_at_fork; client != NULL; client = client->next) {
        uint32_t retired = CLIENT_RETIRED;
        __atomic_compare_exchange_n(&client->owner, &retired, CLIENT_HELD, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    }
}

void clients_fork_parent(void)
{
    for (struct client *client = clients_at_fork; client != NULL; client = client->next) {
        if (LOAD(&client->owner) == CLIENT_HELD)
            STORE(&client->owner, CLIENT_RETIRED);
    }
}

/* From the list's head as prepare saw it: a client added since may be half there. */
void clients_fork_child(void)
{
    mmt_clients = clients_at_fork;
    for (struct client *client = mmt_clients; client != NULL; client = client->next) {
        if (client != my_client)
            client->owner = client->owner == CLIENT_HELD ? CLIENT_RETIRED : CLIENT_LOST;
    }
    mmt_owned = my_client != NULL;
    mmt_arrivals++;
}
