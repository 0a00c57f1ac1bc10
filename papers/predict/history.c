/* SPDX-License-Identifier: MIT
 *
 * Why: what the caller tells the worker of its calls (client.h).
 */
#include "caller.h"

#include <string.h>

void history_publish(struct predict_client *client)
{
    if (!client->listed)
        return;
    client->history_published = client->history_next;
    STORE(&client->x_history_tail, client->history_next);
    manager_wake(0);
}

void history_tell(struct predict_client *client, uint64_t number, const uint64_t *key)
{
    if (client->history_next - LOAD(&client->x_history_head) < HISTORY_SLOTS) {
        struct history *entry = &client->history[client->history_next++ % HISTORY_SLOTS];
        entry->number = number;
        memcpy(entry->key, key, client->function->words * sizeof *key);
    }
    if (client->history_next - client->history_published >= client->function->options.handover)
        history_publish(client);
}
