/* SPDX-License-Identifier: MIT */
#include "heap/meta.h"

#include "base/bits.h"
#include "os/os.h"

#define CHUNK_BYTES (64ul << 10)

static char *chunk;
static size_t left;

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
