/* SPDX-License-Identifier: MIT
 *
 * Runs a function in a child and keeps what it said: two files, read when it has ended.
 */
#ifndef TESTS_GLIBC_CAPTURE_SUBPROCESS_H
#define TESTS_GLIBC_CAPTURE_SUBPROCESS_H

#include "support/xunistd.h"

struct test_text {
    char *buffer;
    size_t length;
};

struct support_capture_subprocess {
    struct test_text out, err;
    int status;
};

static inline struct test_text test_read_back(FILE *file)
{
    struct test_text text = {NULL, 0};
    FILE *out = open_memstream(&text.buffer, &text.length);
    rewind(file);
    for (int c; (c = getc(file)) != EOF;)
        putc(c, out);
    fclose(out);
    fclose(file);
    return text;
}

static inline struct support_capture_subprocess support_capture_subprocess(void (*function)(void *), void *closure)
{
    FILE *out = tmpfile(), *err = tmpfile();
    if (out == NULL || err == NULL)
        FAIL_EXIT1("tmpfile is refused: %m");
    fflush(stdout);
    fflush(stderr);
    pid_t child = xfork();
    if (child == 0) {
        dup2(fileno(out), STDOUT_FILENO);
        dup2(fileno(err), STDERR_FILENO);
        function(closure);
        fflush(stdout);
        fflush(stderr);
        _exit(0);
    }
    struct support_capture_subprocess result;
    xwaitpid(child, &result.status, 0);
    result.out = test_read_back(out);
    result.err = test_read_back(err);
    return result;
}

static inline void support_capture_subprocess_free(struct support_capture_subprocess *result)
{
    free(result->out.buffer);
    free(result->err.buffer);
}

#endif
