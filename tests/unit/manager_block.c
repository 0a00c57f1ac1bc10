/* SPDX-License-Identifier: MIT
 *
 * The manager's thread block stands for a thread structure of libc's: it must hold the rseq area and the cid where the
 * fast path's offsets say.  With offsets beyond it (thread-local variables of more than 64 KiB, and libc's area among
 * them) no manager may be started: it would write into its stack and run sections as whoever's cid stands there.
 */
#include "manager/hint.h"

#include <fcntl.h>

#include "options/options.h"
#include "rcs/hot.h"
#include "unit.h"

static int tasks(void)
{
    static char text[8192];
    int fd = open("/proc/self/status", O_RDONLY);
    EXPECT(fd >= 0);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    EXPECT(n > 0);
    text[n] = '\0';
    const char *row = strstr(text, "\nThreads:");
    EXPECT(row != NULL);
    return atoi(row + 9);
}

/* What the slow path does that first finds so much in use. */
static enum manager_state hint(void)
{
    if (manager_state() == manager_forbidden)
        atomic_store(&manager_life.word, manager_absent);
    atomic_store(&manager_life.not_before_ns, 0);
    manager_hint_slow(manager_absent);
    return manager_state();
}

int main(void)
{
    unit_print_mode();
    unit_needs_rcs();
    unit_watchdog(30);
    void *use[3];
    for (size_t i = 0; i < ARRAY_LEN(use); i++)
        EXPECT((use[i] = malloc((size_t)15 << 20)) != NULL);
    EXPECT_EQ(tasks(), 1);
    option_value[option_manager] = manager_on;
    const ptrdiff_t rseq = hot.rseq, cid = hot.cid;
    static const ptrdiff_t beyond[] = {-100000, -66000, 65500, 70000};
    for (size_t i = 0; i < ARRAY_LEN(beyond); i++) {
        hot.rseq = beyond[i];
        hot.cid = beyond[i] + (cid - rseq);
        enum manager_state state = hint();
        hot.rseq = rseq;
        hot.cid = cid;
        EXPECT_MSG(state == manager_forbidden, "a manager with its rseq area at %td", beyond[i]);
        EXPECT_EQ(tasks(), 1);
    }
    if (hint() == manager_forbidden)
        SKIP("no manager here");
    EXPECT_EQ(tasks(), 2);
    manager_park(true);
    for (int i = 0; i < 1000 && tasks() != 1; i++) /* the kernel clears the thread's id a moment before it is gone */
        usleep(1000);
    EXPECT_EQ(tasks(), 1);
    EXPECT_EQ(hint(), manager_absent); /* parked: none is started */
    manager_resume();
    EXPECT(hint() == manager_busy || manager_state() == manager_asleep);
    EXPECT_EQ(tasks(), 2);
    manager_park(false); /* as from a handler: it goes by itself */
    for (int i = 0; i < 1000 && tasks() != 1; i++)
        usleep(1000);
    EXPECT_EQ(tasks(), 1);
    manager_resume();
    manager_forbid();
    manager_hint();
    EXPECT_EQ(tasks(), 1);
    for (size_t i = 0; i < ARRAY_LEN(use); i++)
        free(use[i]);
    return 0;
}
