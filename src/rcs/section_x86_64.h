/* SPDX-License-Identifier: MIT
 *
 * A restartable section in x86-64 assembly.
 *
 *     SECTION_BEGIN name, scratch, rseq     publishes the section to the kernel; `rseq` keeps the thread's area
 *     ...                                    loads, checks that jump out, and as the last instruction the store
 *     SECTION_COMMITTED name                 directly after the store
 *     SECTION_ABORT name, target             elsewhere: where the kernel sends an interrupted thread
 *
 * rseq_cs is not cleared afterwards: the kernel drops a descriptor whose range the thread is no longer in, and the
 * descriptor stays mapped as long as the process lives (the library is linked -z nodelete).
 */
#include "rcs/hot.h"
#include "rcs/results.h"

#if defined(__CET__)
#include <cet.h>
#else
#define _CET_ENDBR
#endif

/* Functions only the library calls are hidden; EXPORTED ones are not. */
.macro EXPORTED name
	.globl	\name
	.type	\name, @function
.endm

.macro FUNCTION name, exported=0
	.globl	\name
	.if	\exported == 0
	.hidden	\name
	.endif
	.type	\name, @function
	.p2align 6
\name:
	.cfi_startproc
	_CET_ENDBR
.endm

.macro END_FUNCTION name
	.cfi_endproc
	.size	\name, . - \name
.endm

/* Ends a C function that returns the number `code`. */
.macro RETURN code
	.if	\code == 0
	xorl	%eax, %eax
	.else
	movl	$\code, %eax
	.endif
	ret
.endm

.macro SECTION_BEGIN name, scratch, rseq
	movq	hot + HOT_RSEQ(%rip), \rseq
	leaq	.Lsection_\name(%rip), \scratch
	movq	\scratch, %fs:RSEQ_CS(\rseq)
.Lstart_\name:
.endm

/* Into `heap` the heap of the present cid; `cid` is one register by two names. */
.macro LOAD_HEAP cid, cid32, heap
	movq	hot + HOT_CID(%rip), \cid
	movl	%fs:(\cid), \cid32
	leaq	heap_of_cid(%rip), \heap
	movq	(\heap, \cid, 8), \heap
.endm

.macro SECTION_COMMITTED name
.Lcommitted_\name:
	.pushsection .data.rel.ro, "aw", @progbits
	.balign	32
	.type	.Lsection_\name, @object
	.size	.Lsection_\name, 32
.Lsection_\name:
	.long	0, 0
	.quad	.Lstart_\name
	.quad	.Lcommitted_\name - .Lstart_\name
	.quad	.Labort_\name
	.popsection
.endm

/* The kernel checks the four bytes before the label; they read as an undefined instruction to whoever falls in.
 * Restarts are counted (LFMalloc's Table 2 does): rare enough for an atomic instruction. */
.macro SECTION_ABORT name, target
	.byte	0x0f, 0xb9, 0x3d
	.long	RSEQ_SIGNATURE
.Labort_\name:
	lock incq rcs_restarts(%rip)
	jmp	\target
.endm
