/* SPDX-License-Identifier: MIT
 *
 * corpus --list | CLASS.CASE; and what the cases share (corpus.h).  Nothing here allocates but through take().
 */
#define _GNU_SOURCE
#include "corpus.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const struct {
    const char *name;
    const struct bug *bugs;
} classes[] = {
    {"overflow", overflow},
    {"underflow", underflow},
    {"overread", overread},
    {"write_after_free", write_after_free},
    {"read_after_free", read_after_free},
    {"double_free", double_free},
    {"invalid_free", invalid_free},
    {"mismatch", mismatch},
    {"leak", leak},
    {"links", links},
    {"spray", spray},
    {"correct", correct},
};

static bool effect_seen;
static void *(*volatile malloc_called)(size_t) = malloc;
static void (*volatile free_called)(void *) = free;

static void say(int descriptor, const char *text)
{
    if (write(descriptor, text, strlen(text)) < 0)
        _exit(1);
}

void bug_begin(void)
{
    say(STDERR_FILENO, "corpus: bug\n");
}

void bug_end(void)
{
    say(STDERR_FILENO, "corpus: done\n");
}

void effect(bool seen)
{
    effect_seen |= seen;
}

void verdict(void)
{
    exit(effect_seen ? EFFECT : 0);
}

void broken(const char *why)
{
    say(STDERR_FILENO, "corpus: broken: ");
    say(STDERR_FILENO, why);
    say(STDERR_FILENO, "\n");
    _exit(1);
}

void *take(size_t size)
{
    void *block = malloc_called(size);
    if (block == NULL)
        broken("malloc returned NULL");
    return block;
}

void give(void *block)
{
    free_called(block);
}

/* The program runs on one cpu and its threads on another, so that their caches and heaps are two, and stay two. */
static cpu_set_t all_cpus;

/* One cpu: number 0 is chosen by the process's id, so that cases that run side by side have two, and 1 is the next. */
static cpu_set_t one_cpu(size_t number)
{
    size_t index = ((size_t)getpid() + number) % (size_t)CPU_COUNT(&all_cpus);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all_cpus) && index-- == 0)
            CPU_SET(cpu, &one);
    return one;
}

struct work {
    void *(*work)(void *);
    void *argument;
    atomic_bool done;
};

static void *elsewhere(void *argument)
{
    struct work *work = argument;
    work->work(work->argument);
    atomic_store(&work->done, true);
    return NULL;
}

/* Waits awake: a thread that sleeps may lose the number by which an allocator finds its heap to the other one. */
void in_thread(void *(*work)(void *), void *argument)
{
    pthread_t thread;
    struct work todo = {work, argument, false};
    pthread_attr_t attributes;
    cpu_set_t second = one_cpu(1);
    pthread_attr_init(&attributes);
    pthread_attr_setaffinity_np(&attributes, sizeof second, &second);
    if (pthread_create(&thread, &attributes, elsewhere, &todo) != 0)
        broken("no thread");
    while (!atomic_load(&todo.done))
        continue;
    pthread_join(thread, NULL);
}

void fill(void *block, size_t size, unsigned char byte)
{
    volatile unsigned char *bytes = block;
    for (size_t i = 0; i < size; i++)
        bytes[i] = byte;
}

void spoil(void *block, size_t size)
{
    volatile unsigned char *bytes = block;
    for (size_t i = 0; i < size; i++)
        bytes[i] = bytes[i] == 'A' ? 'B' : 'A';
}

bool holds(const void *block, size_t size, unsigned char byte)
{
    const volatile unsigned char *bytes = block;
    size_t row = 0;
    for (size_t i = 0; i < size && row < 8; i++)
        row = bytes[i] == byte ? row + 1 : 0;
    return row >= 8;
}

