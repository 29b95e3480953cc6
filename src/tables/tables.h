/* SPDX-License-Identifier: MIT */
/*
 * Opened traces as tables: one for each name of events, and events, spans, lost, packets, streams,
 * classes. `kymo sql` and the exports read them. They stand on libkymo-reader's public interface,
 * so that a module for SQLite can be made of them.
 *
 * A table does not change. A scan is one iteration over its rows, in order of time; it decodes only
 * the columns that are asked for. Spans come in the order of their ends.
 */
#ifndef TABLES_TABLES_H
#define TABLES_TABLES_H

#include <kymo/reader.h>

#include "base/util.h"

enum ky_table_kind {
	KY_TABLE_CLASS, /* events of one name, with their fields */
	KY_TABLE_EVENTS,
	KY_TABLE_SPANS,
	KY_TABLE_LOST,
	KY_TABLE_PACKETS,
	KY_TABLE_STREAMS,
	KY_TABLE_CLASSES,
};

enum ky_cell_type {
	KY_CELL_NULL, /* of columns: the type of each value is its own */
	KY_CELL_INT,
	KY_CELL_REAL,
	KY_CELL_TEXT,
};

/* A value. Text is valid until the scan's next row, or the next cell of the same column. */
struct ky_cell {
	enum ky_cell_type type;
	int64_t i;
	double d;
	const char *text;
	size_t len;
	char number[24]; /* text of integers beyond 2^63-1 */
};

struct ky_table_column {
	char *name; /* owned; no other column of the table has it, in any case of letters */
	enum ky_cell_type type;
	char *field;	/* owned: path of the event's field; NULL: a fixed column */
	bool is_label;	/* the label of an enumeration, not its number */
	unsigned types; /* of the field's values in all classes: 1 << enum kymo_column_type */
	int fixed;	/* number of a fixed column of this kind of table */
};

/* Numbers of the columns that are fixed in tables of events. */
enum ky_event_column {
	KY_EVENT_TS,
	KY_EVENT_NAME,
	KY_EVENT_CPU,
	KY_EVENT_PID,
	KY_EVENT_TID,
	KY_EVENT_PROCNAME,
	KY_EVENT_STREAM,
	KY_EVENT_FIELDS,
	KY_EVENT_N_FIXED,
};

struct ky_table {
	enum ky_table_kind kind;
	char *name;			 /* owned; no other table has it, in any case of letters */
	char *event;			 /* owned: the name of the events, of kind CLASS */
	struct ky_table_column *columns; /* owned */
	size_t n_columns;
};

/* The part of the traces that tables have; zeroed: no limits but those of time. */
struct ky_tables_part {
	const char *events, *filter; /* borrowed, or NULL; valid for ever */
	int64_t from_ns, to_ns;
};

/*
 * At most so many names of events have tables, and at most so many columns each: exports read the
 * traces once for some 64 names, and SQLite takes no more than 2,000 columns.
 */
#define KY_TABLES_MAX	     4096u
#define KY_TABLE_COLUMNS_MAX 1900u

#define KY_NO_TABLE SIZE_MAX

#define KY_TABLES_ALL ((struct ky_tables_part){.from_ns = INT64_MIN, .to_ns = INT64_MAX})

struct ky_tables {
	struct kymo_reader *reader; /* borrowed */
	struct ky_tables_part part;
	struct ky_table *tables; /* owned */
	size_t n;
	uint8_t *selected; /* owned: by class, 1: the part has it */
	size_t *table_of;  /* owned: by class, the table of its name; KY_NO_TABLE: none */
	double n_bytes;	   /* of all streams, for estimates */
	/* classes of events without a table, and fields without a column, for lack of room */
	size_t n_classes_left_out, n_fields_left_out;
};

/*
 * Describes the tables. The caller calls ky_tables_deinit in any case. Returns 0, -ENOMEM, or
 * -EINVAL for an invalid part.
 */
int ky_tables_init(
	struct ky_tables *t, struct kymo_reader *reader, const struct ky_tables_part *part);
void ky_tables_deinit(struct ky_tables *t);
#define KY_TABLES_TEXT 200
/* Says why something has no table or column. Returns false if all have. */
bool ky_tables_left_out(const struct ky_tables *t, char text[KY_TABLES_TEXT]);
/* Makes a query for the part; the caller frees it in any case. Returns 0 or a negative errno. */
int ky_tables_query(const struct ky_tables *t, struct kymo_query **ret_query);

/* --- rows --- */

/* The part of a table that a scan reads. All of it is a limit: rows outside may be left out. */
struct ky_scan_limits {
	int64_t from_ns, to_ns;
	const uint8_t *columns; /* by column: 1: cells are read; NULL: of all columns */
	const uint8_t *classes; /* by class: 1: wanted; NULL: all */
	bool has_cpu, has_stream;
	int64_t cpu, stream;
};

#define KY_SCAN_ALL ((struct ky_scan_limits){.from_ns = INT64_MIN, .to_ns = INT64_MAX})

struct ky_scan;

/*
 * Bytes of text that the cells of a scan may have: a few bytes of a hostile trace may have any
 * amount, because names are repeated with each element of an array. SQLite keeps cells in memory,
 * or in a temporary file.
 */
#define KY_SCAN_TEXT_MIN      ((uint64_t)256 << 20)
#define KY_SCAN_TEXT_PER_BYTE 1024 /* of the traces */

/* Opens a scan before its first row. The caller closes it. Returns 0 or a negative errno. */
int ky_scan_open(struct ky_scan **ret_scan, const struct ky_tables *t, const struct ky_table *table,
	const struct ky_scan_limits *limits);
/*
 * Opens a scan of the rows of several tables, from number `first` on: as many as are read together
 * with little memory, at least one. *ret_n: how many. The caller closes it. Returns 0 or a negative
 * errno.
 */
int ky_scan_open_some(
	struct ky_scan **ret_scan, const struct ky_tables *t, size_t first, size_t *ret_n);
void ky_scan_close(struct ky_scan *s);
/* Goes to the next row. Returns 1, 0 at the end, -EFBIG after too much text, or -ENOMEM. */
int ky_scan_next(struct ky_scan *s);
/* Returns the number of the row's table. */
size_t ky_scan_table(const struct ky_scan *s);
/* Gets the cell of a column that the limits have. */
void ky_scan_cell(struct ky_scan *s, size_t column, struct ky_cell *ret);

#endif
