/* SPDX-License-Identifier: MIT
 *
 * The manager is started by whichever slow path finds the heap large enough: on a signal handler's small stack, too.
 */
#include "watch.h"
#include <sys/auxv.h>
#include <sys/mman.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

static void grow_until_started(int number)
{
    (void)number;
    for (size_t i = 0; i < 64 * MIB / 64; i++) {
        char *volatile p = malloc(64);
        p[0] = 1;
    }
}

int main(void)
{
    test_begin(60);
    size_t frame = getauxval(AT_MINSIGSTKSZ), size = (frame > 2048 ? frame : 2048) + 4 * KIB;
    size = (size + 4095) & ~(size_t)4095;
    char *map = mmap(NULL, size + 64 * KIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(map != MAP_FAILED && mprotect(map + 64 * KIB, size, PROT_READ | PROT_WRITE) == 0);
    stack_t stack = {.ss_sp = map + 64 * KIB, .ss_size = size};
    CHECK(sigaltstack(&stack, NULL) == 0);
    struct sigaction action = {.sa_handler = grow_until_started, .sa_flags = SA_ONSTACK};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    raise(SIGUSR1);
    return 0;
}