bool is_zero(const void *block, size_t size)
{
    const volatile unsigned char *bytes = block;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/* Of large blocks only the ends are filled and looked at: no case writes farther in than this. */
enum { LOOKED_AT = 8 * 1024 };

static unsigned char crowd_byte(size_t index)
{
    return (unsigned char)(1 + index % 63); /* no letter, which the bugs write */
}

void crowd_take(struct crowd *crowd, size_t size)
{
    crowd->size = size;
    crowd->count = size <= 4 * KIB ? CROWD_MOST : size <= 128 * KIB ? 64 : 8;
    for (size_t i = 0; i < crowd->count; i++) {
        unsigned char *block = crowd->blocks[i] = take(size);
        size_t end = size < LOOKED_AT ? size : LOOKED_AT;
        fill(block, end, crowd_byte(i));
        fill(block + size - end, end, crowd_byte(i));
    }
}

void crowd_give(struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->count; i++)
        give(crowd->blocks[i]);
}

size_t crowd_nearest(const struct crowd *crowd, size_t *follower)
{
    size_t best = 0, closest = SIZE_MAX;
    for (size_t i = 0; i < crowd->count; i++)
        for (size_t k = 0; k < crowd->count; k++) {
            size_t distance = (uintptr_t)crowd->blocks[k] - (uintptr_t)crowd->blocks[i];
            if (crowd->blocks[k] > crowd->blocks[i] && distance < closest) {
                closest = distance;
                best = i;
                *follower = k;
            }
        }
    return best;
}

static bool block_changed(const unsigned char *block, size_t size, unsigned char byte)
{
    size_t end = size < LOOKED_AT ? size : LOOKED_AT;
    for (size_t i = 0; i < end; i++)
        if (block[i] != byte || block[size - 1 - i] != byte)
            return true;
    return false;
}

size_t crowd_changed(const struct crowd *crowd, size_t but)
{
    size_t changed = 0;
    for (size_t i = 0; i < crowd->count; i++)
        changed += i != but && crowd->blocks[i] != NULL && block_changed(crowd->blocks[i], crowd->size, crowd_byte(i));
    return changed;
}

bool crowd_meets(const struct crowd *crowd, const void *block, size_t size)
{
    const unsigned char *start = block;
    for (size_t i = 0; i < crowd->count; i++) {
        const unsigned char *other = crowd->blocks[i];
        if (other != NULL && other < start + size && start < other + crowd->size)
            return true;
    }
    return false;
}

bool crowd_overlaps(const struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->count; i++) {
        struct crowd before = *crowd;
        before.count = i;
        if (crowd->blocks[i] != NULL && crowd_meets(&before, crowd->blocks[i], crowd->size))
            return true;
    }
    return false;
}

void settle(size_t size)
{
    enum { AT_ONCE = 64 };
    void *blocks[AT_ONCE];
    size_t held = size <= 64 * KIB ? AT_ONCE : 2;
    size_t rounds = 32 * MIB / (held * (size + 32));
    for (size_t round = 0; round < rounds + 4; round++) {
        for (size_t i = 0; i < held; i++)
            *(volatile char *)(blocks[i] = take(size)) = 'x';
        for (size_t i = 0; i < held; i++)
            give(blocks[i]);
    }
    malloc_trim(0);
}

static int list(void)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        for (const struct bug *bug = classes[i].bugs; bug->name != NULL; bug++) {
            say(STDOUT_FILENO, classes[i].name);
            say(STDOUT_FILENO, ".");
            say(STDOUT_FILENO, bug->name);
            say(STDOUT_FILENO, "\n");
        }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        broken("usage: corpus --list | CLASS.CASE");
    if (strcmp(argv[1], "--list") == 0)
        return list();
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    alarm(300);
    if (sched_getaffinity(0, sizeof all_cpus, &all_cpus) != 0 || CPU_COUNT(&all_cpus) < 2)
        broken("it takes two cpus");
    cpu_set_t first = one_cpu(0);
    sched_setaffinity(0, sizeof first, &first);
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        size_t length = strlen(classes[i].name);
        if (strncmp(argv[1], classes[i].name, length) != 0 || argv[1][length] != '.')
            continue;
        for (const struct bug *bug = classes[i].bugs; bug->name != NULL; bug++)
            if (strcmp(argv[1] + length + 1, bug->name) == 0) {
                bug->commit(bug);
                verdict();
            }
    }
    broken("no such case");
}
