/* SPDX-License-Identifier: MIT
 *
 * Near a limit on address space, what programs met: each was refused with memory to spare.  Every case is a process of
 * its own:
 *   - nothing is left before the first malloc;
 *   - little is left, and a block of any size up to 128 KiB is asked for;
 *   - an array grows by realloc until it cannot;
 *   - every second block of 140,000 bytes is freed at the limit, and small ones are asked for;
 *   - most of many small objects are freed, as an interpreter does, and blocks of 40,000 bytes are asked for;
 *   - threads that have not called malloc before do so when nothing is left but what was freed;
 *   - superblocks of 4 MiB keep one block each, and other sizes are asked for;
 *   - requests nothing could ever fulfil.
 */
#include "support/check.h"
#include "support/proc.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void leave(size_t mib)
{
    struct rlimit bound;
    bound.rlim_cur = bound.rlim_max = proc_status_bytes("VmSize") + mib * MIB;
    CHECK(setrlimit(RLIMIT_AS, &bound) == 0);
}

/* Address space that is still left is the program's own. */
static void eat(void)
{
    for (size_t size = 1024 * MIB; size >= 4096;)
        if (mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
            size /= 2;
}

static void expect_block(size_t size)
{
    char *p = opaque(malloc(size));
    CHECK_MSG(p != NULL, "malloc(%zu) is refused", size);
    p[0] = p[size - 1] = 1;
    free(p);
}

static void expect_sizes(size_t least, size_t most, size_t step)
{
    for (size_t size = least; size <= most; size += step)
        expect_block(size);
}

/* What the library opened at its start serves it. */
static void nothing_is_left(void)
{
    leave(0);
    expect_sizes(100, 60000, 1000);
}

static void little_is_left(void)
{
    leave(2);
    expect_sizes(1000, 131000, 1000);
    expect_sizes(132000, MIB, 17000);
}

static void an_array_grows(void)
{
    leave(8);
    size_t bytes = 0;
    char *array = NULL;
    for (char *larger; (larger = realloc(array, bytes + 4096)) != NULL; array = larger) {
        bytes += 4096;
        larger[bytes - 1] = (char)(bytes >> 12);
    }
    CHECK(errno == ENOMEM);
    for (size_t i = 4096; i <= bytes; i += 4096)
        CHECK(array[i - 1] == (char)(i >> 12));
    CHECK_MSG(bytes >= 5 * MIB / 2, "an array with 8 MiB left ends at %zu bytes", bytes);
    free(array);
}

enum { MOST = 1 << 18 };
static void *block[MOST];

static size_t fill(size_t size, size_t most)
{
    size_t count = 0;
    while (count < most && (block[count] = malloc(size)) != NULL)
        count++;
    return count;
}

static void free_all_but(size_t count, size_t every)
{
    for (size_t i = 0; i < count; i++)
        if (i % every != 0)
            free(block[i]);
}

static void every_second_is_freed(void)
{
    leave(512);
    size_t count = fill(140000, MOST);
    eat();
    free_all_but(count, 2);
    expect_sizes(1, 131072, 640);
}

static void an_interpreter(void)
{
    leave(64);
    size_t count = fill(512, MOST);
    eat();
    free_all_but(count, 512); /* 256 KiB apart */
    expect_sizes(1000, 64000, 1000);
    size_t more = fill(40000, MOST);
    CHECK_MSG(more >= count * 512 / 65536 / 4, "%zu blocks of 40,000 bytes where %zu KiB were freed", more, count / 2);
}

static pthread_barrier_t barrier;

static void *first_malloc(void *unused)
{
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    expect_sizes(1, 131072, 8192);
    return unused;
}

static void threads_come_late(void)
{
    enum { THREADS = 40 };
    pthread_t thread[THREADS];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 * KIB);
    CHECK(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], &attributes, first_malloc, NULL) == 0);
    pthread_barrier_wait(&barrier);
    leave(32);
    size_t count = fill(140000, MOST);
    eat();
    for (size_t i = 0; i < count; i++)
        free(block[i]);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
}

static void superblocks_keep_one_block(void)
{
    leave(64);
    size_t count = fill(40000, MOST);
    eat();
    free_all_but(count, 80);
    expect_sizes(1000, MIB, 9000);
    CHECK_MSG(opaque(malloc(MIB)) != NULL && opaque(malloc(MIB)) != NULL, "two blocks of 1 MiB");
}

static void expect_enomem(void *p)
{
    CHECK(opaque(p) == NULL && errno == ENOMEM);
    errno = 0;
}

static void nothing_could_fulfil(void)
{
    errno = 0;
    expect_enomem(memalign((size_t)1 << 63, 100));
    expect_enomem(aligned_alloc((size_t)1 << 63, opaque_size((size_t)1 << 63)));
    expect_enomem(memalign((size_t)1 << 62, opaque_size((size_t)1 << 62)));
    expect_enomem(malloc(opaque_size(PTRDIFF_MAX)));
    void *result = NULL;
    CHECK(posix_memalign(&result, (size_t)1 << 63, 100) == ENOMEM && result == NULL);
    errno = 0;
    CHECK(opaque(memalign(((size_t)1 << 63) + 1, 100)) == NULL && errno == EINVAL); /* as glibc */
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"nothing is left", nothing_is_left},
    {"little is left", little_is_left},
    {"an array grows", an_array_grows},
    {"every second is freed", every_second_is_freed},
    {"an interpreter", an_interpreter},
    {"threads come late", threads_come_late},
    {"superblocks keep one block", superblocks_keep_one_block},
    {"nothing could fulfil", nothing_could_fulfil},
};

int main(void)
{
    test_begin(120);
    int failed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            cases[i].run();
            _exit(0);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid);
        test_say("%s: %s\n", cases[i].name, status == 0 ? "passed" : "failed");
        failed += status != 0;
    }
    CHECK_MSG(failed == 0, "%d cases failed", failed);
    return 0;
}
