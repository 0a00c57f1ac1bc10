/* SPDX-License-Identifier: MIT
 *
 * pid_t vfork(void).  The child runs on its parent's stack and returns from here first: what lies on the stack above the
 * caller's frame is gone when the parent returns, so the return address is kept in a register.
 */
#include <asm/unistd.h>

#if defined(__x86_64__)
#include "rcs/section_x86_64.h"

	.text
FUNCTION vfork, exported=1
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	vfork_begins
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	testb	%al, %al
	jz	vfork_by_fork
	popq	%rdi				/* survives the system call */
	.cfi_adjust_cfa_offset -8
	.cfi_register rip, rdi
	movl	$__NR_vfork, %eax
	syscall
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	.cfi_offset rip, -8
	testq	%rax, %rax
	jz	1f
	movq	%rax, %rdi
	jmp	vfork_returns
1:	ret					/* the child */
END_FUNCTION vfork
#elif defined(__aarch64__)
#include "rcs/section_aarch64.h"
#define CLONE_VFORK_VM_SIGCHLD 0x4111

	.text
FUNCTION vfork, exported=1
	stp	x29, x30, [sp, #-16]!
	.cfi_adjust_cfa_offset 16
	.cfi_offset x29, -16
	.cfi_offset x30, -8
	bl	vfork_begins
	ldp	x29, x30, [sp], #16
	.cfi_adjust_cfa_offset -16
	.cfi_restore x29
	.cfi_restore x30
	tbz	w0, #0, vfork_by_fork
	mov	x0, #CLONE_VFORK_VM_SIGCHLD
	mov	x1, #0
	mov	x2, #0
	mov	x3, #0
	mov	x4, #0
	mov	x8, #__NR_clone
	svc	#0				/* x30 survives it */
	cbz	x0, 1f
	b	vfork_returns
1:	ret					/* the child */
END_FUNCTION vfork
#endif

	EXPORTED __vfork
	.set	__vfork, vfork

	.section .note.GNU-stack, "", %progbits
