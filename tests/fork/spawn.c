/* SPDX-License-Identifier: MIT
 *
 * Processes started the other ways: posix_spawn, vfork + exec, popen and system, from several threads under churn.
 * Their children share the parent's memory until exec, so whatever the child's C library does there must leave the
 * parent's heap alone.
 */
#include "fork/heap.h"
#include <spawn.h>

extern char **environ;
static const char *self;
static uint64_t seed;
static uint64_t rounds;

static pid_t by_vfork(char *const *arguments)
{
    pid_t child = vfork();
    if (child == 0) {
        execve(arguments[0], arguments, environ);
        _exit(125);
    }
    return child;
}

static void *spawner(void *argument)
{
    struct rng rng = {seed + (uintptr_t)argument};
    for (uint64_t i = 0; i < rounds; i++) {
        heap_exercise(rng_next(&rng), 50);
        char number[32];
        snprintf(number, sizeof number, "%llu", (unsigned long long)(rng_next(&rng) >> 1));
        char *arguments[] = {(char *)(uintptr_t)self, (char *)(uintptr_t)"--child", number, NULL};
        pid_t child = -1;
        if (i % 4 == 0) {
            posix_spawn_file_actions_t actions;
            CHECK(posix_spawn_file_actions_init(&actions) == 0);
            CHECK(posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0) == 0);
            CHECK(posix_spawn(&child, self, &actions, NULL, arguments, environ) == 0);
            posix_spawn_file_actions_destroy(&actions);
        } else if (i % 4 == 1) {
            child = by_vfork(arguments);
        } else if (i % 4 == 2) {
            FILE *pipe = popen("echo spawned", "r");
            char line[64] = "";
            CHECK(pipe != NULL && fgets(line, sizeof line, pipe) != NULL && strcmp(line, "spawned\n") == 0);
            CHECK(pclose(pipe) == 0);
            continue;
        } else {
            CHECK(system("exit 0") == 0);
            continue;
        }
        CHECK_MSG(child > 0, "no child: errno %d", errno);
        child_reap(child);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc == 3 && strcmp(argv[1], "--child") == 0) {
        test_begin(60);
        heap_exercise(strtoull(argv[2], NULL, 10), 300);
        return 0;
    }
    test_begin(300);
    seed = test_seed_from(NULL);
    rounds = test_option(argc, argv, "--rounds", 60);
    struct rng rng = {seed};
    inherited_make(&rng);
    pthread_t churner, spawners[3];
    CHECK(pthread_create(&churner, NULL, churn_main, (void *)(uintptr_t)seed) == 0);
    for (size_t i = 0; i < 3; i++)
        CHECK(pthread_create(&spawners[i], NULL, spawner, (void *)(uintptr_t)i) == 0);
    for (size_t i = 0; i < 3; i++)
        CHECK(pthread_join(spawners[i], NULL) == 0);
    churn_stop = 1;
    CHECK(pthread_join(churner, NULL) == 0);
    inherited_check(true);
    return 0;
}
