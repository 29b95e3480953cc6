/* SPDX-License-Identifier: MIT */
/*
 * Reads a trace: once for the times of all instances of a span, and once more for the accounts of
 * the chosen ones. Memory is bounded by the chosen instances, not by the trace.
 */
#ifndef EXPLAIN_ACCOUNT_H
#define EXPLAIN_ACCOUNT_H

#include "explain/model.h"

/* The instances of one trace. */
struct ky_instances {
	bool is_second;
	KY_VEC(struct ky_instance)
	all; /* ended ones, in order of their begins; a sample of them if
					   there are more than KY_MAX_INSTANCES */
	KY_VEC(struct ky_instance)
	longest;    /* only if all is a sample: the longest, longest first */
	uint64_t n; /* ended, and not left out */
	uint64_t n_unfinished, n_unbegun, n_lost; /* left out */
	uint64_t n_instant;			  /* left out: the clock did not advance */
	/* Left out: within KY_MAX_DEPTH others of the thread. Each event is added to all. */
	uint64_t n_nested;
	uint64_t n_threadless; /* events whose thread is not known */
	int64_t trace_ns;      /* time of the trace's first event */
};

/* Pass 1. Sets x->is_async. 0 or a negative errno. */
int ky_instances_read(struct ky_instances *v, struct ky_explain *x, struct ky_source *s);
void ky_instances_deinit(struct ky_instances *v);

/* Pass 2: fills in and closes the chosen instances. 0 or a negative errno. */
int ky_account_read(struct ky_explain *x, struct ky_source *s, struct ky_instances *of,
	struct ky_instance **chosen, size_t n);

/* The thread of an event: its context, its span, else the one that runs on its processor. */
int64_t ky_event_tid(const struct ky_source_event *e);

#endif
