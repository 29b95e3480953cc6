/* SPDX-License-Identifier: MIT */
/*
 * vfork(), and kymo_vforked, which is not 0 while a thread is in the child (preload.h). When the
 * parent continues, it restores the variable: the parent may itself be such a child. The old value
 * and the return address are in registers, which the kernel preserves for both.
 */
#define SYS_CLONE   220
#define VFORK_FLAGS 0x4111 /* CLONE_VM | CLONE_VFORK | SIGCHLD */

	.text
	.globl	vfork
	.type	vfork, %function
	.balign	16
vfork:
	.cfi_startproc
	mrs	x9, tpidr_el0
	adrp	x10, :gottprel:kymo_vforked
	ldr	x10, [x10, #:gottprel_lo12:kymo_vforked]
	add	x9, x9, x10
	ldr	w10, [x9]
	mov	x0, #VFORK_FLAGS
	mov	x1, xzr
	mov	x2, xzr
	mov	x3, xzr
	mov	x4, xzr
	mov	x8, #SYS_CLONE
	svc	#0
	cbz	x0, .Lchild
	str	w10, [x9]
	tbnz	x0, #63, .Lfailed
	ret
.Lchild:
	mov	w10, #1
	str	w10, [x9]
	ret
.Lfailed:
	stp	x29, x30, [sp, #-32]!
	.cfi_adjust_cfa_offset 32
	.cfi_offset x29, -32
	.cfi_offset x30, -24
	neg	w0, w0
	str	w0, [sp, #16]
	bl	__errno_location
	ldr	w1, [sp, #16]
	str	w1, [x0]
	mov	x0, #-1
	ldp	x29, x30, [sp], #32
	.cfi_adjust_cfa_offset -32
	.cfi_restore x29
	.cfi_restore x30
	ret
	.cfi_endproc
	.size	vfork, . - vfork

	.section .tbss, "awT", %nobits
	.globl	kymo_vforked
	.type	kymo_vforked, %object
	.balign	4
kymo_vforked:
	.zero	4
	.size	kymo_vforked, 4

	.section .note.GNU-stack, "", %progbits
