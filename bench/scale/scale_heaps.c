/* SPDX-License-Identifier: MIT
 *
 * Why: what an operation costs as a function of the number of heaps, counted instead of timed.  Under the build of the
 * library whose cids are what the program says (libsutler_cids.so; tests/support/cids.h) one thread plays `heaps` cids
 * one after the other: each fills `kib` KiB with blocks of 1 KiB, so each has superblocks and none to spare.  Then come
 * the operations, each on as many heaps as there are, and for each of them is printed, per operation,
 *
 *   X_locks, X_fences   locks taken, fences sent to all cpus
 *   X_looks             heaps looked at on behalf of another one
 *   X_ns                time
 *
 * where X is hit (a pair of malloc and free), refill (a slow path of malloc that finds memory in its own heap), fresh
 * (the mallocs that fill a new superblock, per superblock), large (a pair of 200 KB), trim (malloc_trim with every
 * second block free, per superblock), moved (a thread finds itself on another cid, and replaces half of its blocks),
 * fork (the parent's side), remote (a free of another heap's block) and collect (a malloc by that heap afterwards).
 *
 * Under any other library it has nothing to count and exits with 77.
 */
#define _GNU_SOURCE
#include "args.h"
#include "clock.h"
#include "library_counts.h"
#include "memory.h"
#include "result.h"
#include "sink.h"
#include "support/cids.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK_BYTES = 1024, LARGE_BYTES = 200000, PAIRS = 100000, ROUNDS = 20, FRESH_MIB = 16, MOVES = 200, FORKS = 10 };

static struct params {
    uint64_t heaps, kib;
} params = {.heaps = 64, .kib = 256};

/* One heap's blocks. */
struct share {
    uint64_t **block;
    uint64_t count;
};

static struct share *shares;
static uint64_t errors;

/* ---- counting ---- */

/* What was counted between begin() and end(), summed until it is reported. */
static struct {
    struct tally at_begin;
    uint64_t locks, fences, looks, ns, begin_ns;
} work;

static void begin(void)
{
    work.at_begin = sutler_test_tally();
    work.begin_ns = clock_ns();
}

static void end(void)
{
    const uint64_t ns = clock_ns();
    const struct tally tally = sutler_test_tally();
    work.ns += ns - work.begin_ns;
    work.locks += tally.locks - work.at_begin.locks;
    work.fences += tally.fences - work.at_begin.fences;
    work.looks += tally.looks - work.at_begin.looks;
}

static void report_one(const char *operation, const char *what, uint64_t *amount, uint64_t ops)
{
    char key[64];
    snprintf(key, sizeof(key), "%s_%s", operation, what);
    result_real(key, ops != 0 ? (double)*amount / (double)ops : 0);
    *amount = 0;
}

static void report(const char *operation, uint64_t ops)
{
    report_one(operation, "locks", &work.locks, ops);
    report_one(operation, "fences", &work.fences, ops);
    report_one(operation, "looks", &work.looks, ops);
    report_one(operation, "ns", &work.ns, ops);
}

/* ---- blocks ---- */

static uint64_t own_blocks(void)
{
    return (params.kib << 10) / BLOCK_BYTES;
}

static uint64_t fresh_blocks(void)
{
    return (uint64_t)(FRESH_MIB << 20) / BLOCK_BYTES;
}

static uint64_t *block_new(uint64_t mark)
{
    uint64_t *block = malloc(BLOCK_BYTES);
    *block = mark;
    return block;
}

static void block_free(uint64_t *block, uint64_t mark)
{
    errors += *block != mark;
    free(block);
}

static void share_fill(struct share *share, uint64_t until)
{
    for (; share->count < until; share->count++)
        share->block[share->count] = block_new(share->count);
}

static void share_empty(struct share *share, uint64_t until)
{
    for (; share->count > until; share->count--)
        block_free(share->block[share->count - 1], share->count - 1);
}

/* A quarter at a time: neighbours in memory belong to different heaps, as they do where threads run at once. */
static void everybody_fills(void)
{
    for (uint64_t quarter = 1; quarter <= 4; quarter++)
        for (uint64_t i = 0; i < params.heaps; i++) {
            sutler_test_bind_cid((unsigned)i);
            share_fill(&shares[i], own_blocks() * quarter / 4);
        }
    sutler_test_bind_cid(0);
}

static void shares_open(void)
{
    shares = pages_map(params.heaps * sizeof(*shares));
    for (uint64_t i = 0; i < params.heaps; i++) {
        uint64_t room = own_blocks() + (i == 0 ? fresh_blocks() : 0);
        shares[i].block = pages_map(room * sizeof(*shares[i].block));
    }
}

/* ---- the operations, on cid 0 unless they say otherwise ---- */

static void count_hits(void)
{
    block_free(block_new(0), 0); /* there is one from now on */
    begin();
    for (uint64_t i = 0; i < PAIRS; i++)
        block_free(block_new(i), i);
    end();
    report("hit", PAIRS);
}

