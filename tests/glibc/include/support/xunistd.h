/* SPDX-License-Identifier: MIT */
#ifndef TESTS_GLIBC_XUNISTD_H
#define TESTS_GLIBC_XUNISTD_H

#include "support/check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

static inline long test_need_number(long result, const char *what)
{
    if (result < 0)
        FAIL_EXIT1("%s is refused: %m", what);
    return result;
}

#define TEST_NEED_NUMBER(call)          test_need_number((long)(call), #call)
#define xfork()                         ((pid_t)TEST_NEED_NUMBER(fork()))
#define xwaitpid(child, status, flags)  ((pid_t)TEST_NEED_NUMBER(waitpid(child, status, flags)))
#define xpipe(ends)                     ((void)TEST_NEED_NUMBER(pipe(ends)))
#define xclose(descriptor)              ((void)TEST_NEED_NUMBER(close(descriptor)))
#define xopen(path, flags, mode)        ((int)TEST_NEED_NUMBER(open(path, flags, mode)))
#define xsysconf(name)                  TEST_NEED_NUMBER(sysconf(name))
#define xmunmap(at, bytes)              ((void)TEST_NEED_NUMBER(munmap(at, bytes)))
#define xmprotect(at, bytes, protection) ((void)TEST_NEED_NUMBER(mprotect(at, bytes, protection)))

static inline void *xmmap(void *at, size_t bytes, int protection, int flags, int descriptor)
{
    void *mapped = mmap(at, bytes, protection, flags, descriptor, 0);
    if (mapped == MAP_FAILED)
        FAIL_EXIT1("mmap is refused: %m");
    return mapped;
}

static inline void xwrite(int descriptor, const void *bytes, size_t count)
{
    for (size_t done = 0; done < count;)
        done += (size_t)TEST_NEED_NUMBER(write(descriptor, (const char *)bytes + done, count - done));
}

#endif
