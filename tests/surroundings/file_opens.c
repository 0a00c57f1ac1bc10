/* SPDX-License-Identifier: MIT
 *
 * A program that changes its heap all the time, far from any limit: the library may open a file when it starts a
 * manager, and once in a while, but none by the second.  It is counted by the system: the control groups are files of
 * the test's own, on which it keeps a watch.  The library's own count says as much.
 */
#include "support/cgroup.h"
#include <sys/inotify.h>

static const char *const files[] = {"cpu.max", "memory.max", "memory.high", "memory.current", "memory.stat",
                                    "memory.pressure"};

static int watched(void)
{
    char path[4200];
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    CHECK(watch >= 0);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        own_group_write_of(2, files[i], "max\n");
        own_group_path(2, files[i], path, sizeof path);
        CHECK(inotify_add_watch(watch, path, IN_OPEN) >= 0);
    }
    return watch;
}

static unsigned opened(int watch)
{
    char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    unsigned count = 0;
    ssize_t length;
    while ((length = read(watch, events, sizeof events)) > 0)
        for (ssize_t at = 0; at < length; count++)
            at += (ssize_t)sizeof(struct inotify_event) + (ssize_t)((struct inotify_event *)(events + at))->len;
    return count;
}

static void change_for(uint64_t ms)
{
    static void *block[40000];
    for (uint64_t end = now_ms() + ms, i = 0; now_ms() < end;)
        for (int turn = 0; turn < 1000; turn++, i = (i + 1) % 40000) {
            free(block[i]);
            size_t size = 16 + (i * 2654435761u) % 2000;
            CHECK((block[i] = malloc(size)) != NULL);
            memset(block[i], 1, size);
        }
}

static uint64_t own_count(void)
{
    struct sutler_stats stats;
    CHECK(sutler_stats_get(&stats, sizeof stats) == 0);
    CHECK_MSG(stats.size >= sizeof stats, "it does not count the files it opens");
    return stats.file_opens;
}

int main(int argc, char **argv)
{
    test_begin(100);
    uint64_t seconds = test_option(argc, argv, "--run", 4);
    own_groups();
    int watch = watched();
    opened(watch);
    unsigned first = 0;
    for (int i = 0; i < 5 && first == 0; i++) {
        change_for(2000); /* a manager is started, and has looked around */
        first = opened(watch);
    }
    if (first == 0)
        SKIP("no manager is wanted here");
    uint64_t before = own_count();
    change_for(seconds * 1000);
    unsigned later = opened(watch);
    uint64_t counted = own_count() - before;
    test_say("%u files of groups opened at first, %u in the next %u s; %u files in all\n", first, later,
             (unsigned)seconds, (unsigned)counted);
    /* All groups once or twice, and the machine; were it twice a second, it would be many times that. */
    CHECK_MSG(later <= first + first * seconds / 30, "files are opened again and again");
    CHECK_MSG(counted <= 2 * first + 4 * seconds, "files are opened again and again");
    return 0;
}