static void count_refills(void)
{
    uint64_t slow_paths = 0;
    for (int round = 0; round < ROUNDS; round++) {
        share_empty(&shares[0], own_blocks() / 4);
        uint64_t before = library_counts_read().slow_paths;
        begin();
        share_fill(&shares[0], own_blocks());
        end();
        slow_paths += library_counts_read().slow_paths - before;
    }
    report("refill", slow_paths);
}

static void count_fresh(void)
{
    uint64_t before = library_counts_read().superblocks;
    begin();
    share_fill(&shares[0], own_blocks() + fresh_blocks());
    end();
    report("fresh", library_counts_read().superblocks - before);
    share_empty(&shares[0], own_blocks());
}

static void count_large(void)
{
    free(malloc(LARGE_BYTES)); /* there is one from now on */
    begin();
    for (uint64_t i = 0; i < PAIRS; i++) {
        void *block = malloc(LARGE_BYTES);
        sink(block);
        free(block);
    }
    end();
    report("large", PAIRS);
}

/* Each heap frees every second of its blocks, and takes as many again afterwards. */
static void count_trim(void)
{
    for (uint64_t i = 0; i < params.heaps; i++) {
        sutler_test_bind_cid((unsigned)i);
        for (uint64_t n = 0; n < shares[i].count; n += 2)
            block_free(shares[i].block[n], n);
    }
    sutler_test_bind_cid(0);
    uint64_t superblocks = library_counts_read().superblocks;
    begin();
    malloc_trim(0);
    end();
    report("trim", superblocks);
    for (uint64_t i = 0; i < params.heaps; i++) {
        sutler_test_bind_cid((unsigned)i);
        for (uint64_t n = 0; n < shares[i].count; n += 2)
            shares[i].block[n] = block_new(n);
    }
    sutler_test_bind_cid(0);
}

/* To and fro between two cids, with slow paths of malloc on each: whoever follows a thread does so there. */
static void count_moved(void)
{
    for (uint64_t i = 0; i < MOVES; i++) {
        begin();
        sutler_test_move_to_cid(i % 2 == 0);
        share_empty(&shares[0], own_blocks() / 2);
        share_fill(&shares[0], own_blocks());
        end();
    }
    sutler_test_bind_cid(0);
    report("moved", MOVES);
}

static void count_forks(void)
{
    for (int i = 0; i < FORKS; i++) {
        begin();
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        end();
        errors += child < 0 || waitpid(child, NULL, 0) != child;
    }
    report("fork", FORKS);
}

/* One of each other heap's blocks in turn, so that no two frees in a row meet the same owner.  The owners rest: heap 0
 * may take over what they have.  Then each takes as many again. */
static void count_remote(void)
{
    const uint64_t each = own_blocks() / 2, blocks = each * (params.heaps - 1);
    begin();
    for (uint64_t n = 0; n < each; n++)
        for (uint64_t i = 1; i < params.heaps; i++) {
            struct share *share = &shares[i];
            share->count--;
            block_free(share->block[share->count], share->count);
        }
    end();
    report("remote", blocks);
    begin();
    for (uint64_t i = 1; i < params.heaps; i++) {
        sutler_test_bind_cid((unsigned)i);
        share_fill(&shares[i], own_blocks());
    }
    end();
    report("collect", blocks);
    sutler_test_bind_cid(0);
}

static void shares_close(void)
{
    for (uint64_t i = 0; i < params.heaps; i++) {
        sutler_test_bind_cid((unsigned)i);
        share_empty(&shares[i], 0);
    }
    sutler_test_bind_cid(0);
}

int main(int argc, char **argv)
{
    const struct arg args[] = {
        {"heaps", ARG_COUNT, &params.heaps, "cids to play, each with a heap, 2 to 1024"},
        {"kib", ARG_COUNT, &params.kib, "KiB each fills"},
    };
    ARGS_READ("scale_heaps", argc, argv, args);
    if (params.heaps < 2 || params.heaps > 1024 || own_blocks() < 2)
        args_reject("heaps, kib", "2 to 1024 heaps, at least 2 KiB");
    if (sutler_test_bind_cid == NULL || !library_counts_read().known) {
        fprintf(stderr, "scale_heaps: skipped: needs libsutler_cids.so\n");
        return 77;
    }
    shares_open();
    uint64_t empty_kib = memory_anonymous_kib(), begin_ns = clock_ns();
    everybody_fills();
    uint64_t ns = clock_ns() - begin_ns, full_kib = memory_anonymous_kib();
    result_begin("scale_heaps", 1, params.heaps * own_blocks(), ns);
    result_count("heaps", params.heaps);
    result_count("live_kib", params.heaps * own_blocks() * BLOCK_BYTES >> 10);
    result_count("resident_kib", full_kib - empty_kib);
    count_hits();
    count_refills();
    count_fresh();
    count_large();
    count_trim();
    count_moved();
    count_forks();
    count_remote();
    shares_close();
    return result_end(errors);
}
