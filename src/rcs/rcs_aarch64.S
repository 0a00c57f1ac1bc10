/* SPDX-License-Identifier: MIT
 *
 * rcs_compare_and_store for aarch64.  The commit is a store-release: what was linked before it is visible to whoever
 * reads the word on another cpu.
 */
#if defined(__aarch64__)
#include "rcs/section_aarch64.h"

	.text

/* enum rcs_result rcs_compare_and_store(heap x0, probe x1, expected x2, target x3, value x4) */
FUNCTION rcs_compare_and_store
	SECTION_BEGIN cas
	LOAD_HEAP 5
	cmp	x5, x0
	b.ne	.Lmoved
	ldr	x5, [x1]
	cmp	x5, x2
	b.ne	.Lchanged
	stlr	x4, [x3]
	SECTION_COMMITTED cas
	mov	w0, #RCS_DONE
	ret
.Lchanged:
	mov	w0, #RCS_CHANGED
	ret
.Lmoved:
	mov	w0, #RCS_MOVED
	ret
	SECTION_ABORT cas
	mov	w0, #RCS_ABORTED
	ret
END_FUNCTION rcs_compare_and_store

/* enum rcs_result rcs_linger(inside x0, leave x1, turns x2): see restart.h */
FUNCTION rcs_linger
	SECTION_BEGIN linger
	mov	w3, #1
	str	w3, [x0]
.Lturn:
	ldr	w3, [x1]
	cbnz	w3, .Ltold
	sub	x2, x2, #1
	cbnz	x2, .Lturn
	SECTION_COMMITTED linger
	mov	w0, #RCS_DONE
	ret
.Ltold:
	mov	w0, #RCS_CHANGED
	ret
	SECTION_ABORT linger
	mov	w0, #RCS_ABORTED
	ret
END_FUNCTION rcs_linger
#endif

	.section .note.GNU-stack, "", %progbits
