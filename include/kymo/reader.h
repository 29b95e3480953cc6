/* SPDX-License-Identifier: MIT */
/*
 * Reading traces from C: all CTF traces below some directories as one sequence of events, in order
 * of time.
 *
 *	const char *path = "trace";
 *	const struct kymo_batch *b;
 *	struct kymo_reader *reader;
 *	struct kymo_query *query;
 *	struct kymo_cursor *cursor;
 *	size_t size;
 *
 *	kymo_reader_open(&reader, &path, 1, NULL, NULL);
 *	kymo_query_new(&query, reader);
 *	kymo_query_events(query, "libc:malloc");
 *	kymo_query_column(query, "size", KYMO_UINT64, &size);
 *	kymo_cursor_open(&cursor, query);
 *	while (kymo_cursor_next(cursor, &b) > 0)
 *		for (size_t i = 0; i < b->n; i++)
 *			if (kymo_batch_has(b, size, i))
 *				total += ((const uint64_t *)b->columns[size].values)[i];
 *
 * A reader represents opened traces. It changes only by kymo_reader_refresh, which finds data that
 * was written after the traces were opened; any threads may share it. A query selects data: streams
 * then read no more than that. A cursor is one iteration over a query; one thread uses it at a
 * time. The caller must not change or free a query while it has cursors, nor close a reader while
 * it has queries.
 *
 * Functions return 0 or -errno; -ENOMEM is possible wherever -errno is. The library prints nothing
 * and has no state of its own. Traces may hold anything: unreadable parts are reported as items,
 * and everything else is read.
 *
 * Link with `pkg-config --libs kymo-reader`. C11 and C++11.
 */
#ifndef KYMO_READER_H
#define KYMO_READER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KYMO_READER_API __attribute__((__visibility__("default")))

struct kymo_reader;
struct kymo_query;
struct kymo_cursor;

/* --- opened traces --- */

struct kymo_reader_options {
	size_t size; /* sizeof(struct kymo_reader_options) */
	/*
	 * Called with one line about damaged or missing data, without newline, by the functions
	 * that open and read. May be NULL.
	 */
	void (*warn)(void *arg, const char *text);
	void *arg;
	/* The traces are being recorded: only whole packets are read. */
	int is_growing;
};

struct kymo_reader_error {
	unsigned position; /* in the given text, from 1; 0: not known */
	char text[512];	   /* one line: what failed, and why */
};

/*
 * Opens all traces below n directories, each trace once. options, error: may be NULL. The caller
 * closes *ret_reader. Returns -ENOENT if there is no trace; -EINVAL if the metadata is damaged; or
 * the error of reading a directory.
 */
KYMO_READER_API int kymo_reader_open(struct kymo_reader **ret_reader, const char *const *paths,
	size_t n, const struct kymo_reader_options *options, struct kymo_reader_error *error);
/* Opens one trace of one stream in memory, which the caller keeps. */
KYMO_READER_API int kymo_reader_open_memory(struct kymo_reader **ret_reader, const void *metadata,
	size_t metadata_size, const void *stream, size_t stream_size,
	const struct kymo_reader_options *options, struct kymo_reader_error *error);
/*
 * Looks for what was recorded since the traces were opened or refreshed: packets, streams, classes
 * of events, traces. Returns 1 if there is anything new: cursors that reached the end then continue
 * there, and queries select among the new classes as well. Returns 0 if there is nothing new.
 *
 * Numbers of traces, streams and classes stay; new ones follow. Pointers from kymo_reader_trace,
 * _stream, _class and _env and batches become invalid. No other thread may use the reader, its
 * queries or cursors meanwhile.
 */
KYMO_READER_API int kymo_reader_refresh(struct kymo_reader *reader);
/*
 * Returns 1 if Kymo is recording one of the traces, and 0 if none. Returns -ENOTSUP if that is not
 * known because another tracer made one of them.
 */
KYMO_READER_API int kymo_reader_is_recorded(const struct kymo_reader *reader);
/* Closes a reader. Accepts NULL. */
KYMO_READER_API void kymo_reader_close(struct kymo_reader *reader);

/* The part of a record that contains a field. */
enum kymo_scope {
	KYMO_SCOPE_PACKET =
		0, /* same for all events of a packet: cpu_id, or vpid, vtid, procname */
	KYMO_SCOPE_STREAM = 1,	/* a context of all events of a channel */
	KYMO_SCOPE_CONTEXT = 2, /* a context of one class of events */
	KYMO_SCOPE_FIELDS = 3	/* recorded by the program */
};

