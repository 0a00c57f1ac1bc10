/* SPDX-License-Identifier: MIT
 *
 * The three sections of malloc and free, as macros: the fast paths (hot_x86_64.S) have them in line, the slow paths
 * call them as functions (sections_x86_64.S).
 */
#include "heap/layout.h"
#include "rcs/section_x86_64.h"
#ifdef SUTLER_HARDENED
#include "marks/layout.h"
#endif

#if FREELIST_COUNT_BITS != 16
#error "counts are compared and stored by 16-bit instructions"
#endif

/* In the hardened library the first word of a free block is encoded (heap/next.h): `word`, to be stored in `block`, or
 * loaded from it, by way of register `out`. */
#ifdef SUTLER_HARDENED
.macro LINK_GET block, out
	movq	(\block), \out
	imulq	marks_page + MARKS_INVERSE(%rip), \out
	bswapq	\out
	xorq	\block, \out
	xorq	marks_page + MARKS_LINK_KEY(%rip), \out
.endm
.macro LINK_SET word, block, scratch
	movq	\word, \scratch
	xorq	\block, \scratch
	xorq	marks_page + MARKS_LINK_KEY(%rip), \scratch
	bswapq	\scratch
	imulq	marks_page + MARKS_FACTOR(%rip), \scratch
	movq	\scratch, (\block)
.endm
#else
.macro LINK_GET block, out
	movq	(\block), \out
.endm
.macro LINK_SET word, block, scratch
	movq	\word, (\block)
.endm
#endif

/* Pops a block of class %rdi into %rax; goes to `empty` or `damaged` with %rdi intact.  Uses rdx rsi r8; leaves the
 * next in %rcx. */
.macro POP name, empty, damaged
	SECTION_BEGIN \name, %rax, %rdx
	LOAD_HEAP %rax, %eax, %rcx
	movq	HEAP_ACTIVE(%rcx, %rdi, 8), %rsi
	movq	SUPERBLOCK_FREELIST(%rsi), %rax
	shrq	$FREELIST_COUNT_BITS, %rax
	jz	\empty
	LINK_GET %rax, %rcx
	leal	1(%rcx), %r8d
	cmpw	SUPERBLOCK_FREELIST(%rsi), %r8w
	jne	\damaged
	movq	%rcx, SUPERBLOCK_FREELIST(%rsi)
	SECTION_COMMITTED \name
.endm

/* Pushes block %rdi to the superblock %rax.  Uses rcx rdx rsi r8 r9 r10; leaves the new freelist in %r9. */
.macro PUSH name, foreign, double, notify, is_block=
	SECTION_BEGIN \name, %rcx, %rdx
	LOAD_HEAP %rcx, %ecx, %rsi
	cmpq	%rsi, SUPERBLOCK_OWNER(%rax)
	jne	\foreign
	\is_block
	movq	SUPERBLOCK_FREELIST(%rax), %r8
	leaq	1(%r8), %r10
	imulq	$1 << FREELIST_COUNT_BITS, %rdi, %r9
	movw	%r10w, %r9w
	cmpq	%r10, %r9				/* the top block already? */
	je	\double
	LINK_SET %r8, %rdi, %rdx
	cmpw	SUPERBLOCK_THRESHOLD(%rax), %r9w	/* for the branch behind the commit */
	movq	%r9, SUPERBLOCK_FREELIST(%rax)
	SECTION_COMMITTED \name
	je	\notify
.endm

/* Puts block %rdi of superblock %rax into the outbox of the running cid's heap, on the chain of its slice
 * (heap/outbox.h); goes to `refused` if there is no outbox.  Leaves in %r11 the chain that is the caller's to deliver:
 * this one if it is as long as a batch now, another slice's that had its place, or 0.  Uses rcx rdx rsi r8 r9 r10. */
.macro SEND name, refused, double
	movq	%rdi, %r10
	shrq	$SLICE_SHIFT, %r10
	movq	%r10, %r11
	andl	$(OUTBOX_CHAINS - 1), %r10d
	SECTION_BEGIN \name, %rcx, %rdx
	LOAD_HEAP %rcx, %ecx, %rsi
	movq	HEAP_OUTBOX(%rsi), %rsi
	testq	%rsi, %rsi
	jz	\refused
	movq	(%rsi, %r10, 8), %r8
	movq	%r8, %rcx
	shrq	$(SLICE_SHIFT + FREELIST_COUNT_BITS), %rcx
	cmpq	%r11, %rcx
	movl	$0, %r11d
	je	1f
	movq	%r8, %r11				/* another slice's, or none */
	xorl	%r8d, %r8d
1:	leaq	1(%r8), %rcx
	imulq	$1 << FREELIST_COUNT_BITS, %rdi, %r9
	movw	%cx, %r9w
	cmpq	%rcx, %r9				/* the top block already? */
	je	\double
	LINK_SET %r8, %rdi, %rdx
	cmpb	SUPERBLOCK_BATCH(%rax), %r9b
	jb	2f
	movq	%r9, %r11
	xorl	%r9d, %r9d
2:	movq	%r9, (%rsi, %r10, 8)
	SECTION_COMMITTED \name
.endm
