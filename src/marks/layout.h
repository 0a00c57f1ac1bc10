/* SPDX-License-Identifier: MIT
 *
 * Offsets that assembly and C share: struct marks, and the rings of the quarantine (hardened/quarantine.c).
 */
#ifndef SUTLER_MARKS_LAYOUT_H
#define SUTLER_MARKS_LAYOUT_H

#define MARKS_LINK_KEY  0
#define MARKS_ORDER_KEY 8
#define MARKS_FACTOR    16
#define MARKS_INVERSE   24

#define RING_AT     0
#define RING_MASK   4
#define RING_PLACES 8
#define RING_SHIFT  4

#endif
