/* SPDX-License-Identifier: MIT
 *
 * The recorder and the program's own files: a program that closes all descriptors finds its own files as it wrote them,
 * whatever number they get; threads that have ended leave neither descriptors nor mappings; a file of another's with
 * the log's name is left alone.
 */
#include "support/check.h" /* first: it asks for all that the system declares */

#include "record.h"
#include "support/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sys/stat.h>

#define WINDOW 65536u /* records that log.c maps at a time */

static void calls(size_t count)
{
    volatile double sink = 0;
    for (size_t i = 0; i < count; i++)
        sink += sin((double)i);
}

static void *one_call(void *unused)
{
    calls(1);
    return unused;
}

static const char *path_of_log(pid_t thread)
{
    static char path[4096];
    const char *prefix = getenv("SUTLER_PREDICT_LOG");
    CHECK_MSG(prefix != NULL, "nothing is recorded");
    snprintf(path, sizeof path, "%s.%d.%d", prefix, (int)getpid(), (int)thread);
    return path;
}

static void numbers_are_the_programs(void)
{
    char text[9] = "";
    struct stat status;
    calls(1);
    closefrom(3);
    FILE *own = tmpfile();
    CHECK(own != NULL && fileno(own) == 3 && write(3, "database", 8) == 8);
    calls(2 * WINDOW);
    CHECK(fstat(3, &status) == 0 && pread(3, text, 8, 0) == 8);
    CHECK_MSG(status.st_size == 8 && strcmp(text, "database") == 0, "the program's file has %lld bytes",
              (long long)status.st_size);
    fclose(own);
    CHECK(stat(path_of_log(getpid()), &status) == 0);
    CHECK_MSG((size_t)status.st_size > 2 * WINDOW * sizeof(struct record), "not all was recorded");
}

static void run_threads(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, one_call, NULL) == 0 && pthread_join(thread, NULL) == 0);
    }
}

static void threads_leave_nothing(void)
{
    run_threads(1); /* the C library keeps its stack */
    size_t before = proc_status_bytes("VmSize:");
    run_threads(40);
    int lowest = open("/dev/null", O_RDONLY);
    CHECK_MSG(lowest == 3, "descriptors are left");
    CHECK_MSG(proc_status_bytes("VmSize:") < before + 20 * MIB, "a window a thread is left");
    close(lowest);
}

static void other_files_are_left_alone(void)
{
    struct stat status;
    const char *path = path_of_log(getpid());
    CHECK(unlink(path) == 0);
    int own = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    CHECK(own >= 0);
    calls(2 * WINDOW);
    CHECK(fstat(own, &status) == 0);
    CHECK_MSG(status.st_size == 0, "the recorder wrote into a file that it did not make");
}

/* Of this process and no other: tests may run side by side. */
static void remove_logs(void)
{
    char folder[4096], name[64];
    snprintf(folder, sizeof folder, "%s", path_of_log(0));
    *strrchr(folder, '/') = '\0';
    snprintf(name, sizeof name, "log.%d.", (int)getpid());
    DIR *logs = opendir(folder);
    CHECK(logs != NULL);
    for (struct dirent *entry; (entry = readdir(logs)) != NULL;) {
        if (strncmp(entry->d_name, name, strlen(name)) == 0)
            CHECK(unlinkat(dirfd(logs), entry->d_name, 0) == 0);
    }
    closedir(logs);
}

int main(void)
{
    test_watchdog(100);
    numbers_are_the_programs();
    threads_leave_nothing();
    other_files_are_left_alone();
    remove_logs();
    return 0;
}
