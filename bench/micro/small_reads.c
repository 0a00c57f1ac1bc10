/* SPDX-License-Identifier: MIT
 *
 * Why: a read of a few bytes is mostly entry, file lookup and exit, and the lookup takes a slower way once the table of
 * open files is shared with another task.  An allocator's own thread may share it.  A heap is built first (a helper may
 * start only then), then a small file is read at changing places.  An operation is one pread.
 */
#define _GNU_SOURCE
#include "args.h"
#include "clock.h"
#include "heap.h"
#include "result.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FILE_WORDS = 512 };

int main(int argc, char **argv)
{
    uint64_t ops = 1500000, heap_mib = 64, settle_ms = 50;
    const struct arg args[] = {
        {"ops", ARG_COUNT, &ops, "reads"},
        {"heap_mib", ARG_COUNT, &heap_mib, "live heap built first"},
        {"settle_ms", ARG_COUNT, &settle_ms, "pause between the heap and the loop"},
    };
    ARGS_READ("small_reads", argc, argv, args);
    struct heap_block *heap = heap_fill(heap_mib, args_seed());
    uint64_t words[FILE_WORDS];
    for (uint64_t i = 0; i < FILE_WORDS; i++)
        words[i] = i * i;
    int file = memfd_create("small_reads", MFD_CLOEXEC);
    if (file < 0 || write(file, words, sizeof(words)) != sizeof(words)) {
        perror("small_reads");
        return 3;
    }
    clock_sleep_ms(settle_ms);
    uint64_t errors = 0;
    uint64_t begin_ns = clock_ns();
    for (uint64_t i = 0; i < ops; i++) {
        uint64_t index = i * 7 % FILE_WORDS;
        uint64_t word = ~0ull;
        if (pread(file, &word, sizeof(word), (off_t)(index * sizeof(word))) != sizeof(word) || word != index * index)
            errors++;
    }
    uint64_t end_ns = clock_ns();
    errors += heap_check(heap);
    result_begin("small_reads", 1, ops, end_ns - begin_ns);
    result_count("heap_mib", heap_mib);
    return result_end(errors);
}
