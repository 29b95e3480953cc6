/* SPDX-License-Identifier: MIT */
/*
 * A sorted copy of a table in memory, made once for a join: the columns that the statement uses,
 * found by the value of one of them.
 */
#ifndef SQL_COPY_H
#define SQL_COPY_H

#include "base/buf.h"
#include "sql/sqlite.h"
#include "tables/tables.h"

struct ky_copied_cell {
	uint8_t type; /* enum ky_cell_type */
	uint32_t len; /* of text */
	union {
		int64_t i;
		double d;
		uint64_t text; /* offset */
	};
};

/* Zeroed at first. */
struct ky_copy {
	struct ky_copied_cell *cells; /* owned: rows, n_columns of each */
	size_t n_rows, n_columns;
	uint32_t *place; /* owned: by column of the table, its place in a row */
	size_t *order;	 /* owned: rows with a key, sorted by it */
	size_t n_keyed, key;
	enum ky_cell_type type;		       /* of the key's column */
	bool has_numeric_text, has_large_text; /* keys that look like numbers; of over 63 bits */
	struct ky_buf text;
};

/* Copies all rows of a scan. wanted: by column of the table. Returns 0 or -ENOMEM. */
int ky_copy_make(struct ky_copy *c, struct ky_scan *scan, const struct ky_table *table,
	const uint8_t *wanted, size_t key);
void ky_copy_deinit(struct ky_copy *c);
/*
 * Finds the rows whose key equals the value: order[*ret_first] to before order[*ret_end]. There may
 * be others among them if SQLite may convert text to numbers. Returns 0 or -ENOMEM.
 */
int ky_copy_find(const struct ky_copy *c, sqlite3_value *value, size_t *ret_first, size_t *ret_end);
/* Gets a cell of the row order[i]. */
void ky_copy_cell(const struct ky_copy *c, size_t i, size_t column, struct ky_cell *ret);

#endif
