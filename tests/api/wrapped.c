/* SPDX-License-Identifier: MIT
 *
 * A program that wraps malloc, as libmemusage does: it defines the four functions, puts a header before each block, and
 * calls the next definition.  So the library may not call malloc by that name on its own account: it would get a block
 * with a header for one without, and somebody would free what is no block's start.
 */
#define _GNU_SOURCE
#include "support/check.h"
#include <dlfcn.h>
#include <locale.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>

#define MARK  0x7a61d05c9be2f384ul
#define FREED 0x1c9e5a07d364bb82ul

struct header {
    uint64_t mark;
    size_t bytes;
};

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
} next;
static __thread bool is_in_library;
static _Atomic size_t calls;

static void resolve(void)
{
    if (next.free != NULL)
        return;
    next.malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    next.calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
    next.realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
    next.free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
}

static void enter(const char *function)
{
    resolve();
    CHECK_MSG(!is_in_library, "the library itself calls %s by name", function);
    is_in_library = true;
    calls++;
}

static void *leave(struct header *h, size_t bytes)
{
    is_in_library = false;
    if (h == NULL)
        return NULL;
    *h = (struct header){MARK, bytes};
    return h + 1;
}

static struct header *unwrap(void *block)
{
    struct header *h = (struct header *)block - 1;
    CHECK_MSG(h->mark == MARK, "%p has no header", block);
    return h;
}

void *malloc(size_t size)
{
    enter("malloc");
    return leave(next.malloc(size + sizeof(struct header)), size);
}

void *calloc(size_t count, size_t size)
{
    enter("calloc");
    return leave(next.calloc(1, count * size + sizeof(struct header)), count * size);
}

void *realloc(void *block, size_t size)
{
    enter("realloc");
    struct header *h = block != NULL ? unwrap(block) : NULL;
    CHECK(block == NULL || size != 0);
    return leave(next.realloc(h, size + sizeof *h), size);
}

void free(void *block)
{
    if (block == NULL)
        return;
    enter("free");
    struct header *h = unwrap(block);
    h->mark = FREED;
    next.free(h);
    is_in_library = false;
}

/* From one size to another by realloc: in place, by copying, as a superblock's block, a span and a mapping. */
static void resize(size_t from, size_t to)
{
    char *block = realloc(NULL, from);
    CHECK(block != NULL);
    memset(block, 5, from);
    block = realloc(block, to);
    CHECK(block != NULL && block[0] == 5 && block[(from < to ? from : to) - 1] == 5);
    free(block);
}

static void *sizes(void *unused)
{
    static const size_t size[] = {1, 24, 100, 1000, 5000, 40000, 200000, 3 * MIB, 40 * MIB};
    for (unsigned i = 0; i < sizeof size / sizeof *size; i++) {
        for (unsigned k = 0; k < sizeof size / sizeof *size; k++)
            resize(size[i], size[k]);
        unsigned char *zeros = calloc(size[i], 1);
        CHECK(zeros != NULL && zeros[0] == 0 && zeros[size[i] - 1] == 0);
        free(zeros);
    }
    return unused;
}

/* What calls the family for the program: libc, and the functions that nobody wraps. */
static void others(void)
{
    CHECK(setlocale(LC_ALL, "C.UTF-8") != NULL || setlocale(LC_ALL, "") != NULL);
    char *text = NULL;
    CHECK(asprintf(&text, "%0500d", 7) == 500);
    text = reallocarray(text, 100, 50);
    CHECK(text != NULL && text[499] == '7');
    free(text);
    CHECK((text = strdup("copied")) != NULL);
    free(text);
}

/* Who looks behind a wrapper in libc must not find the wrapper again. */
static void behind_the_wrapper(void)
{
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    CHECK(libc != NULL && dlsym(libc, "malloc") != (void *)malloc && dlsym(libc, "free") != (void *)free);
    void (*libcs_free)(void *) = (void (*)(void *))dlsym(libc, "free");
    libcs_free(((void *(*)(size_t))dlsym(libc, "malloc"))(100));
    /* A library that prefers libc's names to the program's must. */
    CHECK(dlopen("libm.so.6", RTLD_NOW | RTLD_DEEPBIND) != NULL && dlsym(libc, "malloc") == (void *)malloc);
}

/* jemalloc's functions go past the wrapper, and stay there. */
static void past_the_wrapper(void)
{
    void *(*mallocx)(size_t, int) = (void *(*)(size_t, int))dlsym(RTLD_NEXT, "mallocx");
    void *(*rallocx)(void *, size_t, int) = (void *(*)(void *, size_t, int))dlsym(RTLD_NEXT, "rallocx");
    size_t (*sallocx)(const void *, int) = (size_t (*)(const void *, int))dlsym(RTLD_NEXT, "sallocx");
    void (*dallocx)(void *, int) = (void (*)(void *, int))dlsym(RTLD_NEXT, "dallocx");
    CHECK(mallocx != NULL && rallocx != NULL && sallocx != NULL && dallocx != NULL);
    const size_t before = calls;
    for (int alignment = 0; alignment < 13; alignment += 6)
        for (size_t bytes = 10; bytes < 100 * MIB; bytes *= 9) {
            void *block = mallocx(bytes, alignment);
            CHECK((block = rallocx(block, 3 * bytes, alignment)) != NULL && sallocx(block, 0) >= 3 * bytes);
            CHECK((block = rallocx(block, bytes / 2, alignment)) != NULL);
            dallocx(block, 0);
        }
    CHECK_MSG(calls == before, "they called the wrapper");
}

int main(void)
{
    test_watchdog(120);
    resolve();
    if (dlsym(RTLD_DEFAULT, "sutler_version") == NULL) {
        CHECK_MSG(getenv("TEST_EXPECT_SUTLER") == NULL, "the library under test is not there");
        test_say("SKIPPED: without the library there is nothing to see\n");
        return 77;
    }
    sizes(NULL);
    others();
    pthread_t thread[4];
    for (unsigned i = 0; i < 4; i++)
        CHECK(pthread_create(&thread[i], NULL, sizes, NULL) == 0);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    pid_t child = fork();
    if (child == 0) {
        sizes(NULL);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    behind_the_wrapper();
    past_the_wrapper();
    CHECK(calls > 100);
    return 0;
}
