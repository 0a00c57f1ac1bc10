/* SPDX-License-Identifier: MIT
 *
 * A malloc that is wrong in one chosen way: the test of the tests.
 *
 * A test that cannot fail says nothing.  Preloaded in place of the library, this shim passes every call to glibc except
 * for one fault, named by SHIM_FAULT; the self-tests run a program under it and expect a failure.  Without SHIM_FAULT
 * it is a correct allocator, so it also shows that the failure comes from the fault and not from the shim.
 *
 * Faults strike from the SHIM_AFTER-th call on (default 200: start-up must survive), each once in a few calls.
 *   twice      malloc returns a block that is still live         realloc   a growing realloc loses a byte of content
 *   short      a block is 16 bytes smaller than usable_size says  dirty     calloc does not clear
 *   align      aligned requests come back misaligned              errno     free overwrites errno
 *   hoard      free keeps everything                              nomem     malloc fails without setting errno
 *   overflow   calloc and reallocarray multiply without looking   silent    bad frees are swallowed without a word
 *   abandon    frees by any thread but the first are lost         child     the fork child's malloc returns NULL
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);

static int is_fault(const char *name)
{
    static const char *fault;
    if (fault == NULL) {
        fault = "";
        for (char **row = environ; row != NULL && *row != NULL; row++) {
            if (strncmp(*row, "SHIM_FAULT=", 11) == 0)
                fault = *row + 11;
        }
    }
    return strcmp(fault, name) == 0;
}

static unsigned strike_count;

/* True for one call in `period`, once start-up is over. */
static int strikes(unsigned period)
{
    static unsigned after = 0;
    if (after == 0) {
        const char *text = getenv("SHIM_AFTER");
        after = text != NULL ? (unsigned)strtoul(text, NULL, 10) : 200;
    }
    unsigned n = __atomic_add_fetch(&strike_count, 1, __ATOMIC_RELAXED);
    return n > after && n % period == 0;
}

static pid_t first_process;

__attribute__((constructor)) static void remember_process(void)
{
    first_process = getpid();
}

void *malloc(size_t size)
{
    static void *last;
    static size_t last_size;
    if (is_fault("twice") && last != NULL && last_size >= size && strikes(50)) {
        void *again = last;
        last = NULL;
        return again;
    }
    if (is_fault("nomem") && size > 16 && strikes(300)) {
        errno = 0;
        return NULL;
    }
    if (is_fault("child") && first_process != 0 && getpid() != first_process)
        return NULL;
    size_t real = size;
    if (is_fault("short") && size > 64 && strikes(20))
        real = size - 48; /* glibc rounds up by up to 24: the tail is somebody else's */
    void *block = __libc_malloc(real);
    last = block;
    last_size = size;
    return block;
}

void free(void *block)
{
    int saved = errno;
    if (is_fault("hoard"))
        return;
    if (is_fault("silent") && ((uintptr_t)block < 65536 || ((uintptr_t)block & 15) != 0))
        return;
    if (is_fault("abandon") && gettid() != getpid())
        return;
    __libc_free(block);
    errno = is_fault("errno") && strikes(3) ? EINVAL : saved;
}

void *calloc(size_t count, size_t size)
{
    if (is_fault("overflow"))
        return __libc_malloc(count * size);
    if (is_fault("dirty") && strikes(2)) {
        void *block = __libc_malloc(count * size);
        return block;
    }
    if (is_fault("child") && first_process != 0 && getpid() != first_process)
        return NULL;
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    size_t before = block != NULL ? malloc_usable_size(block) : 0;
    char *moved = __libc_realloc(block, size);
    if (is_fault("realloc") && moved != NULL && before > 64 && size >= before && strikes(4))
        moved[before / 2] ^= 0x10;
    return moved;
}

void *reallocarray(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) && !is_fault("overflow")) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, count * size);
}

static void *aligned(size_t alignment, size_t size)
{
    if (size > PTRDIFF_MAX - 64) {
        errno = ENOMEM;
        return NULL;
    }
    char *block = __libc_memalign(alignment, size + 64);
    if (is_fault("align") && block != NULL && alignment > 16 && strikes(2))
        return block + 16;
    return block;
}

void *memalign(size_t alignment, size_t size)
{
    return aligned(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return aligned(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0)
        return EINVAL;
    void *block = aligned(alignment, size);
    if (block == NULL)
        return ENOMEM;
    *result = block;
    return 0;
}

bool sutler_is_active(void);
bool sutler_is_active(void)
{
    return false; /* so that programs skip what only the library promises */
}
