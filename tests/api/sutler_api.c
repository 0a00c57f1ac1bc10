/* SPDX-License-Identifier: MIT
 *
 * The functions of sutler.h as their comments promise them: version, options, statistics, purge and the report.
 */
#include "support/family.h"
#include "support/proc.h"

#include <signal.h>
#include <sys/time.h>

static void version_matches_header(void)
{
    char expected[64];
    snprintf(expected, sizeof expected, "%d.%d.%d", SUTLER_VERSION_MAJOR, SUTLER_VERSION_MINOR, SUTLER_VERSION_PATCH);
    CHECK(strcmp(sutler_version(), expected) == 0);
    CHECK(sutler_is_active());
}

static void options(void)
{
    char value[64];
    CHECK(sutler_option_get("on_error", value, sizeof value) == 0);
    CHECK_MSG(strcmp(value, "abort") == 0 || strcmp(value, "report") == 0, "on_error is '%s'", value);
    CHECK(sutler_option_get("sync", value, sizeof value) == 0);
    const char *asked = getenv("SUTLER_SYNC");
    CHECK_MSG(strcmp(value, "rcs") == 0 || strcmp(value, "cpu") == 0, "sync is '%s'",
              value);
    if (asked != NULL && strcmp(asked, "rcs") != 0)
        CHECK_MSG(strcmp(value, asked) == 0, "SUTLER_SYNC=%s but sync is '%s'", asked, value);
    CHECK(sutler_option_get("no_such_option", value, sizeof value) == EINVAL);
    CHECK(sutler_option_set("no_such_option", "1") == EINVAL);

    /* Truncation is told and terminated. */
    memset(value, 'x', sizeof value);
    CHECK(sutler_option_get("on_error", value, 3) == ERANGE);
    CHECK(strlen(value) == 2 && value[3] == 'x');

    CHECK(sutler_option_set("on_error", "perhaps") == EINVAL);
    CHECK(sutler_option_set("on_error", "report") == 0);
    CHECK(sutler_option_get("on_error", value, sizeof value) == 0 && strcmp(value, "report") == 0);
    CHECK(sutler_option_set("on_error", "abort") == 0);
    /* How sections synchronise is settled at start. */
    CHECK(sutler_option_set("sync", "cpu") == EPERM);
}

static struct sutler_stats stats_now(void)
{
    struct sutler_stats stats;
    memset(&stats, 0, sizeof stats);
    CHECK(sutler_stats_get(&stats, sizeof stats) == 0);
    CHECK(stats.size == sizeof stats);
    return stats;
}

static void statistics_move(void)
{
    enum { COUNT = 20000, SIZE = 1000 };
    static void *blocks[COUNT];
    struct sutler_stats before = stats_now();
    size_t bytes = 0;
    for (int i = 0; i < COUNT; i++) {
        CHECK((blocks[i] = malloc(SIZE)) != NULL);
        bytes += malloc_usable_size(blocks[i]);
    }
    struct sutler_stats full = stats_now();
    CHECK_MSG(full.live_blocks == before.live_blocks + COUNT, "live_blocks %zu -> %zu", before.live_blocks,
              full.live_blocks);
    CHECK_MSG(full.live_bytes == before.live_bytes + bytes, "live_bytes %zu -> %zu, expected + %zu", before.live_bytes,
              full.live_bytes, bytes);
    CHECK(full.mapped_bytes >= full.span_bytes && full.span_bytes >= full.live_bytes - full.large_bytes);
    CHECK(full.superblocks > before.superblocks && full.heaps >= 1);
    for (int i = 0; i < COUNT; i++)
        free(blocks[i]);
    struct sutler_stats after = stats_now();
    CHECK_MSG(after.live_blocks == before.live_blocks, "live_blocks %zu -> %zu", before.live_blocks, after.live_blocks);
    CHECK(after.live_bytes == before.live_bytes);

    void *large = malloc(10 * MIB);
    full = stats_now();
    CHECK_MSG(full.large_blocks == after.large_blocks + 1 && full.large_bytes >= after.large_bytes + 10 * MIB,
              "large blocks %zu -> %zu", after.large_blocks, full.large_blocks);
    free(large);
    CHECK(stats_now().large_blocks == after.large_blocks);

    /* Callers built against a shorter header get no byte more than they have room for. */
    struct sutler_stats shorter;
    memset(&shorter, 0xee, sizeof shorter);
    CHECK(sutler_stats_get(&shorter, 2 * sizeof(size_t)) == 0);
    CHECK(((unsigned char *)&shorter)[2 * sizeof(size_t)] == 0xee);
    CHECK(sutler_stats_get(NULL, sizeof shorter) == EINVAL);
}

