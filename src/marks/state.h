/* SPDX-License-Identifier: MIT
 *
 * The states of blocks, out of band: a byte for each 16 bytes of the region, in a table of its own far from any block,
 * with address space that is nobody's around it.  The byte of a block's first 16 bytes says what became of the block:
 *
 *     0xxxxxxx          no block starts here
 *     1ffsssss          a live block of family ff (0 to 2), whose class has sssss more bytes than were asked for
 *     1ff11111          the same; how many more is in the next bytes, seven bits each: three, or one of a small block
 *     11100000          freed, and not handed out since
 *     11100001          live, and being resized: its canary and its slack are not of one piece
 *
 * So a double free, a free of an interior pointer, and the size that was asked for are one load away, for a block of
 * any age.  A free exchanges the byte by an atomic instruction: of two threads that free a block at once one is told
 * that it is too late.  Whoever is handed the block writes it.
 */
#ifndef SUTLER_MARKS_STATE_H
#define SUTLER_MARKS_STATE_H

#include "marks/marks.h"

#define STATE_SHIFT 4 /* of the bytes one state stands for */

enum family { family_malloc, family_new, family_array, family_count };

#define STATE_LIVE 0x80u
#define STATE_FAMILY_SHIFT 5
#define STATE_SLACK_WIDE 31u /* and all that does not fit below */
#define STATE_FREED 0xe0u
#define STATE_RESIZED 0xe1u
#define STATE_DIGIT_BITS 7
/* Blocks of this size have room for three digits of slack behind their state; smaller ones need no more than one. */
#define STATE_BYTES_OF_THREE 64u

static inline uint8_t *state_of(const void *p)
{
    return (uint8_t *)(marks.states + ((uintptr_t)p >> STATE_SHIFT));
}

static inline uint8_t state_get(const void *p)
{
    return __atomic_load_n(state_of(p), __ATOMIC_RELAXED);
}

static inline void state_set(const void *p, unsigned state)
{
    __atomic_store_n(state_of(p), (uint8_t)state, __ATOMIC_RELEASE);
}

/* The block, live when its state was read, is freed; false if another thread was faster. */
static inline bool state_free(const void *p)
{
    return __atomic_exchange_n(state_of(p), STATE_FREED, __ATOMIC_ACQ_REL) != STATE_FREED;
}

/* The same if the state is still what was read before.  A program of one thread needs no lock for that: between what
 * one instruction loads and what it stores no other thread comes. */
static inline bool state_free_from(const void *p, uint8_t state)
{
#if defined(__x86_64__)
    if (likely(*marks.single_threaded != 0)) {
        bool freed;
        __asm__ volatile("cmpxchgb %3, %1"
                         : "=@ccz"(freed), "+m"(*state_of(p)), "+a"(state)
                         : "q"((uint8_t)STATE_FREED)
                         : "memory");
        return freed;
    }
#endif
    return __atomic_compare_exchange_n(state_of(p), &state, STATE_FREED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* The block, whose state was read before, is being resized; false if it is something else by now. */
static inline bool state_resize_from(const void *p, uint8_t state)
{
    return __atomic_compare_exchange_n(state_of(p), &state, STATE_RESIZED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static inline bool state_is_live(uint8_t state)
{
    return state - STATE_LIVE < (unsigned)family_count << STATE_FAMILY_SHIFT;
}

/* The program has it, if it does not just resize it. */
static inline bool state_is_used(uint8_t state)
{
    return state_is_live(state) || state == STATE_RESIZED;
}

static inline enum family state_family(uint8_t state)
{
    return (enum family)((state - STATE_LIVE) >> STATE_FAMILY_SHIFT);
}

/* The block of `bytes` at `p` is live, `slack` of them more than were asked for. */
static inline void state_set_live(const void *p, size_t bytes, size_t slack, enum family family)
{
    unsigned live = STATE_LIVE | (unsigned)family << STATE_FAMILY_SHIFT;
    if (likely(slack < STATE_SLACK_WIDE)) {
        state_set(p, live | (unsigned)slack);
        return;
    }
    uint8_t *digit = state_of(p) + 1;
    for (unsigned i = 0; i < (bytes < STATE_BYTES_OF_THREE ? 1 : 3); i++, slack >>= STATE_DIGIT_BITS)
        __atomic_store_n(&digit[i], slack & ((1u << STATE_DIGIT_BITS) - 1), __ATOMIC_RELAXED);
    state_set(p, live | STATE_SLACK_WIDE);
}

/* Of a live block of `bytes` whose state was just read. */
static inline size_t state_slack(const void *p, uint8_t state, size_t bytes)
{
    size_t slack = state & STATE_SLACK_WIDE;
    if (likely(slack != STATE_SLACK_WIDE))
        return slack;
    const uint8_t *digit = state_of(p) + 1;
    if (bytes < STATE_BYTES_OF_THREE)
        return digit[0];
    return digit[0] | (size_t)digit[1] << STATE_DIGIT_BITS | (size_t)digit[2] << 2 * STATE_DIGIT_BITS;
}

#endif
