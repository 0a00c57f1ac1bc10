/* SPDX-License-Identifier: MIT
 *
 * A library before ours wraps calls and looks behind itself (deep_wrapper.c): it finds ours, which finds libc's.
 */
#define _GNU_SOURCE
#include "support/check.h"
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
    test_begin(60);
    int *calls = (int *)dlsym(RTLD_DEFAULT, "deep_wrapper_calls");
    CHECK(calls != NULL);
    const int before = *calls;
    CHECK(syscall(SYS_getpid) == getpid());
    CHECK(setgid(getgid()) == 0);
    CHECK(*calls == before + 2);
    free(malloc(100));
    return 0;
}
