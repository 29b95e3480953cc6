/* SPDX-License-Identifier: MIT */
/*
 * Per-CPU writers for x86-64: a record is written and published inside one restartable sequence.
 *
 * int ky_rseq_record_counter(hook, payload, len, pieces, n_pieces, -)   reads the TSC
 * int ky_rseq_record_ts(hook, payload, len, pieces, n_pieces, ts)       is given the clock
 *      %rdi hook  %rsi payload  %edx len  %rcx pieces  %r8 n_pieces  %r9 ts
 *
 * The sequence is the address range 1: .. 2:. Whatever interrupts a thread there — a signal, preemption, migration
 * — makes the kernel resume it at 4:, so each attempt runs undisturbed on one CPU or has published nothing; the
 * last instruction before 2: is the store of the head. The sequence is entered in its middle (3:): the rare
 * parts lie before, so that the common one falls through to the publishing store.
 *
 * Registers within the sequence:
 *      %ebp  payload bytes         %r9   control block        %r10  head, then new head
 *      %r11  destination           %rbx  slot offset: (head & 1) * 16, then the other one's
 *      %rax  clock                 %rdx, %rdi scratch
 *
 * The kernel's ABI: struct rseq_cs, and the signature before the abort address (include/uapi/linux/rseq.h;
 * x86's signature is an undefined instruction, ud1 <sig>(%rip),%edi).
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

	/* The address of this thread's struct rseq, into reg. */
	.macro RSEQ_AREA reg
	movq	ky_rseq_offset(%rip), \reg
	addq	%fs:0, \reg
	.endm

	.macro ABORT_HANDLER
	.byte	0x0f, 0xb9, 0x3d
	.long	0x53053053
4:
	.endm

	.macro RECORD name, counter
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.balign	64
\name:
	.cfi_startproc
	SEQUENCE_DESCRIPTOR .Lcs_\name
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	.if \counter == 0
	pushq	%r9
	.cfi_adjust_cfa_offset 8
	.endif
	movl	%edx, %ebp
	RSEQ_AREA %rbx
	leaq	.Lcs_\name(%rip), %rax
	movq	%rax, KY_RSEQ_CS(%rbx)
	jmp	3f

1:	/* Long header: the clock is too far from the last record's (or before it), or id >= 31. */
.Lextended_\name:
	movq	KY_ASM_SLOT(%r9, %rbx), %rdx
	cmpq	%rdx, %rax
	cmovbq	%rdx, %rax
	movl	KY_HOOK_ID(%rdi), %edx
	movq	KY_ASM_SLOT + 8(%r9, %rbx), %rdi
	movb	$KY_ASM_EXTENDED_ID, (%r11)
	movl	%edx, 1(%r11)
	movq	%rax, 5(%r11)
	addq	$KY_ASM_EXTENDED, %r11
	leaq	2 * KY_ASM_EXTENDED(%r10, %rbp, 2), %r10
	jmp	.Lslot_\name

	/* A record of several pieces. */
.Lpieces_\name:
	pxor	%xmm2, %xmm2
5:	movq	KY_PIECE_PTR(%rcx), %rsi
	movl	KY_PIECE_LEN(%rcx), %ebp
	movl	KY_PIECE_FLAGS(%rcx), %edx
	xorl	%eax, %eax
	testl	$1, %edx			/* KYMO_PIECE_SCRATCH: may be read beyond its end */
	jz	7f
6:	movq	(%rsi, %rax), %rdx
	movq	%rdx, (%r11, %rax)
	addl	$8, %eax
	cmpl	%ebp, %eax
	jb	6b
	jmp	9f
7:	/* The program's own memory, at least 16 bytes: 16 at a time, the last 16 overlap. */
	movl	$0x23232323, %edi		/* "####" */
	testl	$2, %edx			/* KYMO_PIECE_TEXT: NULs become '#' */
	cmovzl	%eax, %edi
	movd	%edi, %xmm1
	pshufd	$0, %xmm1, %xmm1
	leal	-16(%rbp), %edi
8:	movdqu	(%rsi, %rax), %xmm0
	movdqa	%xmm0, %xmm3
	pcmpeqb	%xmm2, %xmm3
	pand	%xmm1, %xmm3
	por	%xmm3, %xmm0
	movdqu	%xmm0, (%r11, %rax)
	cmpl	%edi, %eax
	je	9f
	addl	$16, %eax
	cmpl	%edi, %eax
	cmoval	%edi, %eax
	jmp	8b
9:	addq	%rbp, %r11
	addq	$KY_PIECE_SIZE, %rcx
	decq	%r8
	jnz	5b
	jmp	.Lpublish_\name

