/* SPDX-License-Identifier: MIT
 *
 * Which classes are spared: those that soon want again what they lent, and for how long.
 */
#include "heap/turns.h"

#include "heap/layout.h"
#include "heap/span.h"
#include "unit.h"

enum { A = 20, B = 30, C = 40, D = 50, IN_USE_SLICES = 1000, MUCH = IN_USE_SLICES / 2 };

size_t __wrap_span_in_use_bytes(void);
size_t __wrap_span_in_use_bytes(void)
{
    return (size_t)IN_USE_SLICES << SLICE_SHIFT;
}

static void nobody_is_spared_at_first(void)
{
    for (unsigned c = A; c <= D; c += B - A) {
        EXPECT(!turns_are_taken_by(c));
        turns_note_wanted(c, 1);
        EXPECT(!turns_are_taken_by(c)); /* it had lent nothing */
    }
}

/* It wants memory again before half as much was wanted as is in use. */
static void who_wants_it_back_early_is_spared(void)
{
    turns_note_lent(A);
    for (int i = 0; i < 4; i++) { /* many turns, but little is wanted */
        turns_note_wanted(B, 1);
        turns_note_wanted(C, 1);
    }
    EXPECT(!turns_are_taken_by(A));
    turns_note_wanted(A, 1);
    EXPECT(turns_are_taken_by(A) && !turns_are_taken_by(B) && !turns_are_taken_by(C));
}

/* And for no longer than until sixteen times as much was wanted as was in use. */
static void it_is_spared_for_some_time(void)
{
    turns_note_wanted(B, 16 * IN_USE_SLICES - 1);
    EXPECT(turns_are_taken_by(A));
    turns_note_wanted(B, 1);
    EXPECT(!turns_are_taken_by(A));
}

/* However much is wanted, if few other classes had their turn. */
static void who_wants_it_back_after_few_turns_is_spared(void)
{
    turns_note_wanted(B, MUCH);
    turns_note_lent(A); /* for it */
    turns_note_wanted(C, MUCH);
    turns_note_wanted(D, MUCH);
    turns_note_wanted(D, MUCH);
    turns_note_wanted(A, 1);
    EXPECT(turns_are_taken_by(A));
    turns_note_wanted(B, 16 * IN_USE_SLICES);
    EXPECT(!turns_are_taken_by(A));
}

static void who_goes_through_many_sizes_is_not(void)
{
    turns_note_wanted(B, MUCH);
    turns_note_lent(A);
    turns_note_wanted(C, MUCH);
    turns_note_wanted(D, MUCH);
    turns_note_wanted(B, MUCH);
    turns_note_wanted(A, 1);
    EXPECT(!turns_are_taken_by(A));
    turns_note_wanted(A, 1); /* it has lent nothing since */
    EXPECT(!turns_are_taken_by(A));
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(20);
    nobody_is_spared_at_first();
    who_wants_it_back_early_is_spared();
    it_is_spared_for_some_time();
    who_wants_it_back_after_few_turns_is_spared();
    who_goes_through_many_sizes_is_not();
    return 0;
}
