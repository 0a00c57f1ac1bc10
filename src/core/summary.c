/* SPDX-License-Identifier: MIT */
#include "core/summary.h"

#include "base/version.h"
#include "core/core.h"
#include "manager/snapshot.h"
#include "options/options.h"
#include "os/os.h"
#include "rcs/rcs.h"
#include "stats/stats.h"

/* "1234 (name)", the beginning of /proc/self/stat.  Characters that JSON would not take as they are become question
 * marks. */
static const char *process_name(char *text, size_t size)
{
    char *end = text;
    os_read_file_for_report("/proc/self/stat", text, size);
    for (char *at = text; *at != '\0'; at++) {
        if (*at == ')')
            end = at + 1;
        else if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ')
            *at = '?';
    }
    *end = '\0';
    return text;
}

void summary_write(int fd, bool json)
{
    static const char *const mode_name[] = {[sync_rcs] = "rcs", [sync_cpu] = "cpu"};
    static const char *const verdict_text[] = {
        [rcs_usable] = "restartable sections in use",
        [rcs_unfenced] = "restartable sections in use, without the fence: a seccomp filter is in force",
        [rcs_not_asked] = "as SUTLER_SYNC asks",
        [rcs_no_libc] = "libc registers no rseq area",
        [rcs_no_membarrier] = "the kernel has no rseq fence, or forbids it",
        [rcs_selftest_failed] = "the self-test of the sections failed",
        [rcs_cpus_unknown] = "there may be more cpus than heaps",
    };
    core_ready();
    struct sutler_stats stats;
    snapshot_take(&stats);
    char process[32];
    const struct stats_fact facts[] = {
        {"process", process_name(process, sizeof process)},
        {"version", VERSION_TEXT},
        {"sync", mode_name[sync_mode]},
        {"sync_reason", verdict_text[rcs_verdict]},
    };
    stats_write(fd, json, &stats, facts, ARRAY_LEN(facts));
}

/* Programs that check their output at exit (coreutils) close standard error before destructors run: the report has a
 * descriptor of its own.  Some close that as well, with all others, and open files: then there is no report. */
static int report_fd = 2;

static __attribute__((constructor(102))) void keep_standard_error(void)
{
    if (option_get(option_stats) != stats_off)
        report_fd = os_keep_fd(2);
}

static __attribute__((destructor)) void report_at_exit(void)
{
    unsigned choice = option_get(option_stats);
    int fd = choice != stats_off ? os_standard_error(report_fd) : -1;
    if (fd >= 0)
        summary_write(fd, choice == stats_json);
}
