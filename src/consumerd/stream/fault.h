/* SPDX-License-Identifier: MIT */
/*
 * Writing that fails is tried again, ten times a second, while the data stays in the rings. A fault
 * is the state of one thing that is written (a stream, a metadata file).
 */
#ifndef CONSUMERD_STREAM_FAULT_H
#define CONSUMERD_STREAM_FAULT_H

#include "base/util.h"

#define FAULT_RETRY_NS 100000000ull

struct fault {
	int error; /* 0 or -errno: of the last try */
	uint64_t retry_ns;
};

/* May it be tried at this time? force: somebody waits for the outcome. */
static inline bool fault_may_try(const struct fault *f, bool force, uint64_t now_ns)
{
	return force || !f->error || now_ns >= f->retry_ns;
}

/* Notes the outcome of a try and returns it. */
static inline int fault_set(struct fault *f, int error, uint64_t now_ns)
{
	f->error = error;
	f->retry_ns = now_ns + FAULT_RETRY_NS;
	return error;
}

#endif
