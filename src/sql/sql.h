/* SPDX-License-Identifier: MIT */
/*
 * Tables of traces (tables/tables.h) as virtual tables of SQLite. Nothing is imported: SQLite reads
 * rows from a scan. The conditions of a statement on ts, name, cpu and stream, and the columns that
 * it uses, limit the scan; so does an order by ts.
 */
#ifndef SQL_SQL_H
#define SQL_SQL_H

#include "sql/copy.h"
#include "symbols/symbols.h"

/*
 * Adds the tables to a schema of a connection, "main" or "temp", which has no tables of these
 * names; t lives longer. Returns a code of SQLite.
 */
int ky_sql_add_tables(sqlite3 *db, const char *schema, const struct ky_tables *t);
/* Returns the columns of a table with their types, as CREATE TABLE has them; for sqlite3_free. */
char *ky_sql_columns(const struct ky_table *t);
/* Adds percentile(x, p), hist(x), text_time(ts). Returns a code of SQLite. */
int ky_sql_add_functions(sqlite3 *db);
/* The symbols of the traces of a connection; read when they are asked for first. */
struct ky_sql_symbols {
	struct kymo_reader *reader; /* borrowed */
	struct ky_symbols *symbols; /* owned, or NULL: ky_symbols_free */
};

/*
 * Adds symbol(addr), symbol(addr, pid) and symbol(addr, pid, ts). s lives longer than the
 * connection. Returns a code of SQLite.
 */
int ky_sql_add_symbol(sqlite3 *db, struct ky_sql_symbols *s);

#endif
