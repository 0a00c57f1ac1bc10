/* SPDX-License-Identifier: MIT
 *
 * Why: a cache in front of a database is full all the time: what comes in drives out what nobody asked for lately, of
 * another size.  `objects` objects of 100 bytes to 100 KiB (every doubling as likely, so half of the memory is in the
 * largest few) are cached on the average; keys are asked for at random, twice as many as there is room for.  A miss
 * builds the object (a key of its own block, and a value) and drives out, oldest first but those asked for meanwhile
 * spared once, until the bytes fit.  The cache is filled first; the interval covers full work only.
 *
 * An operation is a request.  `memory_ratio` is resident memory over the bytes cached, at the end.  `objects=1M` takes
 * 15 GiB.
 */
#include "args.h"
#include "clock.h"
#include "library_counts.h"
#include "memory.h"
#include "random.h"
#include "result.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALLEST = 100, DOUBLINGS = 10, KEY_ROOM = 40, PAGE_BYTES = 4096 };

struct object {
    char *key;
    unsigned char *value;
    uint64_t bytes;
};

/* Objects by the number of their key, and those cached in the order they came. */
static struct cache {
    uint64_t keys, bytes, bytes_most;
    struct object **object;
    bool *asked_for;
    uint64_t *queue, oldest, count;
} cache;

static uint64_t size_random(struct random_source *random)
{
    uint64_t low = (uint64_t)SMALLEST << random_below(random, DOUBLINGS);
    return random_between(random, low, 2 * low);
}

static uint64_t size_average(void)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < DOUBLINGS; i++)
        sum += ((uint64_t)SMALLEST << i) * 3 / 2;
    return sum / DOUBLINGS;
}

static unsigned char mark_of(uint64_t key)
{
    return (unsigned char)(key * 37 + 11);
}

static struct object *object_new(uint64_t key, uint64_t bytes)
{
    struct object *object = malloc(sizeof(*object));
    char name[KEY_ROOM];
    int length = snprintf(name, sizeof(name), "session:%llu", (unsigned long long)key);
    if (object != NULL)
        *object = (struct object){malloc((size_t)length + 1), malloc(bytes), bytes};
    if (object == NULL || object->key == NULL || object->value == NULL) {
        fprintf(stderr, "object_cache: out of memory\n");
        exit(3);
    }
    memcpy(object->key, name, (size_t)length + 1);
    for (uint64_t at = 0; at < bytes; at += PAGE_BYTES)
        object->value[at] = mark_of(key);
    object->value[bytes - 1] = mark_of(key);
    return object;
}

static uint64_t object_errors(const struct object *object, uint64_t key)
{
    return object->key[0] != 's' || object->value[0] != mark_of(key) ||
           object->value[object->bytes - 1] != mark_of(key);
}

static uint64_t object_drop(uint64_t key)
{
    struct object *object = cache.object[key];
    uint64_t errors = object_errors(object, key);
    cache.object[key] = NULL;
    cache.bytes -= object->bytes;
    free(object->value);
    free(object->key);
    free(object);
    return errors;
}

static void queue_put(uint64_t key)
{
    cache.queue[(cache.oldest + cache.count++) % cache.keys] = key;
}

static uint64_t evict_one(void)
{
    for (;;) {
        uint64_t key = cache.queue[cache.oldest];
        cache.oldest = (cache.oldest + 1) % cache.keys;
        cache.count--;
        if (!cache.asked_for[key])
            return object_drop(key);
        cache.asked_for[key] = false;
        queue_put(key);
    }
}

/* Returns the wrong results it found. */
static uint64_t request(struct random_source *random)
{
    uint64_t key = random_below(random, cache.keys), errors = 0;
    struct object *object = cache.object[key];
    if (object != NULL) {
        cache.asked_for[key] = true;
        return object_errors(object, key);
    }
    uint64_t bytes = size_random(random);
    while (cache.count > 0 && cache.bytes + bytes > cache.bytes_most)
        errors += evict_one();
    cache.object[key] = object_new(key, bytes);
    cache.asked_for[key] = false;
    cache.bytes += bytes;
    queue_put(key);
    return errors;
}

static void cache_open(uint64_t objects)
{
    cache.keys = 2 * objects;
    cache.bytes_most = objects * size_average();
    cache.object = pages_map(cache.keys * sizeof(*cache.object));
    cache.asked_for = pages_map(cache.keys * sizeof(*cache.asked_for));
    cache.queue = pages_map(cache.keys * sizeof(*cache.queue));
}

int main(int argc, char **argv)
{
    uint64_t objects = 20000, ops = 100000, errors = 0;
    const struct arg args[] = {
        {"objects", ARG_COUNT, &objects, "objects there is room for"},
        {"ops", ARG_COUNT, &ops, "requests after the cache is full"},
    };
    ARGS_READ("object_cache", argc, argv, args);
    if (!objects || !ops || objects > 1 << 24)
        args_reject("objects, ops", "1 to 16M objects, a request at least");
    struct random_source random;
    random_seed(&random, args_seed());
    cache_open(objects);
    const uint64_t before_kib = memory_rss_kib();
    while (cache.bytes + ((uint64_t)SMALLEST << DOUBLINGS) < cache.bytes_most)
        errors += request(&random);
    struct library_counts before = library_counts_read();
    uint64_t begin_ns = clock_ns();
    for (uint64_t i = 0; i < ops; i++)
        errors += request(&random);
    uint64_t ns = clock_ns() - begin_ns;
    struct library_counts after = library_counts_read(), counts = library_counts_between(&before, &after);
    const uint64_t taken_kib = memory_rss_kib() - before_kib, cached_kib = cache.bytes >> 10;
    while (cache.count > 0)
        errors += evict_one();
    result_begin("object_cache", 1, ops, ns);
    result_count("objects", objects);
    result_count("cached_kib", cached_kib);
    result_real("memory_ratio", (double)taken_kib / (double)cached_kib);
    library_counts_print(&counts, 0);
    return result_end(errors);
}
