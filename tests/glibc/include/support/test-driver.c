/* SPDX-License-Identifier: MIT
 *
 * main of glibc's tests: runs the test in a child, which a time limit ends, and answers 0 passed, 1 failed, 77 it
 * cannot run here, 124 it hung.  Included at the end of each test, which may have named its function and what end it
 * expects.
 */
#include "support/check.h"
#include "support/test-driver.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#ifndef TIMEOUT
#define TIMEOUT DEFAULT_TIMEOUT
#endif
#ifndef EXPECTED_STATUS
#define EXPECTED_STATUS 0
#endif
#ifndef EXPECTED_SIGNAL
#define EXPECTED_SIGNAL 0
#endif

int *test_failures;
static pid_t test_child;

/* A test names its function, or writes the call itself: "do_test ()". */
typedef int test_function(void);
#ifdef TEST_FUNCTION_ARGV
#define TEST_RUN(count, words) TEST_FUNCTION_ARGV(count, words)
#elif !defined TEST_FUNCTION
#define TEST_RUN(count, words) do_test()
#else
#define TEST_RUN(count, words)                                                                                         \
    __builtin_choose_expr(__builtin_types_compatible_p(__typeof__(TEST_FUNCTION), test_function),                      \
                          test_call((test_function *)(unsigned long)(TEST_FUNCTION)), (TEST_FUNCTION))
static inline int test_call(test_function *function)
{
    return function();
}
#endif

static void test_hangs(int number)
{
    (void)number;
    static const char text[] = "the test hangs\n";
    kill(-test_child, SIGKILL);
    ssize_t ignored = write(1, text, sizeof text - 1);
    (void)ignored;
    _exit(124);
}

static int test_verdict(int status)
{
    if (WIFSIGNALED(status) && WTERMSIG(status) != EXPECTED_SIGNAL)
        printf("ended by signal %d\n", WTERMSIG(status));
    if (*test_failures != 0)
        return 1;
    if (EXPECTED_SIGNAL != 0)
        return WIFSIGNALED(status) && WTERMSIG(status) == EXPECTED_SIGNAL ? 0 : 1;
    if (!WIFEXITED(status))
        return 1;
    return WEXITSTATUS(status) == 77 ? 77 : WEXITSTATUS(status) != EXPECTED_STATUS;
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    test_failures = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (test_failures == MAP_FAILED)
        return 1;
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    setvbuf(stdout, NULL, _IOLBF, 0);
#ifdef PREPARE
    PREPARE(argc, argv);
#endif
    test_child = fork();
    if (test_child == 0) {
        setpgid(0, 0);
        exit(TEST_RUN(argc, argv));
    }
    setpgid(test_child, test_child);
    signal(SIGALRM, test_hangs);
    alarm(TIMEOUT * TEST_PATIENCE);
    int status;
    if (waitpid(test_child, &status, 0) != test_child)
        return 1;
    kill(-test_child, SIGKILL); /* what the test may have left behind */
    return test_verdict(status);
}
