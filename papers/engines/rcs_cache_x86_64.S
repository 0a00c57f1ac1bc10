/* SPDX-License-Identifier: MIT
 *
 * The two sections of rcs_cache for x86-64.
 */
#if defined(__x86_64__)
#include "rcs/section_x86_64.h"
#include "rcs_cache.h"

	.text

/* void *rcs_cache_pop(class edi) */
FUNCTION rcs_cache_pop
	movl	%edi, %edi
	SECTION_BEGIN cache_pop, %rax, %r9
	LOAD_HEAP %rax, %eax, %rcx
	movq	(%rcx, %rdi, 8), %rax
	shrq	$RCS_CACHE_COUNT_BITS, %rax
	jz	rcs_cache_allocate_slow
	movq	(%rax), %rdx
	movq	%rdx, (%rcx, %rdi, 8)
	SECTION_COMMITTED cache_pop
	ret
	SECTION_ABORT cache_pop, rcs_cache_allocate_slow
END_FUNCTION rcs_cache_pop

/* void rcs_cache_push(class edi, block rsi) */
FUNCTION rcs_cache_push
	movl	%edi, %edi
	movq	%rsi, %r8
	shlq	$RCS_CACHE_COUNT_BITS, %r8
	leaq	rcs_cache_limits(%rip), %r10
	movzwl	(%r10, %rdi, 2), %r10d
	SECTION_BEGIN cache_push, %rax, %r9
	LOAD_HEAP %rax, %eax, %rcx
	movq	(%rcx, %rdi, 8), %rdx
	movzwl	%dx, %eax
	cmpl	%r10d, %eax
	jae	rcs_cache_release_slow
	movq	%rdx, (%rsi)
	leaq	1(%r8, %rax), %rax
	movq	%rax, (%rcx, %rdi, 8)
	SECTION_COMMITTED cache_push
	ret
	SECTION_ABORT cache_push, rcs_cache_release_slow
END_FUNCTION rcs_cache_push
#endif

	.section .note.GNU-stack, "", %progbits
