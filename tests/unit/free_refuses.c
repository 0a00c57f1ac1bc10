/* SPDX-License-Identifier: MIT
 *
 * free()'s fast path refuses what is no block without looking anything up but the descriptor.  Here: an address inside
 * a block, for every class.
 *
 * One address it could take for a block: the one a block would have before the first, in the gap that no block covers.
 * Accepted, it would be handed out again and reach into the superblock before.  That is asked with --before 1, by a
 * test of its own.
 */
#include <signal.h>
#include <sys/wait.h>

#include "inspect.h"
#include "unit.h"

/* In a child: frees `p` and expects to be ended for it. */
static void expect_refused(void *p, unsigned c)
{
    int pipe_fd[2], status;
    EXPECT_EQ(pipe(pipe_fd), 0);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        dup2(pipe_fd[1], 2);
        free(p);
        _exit(0);
    }
    close(pipe_fd[1]);
    char text[512];
    ssize_t n = read(pipe_fd[0], text, sizeof text - 1);
    text[n < 0 ? 0 : n] = '\0';
    close(pipe_fd[0]);
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_MSG(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && strstr(text, "free(): invalid pointer") != NULL,
               "class of %u bytes: free of an address that is no block was accepted (status 0x%x, '%s')",
               size_class[c].bytes, (unsigned)status, text);
}

static unsigned refuses_inside(unsigned c, char *block)
{
    expect_refused(block + (size_class[c].bytes > 16 ? 16 : 8), c);
    return 1;
}

/* Anywhere in it, misaligned addresses too. */
static unsigned refuses_before(unsigned c, char *block)
{
    const struct superblock *s = superblock_of(block);
    EXPECT(s->slice.kind == slice_superblock);
    size_t gap = (size_t)(superblock_block(s, 0) - superblock_start(s));
    for (size_t offset = 0; offset < gap; offset += gap > 4 ? gap / 4 : 1)
        expect_refused(superblock_start(s) + offset, c);
    if (gap == 0)
        return 0;
    expect_refused(superblock_block(s, 0) - 1, c);
    return 1;
}

int main(int argc, char **argv)
{
    unit_print_mode();
    unit_watchdog(60);
    bool before = unit_option(argc, argv, "--before", 0) != 0;
    unsigned refused = 0;
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        char *block = malloc(size_class[c].bytes);
        EXPECT(block != NULL);
        refused += before ? refuses_before(c, block) : refuses_inside(c, block);
        free(block);
    }
    EXPECT(refused > 10);
    unit_say("%u of %u classes\n", refused, (unsigned)CLASS_COUNT);
    return 0;
}
