/* SPDX-License-Identifier: MIT */
/*
 * The completion of an operation that takes time: the one way in which the daemon's parts report
 * the end of an operation. The caller owns the op, which must stay until done() is called.
 *
 * A function that takes an op has done() called exactly once, from the loop: never before it
 * returns, and not at all if it returns an error.
 */
#ifndef SESSIOND_MODEL_OP_H
#define SESSIOND_MODEL_OP_H

#include "base/util.h"

struct op {
	/*
	 * status: 0 or -errno. message: the reason of a failure; after success a notice for the
	 * user; or "".
	 */
	void (*done)(struct op *op, int status, const char *message);
};

/* op: NULL if nobody waits. */
static inline void op_done(struct op *op, int status, const char *message)
{
	if (op)
		op->done(op, status, message);
}

#endif
