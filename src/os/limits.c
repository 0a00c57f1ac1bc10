/* SPDX-License-Identifier: MIT
 *
 * What the process's control groups (of version 2 and version 1) and the machine leave it.  Read from files each time;
 * a file that cannot be read is no limit.
 */
#include <linux/limits.h>
#include <stdatomic.h>

#include "base/bits.h"
#include "os/line.h"
#include "os/os.h"

static const char *after_digits(const char *text)
{
    while (*text >= '0' && *text <= '9')
        text++;
    return text;
}

/* What follows `key` at the start of a line, or behind the line's number; nothing if no line has it. */
static const char *after_key(const char *text, const char *key)
{
    while (*text != '\0') {
        text = after_digits(text);
        if (text_begins(text, key))
            return text + text_length(key);
        while (*text != '\0' && *text++ != '\n')
            ;
    }
    return text;
}

/* ---- the process's group and those around it, inmost first ---- */

/* Not on the stack: a thread of the program may have a small one. */
struct group {
    char path[PATH_MAX];
    size_t length, root_length;
    const struct version *version;
    char rows[4096]; /* that name the process's groups, of all versions */
    char text[4096]; /* of the last file that was read */
};

/* Where a version keeps its files, and what it calls them. */
struct version {
    const char *row; /* in /proc/self/cgroup, behind the number */
    const char *root;
    const char *limit, *soft_limit, *used, *file_cache;
};
static const struct version version_2 = {
    "::", "/sys/fs/cgroup", "/memory.max", "/memory.high", "/memory.current", "inactive_file ",
};
static const struct version version_1 = {
    ":memory:",
    "/sys/fs/cgroup/memory",
    "/memory.limit_in_bytes",
    NULL, /* its soft limit is no limit while memory is left elsewhere */
    "/memory.usage_in_bytes",
    "total_inactive_file ",
};

static void group_append(struct group *g, const char *text)
{
    for (; *text != '\0' && *text != '\n' && g->length + 1 < sizeof g->path - 32; text++)
        g->path[g->length++] = *text;
    g->path[g->length] = '\0';
}

/* Of one thread at a time; of others, and of a child made meanwhile, a mapping. */
static struct group shared;
static _Atomic bool shared_is_used;

/* NULL without memory. */
static struct group *group_begin(void)
{
    const bool is_shared = !atomic_exchange(&shared_is_used, true);
    struct group *g = is_shared ? &shared : os_map(align_up(sizeof *g, os_page_bytes));
    if (g != NULL)
        os_read_file("/proc/self/cgroup", g->rows, sizeof g->rows);
    return g;
}

static void group_end(struct group *g)
{
    if (g == &shared)
        atomic_store(&shared_is_used, false);
    else
        os_unmap(g, align_up(sizeof *g, os_page_bytes));
}

static void group_own(struct group *g, const struct version *v)
{
    const char *path = after_key(g->rows, v->row);
    g->version = v;
    g->length = 0;
    group_append(g, v->root);
    g->root_length = g->length;
    if (path[0] == '/' && path[1] != '\n')
        group_append(g, path);
}

static bool group_up(struct group *g)
{
    if (g->length <= g->root_length)
        return false;
    while (g->path[--g->length] != '/')
        ;
    g->path[g->length] = '\0';
    return true;
}

static const char *group_read(struct group *g, const char *file)
{
    size_t length = g->length;
    group_append(g, file);
    os_read_file(g->path, g->text, sizeof g->text);
    g->length = length;
    g->path[length] = '\0';
    return g->text;
}

/* The least that `of` says of the process's group and those around it. */
static size_t least_of_groups(struct group *g, const struct version *v, size_t (*of)(struct group *g))
{
    size_t least = SIZE_MAX;
    group_own(g, v);
    do
        least = min_size(least, of(g));
    while (group_up(g));
    return least;
}

/* ---- answers ---- */

/* Version 1 says so with a number: a little less than the largest there is. */
#define NO_LIMIT_BYTES ((size_t)1 << 60)

static size_t headroom(struct group *g)
{
    const struct version *v = g->version;
    size_t limit = text_number(group_read(g, v->limit));
    if (v->soft_limit != NULL)
        limit = min_size(limit, text_number(group_read(g, v->soft_limit)));
    if (limit >= NO_LIMIT_BYTES)
        return SIZE_MAX;
    size_t used = text_number(group_read(g, v->used));
    if (used == SIZE_MAX)
        return SIZE_MAX;
    /* Files read once are dropped before anybody is killed. */
    size_t cache = text_number(after_key(group_read(g, "/memory.stat"), v->file_cache));
    used -= cache == SIZE_MAX ? 0 : min_size(cache, used);
    return limit > used ? limit - used : 0;
}

