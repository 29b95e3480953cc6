/* SPDX-License-Identifier: MIT */
/*
 * Tables of traces (tables/tables.h) as virtual tables of SQLite. Nothing is imported: SQLite reads
 * rows from a scan. The conditions of a statement on ts, name, cpu and stream, and the columns that
 * it uses, limit the scan; so does an order by ts.
 */
#ifndef SQL_SQL_H
#define SQL_SQL_H

#include "sql/copy.h"

/* Adds the tables to a connection; t lives longer. Returns a code of SQLite. */
int ky_sql_add_tables(sqlite3 *db, const struct ky_tables *t);
/* Returns the columns of a table with their types, as CREATE TABLE has them; for sqlite3_free. */
char *ky_sql_columns(const struct ky_table *t);
/* Adds percentile(x, p), hist(x), text_time(ts). Returns a code of SQLite. */
int ky_sql_add_functions(sqlite3 *db);

#endif
