/* SPDX-License-Identifier: MIT */
/*
 * vfork(), and kymo_vforked, which is not 0 while a thread is in the child (preload.h). The child
 * returns from here on the parent's stack, so the return address is in a register, which the kernel
 * preserves for both. When the parent continues, it restores the variable: the parent may itself be
 * such a child.
 */
#define SYS_VFORK 58

	.text
	.globl	vfork
	.type	vfork, @function
	.balign	16
vfork:
	.cfi_startproc
	movq	kymo_vforked@gottpoff(%rip), %rdx
	movl	%fs:(%rdx), %esi
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	.cfi_register %rip, %rdi
	movl	$SYS_VFORK, %eax
	syscall
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rip, -8
	testq	%rax, %rax
	jz	.Lchild
	movl	%esi, %fs:(%rdx)
	js	.Lfailed
	ret
.Lchild:
	movl	$1, %fs:(%rdx)
	ret
.Lfailed:
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	movl	%eax, %ebx
	negl	%ebx
	call	__errno_location@PLT
	movl	%ebx, (%rax)
	movq	$-1, %rax
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size	vfork, . - vfork

	.section .tbss, "awT", @nobits
	.globl	kymo_vforked
	.type	kymo_vforked, @object
	.balign	4
kymo_vforked:
	.zero	4
	.size	kymo_vforked, 4

	.section .note.GNU-stack, "", @progbits