/* Types of columns, and the best type for reading a field. */
enum kymo_column_type {
	/*
	 * the type that holds the field in all classes that have it; KYMO_DOUBLE, with the nearest
	 * values, for numbers that no type of 64 bits holds
	 */
	KYMO_ANY = 0,
	KYMO_INT64 = 1,
	KYMO_UINT64 = 2,
	KYMO_DOUBLE = 3,
	KYMO_TEXT =
		/*
		 * bytes, without a NUL: text unchanged, labels of enumerations, others as in `kymo
		 * view`
		 */
	4
};

struct kymo_label {
	const char *text;
	int64_t first, last; /* values; of unsigned enumerations their bits */
};

struct kymo_event_field {
	const char *name; /* as columns are named; "outer.inner" in structures */
	enum kymo_scope scope;
	enum kymo_column_type type;
	unsigned bits, base; /* of integers; bits of floating-point numbers */
	int is_array;	     /* of anything but characters */
	size_t n_labels;     /* of enumerations */
	const struct kymo_label *labels;
};

struct kymo_event_class {
	const char *name; /* "provider:event"; "<unknown>" if the trace has none */
	uint64_t id, stream_class;
	size_t trace;  /* number of its trace */
	int log_level; /* -1: none */
	size_t n_fields;
	/* those that readers show, beginning with the packet's */
	const struct kymo_event_field *fields;
};

struct kymo_trace_info {
	const char *path;	/* of its directory */
	const char *name;	/* path below the opened directory, behind the host's name */
	const char *host;	/* "" if it is not known */
	const char *clock_name; /* of the first clock, or "" */
	const char *clock_description;
	uint64_t clock_frequency; /* 0: no clock */
	uint8_t uuid[16];
	int has_uuid;
};

struct kymo_stream_info {
	size_t trace;
	uint64_t stream_class, instance;
	size_t n_files;
	const char *path; /* of its first file */
	uint64_t n_bytes;
	int has_times;
	int is_of_threads; /* its records belong to one thread at a time */
	int is_cut;	   /* its first records are missing: complete_from_ns is valid */
	int64_t complete_from_ns;
};

/* Totals from packet headers: no event is decoded. */
struct kymo_reader_totals {
	size_t size; /* set by the caller: sizeof(struct kymo_reader_totals) */
	size_t n_traces, n_streams, n_classes;
	uint64_t n_packets, n_bytes, n_discarded;
	int has_times;
	/* of packets, or of events if packets have no times; events may lie slightly outside */
	int64_t begin_ns, end_ns;
	/* some streams begin in the middle (a snapshot): complete_from_ns is valid */
	int is_cut;
	int64_t complete_from_ns; /* from then on all streams are complete */
};

KYMO_READER_API size_t kymo_reader_n_traces(const struct kymo_reader *reader);
KYMO_READER_API size_t kymo_reader_n_streams(const struct kymo_reader *reader);
KYMO_READER_API size_t kymo_reader_n_classes(const struct kymo_reader *reader);
/* These return data owned by the reader; NULL if there is none with that number. */
KYMO_READER_API const struct kymo_trace_info *kymo_reader_trace(
	const struct kymo_reader *reader, size_t i);
KYMO_READER_API const struct kymo_stream_info *kymo_reader_stream(
	const struct kymo_reader *reader, size_t i);
KYMO_READER_API const struct kymo_event_class *kymo_reader_class(
	const struct kymo_reader *reader, size_t i);
KYMO_READER_API int kymo_reader_get_totals(
	struct kymo_reader *reader, struct kymo_reader_totals *totals);
/* Returns a value of the metadata's `env` as text, owned by the reader; NULL if there is none. */
KYMO_READER_API const char *kymo_reader_env(
	const struct kymo_reader *reader, size_t trace, const char *name);

/* --- packets --- */

struct kymo_packets;

struct kymo_packet {
	const char *path; /* of its file */
	uint64_t offset;  /* of its first byte */
	uint64_t n_bytes, n_content_bytes;
	uint64_t n_discarded;	  /* events of the stream that were discarded until its end */
	int has_times;		  /* its times are valid */
	int64_t begin_ns, end_ns; /* as its head says */
};

/*
 * Opens an iteration over the packets of a stream, by their heads: no event is decoded. It steps
 * over damaged heads, and leaves out a packet that is cut off. The caller closes it.
 */
KYMO_READER_API int kymo_packets_open(
	struct kymo_packets **ret_packets, const struct kymo_reader *reader, size_t stream);
KYMO_READER_API void kymo_packets_close(struct kymo_packets *packets);
/* Returns 1 with the next packet, 0 at the end, or -ENOMEM. */
KYMO_READER_API int kymo_packets_next(struct kymo_packets *packets, struct kymo_packet *ret_packet);

