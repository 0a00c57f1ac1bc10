/* SPDX-License-Identifier: MIT
 *
 * A longer list is shuffled in parts: so blocks handed out one after the other still share pages and some lines.  Else
 * programs that walk what they have built take a quarter longer.
 */
#include "heap/shuffle.h"

#include "heap/superblock.h"
#include "os/os.h"

#define SHUFFLED_MAX 16u

static void relink(char **block, unsigned count, unsigned from, uint64_t below)
{
    for (unsigned i = count; i-- > 0; below = freelist_pack(block[i], from + count - i))
        next_set(block[i], below);
}

static uint64_t random_step(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

static unsigned take_part(uint64_t *list, char **block)
{
    unsigned count = 0;
    for (; *list != 0 && count < SHUFFLED_MAX; *list = next_get(block[count++]))
        block[count] = freelist_top(*list);
    return count;
}

static void shuffle(char **block, unsigned count, uint64_t *state)
{
    for (unsigned i = count; i > 1; i--) {
        unsigned other = (unsigned)((random_step(state) >> 32) * i >> 32);
        char *kept = block[i - 1];
        block[i - 1] = block[other];
        block[other] = kept;
    }
}

uint64_t freelist_shuffle(uint64_t list)
{
    char *block[SHUFFLED_MAX];
    uint64_t state = ((uintptr_t)freelist_top(list) ^ os_now_ns()) * marks.order_key | 1, done = 0;
    if (!mitigated(mitigation_order))
        return list;
    while (list != 0) {
        unsigned count = take_part(&list, block);
        shuffle(block, count, &state);
        relink(block, count, freelist_count(done), done);
        done = freelist_pack(block[0], freelist_count(done) + count);
    }
    return done;
}
