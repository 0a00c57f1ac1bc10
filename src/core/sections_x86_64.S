/* SPDX-License-Identifier: MIT
 *
 * The sections of malloc and free as functions, for the slow paths: one try each.
 */
#if defined(__x86_64__)
#include "core/results.h"
#include "core/sections_x86_64.h"

	.text

/* void *hot_pop(class): one try; NULL if the list is empty or damaged or the section was interrupted. */
FUNCTION hot_pop
	POP	pop, .Lpop_nothing, .Lpop_nothing
#ifdef SUTLER_HARDENED
	shrq	$FREELIST_COUNT_BITS, %rcx		/* what comes next was freed long ago, and is read as a whole */
	prefetchw (%rcx)
#endif
	ret
.Lpop_nothing:
	xorl	%eax, %eax
	ret
	SECTION_ABORT pop, .Lpop_nothing
END_FUNCTION hot_pop

/* enum hot_pushed hot_push(block, superblock): one try; the caller knows that it is a block. */
FUNCTION hot_push
	movq	%rsi, %rax
	PUSH	push, .Lpush_foreign, .Lpush_double, .Lpush_notify
	RETURN	HOT_PUSHED
.Lpush_notify:
	RETURN	HOT_PUSHED_NOTIFY
.Lpush_foreign:
	RETURN	HOT_FOREIGN
.Lpush_double:
	RETURN	HOT_DOUBLE
	SECTION_ABORT push, .Lpush_aborted
.Lpush_aborted:
	RETURN	HOT_ABORTED
END_FUNCTION hot_push

/* uint64_t hot_send(block, superblock): one try; see core.h. */
FUNCTION hot_send
	movq	%rsi, %rax
	SEND	hot_send, .Lsend_refused, .Lsend_double
	movq	%r11, %rax				/* SEND_KEPT, or a chain */
	ret
.Lsend_refused:
	RETURN	SEND_REFUSED
.Lsend_double:
	RETURN	SEND_DOUBLE
	SECTION_ABORT hot_send, .Lsend_refused
END_FUNCTION hot_send
#endif

	.section .note.GNU-stack, "", %progbits
