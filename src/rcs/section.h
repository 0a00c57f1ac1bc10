/* SPDX-License-Identifier: MIT
 *
 * What functions and restartable sections in assembly have in common on all machines.  Included by section_x86_64.h and
 * section_aarch64.h, which say what a LANDING_PAD is.
 */
#include "rcs/hot.h"
#include "rcs/results.h"

/* Functions only the library calls are hidden; EXPORTED ones are not. */
.macro EXPORTED name
	.globl	\name
	.type	\name, %function
.endm

.macro FUNCTION name, exported=0
	EXPORTED \name
	.if	\exported == 0
	.hidden	\name
	.endif
	.p2align 6
\name:
	.cfi_startproc
	LANDING_PAD
.endm

.macro END_FUNCTION name
	.cfi_endproc
	.size	\name, . - \name
.endm

.macro SECTION_COMMITTED name
.Lcommitted_\name:
	.pushsection .data.rel.ro, "aw", %progbits
	.balign	32
	.type	.Lsection_\name, %object
	.size	.Lsection_\name, 32
.Lsection_\name:
	.long	0, 0
	.quad	.Lstart_\name
	.quad	.Lcommitted_\name - .Lstart_\name
	.quad	.Labort_\name
	.popsection
.endm
