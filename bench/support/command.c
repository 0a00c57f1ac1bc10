/* SPDX-License-Identifier: MIT
 *
 * Why: gawk on a large script, g++ and clang on a generated unit are rows like any other, but they print no line of our
 * form.  This runs a command, measures it as a whole and prints the line for it:
 *
 *     command name=gawk run='gawk -f large.awk'
 *
 * The command goes to /bin/sh with its output into a pipe; `checksum` is a hash of what it wrote, to be compared
 * between allocators (or checked here with expect=HASH).  A command that fails, crashes or writes something else is an
 * error. `child_*` are the processor time, page faults and peak memory of the command and all its children.
 */
#define _GNU_SOURCE
#include "args.h"
#include "clock.h"
#include "result.h"

#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static uint64_t output_hash(int pipe_end, uint64_t *bytes)
{
    unsigned char buffer[65536];
    uint64_t hash = 0xcbf29ce484222325u;
    for (ssize_t length; (length = read(pipe_end, buffer, sizeof(buffer))) > 0; *bytes += (uint64_t)length) {
        for (ssize_t i = 0; i < length; i++)
            hash = (hash ^ buffer[i]) * 0x100000001b3u;
    }
    return hash;
}

int main(int argc, char **argv)
{
    const char *name = "command", *run = "true", *expect = "";
    const struct arg args[] = {
        {"name", ARG_TEXT, &name, "name for the result line"},
        {"run", ARG_TEXT, &run, "command for /bin/sh"},
        {"expect", ARG_TEXT, &expect, "checksum its output must have"},
    };
    ARGS_READ("command", argc, argv, args);
    int ends[2];
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, 0) || posix_spawn_file_actions_init(&actions))
        return 3;
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    char *shell_argv[] = {"sh", "-c", (char *)run, NULL};
    pid_t child;
    uint64_t begin_ns = clock_ns();
    int error = posix_spawn(&child, "/bin/sh", &actions, NULL, shell_argv, environ);
    if (error) {
        fprintf(stderr, "command: /bin/sh: %s\n", strerror(error));
        return 3;
    }
    close(ends[1]);
    uint64_t bytes = 0;
    uint64_t hash = output_hash(ends[0], &bytes);
    int status = 0;
    waitpid(child, &status, 0);
    uint64_t end_ns = clock_ns();
    posix_spawn_file_actions_destroy(&actions);

    char checksum[24];
    snprintf(checksum, sizeof(checksum), "%016" PRIx64, hash);
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    if (status)
        fprintf(stderr, "command: `%s` ended with status 0x%x\n", run, (unsigned)status);
    uint64_t errors = status != 0;
    if (*expect && strcmp(expect, checksum)) {
        fprintf(stderr, "command: `%s` wrote %s, expected %s\n", run, checksum, expect);
        errors++;
    }
    result_begin(name, 1, 1, end_ns - begin_ns);
    result_count("output_bytes", bytes);
    result_text("checksum", checksum);
    result_real("child_cpu_seconds", (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                                         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    result_count("child_faults", (uint64_t)usage.ru_minflt);
    result_count("child_peak_rss_kib", (uint64_t)usage.ru_maxrss);
    return result_end(errors);
}
