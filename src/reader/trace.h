/* SPDX-License-Identifier: MIT */
/*
 * One trace: its names, its description, and what its metadata reports about missing events. The
 * functions that return an errno have stored the failure in the reader.
 */
#ifndef READER_TRACE_H
#define READER_TRACE_H

#include "base/buf.h"
#include "reader/state.h"

#define KY_GAPS_REPORTED 8 /* each in a line of its own */

/* Makes a trace without description. Returns NULL without memory. */
struct ky_trace *ky_trace_new(struct ky_trace_reader *r, const char *dir);
/* Frees a trace, which may be NULL. Returns NULL. */
struct ky_trace *ky_trace_free(struct ky_trace *t);
/*
 * Describes a new trace by the text of its metadata. The first root_len bytes of its directory are
 * the user's path. Returns 0 or a negative errno.
 */
int ky_trace_describe(
	struct ky_trace_reader *r, struct ky_trace *t, const struct ky_buf *text, size_t root_len);
/*
 * Parses and compiles the metadata of the trace at dir. Returns 0, or a negative errno: then
 * nothing is left to free.
 */
int ky_trace_parse(struct ky_trace_reader *r, struct ky_tsdl *tsdl, struct ky_layout *layout,
	const struct ky_buf *text, const char *dir);
/* Adds a described trace to the reader. Takes the trace, and frees it on failure. 0 or -ENOMEM. */
int ky_trace_keep(struct ky_trace_reader *r, struct ky_trace *t);
/* Reports missing events, and what triggered a snapshot. Returns 0 or -ENOMEM. */
int ky_trace_find_gaps(struct ky_trace_reader *r, const char *dir, const struct ky_buf *text);
/* Reports a gap, unless another trace or chunk has reported the same. Returns 0 or -ENOMEM. */
int ky_trace_add_gap(struct ky_trace_reader *r, const char *dir, const char *text, size_t len);
/*
 * Reports the events of chunks that the consumer removed from the directory's archives
 * (consumerd/sink/archives.h). Returns 0 or -ENOMEM.
 */
int ky_trace_find_removed(struct ky_trace_reader *r, const char *dir);
/* Compares as memcmp. Traces without UUID come last, and are equal. */
int ky_trace_compare_uuids(const struct ky_tsdl *x, const struct ky_tsdl *y);

#endif
