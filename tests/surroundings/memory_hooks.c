/* SPDX-License-Identifier: MIT
 *
 * Why: libraries that register memory with a network card (UCX, libfabric, Open MPI) replace the first instructions of
 * libc's munmap, madvise and mremap, and drop a registration when pages go.  This does the same: each page of a block
 * that goes must have been announced before, whoever gives it back, or the card would use the pages of others.  And
 * while a small block is taken nothing goes: the hooks may want a lock under which that is done.
 */
#include "manager/watch.h"
#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>

#if defined(__x86_64__)

/* ---- the hooks ---- */

struct range {
    uintptr_t start, end;
};
#define EVENTS_MOST 65536
static struct range event[EVENTS_MOST];
static volatile size_t events;
static volatile bool is_taking;

/* A hook runs wherever memory goes: it takes none. */
static void announce(void *address, size_t size)
{
    const size_t i = __atomic_fetch_add(&events, 1, __ATOMIC_SEQ_CST);
    CHECK_MSG(gettid() == getpid(), "a hook was called by another thread than the program's");
    CHECK(i < EVENTS_MOST);
    CHECK_MSG(!is_taking, "a hook was called by malloc");
    event[i] = (struct range){(uintptr_t)address, (uintptr_t)address + size};
}

static int munmap_hook(void *address, size_t size)
{
    announce(address, size);
    return (int)syscall(SYS_munmap, address, size);
}

static int madvise_hook(void *address, size_t size, int advice)
{
    if (advice == MADV_DONTNEED) /* Open MPI knows no other */
        announce(address, size);
    return (int)syscall(SYS_madvise, address, size, advice);
}

static void *mremap_hook(void *address, size_t old_size, size_t new_size, int flags, void *where)
{
    announce(address, old_size);
    return (void *)syscall(SYS_mremap, address, old_size, new_size, flags, where);
}

/* mov $to, %r11; jmp *%r11 */
static void replace(const char *name, void *to)
{
    unsigned char *code = dlsym(RTLD_DEFAULT, name), jump[13] = {0x49, 0xbb, [10] = 0x41, 0xff, 0xe3};
    char *page = (char *)((uintptr_t)code & ~(uintptr_t)4095);
    memcpy(jump + 2, &to, sizeof to);
    CHECK(code != NULL && mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    memcpy(code, jump, sizeof jump);
    CHECK(mprotect(page, 8192, PROT_READ | PROT_EXEC) == 0);
}

/* ---- what was registered ---- */

static struct range registered[100000];
static size_t count;

static void forget_all(void)
{
    count = 0;
    events = 0; /* an address may come again */
}

static void register_block(const void *p, size_t size)
{
    CHECK(count < sizeof registered / sizeof registered[0]);
    registered[count++] = (struct range){(uintptr_t)p, (uintptr_t)p + size};
}

static bool was_announced(uintptr_t page)
{
    for (size_t i = 0; i < events; i++)
        if (event[i].start <= page && page < event[i].end)
            return true;
    return false;
}

/* How many pages that registered blocks had are not there any more; each of these was announced. */
static size_t pages_gone(void)
{
    static uint64_t word[512];
    size_t gone = 0;
    uintptr_t last = 0;
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        SKIP("pages cannot be looked at");
    for (size_t i = 0; i < count; i++)
        for (uintptr_t page = registered[i].start / 4096, end = (registered[i].end + 4095) / 4096; page < end;) {
            const size_t n = end - page < 512 ? end - page : 512;
            CHECK(pread(fd, word, n * 8, (off_t)(page * 8)) == (ssize_t)(n * 8));
            for (size_t k = 0; k < n; k++, page++)
                if ((word[k] >> 62 == 0 || (word[k] >> 58 & 1) != 0) && page != last) { /* not there, or guarded */
                    CHECK_MSG(was_announced(page * 4096), "the page at %#zx went unannounced", (size_t)page * 4096);
                    last = page;
                    gone++;
                }
        }
    close(fd);
    return gone;
}

/* ---- the cases ---- */

static void *filled(size_t size)
{
    void *p = malloc(size);
    CHECK(p != NULL);
    memset(p, 1, size);
    register_block(p, size);
    return p;
}

/* The program goes on, so that clocks run, and takes other memory than what is watched. */
static void go_on(struct rng *rng, uint64_t ms)
{
    for (const uint64_t end = now_ms() + ms; now_ms() < end; sleep_us(500)) {
        is_taking = true;
        hoard_grow(rng, 64 * KIB);
        is_taking = false;
        if (rng_below(rng, 64) == 0)
            hoard_drop(2);
    }
}

static void nothing_goes_unannounced(uint64_t seed)
{
    static void *block[60000];
    struct rng rng = {seed};
    CHECK(manager_try(&rng) != 0 || proc_is_filtered());
    replace("munmap", munmap_hook);
    replace("madvise", madvise_hook);
    replace("mremap", mremap_hook);
    for (size_t i = 0; i < 60000; i++)
        block[i] = filled(i % 100 == 0 ? 100 * KIB : 1000);
    void *large[] = {filled(300 * KIB), filled(3 * MIB), filled(20 * MIB), filled(100 * MIB), filled(100 * MIB)};
    for (size_t i = 0; i < 60000; i++)
        if (i % 64 != 7)
            free(block[i]);
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
        free(large[i]);
    pages_gone();
    go_on(&rng, 4000);
    pages_gone();
    CHECK_MSG(manager_of(getpid()) == 0, "the manager is still there");
    malloc_trim(0);
    const size_t gone = pages_gone();
    CHECK_MSG(gone > 220 * MIB / 4096, "only %zu pages went", gone);

    /* Nor when a block moves, or zeros come in place of what was there. */
    forget_all();
    char *p = filled(30 * MIB), *q = realloc(p, 300 * MIB);
    CHECK(q != NULL && q[30 * MIB - 1] == 1);
    pages_gone();
    errno = 7;
    free(q);
    CHECK(errno == 7);
    pages_gone();
    forget_all();
    p = malloc(6 * MIB);
    CHECK(p != NULL);
    for (size_t i = 0; i < 6 * MIB; i += 128 * KIB) {
        p[i] = 1;
        register_block(p + i, 1);
    }
    free(p);
    p = calloc(6 * MIB, 1);
    CHECK(p != NULL && p[0] == 0 && p[5 * MIB] == 0);
    pages_gone();
    free(p);
    hoard_check();
}

int main(int argc, char **argv)
{
    test_begin(60);
    static const struct manager_case cases[] = {{"nothing_goes_unannounced", nothing_goes_unannounced}};
    return cases_run(argc, argv, cases, 1);
}

#else

int main(void)
{
    test_begin(60);
    SKIP("the hooks are written for x86-64");
}

#endif
