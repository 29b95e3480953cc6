/* SPDX-License-Identifier: MIT */
/*
 * Per-CPU writers for aarch64; the twin of rseq-x86_64.S, which explains the scheme.
 *
 * int ky_rseq_record_counter(hook, payload, len, pieces, n_pieces, -)   reads CNTVCT_EL0
 * int ky_rseq_record_ts(hook, payload, len, pieces, n_pieces, ts)       is given the clock
 *      x0 hook  x1 payload  w2 len  x3 pieces  x4 n_pieces  x5 ts
 *
 *      x9   rseq area              x12  control block          x13  destination
 *      x14  head, then new head    x15  slot offset            x6, x7  the slot: clock, count
 *      x10, x11, x16, w8 scratch
 *
 * The publishing store is a store-release: what a reader finds behind the head it has acquired is complete.
 * The head's load is an acquire: the slot that the head before names is not seen to change before this head is.
 * aarch64's signature is the instruction word of brk #0x45e0.
 */
#include "ring/asm-offsets.h"

	.macro SEQUENCE_DESCRIPTOR name
	.pushsection .data.rel.ro.rseq_cs, "aw"
	.balign	32
\name:
	.long	0, 0
	.quad	1f, 2f - 1f, 4f
	.popsection
	.endm

	/* The address of this thread's struct rseq into area; starts the sequence described by cs. */
	.macro START_SEQUENCE area, cs
	mrs	\area, tpidr_el0
	adrp	x10, ky_rseq_offset
	ldr	x10, [x10, :lo12:ky_rseq_offset]
	add	\area, \area, x10
	adrp	x10, \cs
	add	x10, x10, :lo12:\cs
	str	x10, [\area, #KY_RSEQ_CS]
	.endm

	.macro ABORT_HANDLER
	.inst	0xd428bc00
4:
	.endm

	.macro RECORD name, counter
	.globl	\name
	.hidden	\name
	.type	\name, %function
	.balign	64
\name:
	.cfi_startproc
	SEQUENCE_DESCRIPTOR .Lcs_\name
	mov	w2, w2
	START_SEQUENCE x9, .Lcs_\name
	b	3f

1:
.Lextended_\name:
	cmp	x5, x6
	csel	x5, x6, x5, lo
	mov	w10, #KY_ASM_EXTENDED_ID
	strb	w10, [x13]
	str	w8, [x13, #1]
	str	x5, [x13, #5]
	add	x13, x13, #KY_ASM_EXTENDED
	mov	x11, #KY_ASM_EXTENDED
	b	.Lslot_\name

.Lpieces_\name:
	movi	v2.16b, #0
5:	ldr	x1, [x3, #KY_PIECE_PTR]
	ldr	w2, [x3, #KY_PIECE_LEN]
	ldr	w8, [x3, #KY_PIECE_FLAGS]
	mov	x10, #0
	tbz	w8, #0, 7f			/* KYMO_PIECE_SCRATCH */
6:	ldr	x11, [x1, x10]
	str	x11, [x13, x10]
	add	x10, x10, #8
	cmp	x10, x2
	b.lo	6b
	b	9f
7:	movi	v1.16b, #0x23
	tbnz	w8, #1, 8f			/* KYMO_PIECE_TEXT */
	movi	v1.16b, #0
8:	sub	x11, x2, #16
10:	ldr	q0, [x1, x10]
	cmeq	v3.16b, v0.16b, v2.16b
	and	v3.16b, v3.16b, v1.16b
	orr	v0.16b, v0.16b, v3.16b
	str	q0, [x13, x10]
	cmp	x10, x11
	b.eq	9f
	add	x10, x10, #16
	cmp	x10, x11
	csel	x10, x11, x10, hi
	b	10b
9:	add	x13, x13, x2
	add	x3, x3, #KY_PIECE_SIZE
	subs	x4, x4, #1
	b.ne	5b
	b	.Lpublish_\name

3:
	ldar	w10, [x0]			/* KY_HOOK_ACTIVE: before the other members */
	cbz	w10, .Ldone_\name
	ldr	w10, [x9, #KY_RSEQ_CPU_ID]
	ldr	w11, [x0, #KY_HOOK_N_RINGS]
	cmp	w10, w11
	b.hs	.Lno_ring_\name
	ldr	x11, [x0, #KY_HOOK_RINGS]
	add	x11, x11, x10, lsl #4		/* sizeof(struct ky_ring_ref) */
	ldar	x12, [x11]
	ldr	x13, [x11, #8]
	cbz	x12, .Lno_ring_\name
	ldar	x14, [x12]			/* KY_ASM_HEAD: before the stores to the slot */
	lsr	x15, x14, #1
	ldr	w10, [x0, #KY_HOOK_BLOCK_MASK]
	and	w10, w10, w15
	add	w10, w10, w2
	add	w10, w10, #KY_ASM_EXTENDED
	ldr	w11, [x0, #KY_HOOK_BLOCK_LIMIT]
	cmp	w10, w11
	b.hi	.Lfull_\name
	ldr	x10, [x0, #KY_HOOK_RING_MASK]
	and	x15, x15, x10
	add	x13, x13, x15
	ubfiz	x15, x14, #4, #1
	add	x15, x15, #KY_ASM_SLOT
	.if \counter
	mrs	x5, cntvct_el0
	.endif
	add	x16, x12, x15
	ldp	x6, x7, [x16]
	ldr	w8, [x0, #KY_HOOK_ID]
	sub	x10, x5, x6
	lsr	x10, x10, #KY_ASM_TS_BITS
	cbnz	x10, .Lextended_\name
	cmp	w8, #KY_ASM_EXTENDED_ID
	b.hs	.Lextended_\name
	orr	w10, w8, w5, lsl #KY_ASM_ID_BITS
	str	w10, [x13], #KY_ASM_COMPACT
	mov	x11, #KY_ASM_COMPACT
.Lslot_\name:
	add	x11, x11, x2
	add	x14, x14, x11, lsl #1
	eor	x14, x14, #1
	mov	x10, #(2 * KY_ASM_SLOT + 16)
	sub	x15, x10, x15			/* the other slot */
	add	x16, x12, x15
	add	x7, x7, #1
	stp	x5, x7, [x16]
	cbnz	x4, .Lpieces_\name
	mov	x10, #0
6:	ldr	x11, [x1, x10]
	str	x11, [x13, x10]
	add	x10, x10, #8
	cmp	x10, x2
	b.lo	6b
.Lpublish_\name:
	stlr	x14, [x12]
2:
.Ldone_\name:
	mov	w0, #KY_ASM_DONE
	ret
.Lno_ring_\name:
	mov	w0, #KY_ASM_NO_RING
	ret
.Lfull_\name:
	mov	w0, #KY_ASM_FULL
	ret
	ABORT_HANDLER
	mov	w0, #KY_ASM_RESTART
	ret
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.text
	RECORD	ky_rseq_record_counter, 1
	RECORD	ky_rseq_record_ts, 0

	.globl	ky_rseq_switch
	.hidden	ky_rseq_switch
	.type	ky_rseq_switch, %function
	.balign	16
ky_rseq_switch:
	.cfi_startproc
	SEQUENCE_DESCRIPTOR .Lcs_switch
	START_SEQUENCE x9, .Lcs_switch
1:	ldr	w10, [x0, #KY_HOOK_ACTIVE]
	cbz	w10, .Lswitch_restart
	ldr	w10, [x9, #KY_RSEQ_CPU_ID]
	ldr	w11, [x0, #KY_HOOK_N_RINGS]
	cmp	w10, w11
	b.hs	.Lswitch_restart
	ldr	x11, [x0, #KY_HOOK_RINGS]
	add	x11, x11, x10, lsl #4
	ldar	x12, [x11]
	ldr	x10, [x1, #KY_SWITCH_CTL]
	cmp	x10, x12
	b.ne	.Lswitch_restart
	ldr	x14, [x12, #KY_ASM_HEAD]
	ldr	x10, [x1, #KY_SWITCH_HEAD]
	cmp	x10, x14
	b.ne	.Lswitch_restart
	ldr	x11, [x1, #KY_SWITCH_LEFT]
	ldr	x10, [x1, #KY_SWITCH_USED]
	str	x10, [x11, #KY_ENTRY_USED]
	ldr	x11, [x1, #KY_SWITCH_ENTER]
	ldr	x10, [x1, #KY_SWITCH_BEGIN_TS]
	str	x10, [x11, #KY_ENTRY_BEGIN_TS]
	ldr	x10, [x1, #KY_SWITCH_BEGIN_COUNT]
	str	x10, [x11, #KY_ENTRY_BEGIN_COUNT]
	ldr	x14, [x1, #KY_SWITCH_NEW_HEAD]
	stlr	x14, [x12]
2:	mov	w0, #KY_ASM_DONE
	ret
	ABORT_HANDLER
.Lswitch_restart:
	mov	w0, #KY_ASM_RESTART
	ret
	.cfi_endproc
	.size	ky_rseq_switch, . - ky_rseq_switch

	.section .note.GNU-stack, "", %progbits
