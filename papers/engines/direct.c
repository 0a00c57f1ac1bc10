/* SPDX-License-Identifier: MIT
 *
 * Why: the base line.  No second thread, every request is the backend's: what the entry layer itself costs, and, with
 * SUTLER_CHECKS=inline, what the checks cost a program that has no MMT (the "PHKmalloc with checks" bar of MMT figure
 * 11).
 */
#include "backend.h"
#include "engine.h"

static void nothing(void)
{
}

static void *direct_allocate(size_t size)
{
    return backend.malloc(size);
}

static void *direct_allocate_zeroed(size_t size)
{
    return backend.calloc(1, size);
}

static void direct_release(void *block)
{
    backend.free(block);
}

const struct engine engine = {
    .name = "direct",
    .largest = SIZE_MAX,
    .start = nothing,
    .allocate = direct_allocate,
    .allocate_zeroed = direct_allocate_zeroed,
    .release = direct_release,
    .manage = nothing,
    .fork_prepare = nothing,
    .fork_parent = nothing,
    .fork_child = nothing,
};
