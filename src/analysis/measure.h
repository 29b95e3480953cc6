/* SPDX-License-Identifier: MIT */
/*
 * Measurements over the events of a query, in one pass: the time from an event to another one, and
 * the values of fields.
 */
#ifndef ANALYSIS_MEASURE_H
#define ANALYSIS_MEASURE_H

#include "analysis/keys.h"
#include "analysis/spans.h"
#include "reader/query.h"

#define KY_MEASURE_TOP 10

/* The time from an event `begin` to the event `end` that has the same key. */
struct ky_latency {
	char *begin, *end, *name; /* owned */
	char *key;		  /* owned: names of fields with '+' between them, or NULL */
	bool is_fifo;		  /* the first that began ends first, not the last */
	bool is_of_thread;	  /* the key has the thread */
	struct ky_keys keys;
	struct ky_spans spans;	    /* what is begun */
	struct ky_span_name *times; /* borrowed from spans */
	uint64_t n_unkeyed;	    /* events that lack a field of the key */
};

/* An event, by the value of its field. */
struct ky_top_event {
	const char *name; /* the reader's */
	uint64_t value;	  /* as is_signed says; of floating-point numbers: ky_float_of_order */
	int64_t ns;
};

/* The values of a field of numbers. */
struct ky_field_values {
	const char *field;	       /* borrowed */
	struct ky_field_ref *of_class; /* owned; by the index of the class */
	bool is_signed;		       /* in any class */
	bool is_float;		       /* in any class */
	double sum, min, max;	       /* if is_float */
	struct ky_histogram values;    /* without those below 0, and what is no number */
	uint64_t n_negative;
	struct ky_top_event
		top[KY_MEASURE_TOP]; /* the greatest first; of equal ones the earliest */
	size_t n_top;
};

/* Returns a floating-point number from a signed integer of the same order, and back. */
double ky_float_of_order(uint64_t order);

struct ky_measures {
	struct ky_latency *latencies; /* owned */
	size_t n_latencies;
	struct ky_field_values *fields; /* owned */
	size_t n_fields;
	struct ky_totals totals; /* of all that was read */
	const char *unknown;	 /* borrowed: the name that no event has, after -ENOENT */
};

/*
 * Adds a latency "A..B[,key=FIELD+FIELD][,nest|fifo]". 0, -ENOMEM, or -EINVAL and *ret_why, which
 * is static text, for a description that is none.
 */
int ky_measures_add_latency(struct ky_measures *m, const char *text, const char **ret_why);
/* Adds a field. 0 or -ENOMEM. */
int ky_measures_add_field(struct ky_measures *m, const char *field);
/*
 * 0, -ENOMEM, -ENOENT if no event has a name or a field, which is then in `why`, or another
 * negative errno. options: where damage is reported. ky_measures_deinit in any case.
 */
int ky_measures_collect(struct ky_measures *m, const struct ky_query *q,
	const struct ky_trace_reader_options *options, char *why, size_t why_size);
/*
 * The two steps of ky_measures_collect, for callers that read themselves. ky_measures_bind adds to
 * `want` (by class: enum ky_want) what is measured; ky_measures_add takes all items in order.
 */
int ky_measures_bind(
	struct ky_measures *m, uint8_t *want, const struct ky_query *q, char *why, size_t why_size);
int ky_measures_add(struct ky_measures *m, const struct ky_item *item);
void ky_measures_deinit(struct ky_measures *m);

#endif
