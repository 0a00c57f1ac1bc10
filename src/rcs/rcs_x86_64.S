/* SPDX-License-Identifier: MIT
 *
 * rcs_compare_and_store for x86-64: the one section the slow paths are built from.
 */
#if defined(__x86_64__)
#include "rcs/section_x86_64.h"

	.text

/* enum rcs_result rcs_compare_and_store(heap rdi, probe rsi, expected rdx, target rcx, value r8) */
FUNCTION rcs_compare_and_store
	leaq	heap_of_cid(%rip), %r10
	movq	hot + HOT_CID(%rip), %r11
	SECTION_BEGIN cas, %rax, %r9
	movl	%fs:(%r11), %eax
	cmpq	%rdi, (%r10, %rax, 8)
	jne	.Lmoved
	cmpq	%rdx, (%rsi)
	jne	.Lchanged
	movq	%r8, (%rcx)
	SECTION_COMMITTED cas
	RETURN	RCS_DONE
.Lchanged:
	RETURN	RCS_CHANGED
.Lmoved:
	RETURN	RCS_MOVED
	SECTION_ABORT cas, .Laborted
.Laborted:
	RETURN	RCS_ABORTED
END_FUNCTION rcs_compare_and_store
#endif

	.section .note.GNU-stack, "", %progbits
