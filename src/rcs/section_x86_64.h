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
#if defined(__CET__)
#include <cet.h>
#define LANDING_PAD _CET_ENDBR
#else
#define LANDING_PAD
#endif
#include "rcs/section.h"

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

/* The kernel checks the four bytes before the label; they read as an undefined instruction to whoever falls in.
 * Restarts are counted (LFMalloc's Table 2 does): rare enough for an atomic instruction. */
.macro SECTION_ABORT name, target
	.byte	0x0f, 0xb9, 0x3d
	.long	RSEQ_SIGNATURE
.Labort_\name:
	lock incq rcs_restarts(%rip)
	jmp	\target
.endm