3:	/* Entry. A hook that is not active has no rings. */
	movl	KY_RSEQ_CPU_ID(%rbx), %eax
	cmpl	KY_HOOK_N_RINGS(%rdi), %eax
	jae	.Lno_ring_\name
	shlq	$4, %rax			/* sizeof(struct ky_ring_ref) */
	addq	KY_HOOK_RINGS(%rdi), %rax
	movq	(%rax), %r9
	movq	8(%rax), %r11
	testq	%r9, %r9
	jz	.Lno_ring_\name
	movq	KY_ASM_HEAD(%r9), %r10
	movq	%r10, %rax
	shrq	$1, %rax
	movl	KY_HOOK_BLOCK_MASK(%rdi), %edx
	andl	%eax, %edx
	leal	KY_ASM_EXTENDED(%rdx, %rbp), %edx
	cmpl	KY_HOOK_BLOCK_LIMIT(%rdi), %edx
	ja	.Lfull_\name
	andq	KY_HOOK_RING_MASK(%rdi), %rax
	addq	%rax, %r11
	movl	%r10d, %ebx
	andl	$1, %ebx
	shll	$4, %ebx
	.if \counter
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
	.else
	movq	(%rsp), %rax
	.endif
	movq	%rax, %rdx
	subq	KY_ASM_SLOT(%r9, %rbx), %rdx
	shrq	$KY_ASM_TS_BITS, %rdx
	jnz	.Lextended_\name
	movl	KY_HOOK_ID(%rdi), %edx
	cmpl	$KY_ASM_EXTENDED_ID, %edx
	jae	.Lextended_\name
	movl	%eax, %edi			/* header: id | clock << 5 */
	shll	$KY_ASM_ID_BITS, %edi
	orl	%edx, %edi
	movl	%edi, (%r11)
	movq	KY_ASM_SLOT + 8(%r9, %rbx), %rdi
	addq	$KY_ASM_COMPACT, %r11
	leaq	2 * KY_ASM_COMPACT(%r10, %rbp, 2), %r10
.Lslot_\name:
	xorl	$16, %ebx
	incq	%rdi
	movq	%rax, KY_ASM_SLOT(%r9, %rbx)
	movq	%rdi, KY_ASM_SLOT + 8(%r9, %rbx)
	xorq	$1, %r10
	testq	%r8, %r8
	jnz	.Lpieces_\name
	xorl	%eax, %eax
6:	movq	(%rsi, %rax), %rdx
	movq	%rdx, (%r11, %rax)
	addl	$8, %eax
	cmpl	%ebp, %eax
	jb	6b
.Lpublish_\name:
	movq	%r10, KY_ASM_HEAD(%r9)
2:	xorl	%eax, %eax
.Lreturn_\name:
	.cfi_remember_state
	.if \counter == 0
	popq	%r9
	.cfi_adjust_cfa_offset -8
	.endif
	popq	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_restore_state
.Lno_ring_\name:
	movl	$KY_ASM_NO_RING, %eax
	jmp	.Lreturn_\name
.Lfull_\name:
	movl	$KY_ASM_FULL, %eax
	jmp	.Lreturn_\name
	ABORT_HANDLER
	movl	$KY_ASM_RESTART, %eax
	jmp	.Lreturn_\name
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.text
	RECORD	ky_rseq_record_counter, 1
	RECORD	ky_rseq_record_ts, 0

/*
 * void ky_rseq_event(event, payload, len, pieces, n_pieces): a kymo_record_fn, for an event with one hook, the
 * counter, and an id < 31: the common case in the fewest instructions. Whatever is unusual is left to ky_record_event,
 * with the arguments as they came.
 *
 *      %rdi  hook, then id, then count   %r8   payload bytes      %r10  head, then new head
 *      %rcx  rseq area, then position,   %r9   control block      %r11  destination of the header
 *            then slot offset            %rsi  payload            %rax  clock     %rdx  scratch
 *
 * The event waits in the red zone, stored before the sequence begins: an abort finds it there.
 */
	.globl	ky_rseq_event
	.hidden	ky_rseq_event
	.type	ky_rseq_event, @function
	.balign	64
ky_rseq_event:
	.cfi_startproc
	SEQUENCE_DESCRIPTOR .Lcs_event
	testq	%r8, %r8
	jnz	ky_record_event
	movq	%rdi, -8(%rsp)
	movq	%rdx, %r8
	movq	KY_EVENT_STATE(%rdi), %rax
	movq	KY_STATE_HOOKS(%rax), %rdi
	testq	%rdi, %rdi
	jz	.Levent_slow
	RSEQ_AREA %rcx
	leaq	.Lcs_event(%rip), %rax
	movq	%rax, KY_RSEQ_CS(%rcx)
	jmp	3f

1:
.Levent_extended:
	movq	KY_ASM_SLOT(%r9, %rcx), %rdx
	cmpq	%rdx, %rax
	cmovbq	%rdx, %rax
	movb	$KY_ASM_EXTENDED_ID, (%r11)
	movl	%edi, 1(%r11)
	movq	%rax, 5(%r11)
	addq	$(KY_ASM_EXTENDED - KY_ASM_COMPACT), %r11
	leaq	2 * KY_ASM_EXTENDED(%r10, %r8, 2), %r10
	jmp	.Levent_slot
.Levent_more:
	movl	$8, %eax
5:	movdqu	(%rsi, %rax), %xmm0
	movdqu	%xmm0, KY_ASM_COMPACT(%r11, %rax)
	addq	$16, %rax
	cmpq	%r8, %rax
	jb	5b
	jmp	.Levent_publish

