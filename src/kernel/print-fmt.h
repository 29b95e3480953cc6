/* SPDX-License-Identifier: MIT */
/*
 * The names of values that a kernel's event has: from `print fmt` of its format, __print_flags and
 * __print_symbolic with constants, and for what formats do not say: arguments of system calls,
 * kinds of block requests. They go into the trace's index, so that any machine can show them:
 *
 *   # values<TAB>EVENT<TAB>FIELD<TAB>flags|values<TAB>MASK<TAB>VALUE=NAME<TAB>VALUE=NAME...
 *
 * Event and field are those of the trace, numbers are in base 16. Several lines may have parts of
 * one field.
 */
#ifndef KERNEL_PRINT_FMT_H
#define KERNEL_PRINT_FMT_H

#include "base/buf.h"
#include "kernel/program.h"

/* Appends the lines of an event. format: the kernel's text. Errors are `to`'s. */
void ky_kvalues_put(struct ky_buf *to, const char *format, const struct ky_kprogram *p);

#endif
