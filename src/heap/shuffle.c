/* SPDX-License-Identifier: MIT
 *
 * A longer list is shuffled in parts, which keep their order: so blocks handed out one after the other still share
 * pages and some lines, and the processor, which reads ahead, is there before them.  Else programs that walk what they
 * have built take a quarter longer.
 */
#include "heap/shuffle.h"

#include "heap/superblock.h"
#include "os/os.h"

#define SHUFFLED_MAX 16u

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
    if (!mitigated(mitigation_order))
        return list;
    char *block[SHUFFLED_MAX], *last = NULL;
    uint64_t state = ((uintptr_t)freelist_top(list) ^ os_now_ns()) * marks.order_key | 1, shuffled = 0;
    while (list != 0) {
        const unsigned left = freelist_count(list), count = take_part(&list, block);
        shuffle(block, count, &state);
        for (unsigned i = 0; i < count; i++) {
            const uint64_t from_here = freelist_pack(block[i], left - i);
            if (last == NULL)
                shuffled = from_here;
            else
                next_set(last, from_here);
            last = block[i];
        }
    }
    if (last != NULL)
        next_set(last, 0);
    return shuffled;
}
