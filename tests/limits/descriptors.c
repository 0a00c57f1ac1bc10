/* SPDX-License-Identifier: MIT
 *
 * The manager keeps to file descriptors of its own.  A program may expect that the lowest free number is the next it
 * gets, and that a file it closed is closed; a thread of the allocator that opens files in the program's table would
 * break both.  The heap grows past where the manager starts, and then gives it a second and a half of work; meanwhile
 * descriptors are as the program left them.  Started by forbid.c as well, without close_range: then there must be no
 * such thread at all.
 */
#include "support/check.h"
#include <fcntl.h>

enum { DESCRIPTORS = 256 };

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static int next_descriptor(void)
{
    int fd = open("/dev/null", O_RDONLY);
    CHECK(fd >= 0);
    close(fd);
    return fd;
}

int main(void)
{
    test_begin(60);
    bool was_open[DESCRIPTORS];
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        was_open[fd] = is_open(fd);
    const int next = next_descriptor();
    enum { BLOCKS = 1 << 19, BYTES = 100 };
    static void *block[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        CHECK((block[i] = malloc(BYTES)) != NULL);
        memset(block[i], i, BYTES);
        if (i % 1024 == 0) {
            int got = next_descriptor();
            CHECK_MSG(got == next, "the next descriptor was %d, not %d", got, next);
        }
    }
    for (int i = 0; i < BLOCKS; i++)
        free(block[i]);
    for (int i = 0; i < 30; i++) {
        for (int fd = 0; fd < DESCRIPTORS; fd++)
            CHECK_MSG(is_open(fd) == was_open[fd], "descriptor %d has been opened or closed", fd);
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    return 0;
}
