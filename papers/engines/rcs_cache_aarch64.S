/* SPDX-License-Identifier: MIT
 *
 * The two sections of rcs_cache for aarch64.
 */
#if defined(__aarch64__)
#include "rcs/section_aarch64.h"
#include "rcs_cache.h"

	.text

/* void *rcs_cache_pop(class w0) */
FUNCTION rcs_cache_pop
	ubfm	x0, x0, #0, #31
	SECTION_BEGIN cache_pop
	LOAD_HEAP 13
	ldr	x14, [x13, x0, lsl #3]
	lsr	x14, x14, #RCS_CACHE_COUNT_BITS
	cbz	x14, .Lnone
	ldr	x15, [x14]
	str	x15, [x13, x0, lsl #3]
	SECTION_COMMITTED cache_pop
	mov	x0, x14
	ret
	SECTION_ABORT cache_pop
.Lnone:
	b	rcs_cache_allocate_slow
END_FUNCTION rcs_cache_pop

/* void rcs_cache_push(class w0, block x1) */
FUNCTION rcs_cache_push
	ubfm	x0, x0, #0, #31
	adrp	x2, rcs_cache_limits
	add	x2, x2, :lo12:rcs_cache_limits
	ldrh	w2, [x2, x0, lsl #1]
	lsl	x3, x1, #RCS_CACHE_COUNT_BITS
	SECTION_BEGIN cache_push
	LOAD_HEAP 13
	ldr	x14, [x13, x0, lsl #3]
	and	w15, w14, #0xffff
	cmp	w15, w2
	b.hs	.Lrefused
	str	x14, [x1]
	add	x15, x15, x3
	add	x15, x15, #1
	str	x15, [x13, x0, lsl #3]
	SECTION_COMMITTED cache_push
	ret
	SECTION_ABORT cache_push
.Lrefused:
	b	rcs_cache_release_slow
END_FUNCTION rcs_cache_push
#endif

	.section .note.GNU-stack, "", %progbits