size_t os_machine_headroom(void)
{
    char text[256];
    size_t kib = text_number(after_key(os_read_file("/proc/meminfo", text, sizeof text), "MemAvailable:"));
    return kib > SIZE_MAX >> 10 ? SIZE_MAX : kib << 10;
}

size_t os_groups_headroom(void)
{
    struct group *g = group_begin();
    if (g == NULL)
        return SIZE_MAX;
    const size_t left = least_of_groups(g, &version_2, headroom), of_version_1 = least_of_groups(g, &version_1, headroom);
    group_end(g);
    return min_size(left, of_version_1);
}

/* The directory is there wherever /sys is; the files are where a version is mounted. */
bool os_groups_are_known(void)
{
    struct group *g = group_begin();
    if (g == NULL)
        return true;
    const bool by_version_1 = *after_key(g->rows, version_1.row) != '\0', has_none = g->rows[0] == '\0';
    group_end(g);
    return has_none ||
           os_file_is_there(by_version_1 ? "/sys/fs/cgroup/memory/cgroup.procs" : "/sys/fs/cgroup/cgroup.procs");
}

bool os_may_map_freely(void)
{
    char text[2048];
    const char *limits = os_read_file("/proc/self/limits", text, sizeof text);
    bool is_limited = text_number(after_key(limits, "Max address space")) != SIZE_MAX ||
                      text_number(after_key(limits, "Max data size")) != SIZE_MAX;
    return !is_limited && text_number(os_read_file("/proc/sys/vm/overcommit_memory", text, sizeof text)) != 2;
}

/* The whole part of "some avg10=N.NN", of the process's group or else of the machine. */
unsigned os_memory_stall_percent(void)
{
    struct group *g = group_begin();
    if (g == NULL)
        return 0;
    group_own(g, &version_2);
    const char *line = after_key(group_read(g, "/memory.pressure"), "some avg10=");
    if (*line == '\0')
        line = after_key(os_read_file("/proc/pressure/memory", g->text, sizeof g->text), "some avg10=");
    const size_t percent = text_number(line);
    group_end(g);
    return percent == SIZE_MAX ? 0 : (unsigned)percent;
}

/* ---- cpu time ---- */

static size_t percent_of(size_t quota, size_t period)
{
    bool is_known = quota != SIZE_MAX && period != SIZE_MAX && period != 0;
    return is_known ? min_size(quota * 100 / period, UINT32_MAX) : UINT32_MAX;
}

static size_t quota_2(struct group *g)
{
    const char *at = group_read(g, "/cpu.max"); /* "QUOTA PERIOD" or "max PERIOD" */
    return percent_of(text_number(at), text_number(text_after_words(at, 1)));
}

static size_t quota_1(struct group *g)
{
    size_t quota = text_number(group_read(g, "/cpu.cfs_quota_us")); /* -1: none */
    if (quota == SIZE_MAX)
        return UINT32_MAX;
    return percent_of(quota, text_number(group_read(g, "/cpu.cfs_period_us")));
}

unsigned os_cpu_quota_percent(void)
{
    /* Two controllers of version 1 are mostly mounted as one, under both names. */
    static const struct version alone = {.row = ":cpu:", .root = "/sys/fs/cgroup/cpu"};
    static const struct version both = {.row = ":cpu,cpuacct:", .root = "/sys/fs/cgroup/cpu"};
    struct group *g = group_begin();
    if (g == NULL)
        return UINT32_MAX;
    const size_t percent = least_of_groups(g, &version_2, quota_2);
    const struct version *v = *after_key(g->rows, alone.row) != '\0' ? &alone : &both;
    const size_t of_version_1 = least_of_groups(g, v, quota_1);
    group_end(g);
    return (unsigned)min_size(percent, of_version_1);
}

/* ---- processors ---- */

/* How many are in a list like "0-3,6". */
static size_t count_listed(const char *text)
{
    size_t count = 0;
    while (*text >= '0' && *text <= '9') {
        size_t first = text_number(text), last = first;
        text = after_digits(text);
        if (*text == '-') {
            last = text_number(++text);
            text = after_digits(text);
        }
        count += last - first + 1;
        text += *text == ',';
    }
    return count;
}

bool os_cpus_are_busy(void)
{
    static size_t online; /* as it was at first */
    char text[4096];
    if (online == 0)
        online = count_listed(os_read_file("/sys/devices/system/cpu/online", text, sizeof text));
    /* "0.20 0.18 0.12 RUNNING/ALL LAST" */
    size_t running = text_number(text_after_words(os_read_file("/proc/loadavg", text, sizeof text), 3));
    return online != 0 && running != SIZE_MAX && running > online;
}
