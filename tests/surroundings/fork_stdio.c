/* SPDX-License-Identifier: MIT
 *
 * fork in a program that uses stdio.  glibc's fork runs the handlers of pthread_atfork first and takes the list of open
 * files after them; whoever holds that list (fflush(NULL), fopen, fclose) may be waiting for a file whose owner sits in
 * malloc, as getline does while it makes its buffer larger.  So an allocator that holds a lock of its own while glibc
 * takes the list has closed the circle.
 *
 * Readers make getline's buffer grow, others open, close and flush, main forks.  The child allocates, prints into a
 * pipe and ends; the parent reads what it said.  With fork_guest.c preloaded beside it, handlers of another library
 * allocate and print while all that goes on.
 */
#include "fork/heap.h"
#include "surroundings/fork_guest.h"

#include <sys/mman.h>
#include <sys/prctl.h>

enum { LINES = 24 };

/* glibc's locks are unfair: who takes one again at once starves the others, under any allocator. */
static void leave_a_gap(void)
{
    usleep(50);
}

/* Lines from a hundred bytes to some hundred KiB: every step is a realloc under the file's lock. */
static FILE *open_lines(void)
{
    int descriptor = memfd_create("lines", MFD_CLOEXEC);
    CHECK(descriptor >= 0);
    FILE *file = fdopen(descriptor, "r+");
    CHECK(file != NULL);
    size_t length = 100;
    for (int i = 0; i < LINES; i++, length += length / 2 < 20000 ? length / 2 : 20000) {
        for (size_t k = 0; k < length; k++)
            CHECK(putc('a' + i, file) != EOF);
        CHECK(putc('\n', file) != EOF);
    }
    return file;
}

static void *reader_main(void *argument)
{
    (void)argument;
    FILE *file = open_lines();
    while (!churn_stop) {
        rewind(file);
        char *line = NULL;
        size_t room = 0;
        int lines = 0;
        for (ssize_t length; (length = getline(&line, &room, file)) > 0; lines++)
            CHECK(line[0] == 'a' + lines && line[length - 2] == 'a' + lines && line[length - 1] == '\n');
        CHECK_MSG(lines == LINES, "%d of %d lines", lines, LINES);
        free(line);
        leave_a_gap();
    }
    CHECK(fclose(file) == 0);
    return NULL;
}

static void *flusher_main(void *argument)
{
    (void)argument;
    while (!churn_stop) {
        CHECK(fflush(NULL) == 0);
        leave_a_gap();
    }
    return NULL;
}

static void *opener_main(void *argument)
{
    (void)argument;
    while (!churn_stop) {
        FILE *file = fopen("/dev/null", "w");
        CHECK(file != NULL && fprintf(file, "%1000d", 1) == 1000 && fclose(file) == 0);
        char *text = NULL;
        size_t length = 0;
        file = open_memstream(&text, &length);
        CHECK(file != NULL);
        for (int i = 0; i < 500; i++)
            CHECK(fprintf(file, "%100d", i) == 100);
        CHECK(fclose(file) == 0 && length == 50000);
        free(text);
        leave_a_gap();
    }
    return NULL;
}

static void *guest_main(void *argument)
{
    (void)argument;
    while (!churn_stop) {
        fork_guest_use();
        leave_a_gap();
    }
    return NULL;
}

static void child_main(uint64_t number, FILE *out)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    child_begin();
    void *small = malloc(100 + number % 1000);
    void *large = malloc(200000 + number % 1000 * 1000);
    CHECK(small != NULL && large != NULL);
    memset(small, 1, 100);
    memset(large, 1, 200000);
    char *text = NULL;
    CHECK(asprintf(&text, "child %llu of a threaded program", (unsigned long long)number) > 0);
    CHECK(fprintf(out, "%s\n", text) > 0 && fflush(out) == 0);
    free(text);
    free(small);
    free(large);
    _exit(0);
}

static void fork_once(uint64_t number, FILE *out, int in)
{
    pid_t made = fork();
    CHECK(made >= 0);
    if (made == 0)
        child_main(number, out);
    child_reap(made);
    char wanted[64], got[64];
    int length = snprintf(wanted, sizeof wanted, "child %llu of a threaded program\n", (unsigned long long)number);
    CHECK(read(in, got, sizeof got) == length && memcmp(wanted, got, (size_t)length) == 0);
}

int main(int argc, char **argv)
{
    test_begin(0);
    test_watchdog((unsigned)test_option(argc, argv, "--seconds", 60));
    uint64_t forks = test_option(argc, argv, "--forks", 2000);
    int ends[2];
    CHECK(pipe(ends) == 0);
    FILE *out = fdopen(ends[1], "w");
    CHECK(out != NULL);

    void *(*const mains[])(void *) = {reader_main, reader_main, flusher_main, opener_main, churn_main, guest_main};
    const bool has_guest = fork_guest_use != NULL;
    CHECK(has_guest == (getenv("TEST_FORK_GUEST") != NULL));
    const size_t count = sizeof mains / sizeof mains[0] - (has_guest ? 0 : 1);
    pthread_t threads[sizeof mains / sizeof mains[0]];
    for (size_t i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, mains[i], (void *)(uintptr_t)(i + 1)) == 0);
    for (uint64_t i = 0; i < forks; i++)
        fork_once(i, out, ends[0]);
    churn_stop = 1;
    for (size_t i = 0; i < count; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    if (has_guest)
        CHECK_MSG(fork_guest_calls() == forks * 2, "the guest's handlers ran %llu times in %llu forks",
                  (unsigned long long)fork_guest_calls(), (unsigned long long)forks);
    return 0;
}
