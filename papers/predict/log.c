/* SPDX-License-Identifier: MIT
 *
 * Why: which arguments a program gives to libm's functions, what these calls cost, and how many there are (thesis,
 * appendix D: "a library was created to log the arguments").  libsutler-predict-log.so, preloaded, with
 * SUTLER_PREDICT_LOG=PREFIX and SUTLER_PREDICT_LOG_CALLS (records a thread, default two million).
 *
 * Records go straight into a mapping of the file.  Each thread has its own file and takes no lock; a child of fork
 * begins files of its own; a call in a signal handler that interrupted the recording is not recorded.  Every 16th call
 * is timed.
 *
 * The file is opened by its path for each window and closed again: a program may close descriptors that are not its
 * own, and a number that was kept would then be one of its files.
 */
#include "wrapped.h" /* first: it asks for all that the system declares */

#include "machine.h"
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WINDOW_RECORDS 65536u
#define WINDOW_BYTES   (WINDOW_RECORDS * sizeof(struct record))
#define TIMED_EVERY    16u
#define PREEMPTED      30u /* a call that takes so many times the shortest was interrupted: its time is left out */

_Static_assert(sizeof(struct record_header) <= RECORD_HEADER && FUNCTION_COUNT < RECORD_FUNCTIONS, "the header's room");
_Static_assert(WINDOW_BYTES % 65536 == 0, "windows are whole pages");

static __thread struct {
    struct record_header *header;
    struct record *window;
    uint64_t records; /* in all; the window holds the last ones */
    dev_t device;
    ino_t file;
    uint32_t inside;
    bool over; /* no room on the disk, no file, or the thread ends: count no more */
} mine __attribute__((tls_model("initial-exec")));

static char prefix[PATH_MAX]; /* absolute; empty: nothing is recorded */
static pthread_key_t thread_key;
static uint64_t most_records = 2000000;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The thread's file, and no other that got its name meanwhile; -1: none.  `create`: its first part is to be made. */
static int open_file(int create)
{
    char path[PATH_MAX];
    struct stat status;
    if (snprintf(path, sizeof path, "%s.%d.%d", prefix, (int)getpid(), (int)syscall(SYS_gettid)) >= (int)sizeof path)
        return -1;
    int file = open(path, O_RDWR | O_CLOEXEC | create, 0600);
    if (file < 0)
        return -1;
    bool known = fstat(file, &status) == 0 && (create || (status.st_dev == mine.device && status.st_ino == mine.file));
    if (!known) {
        close(file);
        return -1;
    }
    mine.device = status.st_dev;
    mine.file = status.st_ino;
    return file;
}

/* The blocks are taken from the disk now: a store to a page that has none would end the program. */
static void *map_part(int create, off_t from, size_t bytes)
{
    int file = open_file(create), error;
    if (file < 0)
        return NULL;
    while ((error = posix_fallocate(file, from, (off_t)bytes)) == EINTR)
        ;
    void *part = error == 0 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, from) : MAP_FAILED;
    close(file);
    return part != MAP_FAILED ? part : NULL;
}

static bool open_log(void)
{
    if (pthread_setspecific(thread_key, &mine) != 0 ||
        (mine.header = map_part(O_CREAT | O_TRUNC, 0, RECORD_HEADER)) == NULL)
        return false;
    memcpy(mine.header->magic, RECORD_MAGIC, sizeof mine.header->magic);
    mine.header->process = (uint32_t)getpid();
    mine.header->thread = (uint32_t)syscall(SYS_gettid);
    mine.header->first_ns = now_ns();
    mine.header->first_ticks = ticks_now();
    return true;
}

static bool next_window(void)
{
    if (mine.window != NULL)
        munmap(mine.window, WINDOW_BYTES);
    off_t from = RECORD_HEADER + (off_t)(mine.records / WINDOW_RECORDS * WINDOW_BYTES);
    return (mine.window = map_part(0, from, WINDOW_BYTES)) != NULL;
}

static void write_record(uint32_t function, uint64_t first, uint64_t second)
{
    if (mine.records % WINDOW_RECORDS == 0 && !next_window()) {
        mine.over = true;
        return;
    }
    struct record *record = &mine.window[mine.records++ % WINDOW_RECORDS];
    record->environment = fp_environment();
    record->arguments[0] = first;
    record->arguments[1] = second;
    __atomic_store_n(&record->function, function + 1, __ATOMIC_RELEASE);
}

