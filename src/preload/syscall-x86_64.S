/* SPDX-License-Identifier: MIT */
/*
 * syscall(). The caller passes as many arguments as it likes, and only the last of the possible
 * ones is on the stack. A caller that passes fewer keeps a variable of its own in that place, which
 * another thread may change at any moment. A function in C that has this argument may write to the
 * place, even if only what it has read there. This one passes it on unread, or copies it.
 */
	.text
	.globl	syscall
	.type	syscall, @function
	.balign	16
syscall:
	.cfi_startproc
	pushq	%rdi
	pushq	%rsi
	pushq	%rdx
	pushq	%rcx
	pushq	%r8
	pushq	%r9
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 56
	call	preload_syscall_next
	addq	$8, %rsp
	popq	%r9
	popq	%r8
	popq	%rcx
	popq	%rdx
	popq	%rsi
	popq	%rdi
	.cfi_adjust_cfa_offset -56
	testq	%rax, %rax
	jz	.Lhere
	jmp	*%rax
.Lhere:
	subq	$8, %rsp
	pushq	8(%rsp)		/* the caller */
	pushq	24(%rsp)	/* the last argument */
	.cfi_adjust_cfa_offset 24
	call	preload_syscall_here
	addq	$24, %rsp
	.cfi_adjust_cfa_offset -24
	ret
	.cfi_endproc
	.size	syscall, . - syscall

	.section .note.GNU-stack, "", @progbits
