/* SPDX-License-Identifier: MIT */
/*
 * Per-CPU writers for x86-64: a record is written and published inside one restartable sequence.
 *
 * The sequence is the address range 1: .. 2:. If a signal, preemption or migration interrupts a
 * thread there, the kernel resumes the thread at 4:. So each attempt runs undisturbed on one CPU,
 * or has published nothing. The last instruction before 2: is the store of the head. The
 * instruction at 1: comes right after the store that announces the sequence, because the kernel
 * clears that word if it interrupts a thread outside the sequence.
 *
 * The time goes into waiting for loads, each of which needs the one before: the thread's rseq area,
 * the CPU's number, the head. (Reading the time stamp counter stops the processor from executing
 * ahead, so none of this overlaps with the previous record.) Hence the addresses of the control
 * block and the data are computed from the CPU's number and not loaded, and there are copies of the
 * short writers for places of the rseq area that are known in advance.
 *
 * The kernel's ABI: struct rseq_cs, and the signature before the abort address
 * (include/uapi/linux/rseq.h; x86's signature is an undefined instruction, ud1 <sig>(%rip),%edi).
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

	/* Loads the address of this thread's struct rseq into reg. */
	.macro RSEQ_AREA reg
	movq	ky_rseq_offset(%rip), \reg
	addq	%fs:0, \reg
	.endm

	.macro ABORT_HANDLER
	.byte	0x0f, 0xb9, 0x3d
	.long	0x53053053
4:
	.endm

	/*
	 * Loads the control block of the CPU whose number is in %eax. A hook that is not active has
	 * no rings.
	 */
	.macro CONTROL_BLOCK hook, n_rings, ctl, none
	cmpl	\n_rings(\hook), %eax
	jae	\none
	movl	%eax, \ctl\()d
	shlq	$KY_ASM_CTL_SHIFT, \ctl
	addq	KY_HOOK_CTL(\hook), \ctl
	.endm

	.text

/*
 * int ky_rseq_record_counter(hook, payload, len, pieces, n_pieces, -)   reads the TSC
 * int ky_rseq_record_ts(hook, payload, len, pieces, n_pieces, ts)       receives the clock
 *      %rdi hook  %rsi payload  %edx len  %rcx pieces  %r8 n_pieces  %r9 ts
 *
 * Writes any record. In the sequence:
 *      %ebp  payload bytes         %r9   control block        %r10  head, then new head
 *      %r11  destination           %rax  clock                %rdx, %rdi scratch
 *      %rbx  rseq area, then 0 for a short header, else the clock's window, plus 1
 *
 * The sequence is entered in its middle (3:): the rare parts lie before.
 */
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
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	.if \counter == 0
	pushq	%r9
	.cfi_adjust_cfa_offset 8
	.endif
	movl	%edx, %ebp
	RSEQ_AREA %rbx
	leaq	.Lcs_\name(%rip), %rax
	movq	%rax, KY_RSEQ_CS(%rbx)
1:	jmp	3f

	/* Long header: the clock is beyond the window (or before it), or id >= 31. */
.Llong_\name:
	movq	%rax, %rbx
	shrq	$KY_ASM_TS_BITS, %rbx
	shlq	$KY_ASM_TS_BITS, %rbx
	incq	%rbx
	movl	KY_HOOK_ID(%rdi), %edx
	movb	$KY_ASM_EXTENDED_ID, (%r11)
	movl	%edx, 1(%r11)
	movq	%rax, 5(%r11)
	addq	$KY_ASM_EXTENDED, %r11
	leaq	KY_ASM_EXTENDED(%r10, %rbp), %r10
	jmp	.Lpayload_\name

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
7:	/* The application's own memory, at least 16 bytes: 16 at a time, the last 16 overlap. */
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

3:	/* Entry. */
	movl	KY_RSEQ_CPU_ID(%rbx), %eax
	CONTROL_BLOCK %rdi, KY_HOOK_N_RINGS, %r9, .Lno_ring_\name
	imulq	KY_HOOK_RING_SIZE(%rdi), %rax
	addq	KY_HOOK_DATA(%rdi), %rax
	movq	KY_ASM_HEAD(%r9), %r10
	movl	%r10d, %edx
	andl	KY_HOOK_BLOCK_MASK(%rdi), %edx
	addl	%ebp, %edx
	cmpl	KY_HOOK_BLOCK_LIMIT(%rdi), %edx
	ja	.Lfull_\name
	movl	%r10d, %edx
	andl	KY_HOOK_RING_MASK(%rdi), %edx
	leaq	(%rax, %rdx), %r11
	xorl	%ebx, %ebx
	.if \counter
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
	.else
	movq	(%rsp), %rax
	.endif
	cmpq	KY_ASM_LAST_TS(%r9), %rax	/* clocks rise within a ring */
	cmovbq	KY_ASM_LAST_TS(%r9), %rax
	movq	%rax, %rdx
	subq	KY_ASM_WINDOW(%r9), %rdx
	shrq	$KY_ASM_TS_BITS, %rdx
	jnz	.Llong_\name
	movl	KY_HOOK_ID(%rdi), %edx
	cmpl	$KY_ASM_EXTENDED_ID, %edx
	jae	.Llong_\name
	movl	%eax, %edi			/* header: id | clock << 5 */
	shll	$KY_ASM_ID_BITS, %edi
	orl	%edx, %edi
	movl	%edi, (%r11)
	addq	$KY_ASM_COMPACT, %r11
	leaq	KY_ASM_COMPACT(%r10, %rbp), %r10