static void purge_gives_pages_back(void)
{
    enum { COUNT = 50000, SIZE = 1000 };
    static char *blocks[COUNT];
    for (int i = 0; i < COUNT; i++) {
        CHECK((blocks[i] = malloc(SIZE)) != NULL);
        memset(blocks[i], 1, SIZE);
    }
    size_t peak = proc_resident_bytes();
    for (int i = 0; i < COUNT; i++) {
        if (i % 1000 != 0)
            free(blocks[i]);
    }
    size_t freed_before = stats_now().purged_bytes;
    size_t reported = sutler_purge();
    size_t resident = proc_resident_bytes();
    CHECK_MSG(resident + 40 * MIB < peak, "purge: resident %zu -> %zu of 48 MiB freed", peak, resident);
    CHECK_MSG(stats_now().purged_bytes > freed_before, "purged_bytes did not move");
    /* The manager may make a new reserve ready meanwhile. */
    size_t again = sutler_purge();
    CHECK_MSG(reported <= peak + 8 * MIB && again <= 8 * MIB, "purge says %zu of %zu, then %zu", reported, peak, again);
    for (int i = 0; i < COUNT; i += 1000) {
        CHECK(blocks[i][0] == 1 && blocks[i][SIZE - 1] == 1);
        free(blocks[i]);
    }
}

static size_t printed(bool json, char *text, size_t size)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    sutler_stats_print(ends[1], json);
    close(ends[1]);
    size_t length = 0;
    ssize_t n;
    while (length + 1 < size && (n = read(ends[0], text + length, size - 1 - length)) > 0)
        length += (size_t)n;
    close(ends[0]);
    text[length] = 0;
    return length;
}

static void reports(void)
{
    static char text[60000]; /* less than a pipe holds */
    CHECK(printed(false, text, sizeof text) > 0);
    size_t length = printed(true, text, sizeof text);
    CHECK_MSG(length > 2 && text[0] == '{', "not JSON: %.40s", text);
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"' && text[i - 1] != '\\')
            quoted = !quoted;
        if (!quoted && (text[i] == '{' || text[i] == '['))
            depth++;
        if (!quoted && (text[i] == '}' || text[i] == ']'))
            depth--;
    }
    CHECK_MSG(depth == 0 && !quoted, "unbalanced JSON: %s", text);
    CHECK(strstr(text, "\"live_bytes\"") != NULL);
}

/* ---- the hook ---- */

static char *inner; /* an address inside a live block */
static volatile sig_atomic_t told, wrongly_told, freed_in_handler;

static void hear(const char *text, size_t length)
{
    const bool is_right = strncmp(text, "sutler: free(): invalid pointer 0x", 34) == 0 && text[length] == 0 &&
                          text[length - 1] == '\n';
    told++;
    wrongly_told += !is_right;
}

static void free_badly(int number)
{
    (void)number;
    free(opaque(inner));
    freed_in_handler++;
}

/* In the middle of anything the library does. */
static void interrupted_by_errors(void)
{
    enum { SIGNALS = 200 };
    static void *block[500];
    const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, free_badly);
    setitimer(ITIMER_REAL, &often, NULL);
    for (unsigned i = 0; freed_in_handler < SIGNALS; i++) {
        free(block[i % 500]);
        block[i % 500] = malloc(i % 7 * 1000 + i % 3 * 100000);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGALRM, SIG_DFL);
    for (int i = 0; i < 500; i++)
        free(block[i]);
}

static void hook_is_called(void)
{
    char *block = malloc(1000);
    inner = block + 512;
    CHECK(sutler_option_set("on_error", "report") == 0);
    sutler_report_to(hear);
    free(opaque(inner));
    CHECK_MSG(told == 1, "the hook was called %d times", (int)told);
    interrupted_by_errors();
    CHECK_MSG(told == 1 + freed_in_handler && wrongly_told == 0, "of %d errors %d were told, %d of them wrongly",
              1 + (int)freed_in_handler, (int)told, (int)wrongly_told);
    sutler_report_to(NULL);
    CHECK(sutler_option_set("on_error", "abort") == 0);
    free(block);
}

int main(void)
{
    test_begin(60);
    if (!test_is_sutler())
        SKIP("needs the library");
    version_matches_header();
    options();
    statistics_move();
    purge_gives_pages_back();
    reports();
    hook_is_called();
    return 0;
}
