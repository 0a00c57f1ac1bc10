/* SPDX-License-Identifier: MIT
 *
 * What tests/api/deep_binding.c and the library it loads know of each other.
 */
#ifndef TESTS_API_DEEP_PLUGIN_H
#define TESTS_API_DEEP_PLUGIN_H

#include <stddef.h>

/* All that the library does, reached through the one name the test looks up. */
struct deep_plugin {
    void *(*take)(size_t bytes);
    void *(*take_aligned)(size_t alignment, size_t bytes);
    void *(*resize)(void *block, size_t bytes);
    char *(*copy)(const char *text);
    size_t (*usable)(void *block);
    void (*give)(void *block);
    void *function[4]; /* malloc, setuid, syscall, dlopen */
    const char *whose; /* what is_shared_name() says there */
};

/* Both define it, each with an answer of its own. */
const char *is_shared_name(void);

#endif