/* Records a call that is about to be made.  True: the call is to be timed. */
static bool begin_call(uint32_t function, uint64_t first, uint64_t second)
{
    if (prefix[0] == '\0' || mine.over || mine.inside)
        return false;
    int saved = errno;
    mine.inside = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    mine.over = mine.header == NULL && !open_log();
    bool timed = !mine.over && mine.header->calls[function]++ % TIMED_EVERY == 0;
    if (!mine.over && mine.records < most_records)
        write_record(function, first, second);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    mine.inside = 0;
    errno = saved;
    return timed;
}

static void end_call(uint32_t function, uint64_t ticks)
{
    struct record_header *header = mine.header;
    if (header == NULL) /* forked since, or the thread ends */
        return;
    uint64_t begin = ticks_then(), clock = ticks_then() - begin;
    if (header->least_ticks[function] == 0 || ticks < header->least_ticks[function])
        header->least_ticks[function] = ticks;
    if (ticks < header->least_ticks[function] * PREEMPTED) {
        header->timed_calls[function]++;
        header->timed_ticks[function] += ticks;
        header->clock_ticks[function] += clock < ticks ? clock : ticks;
    }
    header->last_ticks = ticks_now();
    header->last_ns = now_ns();
}

#define UNARY(name, type)                                                                                              \
    EXPORT type name(type x)                                                                                           \
    {                                                                                                                  \
        bool timed = begin_call(FUNCTION_##name, bits_of_##type(x), 0);                                                \
        uint64_t begin = timed ? ticks_then() : 0;                                                                     \
        type result = next_##name(x);                                                                                  \
        if (timed)                                                                                                     \
            end_call(FUNCTION_##name, ticks_then() - begin);                                                           \
        return result;                                                                                                 \
    }
#define BINARY(name, type)                                                                                             \
    EXPORT type name(type x, type y)                                                                                   \
    {                                                                                                                  \
        bool timed = begin_call(FUNCTION_##name, bits_of_##type(x), bits_of_##type(y));                                \
        uint64_t begin = timed ? ticks_then() : 0;                                                                     \
        type result = next_##name(x, y);                                                                               \
        if (timed)                                                                                                     \
            end_call(FUNCTION_##name, ticks_then() - begin);                                                           \
        return result;                                                                                                 \
    }
#define PAIR(name, type)                                                                                               \
    EXPORT void name(type x, type *sine, type *cosine)                                                                 \
    {                                                                                                                  \
        bool timed = begin_call(FUNCTION_##name, bits_of_##type(x), 0);                                                \
        uint64_t begin = timed ? ticks_then() : 0;                                                                     \
        next_##name(x, sine, cosine);                                                                                  \
        if (timed)                                                                                                     \
            end_call(FUNCTION_##name, ticks_then() - begin);                                                           \
    }
#include "functions.def"

static void unmap_log(void)
{
    if (mine.header != NULL)
        munmap(mine.header, RECORD_HEADER);
    if (mine.window != NULL)
        munmap(mine.window, WINDOW_BYTES);
}

/* The parent's files stay the parent's. */
static void fork_child(void)
{
    unmap_log();
    memset(&mine, 0, sizeof mine);
}

static void thread_ends(void *unused)
{
    (void)unused;
    mine.over = true; /* what the thread still calls is not recorded: it would begin the file again */
    unmap_log();
    mine.header = NULL;
}

/* The program may go elsewhere. */
static bool make_prefix(const char *given)
{
    char here[PATH_MAX] = "";
    bool relative = given[0] != '/';
    if (relative && getcwd(here, sizeof here) == NULL)
        return false;
    return snprintf(prefix, sizeof prefix, "%s%s%s", here, relative ? "/" : "", given) < (int)sizeof prefix;
}

static __attribute__((constructor)) void prepare(void)
{
    const char *most = secure_getenv("SUTLER_PREDICT_LOG_CALLS");
    find_originals();
    if (most != NULL)
        most_records = strtoull(most, NULL, 10);
    const char *given = secure_getenv("SUTLER_PREDICT_LOG");
    if (given == NULL || pthread_key_create(&thread_key, thread_ends) != 0 ||
        pthread_atfork(NULL, NULL, fork_child) != 0 || !make_prefix(given))
        prefix[0] = '\0';
}
