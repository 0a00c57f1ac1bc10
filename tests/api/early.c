/* SPDX-License-Identifier: MIT
 *
 * Allocation where a library may not expect it: in the constructors of a shared library that runs before main, in
 * threads started there, in pthread_atfork and atexit handlers, in destructors after main, around dlopen and dlerror
 * (which allocate inside the loader).  Start-up recursion shows here as a crash or a hang.
 */
#include "support/family.h"
#include "support/pattern.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>

static void *from_constructor[64];
static void *from_thread;
static pthread_key_t key;
static int exits;

static void *in_thread(void *argument)
{
    from_thread = malloc(12345);
    pthread_setspecific(key, malloc(10));
    return argument;
}

static void at_fork(void)
{
    free(malloc(777));
    free(malloc(100000));
}

static void at_exit(void)
{
    exits++;
    void *block = malloc(5000);
    CHECK(block != NULL);
    free(block);
}

__attribute__((constructor(101))) static void first(void)
{
    for (size_t i = 0; i < 64; i++) {
        CHECK((from_constructor[i] = malloc(i * i * 10)) != NULL);
        pattern_fill(from_constructor[i], i * i * 10, i);
    }
    CHECK(pthread_key_create(&key, free) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, in_thread, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pthread_atfork(at_fork, at_fork, at_fork) == 0);
    atexit(at_exit);
}

__attribute__((destructor)) static void last(void)
{
    CHECK(exits == 1);
    for (size_t i = 0; i < 64; i++) {
        pattern_verify(from_constructor[i], i * i * 10, i);
        free(from_constructor[i]);
    }
    free(malloc(3000000));
}

int main(void)
{
    test_begin(60);
    CHECK(from_thread != NULL);
    free(from_thread);
    CHECK(dlopen("libnothing-of-that-name.so", RTLD_NOW) == NULL);
    CHECK(dlerror() != NULL);
    CHECK(dlsym(RTLD_DEFAULT, "no_such_symbol_anywhere") == NULL);
    CHECK(dlerror() != NULL);
    for (int i = 0; i < 10; i++) {
        void *handle = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
        if (handle != NULL)
            dlclose(handle);
    }
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            free(malloc(100));
            exits = 1;
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    return 0;
}
