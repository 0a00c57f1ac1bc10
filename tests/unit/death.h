/* SPDX-License-Identifier: MIT
 *
 * A death test: a child does what must not be done, and dies of it with the line that says so.
 */
#ifndef TESTS_UNIT_DEATH_H
#define TESTS_UNIT_DEATH_H

#include <sys/resource.h>
#include <sys/wait.h>

#include "unit.h"

/* How the process that ran `act` ended, as waitpid says; its standard error is in `said`. */
static inline int death_status(void (*act)(void), char *said, size_t size)
{
    int end[2], status;
    EXPECT_EQ(pipe(end), 0);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        dup2(end[1], STDERR_FILENO);
        act();
        _exit(0);
    }
    close(end[1]);
    size_t used = 0;
    for (ssize_t n; used + 1 < size && (n = read(end[0], said + used, size - 1 - used)) > 0;)
        used += (size_t)n;
    said[used] = '\0';
    close(end[0]);
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
}

/* `act` ends the process with "sutler: internal error: ", what is `wrong`, and abort(). */
static inline void expect_death(const char *name, void (*act)(void), const char *wrong)
{
    char said[512];
    int status = death_status(act, said, sizeof said);
    EXPECT_MSG(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "%s: status %x, said \"%s\"", name, status, said);
    EXPECT_MSG(strncmp(said, "sutler: internal error: ", 24) == 0 && strstr(said, wrong) != NULL,
               "%s: said \"%s\", not \"%s\"", name, said, wrong);
}

static inline void expect_survival(const char *name, void (*act)(void))
{
    char said[512];
    int status = death_status(act, said, sizeof said);
    EXPECT_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: status %x, said \"%s\"", name, status, said);
}

#define EXPECT_DEATH(act, wrong) expect_death(#act, act, wrong)
#define EXPECT_SURVIVAL(act) expect_survival(#act, act)

#endif
