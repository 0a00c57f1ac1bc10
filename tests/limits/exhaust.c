/* SPDX-License-Identifier: MIT
 *
 * Running out of memory and living on.  Under a limit the program allocates until malloc says NULL with ENOMEM, frees
 * half, must be able to allocate again, frees all, and must get about as much as the first time: an allocator that
 * leaks reservations or is left inconsistent by a refused mmap gives less each round.  The limit comes from outside
 * (ulimit -v before the start, so that start-up lives under it too) or from inside:
 *   --as MIB | --data MIB  set RLIMIT_AS / RLIMIT_DATA to what is in use plus MIB
 *   --maps                 eat the process's mappings (max_map_count) until few are left
 *   --lock                 mlockall(MCL_CURRENT | MCL_FUTURE) first: reservations must not become resident
 *   --hop                  free on one cpu and allocate on the next, beside an idle thread: another heap each time
 * --floor MIB is the least that a round must yield, --most MIB where it stops.
 */
#include "support/family.h"
#include "support/pattern.h"
#include "support/proc.h"
#include "support/rng.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

struct node {
    struct node *next;
    size_t size;
    uint64_t key;
};

static struct node *take(size_t size, uint64_t key)
{
    errno = 0;
    struct node *node = malloc(size);
    if (node == NULL) {
        CHECK_MSG(errno == ENOMEM, "malloc(%zu) = NULL with errno %d", size, errno);
        return NULL;
    }
    node->size = size;
    node->key = key;
    pattern_fill_sparse(node + 1, size - sizeof *node, key);
    return node;
}

static size_t release(struct node **list, bool every)
{
    size_t bytes = 0;
    struct node **link = list;
    bool keep = false;
    while (*link != NULL) {
        struct node *node = *link;
        pattern_verify_sparse(node + 1, node->size - sizeof *node, node->size - sizeof *node, node->key);
        if (!every && keep) {
            link = &node->next;
        } else {
            *link = node->next;
            bytes += node->size;
            free(node);
        }
        keep = !keep;
    }
    return bytes;
}

static size_t fill(struct node **list, size_t size, size_t most)
{
    size_t bytes = 0;
    struct node *node;
    while (bytes < most && (node = take(size, bytes)) != NULL) {
        node->next = *list;
        *list = node;
        bytes += size;
    }
    return bytes;
}

static bool hopping;

/* To the other cpu, and a little sleep there, so that the kernel gives this thread another concurrency id. */
static void hop(void)
{
    static int cpus[64], count, turn;
    if (!hopping)
        return;
    if (count == 0)
        count = proc_cpus(cpus, 64);
    proc_pin_tid(0, cpus[++turn % count]);
    sleep_us(1000);
}

static void *idler(void *argument)
{
    for (;;)
        sleep_us(1000000);
    return argument;
}

/* To cut a block takes no memory, whatever it would do if there were some. */
static struct node *cut(struct node *node)
{
    const uint64_t key = node->key;
    errno = 0;
    node = realloc(node, node->size / 3);
    CHECK_MSG(node != NULL && errno == 0, "a block is not cut, with errno %d", errno);
    CHECK(node->key == key);
    node->size /= 3;
    pattern_fill_sparse(node + 1, node->size - sizeof *node, key);
    return node;
}

static size_t round_of(size_t size, size_t most)
{
    struct node *list = NULL;
    size_t bytes = fill(&list, size, most);
    if (bytes < most) {
        /* The other ways to ask must fail as quietly. */
        errno = 0;
        CHECK(opaque(calloc(1, 512 * MIB)) == NULL && errno == ENOMEM);
        void *result = &result;
        CHECK(posix_memalign(&result, 64, 512 * MIB) == ENOMEM && result == &result);
        if (list != NULL) {
            errno = 0;
            CHECK(opaque(realloc(list, 512 * MIB)) == NULL && errno == ENOMEM);
            if (list->size >= 6 * sizeof *list)
                list = cut(list);
        }
    }
    hop();
    size_t freed = release(&list, false);
    hop();
    size_t again = fill(&list, size, freed);
    CHECK_MSG(again >= freed / 2, "blocks of %zu: freed %zu bytes, could allocate only %zu again", size, freed, again);
    hop();
    release(&list, true);
    hop();
    return bytes;
}

static void limit(int which, size_t mib, const char *row)
{
    struct rlimit bound;
    bound.rlim_cur = bound.rlim_max = proc_status_bytes(row) + mib * MIB;
    CHECK(setrlimit(which, &bound) == 0);
}

static size_t eat_mappings(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = 0;
    enum { CHUNK = 4096 };
    for (;;) {
        char *run = mmap(NULL, CHUNK * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (run == MAP_FAILED)
            return count;
        for (size_t i = 1; i < CHUNK; i += 2) {
            if (mprotect(run + i * page, page, PROT_READ) != 0)
                return count;
            count += 2;
            CHECK_MSG(count < 4000000, "no end of mappings");
        }
    }
}

static bool has_flag(int argc, char **argv, const char *flag)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], flag) == 0)
            return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    test_begin(120);
    size_t most = test_option(argc, argv, "--most", 1024) * MIB;
    size_t floor_bytes = test_option(argc, argv, "--floor", 8) * MIB;
    uint64_t as = test_option(argc, argv, "--as", 0), data = test_option(argc, argv, "--data", 0);
    bool locked = has_flag(argc, argv, "--lock");
    if (locked) {
        if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
            SKIP("mlockall: errno %d", errno);
        free(malloc(100));
        size_t resident = proc_resident_bytes();
        CHECK_MSG(resident < 192 * MIB, "mlockall made %zu MiB resident", resident / MIB);
    }
    hopping = has_flag(argc, argv, "--hop");
    pthread_t thread;
    if (hopping)
        CHECK(pthread_create(&thread, NULL, idler, NULL) == 0);
    if (as != 0)
        limit(RLIMIT_AS, as, "VmSize");
    if (data != 0)
        limit(RLIMIT_DATA, data, "VmData");
    if (has_flag(argc, argv, "--maps"))
        test_say("%zu mappings eaten\n", eat_mappings());
    static const size_t sizes[] = {64, 1000, 5000, 40000, 300000, 3000000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t first = round_of(sizes[i], most);
        size_t second = round_of(sizes[i], most);
        test_say("blocks of %zu: %zu KiB, then %zu KiB\n", sizes[i], first / KIB, second / KIB);
        CHECK_MSG(first >= floor_bytes || sizes[i] * 4 > floor_bytes, "only %zu KiB could be had", first / KIB);
        CHECK_MSG(second >= first / 2, "the second round gave %zu of %zu bytes", second, first);
    }
    if (locked) {
        size_t resident = proc_resident_bytes();
        CHECK_MSG(resident < most * 2 + 192 * MIB, "%zu MiB resident after all was freed", resident / MIB);
    }
    return 0;
}
