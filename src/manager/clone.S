/* SPDX-License-Identifier: MIT
 *
 * long clone_thread(run, stack_top, thread_pointer, tid)
 */
#include <asm/unistd.h>

/* CLONE_VM | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
 * CLONE_CHILD_CLEARTID; not CLONE_FS, so that chroot and umask stay the program's own business */
#define FLAGS (0x100 | 0x400 | 0x800 | 0x10000 | 0x40000 | 0x80000 | 0x100000 | 0x200000)

#if defined(__x86_64__)
#include "rcs/section_x86_64.h"

	.text
FUNCTION clone_thread
	andq	$-16, %rsi
	subq	$16, %rsi
	movq	%rdi, (%rsi)
	movq	%rdx, %r8
	movq	%rcx, %rdx
	movq	%rcx, %r10
	movl	$FLAGS, %edi
	movl	$__NR_clone, %eax
	syscall
	testq	%rax, %rax
	jz	1f
	ret
1:	.cfi_undefined rip
	xorl	%ebp, %ebp
	popq	%rax
	addq	$8, %rsp
	call	*%rax
	xorl	%edi, %edi
	movl	$__NR_exit, %eax
	syscall
	ud2
END_FUNCTION clone_thread
#elif defined(__aarch64__)
#include "rcs/section_aarch64.h"

	.text
FUNCTION clone_thread
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
END_FUNCTION clone_thread
#endif

	.section .note.GNU-stack, "", %progbits