.Lpayload_\name:
	movabsq	$0x100000000, %rdx		/* one record more */
	addq	%rdx, %r10
	movq	%rax, KY_ASM_LAST_TS(%r9)
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
	testq	%rbx, %rbx
	jnz	.Lwindow_\name
.Lreturn_\name:
	.cfi_remember_state
	.if \counter == 0
	popq	%r9
	.cfi_adjust_cfa_offset -8
	.endif
	popq	%rdi
	.cfi_adjust_cfa_offset -8
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

	/*
	 * A clock with a long header is published: from now on short headers suffice, if this
	 * ring's head is still the one that was published. (If it is not, the thread that wrote
	 * since has also written a long header, and tries the same.)
	 */
.Lwindow_\name:
	SEQUENCE_DESCRIPTOR .Lcs_window_\name
	.if \counter
	movq	(%rsp), %rdi
	.else
	movq	8(%rsp), %rdi
	.endif
	RSEQ_AREA %rdx
	leaq	.Lcs_window_\name(%rip), %rax
	movq	%rax, KY_RSEQ_CS(%rdx)
1:	movl	KY_RSEQ_CPU_ID(%rdx), %eax
	CONTROL_BLOCK %rdi, KY_HOOK_N_RINGS, %r11, .Llong_done_\name
	cmpq	%r11, %r9
	jne	.Llong_done_\name
	cmpq	%r10, KY_ASM_HEAD(%r9)
	jne	.Llong_done_\name
	decq	%rbx
	movq	%rbx, KY_ASM_WINDOW(%r9)
2:	jmp	.Llong_done_\name
	ABORT_HANDLER
.Llong_done_\name:
	movl	$KY_ASM_LONG, %eax
	jmp	.Lreturn_\name
	.cfi_endproc
	.size	\name, . - \name
	.endm

	RECORD	ky_rseq_record_counter, 1
	RECORD	ky_rseq_record_ts, 0

/*
 * void ky_rseq_flat(event, payload, hook, len)	a kymo_flat_fn
 * void ky_rseq_word(event, value, hook, len)	a kymo_word_fn
 * int ky_rseq_flat_special(hook, payload, hook, len, until, front, first, second)
 * int ky_rseq_word_special(hook, value, hook, len, until, front, first, second)
 *      %rdi event or hook   %rsi payload or value   %rdx hook   %rcx len   %r8 until   %r9 front
 *      %xmm0, %xmm1 first, second
 *
 * These write the common case in the fewest instructions: one hook, an id < 31, the TSC, a short
 * header.
 *
 * The first two are for hooks that take the payload unchanged (ky_hook.n_short). They pass
 * everything unusual to ky_record_flat or ky_record_word, with their own arguments except for the
 * hook. So they keep %rdi, %rsi and %rcx.
 *
 * The others are for hooks with `special` (n_special): the two vectors hold the first `front` of
 * the len bytes. They return KY_WRITE_DONE, or KY_WRITE_RESTART if anything is unusual or the clock
 * is beyond `until`.
 *
 *      %r8   id; until, then front  %r9   control block  %r10  rseq area, then head, then new head
 *      %r11  destination            %rax  clock          %rdx  hook, then scratch
 *
 * place: offset of the rseq area from the thread pointer, or 0: the writer loads it.
 */
	.macro SHORT name, place, word, special, otherwise
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.balign	64
\name:
	.cfi_startproc
	SEQUENCE_DESCRIPTOR .Lcs_\name
	.if \special
	movl	%r9d, -8(%rsp)
	.endif
	leaq	.Lcs_\name(%rip), %rax
	.if \place
	movq	%rax, %fs:\place + KY_RSEQ_CS
1:	movl	%fs:\place + KY_RSEQ_CPU_ID, %eax
	.else
	RSEQ_AREA %r10
	movq	%rax, KY_RSEQ_CS(%r10)
