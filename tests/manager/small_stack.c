/* SPDX-License-Identifier: MIT
 *
 * What slow paths do besides, they do wherever they run, on a signal handler's small stack, too: the one that finds the
 * heap large enough starts the manager; without one (`manager.small_stack_alone`) they give back, in passing, what the
 * program has stopped using.
 */
#include "watch.h"
#include <sys/auxv.h>
#include <sys/mman.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

static void grow_until_started(int number)
{
    (void)number;
    for (size_t i = 0; i < 64 * MIB / 64; i++) {
        char *volatile p = malloc(64);
        p[0] = 1;
    }
}

struct node {
    struct node *next;
};

static struct node *add_blocks(struct node *list, size_t count, size_t bytes)
{
    for (size_t i = 0; i < count; i++) {
        struct node *node = malloc(bytes);
        CHECK(node != NULL);
        memset(node, 1, bytes);
        node->next = list;
        list = node;
    }
    return list;
}

static void drop(struct node *list)
{
    for (struct node *next; list != NULL; list = next) {
        next = list->next;
        free(list);
    }
}

/* Superblocks, spans and mappings are left unused, and slow paths go on until most of them went back. */
static void go_on_until_given_back(int number)
{
    (void)number;
    const size_t before = proc_resident_bytes();
    struct node *list = add_blocks(NULL, 24 * MIB / 100, 100);
    list = add_blocks(list, 60, 300 * KIB);
    list = add_blocks(list, 1, 20 * MIB);
    const size_t peak = proc_resident_bytes();
    drop(list);
    for (uint64_t end_ms = now_ms() + 30000; proc_resident_bytes() > before + (peak - before) / 2;) {
        CHECK_MSG(now_ms() < end_ms, "%zu of %zu KiB are resident still", proc_resident_bytes() / KIB, peak / KIB);
        drop(add_blocks(NULL, 2000, 1000));
    }
}

static void on_small_stack(void (*run)(int number))
{
    size_t frame = getauxval(AT_MINSIGSTKSZ), size = (frame > 2048 ? frame : 2048) + 4 * KIB;
    size = (size + 4095) & ~(size_t)4095;
    char *map = mmap(NULL, size + 64 * KIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(map != MAP_FAILED && mprotect(map + 64 * KIB, size, PROT_READ | PROT_WRITE) == 0);
    stack_t stack = {.ss_sp = map + 64 * KIB, .ss_size = size};
    CHECK(sigaltstack(&stack, NULL) == 0);
    struct sigaction action = {.sa_handler = run, .sa_flags = SA_ONSTACK};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    raise(SIGUSR1);
}

int main(void)
{
    test_begin(60);
    on_small_stack(grow_until_started);
    on_small_stack(go_on_until_given_back);
    return 0;
}
