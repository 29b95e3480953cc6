/* SPDX-License-Identifier: MIT */
/*
 * A table of asynchronous spans that are open. Any thread may end one; it is found by its name and
 * its identifier. Of those that have both in common, the newest ends first.
 */
#ifndef ANALYSIS_OPEN_ASYNC_H
#define ANALYSIS_OPEN_ASYNC_H

#include "base/htab.h"

/* Begins each structure of a table. The rest is the caller's. */
struct ky_open_async {
	struct ky_hnode node;
	struct ky_open_async *below; /* the same name and id, begun before; not in the table */
	uint32_t name;
	uint64_t id;
};

/*
 * Opens a span: a structure of this size in bytes, whose rest is 0. The table owns it until the
 * span ends. Returns NULL if there is no memory.
 */
void *ky_open_async_begin(struct ky_htab *open, size_t size, uint32_t name, uint64_t id);
/* Takes the span of that name and id off the table. The caller frees it. NULL: there is none. */
void *ky_open_async_end(struct ky_htab *open, uint32_t name, uint64_t id);
/* Frees all spans. The table can be used again. */
void ky_open_async_free_all(struct ky_htab *open);

#endif
