/* SPDX-License-Identifier: MIT
 *
 * The program that enomem.c tampers with: deterministic, uses every way memory is asked for, lives with NULL.  It names
 * its phases to the tracer by getpriority(0xE0E0, phase), a call that fails and changes nothing: 1 begins the tampered
 * part and 2 ends it.  Afterwards nothing is refused any more and every allocation must succeed; blocks from before are
 * intact.
 */
#include "support/family.h"
#include "support/pattern.h"
#include "support/shadow.h"
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define COUNT 600

static unsigned char *blocks[COUNT];
static size_t sizes[COUNT];
static size_t refused;

static void phase(int number)
{
    syscall(SYS_getpriority, 0xE0E0, number);
}

static size_t size_of(size_t i)
{
    static const size_t table[] = {24, 200, 1500, 9000, 33000, 70000, 150000, 600000, 1500000, 5000000};
    return table[i % (i % 5 == 0 ? 10 : 6)] + i;
}

static void adopt(size_t i, void *block, size_t size)
{
    if (block == NULL) {
        CHECK_MSG(errno == ENOMEM, "NULL with errno %d", errno);
        refused++;
        return;
    }
    blocks[i] = block;
    sizes[i] = size;
    shadow_claim(block, malloc_usable_size(block));
    pattern_fill_sparse(block, size, i);
}

static void drop(size_t i)
{
    if (blocks[i] == NULL)
        return;
    pattern_verify_sparse(blocks[i], sizes[i], sizes[i], i);
    shadow_release(blocks[i], malloc_usable_size(blocks[i]));
    free(blocks[i]);
    blocks[i] = NULL;
}

static void resize(size_t i, size_t size)
{
    if (blocks[i] == NULL)
        return;
    size_t before = sizes[i];
    shadow_release(blocks[i], malloc_usable_size(blocks[i]));
    void *moved = realloc(blocks[i], size);
    if (moved == NULL) {
        CHECK(errno == ENOMEM);
        refused++;
        shadow_claim(blocks[i], malloc_usable_size(blocks[i]));
        pattern_verify_sparse(blocks[i], before, before, i); /* the old block stays */
        return;
    }
    pattern_verify_sparse(moved, before, before < size ? before : size, i);
    blocks[i] = NULL;
    adopt(i, moved, size);
}

static void mixture(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        size_t size = size_of(i);
        void *block = NULL;
        errno = 0;
        if (i % 7 == 0) {
            block = calloc(1, size);
            for (size_t k = 0; block != NULL && k < size; k += 500)
                CHECK(((unsigned char *)block)[k] == 0);
        } else if (i % 7 == 1) {
            int error = posix_memalign(&block, (size_t)64 << i % 12, size);
            CHECK(error == 0 || error == ENOMEM);
            errno = error;
        } else {
            block = malloc(size);
        }
        adopt(i, block, size);
        if (i % 3 == 0 && i > 20)
            drop(i - 20);
        if (i % 4 == 0 && i > 10)
            resize(i - 10, size_of(i) * 3);
        if (i % 150 == 149)
            malloc_trim(0);
    }
}

static void *remote(void *argument)
{
    for (size_t i = 0; i < COUNT; i += 2)
        drop(i);
    free(malloc(100));
    return argument;
}

int main(void)
{
    test_begin(60);
    shadow_create();
    mixture(0, 40);
    phase(1);
    mixture(40, COUNT);
    phase(2);
    size_t before = refused;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, remote, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    mixture(0, 40);
    for (size_t i = 0; i < COUNT; i++)
        drop(i);
    mixture(0, COUNT);
    CHECK_MSG(refused == before, "%zu requests refused although the system refuses nothing any more", refused - before);
    for (size_t i = 0; i < COUNT; i++)
        drop(i);
    test_say("%zu refused\n", refused);
    return 0;
}
