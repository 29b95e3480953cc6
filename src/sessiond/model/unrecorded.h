/* SPDX-License-Identifier: MIT */
/*
 * Applications of which a session misses events, because they stopped waiting for this daemon, ran
 * while no daemon did, became another user, or could not use their buffers. The daemon counts them
 * and names the first ones: in `status`, `stop`, `destroy` and at the end of `kymo record`.
 */
#ifndef SESSIOND_MODEL_UNRECORDED_H
#define SESSIOND_MODEL_UNRECORDED_H

#include <sys/types.h>

#include "base/buf.h"

#define UNRECORDED_NAMED 5u

struct unrecorded {
	/* An application that reports often counts once, while it is named or was the last. */
	unsigned n;
	pid_t last;
	struct {
		pid_t pid;
		uint64_t ns;
		char *name;	   /* owned */
	} named[UNRECORDED_NAMED]; /* the first ones */
};

#define UNRECORDED_TO_ITS_END UINT64_MAX

/* Appends "emit (pid 5, 1.5 ms)"; ns may be UNRECORDED_TO_ITS_END. */
void unrecorded_put(struct ky_buf *to, const char *name, pid_t pid, uint64_t ns);
/*
 * Records that the application ran unrecorded for ns, or for UNRECORDED_TO_ITS_END: in addition to
 * what it has reported before.
 */
void unrecorded_add(struct unrecorded *u, const char *name, pid_t pid, uint64_t ns);
/* Appends a sentence that names them; nothing if there are none. */
void unrecorded_describe(struct ky_buf *to, const struct unrecorded *u);
void unrecorded_deinit(struct unrecorded *u);

#endif
