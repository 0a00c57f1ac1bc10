/* SPDX-License-Identifier: MIT
 *
 * Why: the C library skips its stream locks while a process has one thread.  An allocator that starts a thread of its
 * own behind the program's back may take that away: getc and putc are where it shows.  A heap is built first (a helper
 * may start only then), then bytes are copied from one stream to another, one at a time.  An operation is one byte.
 */
#define _GNU_SOURCE
#include "args.h"
#include "clock.h"
#include "heap.h"
#include "result.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FILE_BYTES = 1 << 20 };

static unsigned char byte_at(uint64_t position)
{
    return (unsigned char)(position * 167 + (position >> 9));
}

static FILE *source_open(void)
{
    static unsigned char bytes[FILE_BYTES];
    int file = memfd_create("stdio_loop", MFD_CLOEXEC);
    for (uint64_t i = 0; i < FILE_BYTES; i++)
        bytes[i] = byte_at(i);
    if (file < 0 || write(file, bytes, FILE_BYTES) != FILE_BYTES)
        return NULL;
    return fdopen(file, "r");
}

int main(int argc, char **argv)
{
    uint64_t passes = 40, heap_mib = 64, settle_ms = 50;
    const struct arg args[] = {
        {"passes", ARG_COUNT, &passes, "times a file of 1 MiB is copied"},
        {"heap_mib", ARG_COUNT, &heap_mib, "live heap built first"},
        {"settle_ms", ARG_COUNT, &settle_ms, "pause between the heap and the loop"},
    };
    ARGS_READ("stdio_loop", argc, argv, args);
    struct heap_block *heap = heap_fill(heap_mib, args_seed());
    FILE *source = source_open();
    FILE *target = fopen("/dev/null", "w");
    if (!source || !target) {
        perror("stdio_loop");
        return 3;
    }
    clock_sleep_ms(settle_ms);
    uint64_t sum = 0, copied = 0;
    uint64_t begin_ns = clock_ns();
    for (uint64_t pass = 0; pass < passes; pass++) {
        rewind(source);
        for (int byte; (byte = getc(source)) != EOF; copied++) {
            sum += (uint64_t)byte;
            putc(byte, target);
        }
    }
    uint64_t end_ns = clock_ns();
    uint64_t expected = 0;
    for (uint64_t i = 0; i < FILE_BYTES; i++)
        expected += byte_at(i);
    uint64_t errors = (sum != expected * passes) + (copied != FILE_BYTES * passes) + (ferror(target) != 0);
    fclose(source);
    fclose(target);
    errors += heap_check(heap);
    result_begin("stdio_loop", 1, copied, end_ns - begin_ns);
    result_count("heap_mib", heap_mib);
    return result_end(errors);
}
