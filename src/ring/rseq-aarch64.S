/* SPDX-License-Identifier: MIT */
/*
 * Per-CPU writers for aarch64; the twin of rseq-x86_64.S, which explains the scheme.
 *
 * int ky_rseq_record_counter(hook, payload, len, pieces, n_pieces, -)   reads CNTVCT_EL0
 * int ky_rseq_record_ts(hook, payload, len, pieces, n_pieces, ts)       receives the clock
 *      x0 hook  x1 payload  w2 len  x3 pieces  x4 n_pieces  x5 ts
 *
 *      x9   rseq area              x12  control block          x13  destination
 *      x14  head, then new head    x15  0 for a short header, else the clock's window, plus 1
 *      x10, x11, w8 scratch
 *
 * The publishing store is a store-release: when a reader has acquired the head, all records before
 * it are complete. The head's load is an acquire: last_ts does not change visibly before this head.
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

	/*
	 * Loads the address of this thread's struct rseq into area; starts the sequence that cs
	 * describes.
	 */
	.macro START_SEQUENCE area, cs
	mrs	\area, tpidr_el0
	adrp	x10, ky_rseq_offset
	ldr	x10, [x10, :lo12:ky_rseq_offset]
	add	\area, \area, x10
	adrp	x10, \cs
	add	x10, x10, :lo12:\cs
	str	x10, [\area, #KY_RSEQ_CS]
	.endm

	/*
	 * Loads the control block of the CPU whose number is in w10. A hook that is not active has
	 * no rings.
	 */
	.macro CONTROL_BLOCK ctl, none
	ldar	w11, [x0]			/* KY_HOOK_ACTIVE: before the other members */
	cbz	w11, \none
	ldr	w11, [x0, #KY_HOOK_N_RINGS]
	cmp	w10, w11
	b.hs	\none
	ldr	x11, [x0, #KY_HOOK_CTL]
	add	\ctl, x11, x10, lsl #KY_ASM_CTL_SHIFT
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
1:	b	3f

.Llong_\name:
	lsr	x15, x5, #KY_ASM_TS_BITS
	lsl	x15, x15, #KY_ASM_TS_BITS
	add	x15, x15, #1
	mov	w10, #KY_ASM_EXTENDED_ID
	strb	w10, [x13]
	str	w8, [x13, #1]
	str	x5, [x13, #5]
	add	x13, x13, #KY_ASM_EXTENDED
	add	x14, x14, #KY_ASM_EXTENDED
	b	.Lpayload_\name

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

3:	ldr	w10, [x9, #KY_RSEQ_CPU_ID]
	CONTROL_BLOCK x12, .Lno_ring_\name
	ldr	x11, [x0, #KY_HOOK_RING_SIZE]
	ldr	x13, [x0, #KY_HOOK_DATA]
	madd	x13, x10, x11, x13
	ldar	x14, [x12]			/* KY_ASM_HEAD: before the store of last_ts */
	ldr	w10, [x0, #KY_HOOK_BLOCK_MASK]
	and	w10, w10, w14
	add	w10, w10, w2
	ldr	w11, [x0, #KY_HOOK_BLOCK_LIMIT]
	cmp	w10, w11
	b.hi	.Lfull_\name
	ldr	w10, [x0, #KY_HOOK_RING_MASK]
	and	w10, w10, w14
	add	x13, x13, x10
	mov	x15, #0
	.if \counter
	mrs	x5, cntvct_el0
	.endif
	ldr	x10, [x12, #KY_ASM_LAST_TS]	/* clocks rise within a ring */
	cmp	x5, x10
	csel	x5, x10, x5, lo
	ldr	w8, [x0, #KY_HOOK_ID]
	ldr	x10, [x12, #KY_ASM_WINDOW]
	sub	x10, x5, x10
	lsr	x10, x10, #KY_ASM_TS_BITS
	cbnz	x10, .Llong_\name
	cmp	w8, #KY_ASM_EXTENDED_ID
	b.hs	.Llong_\name
	orr	w10, w8, w5, lsl #KY_ASM_ID_BITS
	str	w10, [x13], #KY_ASM_COMPACT
	add	x14, x14, #KY_ASM_COMPACT
.Lpayload_\name:
	mov	x10, #0x100000000		/* one record more */
	add	x10, x10, x2
	add	x14, x14, x10
	str	x5, [x12, #KY_ASM_LAST_TS]
	cbnz	x4, .Lpieces_\name
	mov	x10, #0
6:	ldr	x11, [x1, x10]
	str	x11, [x13, x10]
	add	x10, x10, #8
	cmp	x10, x2
	b.lo	6b
.Lpublish_\name:
	stlr	x14, [x12]
2:	cbnz	x15, .Lwindow_\name
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

.Lwindow_\name:
	SEQUENCE_DESCRIPTOR .Lcs_window_\name
	START_SEQUENCE x9, .Lcs_window_\name
1:	ldr	w10, [x9, #KY_RSEQ_CPU_ID]
	CONTROL_BLOCK x13, .Llong_done_\name
	cmp	x13, x12
	b.ne	.Llong_done_\name
	ldr	x10, [x12, #KY_ASM_HEAD]
	cmp	x10, x14
	b.ne	.Llong_done_\name
	sub	x15, x15, #1
	str	x15, [x12, #KY_ASM_WINDOW]
2:	b	.Llong_done_\name
	ABORT_HANDLER
.Llong_done_\name:
	mov	w0, #KY_ASM_LONG
	ret
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.text
	RECORD	ky_rseq_record_counter, 1
	RECORD	ky_rseq_record_ts, 0

	.globl	ky_rseq_store
	.hidden	ky_rseq_store
	.type	ky_rseq_store, %function
	.balign	16
ky_rseq_store:
	.cfi_startproc
	SEQUENCE_DESCRIPTOR .Lcs_store
	START_SEQUENCE x9, .Lcs_store
1:	ldr	w10, [x9, #KY_RSEQ_CPU_ID]
	CONTROL_BLOCK x12, .Lstore_restart
	ldr	x10, [x1, #KY_STORES_CTL]
	cmp	x10, x12
	b.ne	.Lstore_restart
	ldr	x14, [x12, #KY_ASM_HEAD]
	ldr	x10, [x1, #KY_STORES_HEAD]
	cmp	x10, x14
	b.ne	.Lstore_restart
	ldr	x10, [x1, #KY_STORES_OTHER]
	ldr	x10, [x10]
	ldr	x11, [x1, #KY_STORES_OTHER_VALUE]
	cmp	x10, x11
	b.ne	.Lstore_restart
	ldr	x8, [x1, #KY_STORES_N]
5:	ldr	x10, [x1, #KY_STORES_AT]
	ldr	x11, [x1, #KY_STORES_VALUE]
	add	x1, x1, #16			/* to the next pair */
	subs	x8, x8, #1
	b.eq	6f
	str	x11, [x10]
	b	5b
6:	stlr	x11, [x10]
2:	mov	w0, #KY_ASM_DONE
	ret
	ABORT_HANDLER
.Lstore_restart:
	mov	w0, #KY_ASM_RESTART
	ret
	.cfi_endproc
	.size	ky_rseq_store, . - ky_rseq_store

	.section .note.GNU-stack, "", %progbits
