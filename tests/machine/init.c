/* SPDX-License-Identifier: MIT
 *
 * Why: the sections of an architecture this machine does not have can only be tested under a kernel of that
 * architecture.  This is the first and only process of such a machine: it mounts what tests look at, runs each line of
 * /tests (environment and command, as a shell would read them, without quotes) and switches the machine off.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORDS_MAX 32

/* Leading words with a "=" are the environment's. */
static void become(char *line)
{
    char *word[WORDS_MAX];
    int count = 0;
    for (char *at = strtok(line, " \n"); at != NULL && count < WORDS_MAX - 1; at = strtok(NULL, " \n"))
        word[count++] = at;
    word[count] = NULL;
    int first = 0;
    while (first < count && strchr(word[first], '=') != NULL)
        putenv(word[first++]);
    execv(word[first], word + first);
    perror(word[first]);
    _exit(127);
}

int main(void)
{
    char line[512];
    int passed = 0, failed = 0;
    mount("proc", "/proc", "proc", 0, NULL);
    mount("sys", "/sys", "sysfs", 0, NULL);
    mount("dev", "/dev", "devtmpfs", 0, NULL);
    mount("tmp", "/tmp", "tmpfs", 0, NULL);
    int console = open("/dev/console", O_RDWR); /* there was none when the kernel started us */
    for (int i = 0; i <= 2; i++)
        dup2(console, i);
    FILE *tests = fopen("/tests", "r");
    while (tests != NULL && fgets(line, sizeof line, tests) != NULL) {
        int status = -1;
        time_t start = time(NULL);
        printf("machine: %s", line);
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            become(line);
        waitpid(child, &status, 0);
        printf("machine: %s after %ld s, status %#x\n", status == 0 ? "passed" : "FAILED", (long)(time(NULL) - start), status);
        *(status == 0 ? &passed : &failed) += 1;
    }
    printf("machine: %d passed, %d failed\n", passed, failed);
    fflush(stdout);
    sync();
    reboot(RB_POWER_OFF);
    return 1;
}