/* --- queries --- */

/* Makes a query for all events of all traces, without columns. The caller frees it. */
KYMO_READER_API int kymo_query_new(struct kymo_query **ret_query, struct kymo_reader *reader);
KYMO_READER_API void kymo_query_free(struct kymo_query *query);
/* Selects events from from_ns to to_ns, both included, in nanoseconds since 1970. */
KYMO_READER_API int kymo_query_time(struct kymo_query *query, int64_t from_ns, int64_t to_ns);
/*
 * Selects events of classes whose names match. Patterns are separated by commas; `*` matches any
 * text; a pattern after `!` excludes. If all patterns exclude: selects all other classes. Returns
 * -EINVAL if a pattern is empty.
 */
KYMO_READER_API int kymo_query_events(struct kymo_query *query, const char *patterns);
/* Selects events of this class, and of those in other calls of this function. */
KYMO_READER_API int kymo_query_class(struct kymo_query *query, size_t class_index);
/* Returns 1 if the query selects the class, else 0. */
KYMO_READER_API int kymo_query_has_class(const struct kymo_query *query, size_t class_index);
/* Selects this stream, and those in other calls of this function; the others are not read. */
KYMO_READER_API int kymo_query_stream(struct kymo_query *query, size_t stream);
/*
 * Selects events for which the expression is true (kymo-filter(7)). Leaves out events that lack a
 * field of the expression. error: may be NULL. Returns -EINVAL for an invalid expression.
 */
KYMO_READER_API int kymo_query_filter(
	struct kymo_query *query, const char *expression, struct kymo_reader_error *error);
/*
 * Adds a column: the field of that name ("size", "customer.name", "list[2]"), in each class that
 * has one. An event's fields have priority over its contexts; "$ctx.NAME" is a context only. An
 * option of a variant that has no name has the name of the variant. If "a.b" may also be the member
 * b of a, a field of this name is "a\.b".
 * *ret_column: its number, from 0. Returns 0 also if no class has the field; -EINVAL for an invalid
 * name or type.
 */
KYMO_READER_API int kymo_query_column(
	struct kymo_query *query, const char *name, enum kymo_column_type type, size_t *ret_column);
/* Returns the type of a column: that of KYMO_ANY is known after it was added. */
KYMO_READER_API enum kymo_column_type kymo_query_column_type(
	const struct kymo_query *query, size_t column);
/*
 * Leaves out values of other types than the column's, instead of converting them. Enumerations are
 * numbers then. So three columns of one field have all its numbers without rounding. Returns
 * -EINVAL if there is no such column.
 */
KYMO_READER_API int kymo_query_exact(struct kymo_query *query, size_t column);
/* Sets whether kymo_batch_format will be used. Default: no. */
KYMO_READER_API int kymo_query_lines(struct kymo_query *query, int wanted);
/* Sets whether items other than events are selected, too. Default: no. */
KYMO_READER_API int kymo_query_losses(struct kymo_query *query, int wanted);
/*
 * Divides a query into at most n parts: consecutive slices of time, of about equal work. The
 * cursors of all parts return the rows of the query, each once, one part after the other. *ret_n:
 * the number of parts; the caller frees each. Different threads may use the parts.
 */
KYMO_READER_API int kymo_query_split(
	const struct kymo_query *query, size_t n, struct kymo_query **parts, size_t *ret_n);

/* --- rows --- */

enum kymo_item {
	KYMO_ITEM_EVENT = 0,
	KYMO_ITEM_DISCARDED_EVENTS = 1,
	KYMO_ITEM_DISCARDED_PACKETS = 2,
	KYMO_ITEM_DAMAGED = 3 /* unreadable records, whose number is not known */
};

struct kymo_column {
	enum kymo_column_type type;
	const void *values;    /* n of int64_t, uint64_t or double; of text: bytes */
	const uint64_t *valid; /* bit i % 64 of word i / 64: row i has a value */
	/* of text: the end of row i; it begins at the end of the previous row */
	const uint32_t *ends;
};

/* Rows as columns: arrays of n elements, owned by the cursor until its next call. */
struct kymo_batch {
	size_t n; /* rows, at most KYMO_BATCH_MAX */
	size_t n_columns;
	const uint8_t *item;	     /* enum kymo_item */
	const int64_t *ns;	     /* since 1970; 0 in traces without clock */
	const uint32_t *class_index; /* of events */
	const uint32_t *stream;
	/* number of events or packets; 0 for events and damage */
	const uint64_t *lost;
	const int64_t *end_ns;		   /* the end of the missing part; ns for events */
	const struct kymo_column *columns; /* the columns of the query */
	const void *internal;
};