1:	movl	KY_RSEQ_CPU_ID(%r10), %eax
	.endif
	.if \special
	CONTROL_BLOCK %rdx, KY_HOOK_N_SPECIAL, %r9, \otherwise
	.else
	CONTROL_BLOCK %rdx, KY_HOOK_N_SHORT, %r9, \otherwise
	movl	KY_HOOK_ID(%rdx), %r8d
	.endif
	imulq	KY_HOOK_RING_SIZE(%rdx), %rax
	addq	KY_HOOK_DATA(%rdx), %rax
	movq	KY_ASM_HEAD(%r9), %r10
	movl	%r10d, %r11d
	andl	KY_HOOK_BLOCK_MASK(%rdx), %r11d
	addl	%ecx, %r11d
	cmpl	KY_HOOK_BLOCK_LIMIT(%rdx), %r11d
	ja	\otherwise
	movl	%r10d, %r11d
	andl	KY_HOOK_RING_MASK(%rdx), %r11d
	addq	%rax, %r11
	addq	%rcx, %r10
	movabsq	$0x100000000 + KY_ASM_COMPACT, %rax	/* one record, and its header */
	addq	%rax, %r10
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
	.if \special
	cmpq	%r8, %rax
	ja	\otherwise
	.endif
	movq	%rax, %rdx
	subq	KY_ASM_WINDOW(%r9), %rdx
	shrq	$KY_ASM_TS_BITS, %rdx
	jnz	\otherwise
	movq	%rax, KY_ASM_LAST_TS(%r9)
	shll	$KY_ASM_ID_BITS, %eax
	.if \special
	orl	KY_HOOK_ID(%rdi), %eax
	.else
	orl	%r8d, %eax
	.endif
	movl	%eax, (%r11)
	.if \special
	movl	-8(%rsp), %r8d
	movdqu	%xmm0, KY_ASM_COMPACT(%r11)
	movdqu	%xmm1, KY_ASM_COMPACT + 16(%r11)
	addq	%r8, %r11
	.if \word == 0
	subq	%r8, %rcx
	.endif
	.endif
	.if \word
	movq	%rsi, KY_ASM_COMPACT(%r11)
	.else
	movdqu	(%rsi), %xmm0
	movdqu	%xmm0, KY_ASM_COMPACT(%r11)
	cmpl	$16, %ecx
	jbe	6f
	movl	$16, %eax
5:	movdqu	(%rsi, %rax), %xmm0
	movdqu	%xmm0, KY_ASM_COMPACT(%r11, %rax)
	addl	$16, %eax
	cmpl	%ecx, %eax
	jb	5b
6:
	.endif
	movq	%r10, KY_ASM_HEAD(%r9)
2:	.if \special
	xorl	%eax, %eax
	.endif
	ret
	ABORT_HANDLER
	jmp	\otherwise
	.cfi_endproc
	.size	\name, . - \name
	.endm

	SHORT	ky_rseq_flat, 0, 0, 0, ky_record_flat
	SHORT	ky_rseq_word, 0, 1, 0, ky_record_word
	SHORT	ky_rseq_flat_special, 0, 0, 1, .Lspecial_restart
	SHORT	ky_rseq_word_special, 0, 1, 1, .Lspecial_restart
	SHORT	ky_rseq_flat_known, KY_RSEQ_KNOWN, 0, 0, ky_record_flat
	SHORT	ky_rseq_word_known, KY_RSEQ_KNOWN, 1, 0, ky_record_word
	SHORT	ky_rseq_flat_special_known, KY_RSEQ_KNOWN, 0, 1, .Lspecial_restart
	SHORT	ky_rseq_word_special_known, KY_RSEQ_KNOWN, 1, 1, .Lspecial_restart
.Lspecial_restart:
	movl	$KY_ASM_RESTART, %eax
	ret

/*
 * int ky_rseq_store(hook, stores): stores the values in order if the hook is active, this CPU's
 * ring is stores->ctl with the head stores->head, and *stores->other is stores->other_value.
 */
	.globl	ky_rseq_store
	.hidden	ky_rseq_store
	.type	ky_rseq_store, @function
	.balign	16
ky_rseq_store:
	.cfi_startproc
	SEQUENCE_DESCRIPTOR .Lcs_store
	RSEQ_AREA %rdx
	leaq	.Lcs_store(%rip), %rax
	movq	%rax, KY_RSEQ_CS(%rdx)
1:	movl	KY_RSEQ_CPU_ID(%rdx), %eax
	CONTROL_BLOCK %rdi, KY_HOOK_N_RINGS, %r9, .Lstore_restart
	cmpq	KY_STORES_CTL(%rsi), %r9
	jne	.Lstore_restart
	movq	KY_ASM_HEAD(%r9), %rax
	cmpq	KY_STORES_HEAD(%rsi), %rax
	jne	.Lstore_restart
	movq	KY_STORES_OTHER(%rsi), %r8
	movq	(%r8), %rax
	cmpq	KY_STORES_OTHER_VALUE(%rsi), %rax
	jne	.Lstore_restart
	movl	KY_STORES_N(%rsi), %ecx
5:	movq	KY_STORES_AT(%rsi), %r8
	movq	KY_STORES_VALUE(%rsi), %rax
	addq	$16, %rsi			/* to the next pair */
	decl	%ecx
	jz	6f
	movq	%rax, (%r8)
	jmp	5b
6:	movq	%rax, (%r8)
2:	xorl	%eax, %eax
	ret
	ABORT_HANDLER
.Lstore_restart:
	movl	$KY_ASM_RESTART, %eax
	ret
	.cfi_endproc
	.size	ky_rseq_store, . - ky_rseq_store

	.section .note.GNU-stack, "", @progbits
