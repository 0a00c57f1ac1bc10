/* SPDX-License-Identifier: MIT */
#if defined(__aarch64__)
#include <asm/unistd.h>

#define FLAGS (0x100 | 0x400 | 0x800 | 0x10000 | 0x40000 | 0x80000 | 0x100000 | 0x200000)

	.text
	.globl	clone_thread
	.hidden	clone_thread
	.type	clone_thread, %function
/* long clone_thread(run x0, stack_top x1, thread_pointer x2, tid x3) */
clone_thread:
	.cfi_startproc
	and	x1, x1, #-16
	str	x0, [x1, #-16]!
	mov	x4, x3				/* child_tid */
	mov	x5, x2
	mov	x2, x3				/* parent_tid */
	mov	x3, x5				/* tls */
	mov	x0, #(FLAGS & 0xffff)
	movk	x0, #(FLAGS >> 16), lsl #16
	mov	x8, #__NR_clone
	svc	#0
	cbz	x0, 1f
	ret
1:	.cfi_undefined x30
	mov	x29, xzr
	ldr	x0, [sp], #16
	blr	x0
	mov	x0, #0
	mov	x8, #__NR_exit
	svc	#0
	brk	#0
	.cfi_endproc
	.size	clone_thread, . - clone_thread
#endif

	.section .note.GNU-stack, "", %progbits
