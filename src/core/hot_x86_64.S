/* SPDX-License-Identifier: MIT
 *
 * malloc and free for x86-64: the paths almost every call takes.  Straight down is the common case; every branch leads
 * out, to a function in C that may take all the time it wants.  No lock, no atomic instruction, no call.
 *
 * They are assembly because a compiler may not be trusted with a restartable section: it must not spill, call or
 * reorder inside one, and gcc before 11.5/12.4/13.3 miscompiles asm goto with outputs.
 *
 *     malloc(size):                              free(p):
 *         c = size_class_of_small[size]             s = &descriptors[(p - region_base) / 64 KiB], or its head
 *         section:                                   section:
 *           h = heap_of_cid[cid]                       if (s->owner != heap_of_cid[cid]) remote
 *           s = h->active[c]                           if (p is no block start) or (p is the top) error
 *           w = s->freelist;  if (w == 0) refill       w = s->freelist;  n = s->threshold
 *           next = *top(w)                             *p = w
 *           if (count(next) + 1 != count(w)) damaged   s->freelist = {p, count(w) + 1}         commit
 *           s->freelist = next        commit         if (count(w) + 1 == n) notify
 *         return block(w)
 *
 * free loads n inside the section: outside, a threshold armed in between is missed.  It compares there, too, and asks
 * what came of it after the commit, for no instruction in between changes the flags.
 */
#if defined(__x86_64__)
#include "core/sections_x86_64.h"

	.text

/* %rdi is the start of a block of superblock %rax, by one multiplication: see size_class.h and superblock_is_block_start. */
.macro CHECK_BLOCK_START
	movq	%rdi, %rcx
	subq	SUPERBLOCK_BASE(%rax), %rcx
	imulq	SUPERBLOCK_RECIPROCAL(%rax), %rcx
	cmpq	SUPERBLOCK_RECIPROCAL(%rax), %rcx
	jae	free_slow
.endm

/* malloc and operator new differ in where they go when it is not simple.  Larger classes have fewer blocks, each on a page
 * of its own: there, fetching the next one ahead costs more than it gains. */
.macro MALLOC name, any, slow
FUNCTION \name, exported=1
	cmpq	hot + HOT_SMALL_LIMIT(%rip), %rdi
	jae	.Lmedium_\name
	leaq	size_class_of_small(%rip), %rcx
	movzbl	(%rcx, %rdi), %edi
	POP	\name, \slow, \slow
	shrq	$FREELIST_COUNT_BITS, %rcx			/* the next malloc will read the next block */
	prefetcht0 (%rcx)
	ret
	SECTION_ABORT \name, \slow
.Lmedium_\name:
	cmpq	hot + HOT_MEDIUM_LIMIT(%rip), %rdi
	jae	\any
	addq	$(1 << STEP_SHIFT) - 1, %rdi		/* of 0, too: see size_class.h */
	shrq	$STEP_SHIFT, %rdi
	leaq	size_class_of_medium(%rip), %rcx
	movzbl	(%rcx, %rdi), %edi
	POP	medium_\name, \slow, \slow
	ret
	SECTION_ABORT medium_\name, \slow
END_FUNCTION \name
.endm

/* In the hardened library these are what its own malloc and free (hardened/) are made of, under other names. */
#ifdef SUTLER_HARDENED
#define free plain_free
	.hidden	plain_free
#else
	.p2align 10		/* all that is here on one page */
MALLOC malloc, malloc_any, malloc_slow
	EXPORTED __libc_malloc
	.set	__libc_malloc, malloc
MALLOC _Znwm, new_any, new_slow
	EXPORTED _Znam
	.set	_Znam, _Znwm
#endif

FUNCTION free, exported=1
	movq	%rdi, %rax
	subq	hot + HOT_REGION_BASE(%rip), %rax
	cmpq	hot + HOT_REGION_BYTES(%rip), %rax
	jae	free_slow
	shrq	$(SLICE_SHIFT - DESCRIPTOR_SHIFT), %rax
	andq	$-(1 << DESCRIPTOR_SHIFT), %rax
	addq	hot + HOT_DESCRIPTORS(%rip), %rax
	addq	SLICE_TO_HEAD(%rax), %rax		/* no branch: whether a block is in the first slice is a matter of chance */
	PUSH	free, free_foreign, free_double, .Lfree_notify, CHECK_BLOCK_START
	ret
.Lfree_notify:
	movq	%rax, %rdi
	jmp	free_notify
	SECTION_ABORT free, free_slow
END_FUNCTION free

/* %rdi is not of the running cid's heap.  If it is a small block of another's, it goes into the outbox. */
FUNCTION free_foreign
	cmpb	$SLICE_SUPERBLOCK, SLICE_KIND(%rax)
	jne	free_slow
	cmpq	$0, SUPERBLOCK_OWNER(%rax)
	je	free_slow
	cmpb	$0, SUPERBLOCK_BATCH(%rax)
	je	free_slow
	CHECK_BLOCK_START
	SEND	send, free_slow, free_double
	testq	%r11, %r11
	jnz	.Ldeliver
	ret
.Ldeliver:
	movq	%r11, %rdi
	jmp	free_deliver
	SECTION_ABORT send, free_slow
END_FUNCTION free_foreign

#ifndef SUTLER_HARDENED
.irp name, cfree, _ZdlPv, _ZdaPv, _ZdlPvm, _ZdaPvm, _ZdlPvSt11align_val_t, _ZdaPvSt11align_val_t, \
	_ZdlPvmSt11align_val_t, _ZdaPvmSt11align_val_t, _ZdlPvRKSt9nothrow_t, _ZdaPvRKSt9nothrow_t, \
	_ZdlPvSt11align_val_tRKSt9nothrow_t, _ZdaPvSt11align_val_tRKSt9nothrow_t, free_sized, free_aligned_sized, \
	dallocx, sdallocx, __libc_free
	EXPORTED \name
	.set	\name, free
.endr

/* For C: calls that cannot be interposed. */
	.globl	sutler_malloc, sutler_free
	.hidden	sutler_malloc, sutler_free
	.set	sutler_malloc, malloc
	.set	sutler_free, free
#endif
#endif

	.section .note.GNU-stack, "", %progbits
