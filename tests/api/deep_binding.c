/* SPDX-License-Identifier: MIT
 *
 * A library loaded with RTLD_DEEPBIND, as PHP loads its extensions, looks names up in libc before the program's: its
 * malloc and free must all the same be those of everybody, or blocks handed over either way end in the wrong heap.  All
 * other names must be bound as the flag says.  And dlopen must look for a file as libc does, by the caller's RUNPATH.
 */
#include "support/check.h"
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>

#include "api/deep_plugin.h"

const char *is_shared_name(void)
{
    return "program";
}

static struct deep_plugin *load(int flags)
{
    void *handle = dlopen("libdeep_plugin.so", flags); /* in a folder that only this program's RUNPATH names */
    CHECK_MSG(handle != NULL, "dlopen: %s", dlerror());
    struct deep_plugin *plugin = dlsym(handle, "deep_plugin");
    CHECK(plugin != NULL);
    return plugin;
}

static void hand_over(const struct deep_plugin *plugin)
{
    for (size_t bytes = 1; bytes < 3000000; bytes = bytes * 3 + 1) {
        char *block = plugin->take(bytes);
        CHECK(block != NULL && malloc_usable_size(block) >= bytes);
        memset(block, 1, bytes);
        block = realloc(block, 2 * bytes);
        CHECK(block != NULL && plugin->usable(block) == malloc_usable_size(block));
        block = plugin->resize(block, bytes / 2 + 1);
        CHECK(block != NULL && block[bytes / 2 - (bytes > 1)] == 1);
        free(block);
        plugin->give(malloc(bytes));
        plugin->give(plugin->copy("by libc"));
        plugin->give(strdup("by libc"));
        free(plugin->copy("by libc"));
        free(plugin->take_aligned(4096, 4096));
    }
}

static void *load_in_thread(void *start)
{
    pthread_barrier_wait(start);
    return load(RTLD_NOW | RTLD_DEEPBIND);
}

/* SUTLER_DEEPBIND=off: as the flag says. */
static void expect_left_alone(void)
{
    struct deep_plugin *plugin = load(RTLD_NOW | RTLD_DEEPBIND);
    CHECK_MSG(plugin->function[0] != (void *)malloc, "its malloc is the program's");
    plugin->give(plugin->take(100));
    free(malloc(100));
    exit(0);
}

/* With --between a library stands between ours and libc with a setuid of its own: that name is left alone. */
int main(int argc, char **argv)
{
    enum { THREADS = 8, SETUID = 1 };
    test_watchdog(60);
    if (argc > 1 && strcmp(argv[1], "--off") == 0)
        expect_left_alone();
    bool is_between = argc > 1 && strcmp(argv[1], "--between") == 0;
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, load_in_thread, &start) == 0);
    struct deep_plugin *plugin = NULL;
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], (void **)&plugin) == 0 && plugin != NULL);
    CHECK_MSG(strcmp(plugin->whose, "plugin") == 0, "is_shared_name was bound to the %s's", plugin->whose);
    void *program[] = {(void *)malloc, (void *)setuid, (void *)syscall, (void *)dlopen};
    for (size_t i = 0; i < sizeof program / sizeof *program; i++)
        CHECK_MSG((plugin->function[i] == program[i]) != (is_between && i == SETUID), "function %zu is %sthe program's",
                  i, is_between ? "" : "not ");
    hand_over(plugin);
    CHECK(setuid(getuid()) == 0); /* ours still ends in libc's */
    CHECK(dlsym(RTLD_DEFAULT, "malloc") == (void *)malloc);
    CHECK(dlopen("libnot_there.so", RTLD_NOW | RTLD_DEEPBIND) == NULL && dlerror() != NULL);
    pid_t child = fork();
    if (child == 0) {
        hand_over(load(RTLD_LAZY | RTLD_DEEPBIND));
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}
