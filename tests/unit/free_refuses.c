/* SPDX-License-Identifier: MIT
 *
 * free()'s fast path refuses what is no block without looking anything up but the descriptor.  Here: an address inside
 * a block, for every class.
 *
 * One address it could take for a block: the one behind the last, a multiple of the block size in the tail that no block
 * covers.  Accepted, it would be handed out again and reach into the next superblock.  That is asked with --behind 1, by
 * a test of its own.
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

static unsigned refuses_behind(unsigned c, char *block)
{
    const struct superblock *s = descriptor_head(descriptor_of(block));
    EXPECT(s->slice.kind == slice_superblock);
    const struct size_class *row = &size_class[c];
    size_t behind = (size_t)row->blocks * row->bytes;
    if (behind == row->slices * SLICE_BYTES)
        return 0; /* there is no tail */
    expect_refused(superblock_start(s) + behind, c);
    return 1;
}

int main(int argc, char **argv)
{
    unit_print_mode();
    unit_watchdog(60);
    bool behind = unit_option(argc, argv, "--behind", 0) != 0;
    unsigned refused = 0;
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        char *block = malloc(size_class[c].bytes);
        EXPECT(block != NULL);
        refused += behind ? refuses_behind(c, block) : refuses_inside(c, block);
        free(block);
    }
    EXPECT(refused > 10);
    unit_say("%u of %u classes\n", refused, (unsigned)CLASS_COUNT);
    return 0;
}
