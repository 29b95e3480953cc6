/* SPDX-License-Identifier: MIT */
/*
 * Memory by the site that allocated it, from the events of libkymo-libc.so or LTTng-UST's: how much
 * was in use at most, and what was not released. Releases of memory that was allocated before the
 * first event are counted only.
 */
#ifndef ANALYSIS_HEAP_H
#define ANALYSIS_HEAP_H

#include "analysis/sites.h"
#include "base/htab.h"
#include "base/vec.h"

struct ky_heap_use {
	uint64_t n_calls, n_bytes; /* allocations */
	uint64_t in_use, n_blocks; /* at the end */
	uint64_t peak;		   /* of in_use */
	int64_t peak_ns;
};

struct ky_heap {
	KY_VEC(struct ky_heap_use) sites; /* by number */
	struct ky_heap_use all;
	uint64_t n_releases, n_unknown, n_failed; /* n_unknown: releases of unknown memory */
	uint64_t n_gaps;			  /* where events are missing */
	size_t n_classes;			  /* of memory functions, in the trace */
	struct ky_heap_class *classes;		  /* owned; by index */
	struct ky_htab blocks;
};

/* Reads the events of q. Returns 0 or -ENOMEM; ky_heap_deinit in any case. */
int ky_heap_collect(struct ky_heap *h, const struct ky_query *q, const struct ky_sites *sites,
	const struct ky_trace_reader_options *options);
void ky_heap_deinit(struct ky_heap *h);

#endif
