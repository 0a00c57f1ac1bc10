/* SPDX-License-Identifier: MIT
 *
 * Why: other kernels, more processors and other page sizes than those of the machine at hand need a machine of their
 * own. This is the first and only program of such a machine: it mounts what tests look at, runs each line of /tests
 * (environment and command, as a shell would read them, without quotes) and switches the machine off.  As /bin/sh it
 * knows `exit` only, which is what the tests start a shell for.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORDS_MAX 32
#define SKIPPED   77

/* Leading words with a "=" are the environment's. */
static int environment_words(char **word)
{
    int first = 0;
    while (word[first] != NULL && strchr(word[first], '=') != NULL)
        first++;
    return first;
}

static void become(char **word)
{
    int first = environment_words(word);
    for (int i = 0; i < first; i++)
        putenv(word[i]);
    execv(word[first], word + first);
    perror(word[first]);
    _exit(127);
}

/* What ends here is collected, and it is not always the child that was waited for: tests leave orphans behind. */
static int wait_for(pid_t child)
{
    int status = -1;
    for (pid_t ended = 0; ended != child && ended >= 0;)
        ended = waitpid(-1, &status, 0);
    return status;
}

static const char *outcome_of(int status)
{
    if (status == 0)
        return "passed";
    return WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED ? "skipped" : "FAILED";
}

static void mount_all(void)
{
    mount("proc", "/proc", "proc", 0, NULL);
    mount("sys", "/sys", "sysfs", 0, NULL);
    mount("dev", "/dev", "devtmpfs", 0, NULL);
    mount("tmp", "/tmp", "tmpfs", 0, NULL);
    mount("cgroup", "/sys/fs/cgroup", "cgroup2", 0, NULL);
    int console = open("/dev/console", O_RDWR); /* there was none when the kernel started us */
    for (int i = 0; i <= 2; i++)
        dup2(console, i);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[0], "sh") == 0 && strncmp(argv[2], "exit ", 5) == 0)
        return atoi(argv[2] + 5);
    char line[512], *word[WORDS_MAX];
    int passed = 0, failed = 0;
    struct utsname name;
    mount_all();
    uname(&name);
    printf("machine: kernel %s, %ld bytes a page, %ld processors\n", name.release, sysconf(_SC_PAGESIZE),
           sysconf(_SC_NPROCESSORS_ONLN));
    FILE *tests = fopen("/tests", "r");
    while (tests != NULL && fgets(line, sizeof line, tests) != NULL) {
        int count = 0;
        for (char *at = strtok(line, " \n"); at != NULL && count < WORDS_MAX - 1; at = strtok(NULL, " \n"))
            word[count++] = at;
        word[count] = NULL;
        const char *program = count > 0 ? word[environment_words(word)] : "";
        time_t start = time(NULL);
        printf("machine: running %s\n", program);
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            become(word);
        int status = wait_for(child);
        printf("machine: %s %s after %ld s, status %#x\n", outcome_of(status), program, (long)(time(NULL) - start),
               (unsigned)status);
        *(strcmp(outcome_of(status), "FAILED") == 0 ? &failed : &passed) += 1;
    }
    printf("machine: %d passed or skipped, %d failed\n", passed, failed);
    fflush(stdout);
    sync();
    reboot(RB_POWER_OFF);
    return 1;
}
