/* SPDX-License-Identifier: MIT
 *
 * The exchange of a freed block for one that was freed earlier (quarantine.c), as a section.
 */
#if defined(__x86_64__)
#include "marks/layout.h"
#include "rcs/section_x86_64.h"

	.text

/* void *quarantine_swap(block, class): the block that leaves, NULL if none does; the block itself where there are no rings,
 * or the section was interrupted. */
FUNCTION quarantine_swap
	shll	$RING_SHIFT, %esi
	SECTION_BEGIN quarantine, %rcx, %rdx
	movq	hot + HOT_CID(%rip), %rcx
	movl	%fs:(%rcx), %ecx
	leaq	rings_of_slot(%rip), %r8
	movq	(%r8, %rcx, 8), %r8
	testq	%r8, %r8
	jz	.Lrefused
	addq	%r8, %rsi
	movl	RING_AT(%rsi), %r9d
	movq	%rdi, %rcx				/* one or two places on: quarantine_step() */
	xorq	%r9, %rcx
	movq	marks_page + MARKS_ORDER_KEY(%rip), %r10
	imulq	%r10, %rcx
	movq	%rcx, %r11
	shrq	$32, %r11
	xorq	%r11, %rcx
	imulq	%r10, %rcx
	shrq	$63, %rcx
	leal	1(%r9, %rcx), %r9d
	movl	%r9d, RING_AT(%rsi)
	andl	RING_MASK(%rsi), %r9d
	movq	RING_PLACES(%rsi), %r10
	movq	(%r10, %r9, 8), %rax
	movq	%rdi, (%r10, %r9, 8)
	SECTION_COMMITTED quarantine
	ret
.Lrefused:
	movq	%rdi, %rax
	ret
	SECTION_ABORT quarantine, .Lrefused
END_FUNCTION quarantine_swap
#endif

	.section .note.GNU-stack, "", %progbits
