/* SPDX-License-Identifier: MIT */
/*
 * Describes opened traces for users of libkymo-reader: traces, streams, classes of events and their
 * fields.
 */
#ifndef READER_DESCRIBE_H
#define READER_DESCRIBE_H

#include <kymo/reader.h>
#include "reader/field.h"

struct ky_description {
	const struct ky_trace_reader *reader; /* borrowed */
	struct kymo_trace_info *traces;
	struct kymo_stream_info *streams;
	struct kymo_event_class *classes;
	size_t n_traces, n_streams, n_classes;
	struct ky_arena arena; /* all of them, and what they refer to but the reader's */
};

/* Makes the description. The caller frees it. Returns 0 or -ENOMEM. */
int ky_description_new(struct ky_description **ret, const struct ky_trace_reader *r);
/* Frees d, which may be NULL. Returns NULL. */
struct ky_description *ky_description_free(struct ky_description *d);
/* Returns a value of a trace's environment; borrowed. NULL if there is none. */
const char *ky_description_env(const struct ky_description *d, size_t trace, const char *name);
/* Returns the type that holds all values of a node. */
enum kymo_column_type ky_node_type(const struct ky_node *n);

#endif
