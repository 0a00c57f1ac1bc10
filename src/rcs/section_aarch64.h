/* SPDX-License-Identifier: MIT
 *
 * A restartable section in aarch64 assembly; see section_x86_64.h for the shape.
 */
#define LANDING_PAD hint #34 /* bti c */
#include "rcs/section.h"

/* x9: the address of the cid, x10: of heap_of_cid.  Uses x11, x12. */
.macro SECTION_BEGIN name
	mrs	x11, tpidr_el0
	adrp	x12, hot
	add	x12, x12, :lo12:hot
	ldr	x9, [x12, HOT_CID]
	add	x9, x9, x11
	ldr	x12, [x12, HOT_RSEQ]
	add	x11, x11, x12
	adrp	x10, heap_of_cid
	add	x10, x10, :lo12:heap_of_cid
	adrp	x12, .Lsection_\name
	add	x12, x12, :lo12:.Lsection_\name
	str	x12, [x11, RSEQ_CS]
.Lstart_\name:
.endm

/* Into x\n the heap of the present cid.  With acquire: who binds a heap to a cid restarts the sections of its last cid
 * first, then stores it with release.  Were this load performed after those of `owner` and `freelist`, which do not
 * depend on it, a section could see the heap that has just arrived and a freelist from before the last section of the
 * cid it came from, and commit over that one's.  For the same reason a heap that was just made is seen with its active
 * superblocks.  What is loaded by way of the heap (active, its freelist, its top block's next) needs no acquire: each
 * address depends on the load before it, and aarch64 keeps that order. */
.macro LOAD_HEAP n
	ldr	w\n, [x9]
	add	x\n, x10, x\n, lsl #3		/* ldar takes no offset */
	ldar	x\n, [x\n]
.endm

.macro SECTION_ABORT name
	.inst	RSEQ_SIGNATURE
.Labort_\name:
	adrp	x16, rcs_restarts
	ldr	x17, [x16, :lo12:rcs_restarts]
	add	x17, x17, #1			/* a count: one lost between two threads does no harm */
	str	x17, [x16, :lo12:rcs_restarts]
.endm
