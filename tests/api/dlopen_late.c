/* SPDX-License-Identifier: MIT
 *
 * The library brought in by dlopen long after start.  The program keeps its first malloc; the late library's functions
 * are reached by dlsym, must work beside it (threads started before it included), must say that they do not serve the
 * process, and must survive dlclose (-z nodelete: its threads' state and its heap stay).
 */
#include "support/check.h"
#include <dlfcn.h>
#include <pthread.h>

static void *(*late_malloc)(size_t);
static void (*late_free)(void *);
static volatile int ready;

static void *older_thread(void *argument)
{
    while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
        usleep(1000);
    for (int i = 0; i < 20000; i++) {
        size_t size = (size_t)(i * 37 % 5000);
        char *block = late_malloc(size);
        CHECK(block != NULL);
        memset(block, 1, size);
        late_free(block);
    }
    return argument;
}

int main(int argc, char **argv)
{
    test_watchdog(60);
    CHECK(argc == 2);
    CHECK_MSG(sutler_is_active == NULL, "run this one without preload");
    char *ours = malloc(100);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, older_thread, NULL) == 0);
    void *handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    CHECK_MSG(handle != NULL, "dlopen: %s", dlerror());
    late_malloc = (void *(*)(size_t))(uintptr_t)dlsym(handle, "malloc");
    late_free = (void (*)(void *))(uintptr_t)dlsym(handle, "free");
    bool (*is_active)(void) = (bool (*)(void))(uintptr_t)dlsym(handle, "sutler_is_active");
    CHECK(late_malloc != NULL && late_free != NULL && is_active != NULL);
    CHECK_MSG((void *)(uintptr_t)late_malloc != dlsym(RTLD_DEFAULT, "malloc"), "the late library took malloc over");
    CHECK_MSG(!is_active(), "sutler_is_active() although another malloc came first");
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    void *blocks[1000];
    for (int i = 0; i < 1000; i++)
        CHECK((blocks[i] = late_malloc((size_t)i * 100)) != NULL);
    for (int i = 0; i < 1000; i++)
        late_free(blocks[i]);
    CHECK(pthread_join(thread, NULL) == 0);
    dlclose(handle);
    late_free(late_malloc(64));
    free(ours);
    return 0;
}
