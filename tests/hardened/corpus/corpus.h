/* SPDX-License-Identifier: MIT
 *
 * The corpus: one program that commits one memory bug a run, `corpus CLASS.CASE`.  It shows what an allocator makes of
 * the bug, so it knows nothing of any allocator and looks only at what a program can see: whether the bug had an effect
 * on data that the program holds.  Each file has the bugs of one class, as a table of cases.
 *
 * A case sets the scene, calls bug_begin(), commits the bug, calls bug_end(), and goes on as a program would: it checks
 * its data, frees its blocks and allocates others, so that whoever looks late has an occasion to.  Then it exits with 0
 * (no effect: harmless) or EFFECT (the bug had its effect and nobody noticed: missed).  The marks go to standard error,
 * to which an allocator writes its report as well; so the order of the lines tells whether a report was made at the bug
 * or later.  tools/sutler/sutler_tool/corpus.py starts the program and reads them.
 *
 * What counts as an effect:
 *   writes     a byte changed in a live block that belongs to somebody else, or a block from calloc is not zero
 *   reads      the bytes read are somebody's data, or an address
 *   frees      two owners have the same memory, or malloc hands out what is not its own
 *   guesses    the allocator did what the attacker counted on in every one of SAME_TRIALS trials
 * Where the bug's own write is the effect (an overflow into a neighbour), the blocks are freed before the verdict: a
 * check at free still counts as caught.  Where the effect is a block with two owners, the case ends at once.
 */
#ifndef TESTS_HARDENED_CORPUS_H
#define TESTS_HARDENED_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { EFFECT = 3, SAME_TRIALS = 16 };

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

/* A case: what it does is up to commit(); the numbers are in bytes and mean what the class's file says. */
struct bug {
    const char *name;
    void (*commit)(const struct bug *);
    size_t size;
    ptrdiff_t at;
    size_t length;
};

/* The classes; each table ends with a bug without a name. */
extern const struct bug overflow[], underflow[], overread[], write_after_free[], read_after_free[], double_free[],
    invalid_free[], mismatch[], leak[], links[], spray[], correct[];

void bug_begin(void);                                   /* what follows is the bug */
void bug_end(void);                                     /* it is done, and nothing was noticed */
void effect(bool seen);                                 /* remembered for the exit status */
__attribute__((noreturn)) void verdict(void);           /* ends the program with what effect() was told */
__attribute__((noreturn)) void broken(const char *why); /* ends the program: the scene could not be set */

/* malloc and free, behind the compiler's back; take() never returns NULL. */
void *take(size_t size);
void give(void *block);

/* Runs work(argument) in a thread on another cpu, to its end. */
void in_thread(void *(*work)(void *), void *argument);

void fill(void *block, size_t size, unsigned char byte);
void spoil(void *block, size_t size); /* writes bytes, each of which differs from what was there */
bool holds(const void *block, size_t size, unsigned char byte); /* eight or more such bytes in a row? */
bool is_zero(const void *block, size_t size);

/* Blocks of one size, filled with a byte that differs from block to block. */
enum { CROWD_MOST = 512 };
struct crowd {
    unsigned char *blocks[CROWD_MOST];
    size_t count, size;
};
void crowd_take(struct crowd *, size_t size);
void crowd_give(struct crowd *);                              /* all that were not taken out */
size_t crowd_nearest(const struct crowd *, size_t *follower); /* a block, and the one that follows it most closely */
size_t crowd_changed(const struct crowd *, size_t but);       /* blocks other than `but` with a byte changed */
bool crowd_meets(const struct crowd *, const void *block, size_t size); /* does any of its blocks overlap this one? */
bool crowd_overlaps(const struct crowd *);                              /* do any two of its blocks? */

/* Takes and gives blocks of this size, more than a quarantine holds back, and has free memory given back. */
void settle(size_t size);

#ifdef __cplusplus
}
#endif

#endif
