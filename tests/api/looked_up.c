/* SPDX-License-Identifier: MIT
 *
 * A program that opens libc by its name, or a library that needs it, and calls what it finds there, as Python's ctypes
 * and other foreign function interfaces do: malloc, free and the others are those of everybody, for libc's strdup is
 * one of their callers.
 */
#include "support/check.h"
#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>

static struct {
    void *(*malloc)(size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    size_t (*malloc_usable_size)(void *);
    char *(*strdup)(const char *);
} libcs;

static void *look_up(const char *file)
{
    void *handle = dlopen(file, RTLD_NOW);
    CHECK_MSG(handle != NULL, "dlopen: %s", dlerror());
    libcs.malloc = (void *(*)(size_t))dlsym(handle, "malloc");
    libcs.realloc = (void *(*)(void *, size_t))dlsym(handle, "realloc");
    libcs.free = (void (*)(void *))dlsym(handle, "free");
    libcs.malloc_usable_size = (size_t (*)(void *))dlsym(handle, "malloc_usable_size");
    libcs.strdup = (char *(*)(const char *))dlsym(handle, "strdup");
    return handle;
}

static void hand_over(void)
{
    for (size_t bytes = 1; bytes < 3000000; bytes = bytes * 3 + 1) {
        char *block = libcs.malloc(bytes);
        CHECK(block != NULL && malloc_usable_size(block) >= bytes);
        memset(block, 1, bytes);
        block = realloc(block, 2 * bytes);
        CHECK(block != NULL && libcs.malloc_usable_size(block) == malloc_usable_size(block));
        block = libcs.realloc(block, bytes / 2 + 1);
        CHECK(block != NULL && block[0] == 1);
        free(block);
        libcs.free(malloc(bytes));
    }
    libcs.free(libcs.strdup("by libc"));
    libcs.free(strdup("by libc"));
    free(libcs.strdup("by libc"));
}

static void by_its_path(void)
{
    Dl_info found;
    CHECK(dladdr(dlsym(RTLD_DEFAULT, "strdup"), &found) != 0 && strchr(found.dli_fname, '/') != NULL);
    look_up(found.dli_fname);
    hand_over();
}

static void by_a_library_that_needs_it(void)
{
    look_up(LIBM_SO);
    hand_over();
}

static void by_its_name(void)
{
    void *handle = look_up(LIBC_SO);
    CHECK(libcs.malloc == malloc && libcs.free == free && dlsym(handle, "malloc_trim") == (void *)malloc_trim);
    hand_over();
}

static void in_child(void (*what)(void))
{
    pid_t child = fork();
    if (child == 0) {
        what();
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void *in_thread(void *start)
{
    pthread_barrier_wait(start);
    void *handle = dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
    CHECK(handle != NULL);
    free(((char *(*)(const char *))dlsym(handle, "strdup"))("by libc"));
    ((void (*)(void *))dlsym(handle, "free"))(malloc(100));
    return NULL;
}

int main(int argc, char **argv)
{
    enum { THREADS = 8 };
    test_begin(60);
    /* At fixed addresses a weak name, by which test_begin would know, is settled when the program is linked. */
    CHECK(argc < 2 || strcmp(argv[1], "--there") != 0 || dlsym(RTLD_DEFAULT, "sutler_is_active") != NULL);
    if (argc > 1 && strcmp(argv[1], "--off") == 0) {
        void *handle = look_up(LIBC_SO);
        CHECK_MSG(libcs.free != free && dlsym(handle, "malloc") != (void *)malloc, "libc's table was not left alone");
        libcs.free(libcs.malloc(100));
        return 0;
    }
    in_child(by_its_path); /* nobody has opened anything yet */
    in_child(by_a_library_that_needs_it);
    pthread_t thread[THREADS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], NULL, in_thread, &start) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    by_its_name();
    in_child(by_its_name);
    return 0;
}
