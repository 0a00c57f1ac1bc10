/* SPDX-License-Identifier: MIT */
#ifndef TESTS_GLIBC_TEST_DRIVER_H
#define TESTS_GLIBC_TEST_DRIVER_H

#define DEFAULT_TIMEOUT  20
#define EXIT_UNSUPPORTED 77

static const int test_verbose = 0;

#endif
