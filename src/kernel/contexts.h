/* SPDX-License-Identifier: MIT */
/* The contexts of kernel channels: what the kernel records of each event, or of its thread. */
#ifndef KERNEL_CONTEXTS_H
#define KERNEL_CONTEXTS_H

#include "proto/context.h"

/* Their kinds, beside those of applications (enum ky_ctx). Numbers are never reused. */
enum ky_kcontext {
	KY_KCTX_TID = 64,
	KY_KCTX_PID = 65,
	KY_KCTX_PROCNAME = 66,
	KY_KCTX_INTERRUPTIBLE = 67,
	KY_KCTX_PREEMPTIBLE = 68,
	KY_KCTX_NEED_RESCHEDULE = 69,
	KY_KCTX_CALLSTACK_KERNEL = 70,
	KY_KCTX_CALLSTACK_USER = 71,
};

/*
 * Frames of a stack: its addresses, innermost first, and zeros. babeltrace2 2.0 cannot read
 * sequences in contexts.
 */
#define KY_KSTACK_FRAMES 16

/* In the order of their numbers; ends with a row without name. */
extern const struct ky_ctx_type ky_kcontext_types[];

/* Returns the row of the context that users call so, or NULL. */
const struct ky_ctx_type *ky_kcontext_find(const char *spec);

#endif
