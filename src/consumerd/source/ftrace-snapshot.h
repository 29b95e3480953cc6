/* SPDX-License-Identifier: MIT */
/*
 * A copy of a CPU's ring buffer that the kernel goes on overwriting (Linux 6.10). The ring is
 * mapped, and copied while it is written; nothing is consumed, and recording does not pause.
 *
 *   1. note the clock of each sub-buffer
 *   2. copy each; keep it if its clock is still the noted one
 *   3. read all clocks again: the newest sub-buffer that was overwritten meanwhile is `lost`, and
 *      the oldest one that was written meanwhile is `first_new`
 *
 * The copies between `lost` and `first_new` have no hole between them.
 */
#ifndef CONSUMERD_SOURCE_FTRACE_SNAPSHOT_H
#define CONSUMERD_SOURCE_FTRACE_SNAPSHOT_H

#include "base/util.h"

/* The records that a page will become. */
struct ftrace_part {
	uint64_t end; /* clock of the last one */
	uint64_t bytes, n_events;
};

struct ftrace_copy {
	uint8_t *pages;		   /* owned; NULL: not open */
	struct ftrace_part *parts; /* owned; of the pages in this order; NULL: not measured yet */
	uint32_t *order;	   /* owned: of the pages, oldest first */
	uint32_t n, next, size;
	size_t mapped; /* bytes of pages */
};

/*
 * Copies the ring of this trace_pipe_raw. Returns 0 or -errno; -EBADMSG if its sub-buffers do not
 * have this size.
 */
int ftrace_copy_open(struct ftrace_copy *c, int fd, uint32_t subbuf_size);
/* The same for a ring whose n sub-buffers are in memory that the kernel writes. 0 or -ENOMEM. */
int ftrace_copy_ring(struct ftrace_copy *c, const uint8_t *data, uint32_t n, uint32_t size);
void ftrace_copy_close(struct ftrace_copy *c);
static inline bool ftrace_copy_is_open(const struct ftrace_copy *c)
{
	return c->pages;
}
/* Copies a sub-buffer to `page`: 0 is the oldest. */
void ftrace_copy_read(const struct ftrace_copy *c, uint32_t i, uint8_t *page);
/* Copies the next sub-buffer to `page`. Returns false if there is none. */
bool ftrace_copy_next(struct ftrace_copy *c, uint8_t *page);

#endif
