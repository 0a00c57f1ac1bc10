/* SPDX-License-Identifier: MIT
 *
 * rcs_linger of rcs/restart.h for x86-64, where the library itself has no need of it.
 */
#if defined(__x86_64__)
#include "rcs/section_x86_64.h"

	.text

/* enum rcs_result rcs_linger(inside rdi, leave rsi, turns rdx) */
FUNCTION rcs_linger
	SECTION_BEGIN linger, %rax, %rcx
	movl	$1, (%rdi)
.Lturn:
	cmpl	$0, (%rsi)
	jne	.Ltold
	decq	%rdx
	jnz	.Lturn
	SECTION_COMMITTED linger
	RETURN	RCS_DONE
.Ltold:
	RETURN	RCS_CHANGED
	SECTION_ABORT linger, .Laborted
.Laborted:
	RETURN	RCS_ABORTED
END_FUNCTION rcs_linger
#endif

	.section .note.GNU-stack, "", %progbits
