/* SPDX-License-Identifier: MIT */
#include "api/deep_plugin.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *is_shared_name(void)
{
    return "plugin";
}

/* Calls, not addresses: the loader binds them another way. */
static void *take(size_t bytes)
{
    return malloc(bytes);
}

static void *take_aligned(size_t alignment, size_t bytes)
{
    return aligned_alloc(alignment, bytes);
}

static void *resize(void *block, size_t bytes)
{
    return realloc(block, bytes);
}

static char *copy(const char *text)
{
    return strdup(text);
}

static size_t usable(void *block)
{
    return malloc_usable_size(block);
}

static void give(void *block)
{
    free(block);
}

struct deep_plugin deep_plugin = {
    take, take_aligned, resize, copy, usable, give, {(void *)malloc, (void *)setuid, (void *)syscall, (void *)dlopen},
    NULL};

static __attribute__((constructor)) void load(void)
{
    deep_plugin.whose = is_shared_name();
    free(malloc(100));
}
