/* SPDX-License-Identifier: MIT
 *
 * Another mapping lies where the library's region would grow: it grows behind it.  What is skipped is never handed out,
 * not even by a forked child, which looks for memory that other threads of its parent had in their hands.
 */
#include "fork/heap.h"
#include <sys/mman.h>

#define OBSTACLE_BYTES (64ul << 10)
#define BLOCK_BYTES (300ul << 10)
#define BLOCKS 600

static char *obstacle, *behind; /* what was skipped lies between the two */

/* Where the run of mappings ends that `inside` lies in. */
static char *end_of_mappings(const char *inside)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    unsigned long first, end, run_end = 0;
    while (fscanf(maps, "%lx-%lx%*[^\n]", &first, &end) == 2)
        if (((uintptr_t)inside >= first && (uintptr_t)inside < end) || first == run_end)
            run_end = end;
    CHECK(fclose(maps) == 0 && run_end != 0);
    return (char *)run_end;
}

static bool is_skipped(const char *block)
{
    return block + BLOCK_BYTES > obstacle && block < behind;
}

static void *take(void)
{
    char *block = malloc(BLOCK_BYTES);
    CHECK(block != NULL);
    memset(block, 2, BLOCK_BYTES);
    return block;
}

/* In a child, and then in a child of its own. */
static void look(void)
{
    child_begin();
    for (int i = 0; i < BLOCKS; i++)
        CHECK(!is_skipped(take()));
    for (size_t i = 0; i < OBSTACLE_BYTES; i++)
        CHECK(obstacle[i] == 1);
}

static void descend(int generations)
{
    for (int i = 0; i < generations; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child != 0) {
            child_reap(child);
            break;
        }
        look();
    }
}

int main(void)
{
    test_begin(120);
    if (!test_is_sutler())
        SKIP("it says where blocks lie, of Sutler's");
    char *inside = take();
    obstacle = mmap(end_of_mappings(inside), OBSTACLE_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(obstacle != MAP_FAILED);
    memset(obstacle, 1, OBSTACLE_BYTES);
    for (int i = 0; i < BLOCKS && behind == NULL; i++) {
        char *block = take();
        behind = block > obstacle ? block : NULL;
    }
    CHECK_MSG(behind != NULL && behind >= obstacle + OBSTACLE_BYTES, "the region did not grow behind %p",
              (void *)obstacle);
    pthread_t thread; /* so that the child has to look */
    CHECK(pthread_create(&thread, NULL, churn_main, (void *)1) == 0);
    const pid_t self = getpid();
    descend(3);
    if (getpid() != self)
        _exit(0);
    churn_stop = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    return 0;
}