#define KYMO_BATCH_MAX 4096

/* Opens a cursor before the first row. The caller closes it. */
KYMO_READER_API int kymo_cursor_open(
	struct kymo_cursor **ret_cursor, const struct kymo_query *query);
KYMO_READER_API void kymo_cursor_close(struct kymo_cursor *cursor);
/* Returns 1 with the next rows, 0 at the end, or -ENOMEM. */
KYMO_READER_API int kymo_cursor_next(
	struct kymo_cursor *cursor, const struct kymo_batch **ret_batch);
/*
 * Leaves rows at or after this time for later: kymo_cursor_next returns 0 before them. While a
 * trace grows, its streams are not complete up to the same time, and rows in the order of time can
 * only come from before. INT64_MAX (default): no limit.
 */
KYMO_READER_API void kymo_cursor_until(struct kymo_cursor *cursor, int64_t ns);

static inline int kymo_batch_has(const struct kymo_batch *batch, size_t column, size_t row)
{
	return (int)(batch->columns[column].valid[row / 64] >> row % 64 & 1);
}

/* Returns the text of a row, *ret_len bytes. */
static inline const char *kymo_batch_text(
	const struct kymo_batch *batch, size_t column, size_t row, size_t *ret_len)
{
	const struct kymo_column *c = &batch->columns[column];
	uint32_t begin = row ? c->ends[row - 1] : 0;

	*ret_len = c->ends[row] - begin;
	return (const char *)c->values + begin;
}

enum kymo_format {
	KYMO_FORMAT_TEXT = 0, /* the line of `kymo view`, with a newline */
	KYMO_FORMAT_JSON = 1,
	KYMO_FORMAT_FIELDS = 2,	    /* only contexts and fields of that line, without a newline */
	KYMO_FORMAT_JSON_FIELDS = 3 /* the fields as a JSON object, without a newline */
};

/*
 * Formats the line of a row: *ret_text and *ret_len, valid until the next call for this batch. The
 * time since the previous event is unknown in the first line of a cursor, and in a batch whose rows
 * are not all formatted in order. Returns -EINVAL if the query did not request lines.
 */
KYMO_READER_API int kymo_batch_format(const struct kymo_batch *batch, size_t row,
	enum kymo_format format, const char **ret_text, size_t *ret_len);

/* --- spans and latencies --- */

struct kymo_spans;

enum kymo_span_flags {
	KYMO_SPAN_ASYNC = 1,  /* of no thread */
	KYMO_SPAN_CROSSES = 2 /* it ended after the span of its thread that it began in */
};

/* Spans in the order of their ends: arrays of n elements, valid until the next call. */
struct kymo_span_batch {
	size_t n;
	const int64_t *begin_ns; /* since 1970 */
	const uint64_t *duration_ns;
	const uint64_t *self_ns; /* without spans that began in it in the same thread */
	/* order of its begin and its end among the events that begin or end spans, from 1 */
	const uint64_t *number, *end_number;
	const uint64_t *parent;	   /* number of the span of its thread that it began in; 0: none */
	const uint32_t *depth;	   /* spans of its thread that were open when it began */
	const uint32_t *name;	   /* kymo_spans_name */
	const int64_t *pid, *tid;  /* of its begin; -1: not known */
	const uint8_t *flags;	   /* enum kymo_span_flags */
	const char *keys;	   /* of latencies: bytes, without a NUL */
	const uint32_t *keys_ends; /* the end of each key, as in columns of text */
};

/*
 * Opens an iteration over the spans of the query's events: pairs of NAME_begin and NAME_end that
 * <kymo/span.h> recorded. latency: NULL, or "A..B[,key=FIELD+FIELD][,nest|fifo]": pairs of these
 * events instead, as `kymo stat --latency` makes them. A begin and an end with records missing
 * between them are no pair. Columns of the query are not used. The caller closes it. Returns
 * -EINVAL for an invalid latency, -ENOENT if the trace has no such events, with error->text.
 */
KYMO_READER_API int kymo_spans_open(struct kymo_spans **ret_spans, struct kymo_query *query,
	const char *latency, struct kymo_reader_error *error);
KYMO_READER_API void kymo_spans_close(struct kymo_spans *spans);
/* Returns 1 with the next spans, 0 at the end, or -ENOMEM. */
KYMO_READER_API int kymo_spans_next(
	struct kymo_spans *spans, const struct kymo_span_batch **ret_batch);
/* Returns the name of spans, owned by `spans`; NULL if there is none with that number. */
KYMO_READER_API const char *kymo_spans_name(const struct kymo_spans *spans, uint32_t name);

#ifdef __cplusplus
}
#endif

#endif
