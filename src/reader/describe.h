/* SPDX-License-Identifier: MIT */
/*
 * What users of libkymo-reader see of opened traces: traces, streams, classes of events and their
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

/* 0 or -ENOMEM. */
int ky_description_new(struct ky_description **ret, const struct ky_trace_reader *r);
/* NULL is fine. Returns NULL. */
struct ky_description *ky_description_free(struct ky_description *d);
/* Borrowed; NULL when there is none. */
const char *ky_description_env(const struct ky_description *d, size_t trace, const char *name);
/* The type that holds all values of a field. */
enum kymo_column_type ky_field_type(const struct ky_field_ref *f);

#endif
