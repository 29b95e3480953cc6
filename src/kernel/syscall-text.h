/* SPDX-License-Identifier: MIT */
/*
 * Arguments of system calls that are texts, of which the ring has the address. Linux 6.19 records
 * the text itself as a second field, "__NAME_val"; other kernels need a probe for it, or have none.
 * The trace has the text by the argument's name, and its address as "NAME_ptr".
 */
#ifndef KERNEL_SYSCALL_TEXT_H
#define KERNEL_SYSCALL_TEXT_H

#include "kernel/format.h"

/* Returns true if the field is the address of a text that the program passes to the kernel. */
bool ky_kcall_is_text(const struct ky_kformat *f, const struct ky_kfield *field);
/* Returns the field with the text of such an argument, or NULL if this kernel records none. */
const struct ky_kfield *ky_kcall_text(const struct ky_kformat *f, const struct ky_kfield *field);
/* Returns true if the field is the text of another field. */
bool ky_kcall_is_value(const struct ky_kformat *f, const struct ky_kfield *field);

#endif
