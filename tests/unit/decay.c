/* SPDX-License-Identifier: MIT
 *
 * A round of a purge that is made in pieces gives back all that it would in one go, a little at a time.  Decay makes
 * such rounds in passing: what is free for two of them goes back, what is used in between stays; it does not wait for
 * another pass; a child begins anew.
 */
#include "heap/decay.h"

#include <sys/wait.h>

#include "heap/large.h"
#include "heap/mapping_cache.h"
#include "heap/purge.h"
#include "heap/purge_round.h"
#include "heap/span.h"
#include "inspect.h"
#include "os/os.h"
#include "unit.h"

#define SMALL 2000u
#define SMALLS 16000u
#define MEDIUM (300ul << 10)
#define MEDIUMS 200u
#define MAPPED (20ul << 20)
#define PIECE_BYTES_MOST (8ul << 20) /* a superblock that completes a batch */
#define SPANS_BYTES_MOST (3ul << 20) /* the rest of a huge page, if it is less than a half, and the next one */
#define DEADLINE_NS 60000000000ull

static char *small[SMALLS], *medium[MEDIUMS];

static void fill(void)
{
    for (unsigned i = 0; i < SMALLS; i++)
        memset(small[i] = malloc(SMALL), (int)i, SMALL);
    for (unsigned i = 0; i < MEDIUMS; i++)
        memset(medium[i] = malloc(MEDIUM), (int)i, MEDIUM);
}

/* One of 64 of each stays. */
static void drop_most(void)
{
    for (unsigned i = 0; i < SMALLS; i++)
        if (i % 64 != 0)
            free(small[i]);
    for (unsigned i = 0; i < MEDIUMS; i++)
        if (i % 64 != 0)
            free(medium[i]);
}

static void drop_rest(void)
{
    for (unsigned i = 0; i < SMALLS; i += 64) {
        for (unsigned b = 0; b < SMALL; b++)
            EXPECT_EQ((unsigned char)small[i][b], i % 256);
        free(small[i]);
    }
    for (unsigned i = 0; i < MEDIUMS; i += 64) {
        for (unsigned b = 0; b < MEDIUM; b++)
            EXPECT_EQ((unsigned char)medium[i][b], i % 256);
        free(medium[i]);
    }
    expect_heaps_sound();
}

static size_t freed_bytes(void)
{
    return SMALLS * SMALL + MEDIUMS * MEDIUM;
}

static struct purge_round in_pieces(enum purge_what what)
{
    struct purge_round r;
    unsigned pieces = 0;
    EXPECT(slow_enter());
    for (round_begin(&r, what, true); !round_is_over(&r); pieces++) {
        const size_t before = r.bytes, most = r.step == round_spans ? SPANS_BYTES_MOST : PIECE_BYTES_MOST;
        EXPECT(pass_try_begin());
        round_go_on(&r);
        pass_end();
        EXPECT_MSG(r.bytes - before <= most, "%zu bytes in one piece", r.bytes - before);
    }
    slow_leave();
    EXPECT_MSG(pieces >= 5 + r.bytes / PIECE_BYTES_MOST, "%u pieces", pieces);
    return r;
}

static void purge_everything(void)
{
    EXPECT(slow_enter());
    heap_purge(purge_force, NULL);
    slow_leave();
}

static void pieces_make_a_whole(void)
{
    purge_everything();
    fill();
    drop_most();
    in_pieces(purge_force);
    EXPECT(slow_enter());
    EXPECT_EQ(span_counts().dirty_bytes, 0);
    EXPECT_EQ(heap_purge(purge_force, NULL), 0); /* they left nothing */
    slow_leave();
    drop_rest();
}

static void two_rounds_give_back(void)
{
    size_t bytes = 0;
    purge_everything();
    fill();
    drop_most();
    free(malloc(MAPPED));
    EXPECT(mapping_cache_bytes() >= MAPPED);
    struct purge_round r = in_pieces(purge_decay);
    EXPECT(r.changed && r.bytes == 0);
    EXPECT(mapping_cache_bytes() >= MAPPED);
    for (int rounds = 0; rounds < 8 && r.changed; rounds++)
        bytes += (r = in_pieces(purge_decay)).bytes;
    EXPECT(!r.changed);
    EXPECT_EQ(mapping_cache_bytes(), 0);
    EXPECT_MSG(bytes > freed_bytes() / 2, "%zu of %zu KiB were given back", bytes >> 10, freed_bytes() >> 10);
    drop_rest();
}

static void what_is_used_in_between_stays(void)
{
    purge_everything();
    for (int i = 0; i < 4; i++) {
        fill();
        drop_most();
        EXPECT(in_pieces(purge_decay).changed);
        drop_rest();
    }
}

/* ---- in passing ---- */

/* What slow paths do, but that each looks at the clock. */
static void pass_by(int times)
{
    for (int i = 0; i < times; i++) {
        EXPECT(slow_enter());
        decay_in_passing();
        slow_leave();
    }
}

/* Until no more is resident. */
static void decay_until(size_t resident)
{
    const uint64_t since_ns = os_now_ns();
    while (os_resident_bytes() > resident) {
        EXPECT_MSG(os_now_ns() - since_ns < DEADLINE_NS, "%zu KiB are resident", os_resident_bytes() >> 10);
        pass_by(100);
        os_sleep(1000000);
    }
}

static void calls_give_back(void)
{
    purge_everything();
    size_t before = os_resident_bytes();
    EXPECT(before != 0);
    test_slow_paths_decay = false;
    fill();
    drop_most();
    test_slow_paths_decay = true;
    EXPECT_MSG(os_resident_bytes() > before + freed_bytes() / 2, "%zu KiB are left to decay",
               (os_resident_bytes() - before) >> 10);
    decay_until(before + freed_bytes() / 2);
    drop_rest();
}

static void nobody_waits_for_another_pass(void)
{
    decay_forget(); /* a piece is due now */
    EXPECT(slow_enter());
    pass_begin();
    for (int i = 0; i < 1000; i++)
        decay_in_passing();
    pass_end();
    slow_leave();
}

/* Whatever piece the parent has come to. */
static void children_begin_anew(void)
{
    for (int i = 0; i < 20; i++) {
        size_t before = os_resident_bytes();
        fill();
        drop_most();
        pass_by(100 * i);
        pid_t child = fork();
        EXPECT(child >= 0);
        if (child == 0) {
            free(malloc(1));
            if (i % 10 == 9)
                decay_until(before + freed_bytes() / 2);
            drop_rest();
            _exit(0);
        }
        int status;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
        drop_rest();
    }
}

int main(void)
{
    unit_print_mode(); /* and allows what SUTLER_MANAGER=off does not: to read what is resident */
    atomic_store(&manager_stop_requested, true); /* one that has left concerns no thread of the program */
    pieces_make_a_whole();
    two_rounds_give_back();
    what_is_used_in_between_stays();
    test_slow_paths_decay = true;
    nobody_waits_for_another_pass();
    calls_give_back();
    children_begin_anew();
    return 0;
}
