/* SPDX-License-Identifier: MIT */
#include "heap/meta.h"

#include "base/bits.h"
#include "os/os.h"

#define CHUNK_BYTES (64ul << 10)

/* The chunk of the first heaps is part of the library's data, untouched: a thread may need a heap when the limit has
 * been reached. */
static char first_chunk[CHUNK_BYTES] __attribute__((aligned(4096)));
static char *chunk = first_chunk;
static size_t left = sizeof first_chunk;

void *meta_take(size_t bytes)
{
    bytes = align_up(bytes, os_page_bytes);
    if (bytes > left) {
        size_t size = max_size(bytes, CHUNK_BYTES);
        char *mapped = os_map(size);
        if (mapped == NULL)
            return NULL;
        chunk = mapped;
        left = size;
    }
    char *taken = chunk;
    chunk += bytes;
    left -= bytes;
    return taken;
}

void meta_recover(void)
{
    left = 0;
}
