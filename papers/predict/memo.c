/* SPDX-License-Identifier: MIT
 *
 * Why: results of former calls, kept by the calling thread, where predict_options.memo asks for it.
 */
#include "caller.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

bool memo_make(struct predict_client *client)
{
    client->memo_bytes = client->function->options.memo * sizeof *client->memos;
    client->memos =
        mmap(NULL, client->memo_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (client->memos == MAP_FAILED)
        client->memos = NULL;
    return client->memos != NULL;
}

static struct memo *memo_of(struct predict_client *client, const uint64_t *key)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < client->function->words; i++)
        hash = (hash ^ key[i] ^ hash >> 29) * UINT64_C(0x9E3779B97F4A7C15);
    return &client->memos[(hash >> 32) & (client->function->options.memo - 1)];
}

/* errno and the flags are set aside until predict_done(), to see what the original does to them. */
bool memo_ask(struct predict_client *client, struct predict_call *call)
{
    const struct memo *memo = memo_of(client, call->key);
    if (memo->used && predict_keys_equal(memo->key, call->key, client->function->words)) {
        client->memo_hits++;
        client->trial.answers++;
        answer_take(call, client->function, memo->result, memo->flags, memo->error);
        return true;
    }
    call->error = errno;
    errno = 0;
    call->flags = fp_take_flags();
    return false;
}

void memo_keep(struct predict_client *client, struct predict_call *call)
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
