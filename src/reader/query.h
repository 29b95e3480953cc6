/* SPDX-License-Identifier: MIT */
/*
 * Selects a part of opened traces: a range of time, classes of events, a filter. Cursors are opened
 * from a query. They copy all that changes while they read, so threads may share a query.
 */
#ifndef READER_QUERY_H
#define READER_QUERY_H

#include "reader/expr.h"

struct ky_shown_fields; /* reader/format.h */

#define KY_QUERY_PATTERN_MAX 4096 /* bytes of a pattern of names, with the 0 at its end */

/* Zeroed, but for reader and select, at first: ky_query_init. */
struct ky_query {
	struct ky_trace_reader *reader; /* borrowed */
	struct ky_select select;	/* without `wanted` */
	/* classes that are selected: by patterns, by number; all if both are NULL */
	char *patterns;	 /* owned */
	uint8_t *chosen; /* owned: 1 if the class is selected; of the first n_chosen classes */
	size_t n_chosen;
	uint8_t *streams;     /* owned: select.streams */
	struct ky_expr *expr; /* owned, or NULL */
	/* borrowed: events that have none of these fields are left out; NULL: no limit */
	const struct ky_shown_fields *shown;
};

void ky_query_init(struct ky_query *q, struct ky_trace_reader *r);
void ky_query_deinit(struct ky_query *q);
/* Copies q with all that it owns. Returns 0 or -ENOMEM. */
int ky_query_copy(struct ky_query *to, const struct ky_query *q);
/*
 * Selects the classes whose names match: patterns separated by commas. Patterns after `!` exclude
 * classes. Returns 0, -ENOMEM, or -EINVAL for an invalid pattern.
 */
int ky_query_events(struct ky_query *q, const char *patterns);
/* Selects a class, in addition to others. Returns 0 or -ENOMEM. */
int ky_query_class(struct ky_query *q, size_t class_index);
/*
 * Returns true if a pattern of *rest (at first, the list that ky_query_events got) matches no class
 * of the trace, writes it without its '!', and moves *rest behind it. Returns false if all others
 * match.
 */
bool ky_query_lacks_event(
	const struct ky_query *q, const char **rest, char ret_pattern[KY_QUERY_PATTERN_MAX]);
/* Sets the filter; replaces an earlier one. Returns 0, -ENOMEM, or -EINVAL and *error. */
int ky_query_filter(struct ky_query *q, const char *expression, struct ky_filter_error *error);
/*
 * Returns true if the filter names a field that no selected class has, and writes its path. Returns
 * false if no class is selected.
 */
bool ky_query_lacks_field(const struct ky_query *q, char path[KY_EXPR_PATH_MAX]);
/*
 * Returns true if the filter mistakes a type (ky_expr_mistakes_type) in each selected class that
 * has its fields; writes the path of the field.
 */
bool ky_query_mistakes_type(
	const struct ky_query *q, char path[KY_EXPR_PATH_MAX], enum ky_expr_mistake *ret_mistake);
/* Selects a stream, by its rank - 1, and those of other calls. Returns 0 or -ENOMEM. */
int ky_query_stream(struct ky_query *q, size_t stream);
/* Returns true if the class is selected. */
bool ky_query_has(const struct ky_query *q, size_t class_index);
/*
 * Divides the query's times into slices of about equal work: 1 to n, with `least` bytes of packets
 * each. With readers > 0, the first ones are larger: each is half of what each of so many readers
 * would get of the rest, but not smaller than an nth of all. One slice if packets of a stream
 * overlap or go back in time. Returns 0 or -ENOMEM.
 */
int ky_query_slices(const struct ky_query *q, size_t n, uint64_t least, size_t readers,
	struct ky_select **ret_slices, size_t *ret_n);

/*
 * Returns true if the whole would have the item in another slice, or before the item at last_ns:
 * then slices do not give what the whole does.
 */
bool ky_query_is_misplaced(
	const struct ky_select *slice, const struct ky_item *item, int64_t last_ns);

/* A cursor with its copies of the query's parts. */
struct ky_reading {
	const struct ky_query *query; /* borrowed */
	struct ky_cursor *cursor;
	uint64_t generation; /* of the reader, when the cursor was refreshed */
	uint8_t *wanted;     /* by class: enum ky_want */
	const struct ky_expr *expr;
	struct ky_field_ref **fields; /* of the expression, by class */
	size_t n_classes;
};

/*
 * Opens a cursor. want: of the classes that are chosen, enum ky_want; NULL: all of them with
 * values. select: a slice, or NULL. 0 or -ENOMEM; ky_reading_deinit in any case. The query stays,
 * and is not changed, while it is read.
 */
int ky_reading_init(struct ky_reading *r, const struct ky_query *q, const uint8_t *want,
	const struct ky_select *select, const struct ky_trace_reader_options *options);
void ky_reading_deinit(struct ky_reading *r);
/*
 * Continues after a refresh of the reader. want: as before, of all classes that there are now.
 * Items that were returned become invalid. Returns 0 or -ENOMEM.
 */
int ky_reading_refresh(struct ky_reading *r, const uint8_t *want);

#endif