3:	movl	KY_RSEQ_CPU_ID(%rcx), %eax
	cmpl	KY_HOOK_N_RINGS(%rdi), %eax
	jae	.Levent_slow
	shlq	$4, %rax			/* sizeof(struct ky_ring_ref) */
	addq	KY_HOOK_RINGS(%rdi), %rax
	movq	(%rax), %r9
	movq	8(%rax), %r11
	testq	%r9, %r9
	jz	.Levent_slow
	movq	KY_ASM_HEAD(%r9), %r10
	movq	%r10, %rcx
	shrq	$1, %rcx
	movl	KY_HOOK_BLOCK_MASK(%rdi), %edx
	andl	%ecx, %edx
	leaq	KY_ASM_EXTENDED(%rdx, %r8), %rdx
	movl	KY_HOOK_BLOCK_LIMIT(%rdi), %eax
	cmpq	%rax, %rdx
	ja	.Levent_slow
	andq	KY_HOOK_RING_MASK(%rdi), %rcx
	addq	%rcx, %r11
	movl	KY_HOOK_ID(%rdi), %edi
	cmpl	$KY_ASM_EXTENDED_ID, %edi	/* a hook may get another id after `record` was read */
	jae	.Levent_slow
	movl	%r10d, %ecx
	andl	$1, %ecx
	shll	$4, %ecx
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
	movq	%rax, %rdx
	subq	KY_ASM_SLOT(%r9, %rcx), %rdx
	shrq	$KY_ASM_TS_BITS, %rdx
	jnz	.Levent_extended
	movl	%eax, %edx
	shll	$KY_ASM_ID_BITS, %edx
	orl	%edi, %edx
	movl	%edx, (%r11)
	leaq	2 * KY_ASM_COMPACT(%r10, %r8, 2), %r10
.Levent_slot:
	movq	KY_ASM_SLOT + 8(%r9, %rcx), %rdi
	incq	%rdi
	xorl	$16, %ecx
	movq	%rax, KY_ASM_SLOT(%r9, %rcx)
	movq	%rdi, KY_ASM_SLOT + 8(%r9, %rcx)
	movq	(%rsi), %rdx
	movq	%rdx, KY_ASM_COMPACT(%r11)
	xorq	$1, %r10
	cmpq	$8, %r8
	ja	.Levent_more
.Levent_publish:
	movq	%r10, KY_ASM_HEAD(%r9)
2:	ret
	ABORT_HANDLER
.Levent_slow:
	movq	-8(%rsp), %rdi
	movq	%r8, %rdx
	xorl	%ecx, %ecx
	xorl	%r8d, %r8d
	jmp	ky_record_event
	.cfi_endproc
	.size	ky_rseq_event, . - ky_rseq_event

/*
 * int ky_rseq_switch(hook, sw): if the hook is active, this CPU's ring is sw->ctl and its head is still
 * sw->head, stores the two block entries and publishes sw->new_head.
 */
	.globl	ky_rseq_switch
	.hidden	ky_rseq_switch
	.type	ky_rseq_switch, @function
	.balign	16
ky_rseq_switch:
	.cfi_startproc
	SEQUENCE_DESCRIPTOR .Lcs_switch
	RSEQ_AREA %rdx
	leaq	.Lcs_switch(%rip), %rax
	movq	%rax, KY_RSEQ_CS(%rdx)
1:	movl	KY_RSEQ_CPU_ID(%rdx), %eax
	cmpl	KY_HOOK_N_RINGS(%rdi), %eax
	jae	.Lswitch_restart
	shlq	$4, %rax
	addq	KY_HOOK_RINGS(%rdi), %rax
	movq	(%rax), %r9
	cmpq	KY_SWITCH_CTL(%rsi), %r9
	jne	.Lswitch_restart
	movq	KY_ASM_HEAD(%r9), %rax
	cmpq	KY_SWITCH_HEAD(%rsi), %rax
	jne	.Lswitch_restart
	movq	KY_SWITCH_LEFT(%rsi), %r8
	movq	KY_SWITCH_USED(%rsi), %rax
	movq	%rax, KY_ENTRY_USED(%r8)
	movq	KY_SWITCH_ENTER(%rsi), %r8
	movq	KY_SWITCH_BEGIN_TS(%rsi), %rax
	movq	%rax, KY_ENTRY_BEGIN_TS(%r8)
	movq	KY_SWITCH_BEGIN_COUNT(%rsi), %rax
	movq	%rax, KY_ENTRY_BEGIN_COUNT(%r8)
	movq	KY_SWITCH_NEW_HEAD(%rsi), %rax
	movq	%rax, KY_ASM_HEAD(%r9)
2:	xorl	%eax, %eax
	ret
	ABORT_HANDLER
.Lswitch_restart:
	movl	$KY_ASM_RESTART, %eax
	ret
	.cfi_endproc
	.size	ky_rseq_switch, . - ky_rseq_switch

	.section .note.GNU-stack, "", @progbits
