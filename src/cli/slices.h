/* SPDX-License-Identifier: MIT */
/*
 * Prints lines of events by several threads: each reads slices of time and makes their lines, and
 * writes them when those of all slices before are written. A thread waits for its turn to write, so
 * memory is bounded.
 *
 * Slices give the lines of the trace as a whole if the records of each stream are in order of time.
 * Damage breaks that. The first slice with any is not printed; the caller prints from there on, in
 * one thread.
 */
#ifndef CLI_SLICES_H
#define CLI_SLICES_H

#include "cli/progress.h"
#include "reader/format.h"
#include "reader/query.h"

struct cli_slices {
	const struct ky_query *query; /* borrowed */
	const uint8_t *want;	      /* borrowed; as of ky_reading_init */
	const struct ky_format *like; /* borrowed; the format of all lines */
	bool json;
	struct cli_progress *progress; /* borrowed */
};

/* The lines that were printed. */
struct cli_slices_result {
	bool any;  /* an event, or a report of lost ones */
	bool all;  /* nothing is left to print */
	int error; /* of writing, which is permanent */
	/* Of the last line that was printed. */
	bool had_time;
	int64_t last_ns;
	/* if not all: begin of the rest, unless the rest is the whole query */
	bool has_begin;
	int64_t begin_ns;
};

/* Returns 0 or -ENOMEM. Prints nothing if other threads are not worth it. */
int cli_slices_print(const struct cli_slices *s, struct cli_slices_result *ret);

#endif
