/* SPDX-License-Identifier: MIT */
#if defined(__x86_64__)
#include <asm/unistd.h>

/* CLONE_VM | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
 * CLONE_CHILD_CLEARTID; not CLONE_FS, so that chroot and umask stay the program's own business */
#define FLAGS (0x100 | 0x400 | 0x800 | 0x10000 | 0x40000 | 0x80000 | 0x100000 | 0x200000)

	.text
	.globl	clone_thread
	.hidden	clone_thread
	.type	clone_thread, @function
/* long clone_thread(run rdi, stack_top rsi, thread_pointer rdx, tid rcx) */
clone_thread:
	.cfi_startproc
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
	.cfi_endproc
	.size	clone_thread, . - clone_thread
#endif

	.section .note.GNU-stack, "", %progbits
