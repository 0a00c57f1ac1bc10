/* SPDX-License-Identifier: MIT
 *
 * The option parser, given environments of the test's own making.  What it says about values it does not know is caught
 * from standard error; the exact lines a user sees are checked by the tests of errors.
 */
#include "options/options.h"

#include "unit.h"

static char said[4096];

/* Reads these variables as if the process had been started with them; standard error goes to `said`. */
static void read_environment(char **variables)
{
    char **saved_environment = environ;
    int pipe_fd[2], saved_stderr = dup(2);
    EXPECT(pipe(pipe_fd) == 0 && saved_stderr >= 0);
    dup2(pipe_fd[1], 2);
    environ = variables;
    options_read();
    environ = saved_environment;
    dup2(saved_stderr, 2);
    close(saved_stderr);
    close(pipe_fd[1]);
    size_t used = 0;
    for (ssize_t n; (n = read(pipe_fd[0], said + used, sizeof said - 1 - used)) > 0;)
        used += (size_t)n;
    said[used] = '\0';
    close(pipe_fd[0]);
}

#define READ(...) read_environment((char *[]){__VA_ARGS__, NULL})

static void expect_word(enum option o, const char *word)
{
    char text[64];
    size_t n = option_word(o, text, sizeof text);
    EXPECT_MSG(strcmp(text, word) == 0, "option %d is '%s', not '%s'", (int)o, text, word);
    EXPECT_EQ(n, strlen(word));
}

static void known_values(void)
{
    READ("PATH=/bin", "SUTLER_ON_ERROR=report", "SUTLER_STATS=json");
    EXPECT_EQ(option_get(option_on_error), on_error_report);
    EXPECT_EQ(option_get(option_stats), stats_json);
    EXPECT_EQ(said[0], '\0');
    READ("SUTLER_ON_ERROR=abort", "SUTLER_STATS=0", "SUTLER_SYNC=cpu", "SUTLER_HUGE_PAGES=off");
    EXPECT_EQ(option_get(option_on_error), on_error_abort);
    EXPECT_EQ(option_get(option_stats), stats_off);
    EXPECT_EQ(option_get(option_sync), 1);
    EXPECT_EQ(option_get(option_huge_pages), huge_pages_off);
    EXPECT_EQ(said[0], '\0');
    READ("SUTLER_STATS=1", "SUTLER_STATS=json"); /* the last one wins, as in a shell that exports twice */
    EXPECT_EQ(option_get(option_stats), stats_json);
    READ("NOT_SUTLER_STATS=0", "SUTLERSTATS=0", "sutler_stats=0", "SUTLER_STATS"); /* none of these is ours */
    EXPECT_EQ(option_get(option_stats), stats_json);
    EXPECT_EQ(said[0], '\0');
    READ("SUTLER_STATS=0");
}

static void expect_ignored(const char *value)
{
    char entry[512];
    snprintf(entry, sizeof entry, "SUTLER_STATS=%s", value);
    READ("SUTLER_STATS=json");
    READ(entry);
    EXPECT_EQ(option_get(option_stats), stats_json);
    EXPECT_MSG(strncmp(said, "sutler: SUTLER_STATS: unknown value '", 37) == 0, "'%s': %s", value, said);
    EXPECT(strstr(said, value) != NULL && strstr(said, "ignored\n") != NULL);
    EXPECT(strchr(said, '\n') == said + strlen(said) - 1); /* one line */
    READ("SUTLER_STATS=0");
}

static void unknown_values(void)
{
    expect_ignored("");
    expect_ignored("2");
    expect_ignored("JSON");
    expect_ignored("jso");
    expect_ignored("json1");
    expect_ignored("0,1");
    expect_ignored("0,1,json");
    expect_ignored(",");
    expect_ignored("json ");
    expect_ignored("json=json");
}

static void unknown_names(void)
{
    READ("SUTLER_NOISE=1");
    EXPECT(strcmp(said, "sutler: SUTLER_NOISE: unknown option; ignored\n") == 0);
    READ("SUTLER_=1");
    EXPECT(strncmp(said, "sutler: SUTLER_: unknown option", 31) == 0);
    READ("SUTLER_STATSX=1");
    EXPECT(strstr(said, "unknown option") != NULL);
    READ("SUTLER_STAT=1");
    EXPECT(strstr(said, "unknown option") != NULL);
    READ("SUTLER_ON_ERROR_BUT_WITH_A_NAME_THAT_IS_LONGER_THAN_ANY_BUFFER_FOR_NAMES_COULD_REASONABLY_BE=report");
    EXPECT(strstr(said, "unknown option") != NULL);
    EXPECT_EQ(option_get(option_on_error), on_error_abort);
    static char entry[3000] = "SUTLER_STATS=";
    memset(entry + 13, 'y', sizeof entry - 14);
    READ(entry); /* longer than a line: cut, not overrun */
    EXPECT(strncmp(said, "sutler: SUTLER_STATS: unknown value 'yyy", 40) == 0);
    EXPECT_EQ(option_get(option_stats), stats_off);
}

/* Without an environ (the first malloc can come before libc has one) the process's own is read from /proc. */
static void without_environ(void)
{
    READ("SUTLER_HUGE_PAGES=auto", "SUTLER_STATS=0");
    read_environment(NULL);
    EXPECT_EQ(said[0], '\0');
    const char *real = getenv("SUTLER_HUGE_PAGES");
    if (real != NULL)
        expect_word(option_huge_pages, real);
}

static void set_and_get(void)
{
    enum option o = option_find("on_error");
    EXPECT_EQ(o, option_on_error);
    EXPECT_EQ(option_find("ON_ERROR"), option_count);
    EXPECT_EQ(option_find(""), option_count);
    EXPECT_EQ(option_find("on_erro"), option_count);
    EXPECT_EQ(option_set(o, "report"), 0);
    expect_word(o, "report");
    EXPECT_EQ(option_set(o, "abort"), 0);
    expect_word(o, "abort");
    EXPECT_EQ(option_set(o, "abor"), EINVAL);
    EXPECT_EQ(option_set(o, ""), EINVAL);
    EXPECT_EQ(option_set(option_sync, "cpu"), EPERM); /* only at start */
    EXPECT_EQ(option_set(option_sync, "nonsense"), EINVAL);
    expect_word(o, "abort");
    char small[3] = "zz";
    EXPECT_EQ(option_word(o, small, sizeof small), 5);
    EXPECT(strcmp(small, "ab") == 0);
    small[0] = 'z';
    EXPECT_EQ(option_word(o, small, 0), 5);
    EXPECT_EQ(small[0], 'z');
    EXPECT_EQ(option_word(o, small, 1), 5);
    EXPECT_EQ(small[0], '\0');
}

int main(void)
{
    unit_watchdog(60);
    EXPECT(core_ready());
    known_values();
    unknown_values();
    unknown_names();
    without_environ();
    set_and_get();
    return 0;
}
