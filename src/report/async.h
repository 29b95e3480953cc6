/* SPDX-License-Identifier: MIT */
/*
 * The asynchronous spans of a report that are open. Any thread may end one; it is found by its name
 * and its identifier. Of those that have both in common, the newest ends first.
 */
#ifndef REPORT_ASYNC_H
#define REPORT_ASYNC_H

#include "base/htab.h"

struct ky_track;

struct ky_async {
	struct ky_hnode node;
	struct ky_async *below; /* owned: the same name and id, begun before; not in the table */
	uint32_t name;
	uint64_t id;
	/* the caller stores here on which track it draws the span */
	struct ky_track *track;
	size_t lane;
};

/* Opens a span. Returns it until it is ended, without a place; NULL if there is no memory. */
struct ky_async *ky_async_begin(struct ky_htab *open, uint32_t name, uint64_t id);
/* Takes the span of that name and id off the table: the caller frees it. NULL: there is none. */
struct ky_async *ky_async_end(struct ky_htab *open, uint32_t name, uint64_t id);
/* Forgets all spans. The table can be used again. */
void ky_async_drop_all(struct ky_htab *open);

#endif
