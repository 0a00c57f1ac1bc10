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
	ldr	w5, [x9]
	ldr	x5, [x10, x5, lsl #3]
	cmp	x5, x0
	b.ne	.Lmoved
	ldr	x5, [x1]
	cmp	x5, x2
	b.ne	.Lchanged
	stlr	x4, [x3]
	SECTION_COMMITTED cas
	mov	w0, #0				/* rcs_done */
	ret
.Lchanged:
	mov	w0, #1				/* rcs_changed */
	ret
.Lmoved:
	mov	w0, #2				/* rcs_moved */
	ret
	SECTION_ABORT cas
	mov	w0, #3				/* rcs_aborted */
	ret
END_FUNCTION rcs_compare_and_store
#endif

	.section .note.GNU-stack, "", %progbits
