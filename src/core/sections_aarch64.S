/* SPDX-License-Identifier: MIT
 *
 * The pop and the push of a block for aarch64; sections_x86_64.h and hot_x86_64.S explain them.  `owner` is loaded with acquire before
 * `freelist`: a superblock that just became this heap's must be seen with the list its last owner left.
 */
#if defined(__aarch64__)
#include "core/results.h"
#include "heap/layout.h"
#include "rcs/section_aarch64.h"
#ifdef SUTLER_HARDENED
#include "marks/layout.h"
#endif

#if HOT_PUSHED != 0 || HOT_PUSHED_NOTIFY != 1
#error "hot_push makes both of a flag"
#endif

	.text

/* As LINK_GET and LINK_SET of sections_x86_64.h; x\word is decoded or encoded in place, by way of x15 and x16. */
.macro LINK_DECODE block, word
#ifdef SUTLER_HARDENED
	adrp	x16, marks_page
	add	x16, x16, :lo12:marks_page
	ldr	x15, [x16, MARKS_INVERSE]
	ldr	x16, [x16, MARKS_LINK_KEY]
	mul	x\word, x\word, x15
	rev	x\word, x\word
	eor	x\word, x\word, x\block
	eor	x\word, x\word, x16
#endif
.endm
.macro LINK_ENCODE block, word
#ifdef SUTLER_HARDENED
	adrp	x16, marks_page
	add	x16, x16, :lo12:marks_page
	ldr	x15, [x16, MARKS_FACTOR]
	ldr	x16, [x16, MARKS_LINK_KEY]
	eor	x\word, x\word, x\block
	eor	x\word, x\word, x16
	rev	x\word, x\word
	mul	x\word, x\word, x15
#endif
.endm

/* void *hot_pop(class x0) */
FUNCTION hot_pop
	SECTION_BEGIN pop
	LOAD_HEAP 1
	add	x1, x1, x0, lsl #3
	ldr	x1, [x1, HEAP_ACTIVE]
	ldr	x2, [x1, SUPERBLOCK_FREELIST]
	lsr	x3, x2, #FREELIST_COUNT_BITS
	cbz	x3, .Lpop_nothing
	ldr	x4, [x3]
	LINK_DECODE 3, 4
	add	w5, w4, #1
	eor	w5, w5, w2
	tst	w5, #((1 << FREELIST_COUNT_BITS) - 1)
	b.ne	.Lpop_nothing
	str	x4, [x1, SUPERBLOCK_FREELIST]
	SECTION_COMMITTED pop
	mov	x0, x3
	ret
	SECTION_ABORT pop
.Lpop_nothing:
	mov	x0, #0
	ret
END_FUNCTION hot_pop

/* enum hot_pushed hot_push(block x0, superblock x1) */
FUNCTION hot_push
	SECTION_BEGIN push
	LOAD_HEAP 2
	add	x3, x1, SUPERBLOCK_OWNER
	ldar	x3, [x3]
	cmp	x2, x3
	b.ne	.Lpush_foreign
	ldr	x4, [x1, SUPERBLOCK_FREELIST]
	and	x5, x4, #((1 << FREELIST_COUNT_BITS) - 1)
	add	x5, x5, x0, lsl #FREELIST_COUNT_BITS
	add	x5, x5, #1
	add	x6, x4, #1
	cmp	x5, x6					/* the top block already? */
	b.eq	.Lpush_double
	ldrh	w6, [x1, SUPERBLOCK_THRESHOLD]
	add	x7, x1, SUPERBLOCK_FREELIST			/* stlr takes no offset */
	LINK_ENCODE 0, 4
	str	x4, [x0]
	stlr	x5, [x7]
	SECTION_COMMITTED push
	eor	w6, w6, w5
	tst	w6, #((1 << FREELIST_COUNT_BITS) - 1)
	cset	w0, eq					/* HOT_PUSHED_NOTIFY, else HOT_PUSHED */
	ret
.Lpush_foreign:
	mov	w0, #HOT_FOREIGN
	ret
.Lpush_double:
	mov	w0, #HOT_DOUBLE
	ret
	SECTION_ABORT push
	mov	w0, #HOT_ABORTED
	ret
END_FUNCTION hot_push

/* uint64_t hot_send(block x0, superblock x1) */
FUNCTION hot_send
	lsr	x7, x0, #SLICE_SHIFT
	and	x2, x7, #(OUTBOX_CHAINS - 1)
	ldrb	w1, [x1, SUPERBLOCK_BATCH]
	SECTION_BEGIN send
	LOAD_HEAP 3
	ldr	x3, [x3, HEAP_OUTBOX]
	cbz	x3, .Lsend_refused
	add	x3, x3, x2, lsl #3
	ldr	x4, [x3]
	lsr	x5, x4, #(SLICE_SHIFT + FREELIST_COUNT_BITS)
	cmp	x5, x7
	csel	x7, xzr, x4, eq				/* another slice's chain, or none, gives way */
	csel	x4, x4, xzr, eq
	add	x5, x4, #1
	and	x8, x5, #((1 << FREELIST_COUNT_BITS) - 1)
	add	x6, x8, x0, lsl #FREELIST_COUNT_BITS
	cmp	x5, x6					/* the top block already? */
	b.eq	.Lsend_double
	LINK_ENCODE 0, 4
	str	x4, [x0]
	cmp	x8, x1
	csel	x7, x6, x7, hs				/* a batch */
	csel	x6, xzr, x6, hs
	str	x6, [x3]
	SECTION_COMMITTED send
	mov	x0, x7					/* SEND_KEPT, or a chain */
	ret
.Lsend_refused:
	mov	x0, #SEND_REFUSED
	ret
.Lsend_double:
	mov	x0, #SEND_DOUBLE
	ret
	SECTION_ABORT send
	mov	x0, #SEND_REFUSED
	ret
END_FUNCTION hot_send
#endif

	.section .note.GNU-stack, "", %progbits
