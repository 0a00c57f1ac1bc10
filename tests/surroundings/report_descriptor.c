/* SPDX-License-Identifier: MIT
 *
 * Programs that close every file descriptor and open files of their own: neither the report at the end nor an error
 * line may be written into those.  One that puts a log in the place of standard error finds the error line there.
 */
#include "again.h"
#include "support/proc.h"
#include <fcntl.h>
#include <sys/resource.h>

static char path[64];

static void data_file_at(int number, int flags)
{
    int fd = open(path, O_RDWR | O_CREAT | flags, 0600);
    CHECK(fd >= 0);
    if (fd != number) {
        CHECK(dup2(fd, number) == number);
        close(fd);
    }
}

static void with_report(void)
{
    setenv("SUTLER_STATS", "1", 1);
    setenv("SUTLER_ON_ERROR", "report", 1);
}

static void with_error(void)
{
    unsetenv("SUTLER_STATS");
    setenv("SUTLER_ON_ERROR", "report", 1);
}

static void program(const char *word)
{
    snprintf(path, sizeof path, "%s", getenv("TEST_DATA_FILE"));
    if (strcmp(word, "report") == 0) {
        for (int fd = 0; fd < 1024; fd++)
            close(fd);
        for (int fd = 0; fd < 600; fd++) /* whatever number it was kept under */
            data_file_at(fd, 0);
        exit(0);
    }
    bool is_log = strcmp(word, "log") == 0;
    if (is_log)
        data_file_at(1, O_APPEND);
    close(2);
    data_file_at(2, is_log ? O_APPEND : 0);
    static char no_block[64];
    free(opaque(no_block + 16));
    _exit(0);
}

static size_t length_after(void (*prepare)(void), const char *word)
{
    CHECK(truncate(path, 0) == 0);
    CHECK(again(prepare, word) == 0);
    char text[4096];
    int fd = open(path, O_RDONLY);
    ssize_t length = read(fd, text, sizeof text);
    close(fd);
    return (size_t)length;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        program(argv[1]);
    test_begin(60);
    if (!test_is_sutler())
        SKIP("another malloc");
    if (proc_is_filtered())
        SKIP("under a seccomp filter number 2 is taken for what it was");
    strcpy(path, "/tmp/sutler-test-XXXXXX");
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    setenv("TEST_DATA_FILE", path, 1);
    size_t report = length_after(with_report, "report"), error = length_after(with_error, "error"),
           log = length_after(with_error, "log");
    unlink(path);
    CHECK_MSG(report == 0, "the report at the end was written into a file of the program's");
    CHECK_MSG(error == 0, "an error line was written into a file that got number 2");
    CHECK_MSG(log > 0, "an error line was not written to the program's log");
    return 0;
}
