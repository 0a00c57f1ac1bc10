/* SPDX-License-Identifier: MIT
 *
 * The C library's malloc behind a lock that each thread takes for its first call, and holds for a while; no fork
 * handlers.  A child of a process in which some thread was in there cannot begin a thread.  TEST_HELD=always: for every
 * call.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HELD_NS 2000000
#define HELD_SHORTLY_NS 50000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_held_always;
static __thread bool known __attribute__((tls_model("initial-exec")));

static struct {
    void *(*malloc)(size_t size);
    void (*free)(void *block);
    void *(*calloc)(size_t count, size_t size);
    void *(*realloc)(void *block, size_t size);
    int (*posix_memalign)(void **result, size_t alignment, size_t size);
    size_t (*malloc_usable_size)(void *block);
} below;

static __attribute__((constructor)) void find_libc(void)
{
    const char *held = getenv("TEST_HELD");
    is_held_always = held != NULL && strcmp(held, "always") == 0;
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    *(void **)&below.malloc = dlsym(libc, "malloc");
    *(void **)&below.free = dlsym(libc, "free");
    *(void **)&below.calloc = dlsym(libc, "calloc");
    *(void **)&below.realloc = dlsym(libc, "realloc");
    *(void **)&below.posix_memalign = dlsym(libc, "posix_memalign");
    *(void **)&below.malloc_usable_size = dlsym(libc, "malloc_usable_size");
}

static void enter(void)
{
    if (known && !is_held_always)
        return;
    struct timespec held = {0, known ? HELD_SHORTLY_NS : HELD_NS};
    known = true;
    pthread_mutex_lock(&lock);
    syscall(SYS_nanosleep, &held, NULL);
    pthread_mutex_unlock(&lock);
}

void *malloc(size_t size)
{
    enter();
    return below.malloc(size);
}

void free(void *block)
{
    below.free(block);
}

void *calloc(size_t count, size_t size)
{
    enter();
    return below.calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    enter();
    return below.realloc(block, size);
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
    enter();
    return below.posix_memalign(result, alignment, size);
}

size_t malloc_usable_size(void *block)
{
    return below.malloc_usable_size(block);
}
