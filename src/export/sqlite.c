/* SPDX-License-Identifier: MIT */
/*
 * A database with the tables of `kymo sql`. Functions return a code of SQLite, or a negative errno
 * of reading the trace.
 */
#include <sys/stat.h>

#include "export/export.h"
#include "export/out.h"
#include "sql/sql.h"

#define DB_PAGE	     4096 /* bytes */
#define DB_PAGES_MAX ((uint64_t)1 << 30)
#define CACHE_PAGES  2048 /* at most; SQLite's default is 2 MB */

/*
 * Each CREATE reads the whole schema, so that thousands of tables take seconds. Therefore SQLite
 * forgets tables that are complete: the rows of its schema are in another table until the end.
 */
static const char begin_complete[] =
	"PRAGMA writable_schema = ON; "
	"CREATE TEMP TABLE complete AS SELECT * FROM main.sqlite_master";
static const char keep_complete[] = "INSERT INTO temp.complete SELECT * FROM main.sqlite_master; "
				    "DELETE FROM main.sqlite_master; "
				    "PRAGMA writable_schema = RESET; PRAGMA writable_schema = ON";
static const char restore_complete[] = "INSERT INTO main.sqlite_master SELECT * FROM temp.complete";

static int run_statement(sqlite3 *db, char *text)
{
	int r = text ? sqlite3_exec(db, text, NULL, NULL, NULL) : SQLITE_NOMEM;

	sqlite3_free(text);
	return r;
}

static bool has_column(const struct ky_table *t, const char *name)
{
	return t->n_columns && !strcmp(t->columns[0].name, name);
}

static int create_table(sqlite3 *db, const struct ky_table *t)
{
	char *columns = ky_sql_columns(t);
	int r = columns ? run_statement(
				  db, sqlite3_mprintf("CREATE TABLE \"%w\"(%s)", t->name, columns))
			: SQLITE_NOMEM;

	sqlite3_free(columns);
	return r;
}

static int create_index(sqlite3 *db, const struct ky_table *t)
{
	return has_column(t, "ts")
		       ? run_statement(
				 db, sqlite3_mprintf("CREATE INDEX \"ts of %w\" ON \"%w\"(ts)",
					     t->name, t->name))
		       : SQLITE_OK;
}

/* Prepares the statement that adds a row with all columns. */
static int prepare_insert(sqlite3 *db, const struct ky_table *t, sqlite3_stmt **ret)
{
	struct ky_buf b = {0};
	char *text = sqlite3_mprintf("INSERT INTO \"%w\" VALUES(", t->name);
	int r = SQLITE_NOMEM;

	if (text)
		ky_buf_append(&b, text, strlen(text));
	for (size_t i = 0; i < t->n_columns; i++)
		ky_buf_append(&b, i ? ",?" : "?", i ? 2 : 1);
	ky_buf_append(&b, ")", 1);
	if (text && !b.error)
		r = sqlite3_prepare_v2(db, b.data, (int)b.len, ret, NULL);
	sqlite3_free(text);
	ky_buf_deinit(&b);
	return r;
}

static int bind_cell(sqlite3_stmt *statement, int place, const struct ky_cell *c)
{
	switch (c->type) {
	case KY_CELL_INT:
		return sqlite3_bind_int64(statement, place, c->i);
	case KY_CELL_REAL:
		return sqlite3_bind_double(statement, place, c->d);
	case KY_CELL_TEXT:
		return sqlite3_bind_text64(
			statement, place, c->text, c->len, SQLITE_TRANSIENT, SQLITE_UTF8);
	default:
		return sqlite3_bind_null(statement, place);
	}
}

/* Adds the scan's row to its table. */
static int insert_row(sqlite3_stmt *statement, struct ky_scan *scan, size_t n_columns)
{
	struct ky_cell cell;
	int r = SQLITE_OK;

	for (size_t i = 0; i < n_columns && r == SQLITE_OK; i++) {
		ky_scan_cell(scan, i, &cell);
		r = bind_cell(statement, (int)i + 1, &cell);
	}
	if (r != SQLITE_OK)
		return r;
	sqlite3_step(statement);
	return sqlite3_reset(statement);
}

/* inserts: by table of the scan, from number `first` on. */
static int insert_rows(
	const struct ky_tables *t, struct ky_scan *scan, sqlite3_stmt *const *inserts, size_t first)
{
	int r = SQLITE_OK, more = 0;

	while (r == SQLITE_OK && (more = ky_scan_next(scan)) > 0) {
		size_t table = ky_scan_table(scan);

		r = insert_row(inserts[table - first], scan, t->tables[table].n_columns);
	}
	if (r != SQLITE_OK)
		return r;
	return more;
}

/* Copies the tables that are read together, from number `first` on. *ret_n: how many. */
static int copy_some(sqlite3 *db, const struct ky_tables *t, size_t first, size_t *ret_n)
{
	struct ky_scan *scan = NULL;
	sqlite3_stmt **inserts = NULL;
	int r = ky_scan_open_some(&scan, t, first, ret_n);

	if (r == SQLITE_OK) {
		inserts = calloc(*ret_n, sizeof(sqlite3_stmt *));
		r = inserts ? SQLITE_OK : SQLITE_NOMEM;
	}
	for (size_t i = 0; r == SQLITE_OK && i < *ret_n; i++) {
		r = create_table(db, &t->tables[first + i]);
		if (r == SQLITE_OK)
			r = prepare_insert(db, &t->tables[first + i], &inserts[i]);
	}
	if (r == SQLITE_OK)
		r = insert_rows(t, scan, inserts, first);
	for (size_t i = 0; inserts && i < *ret_n; i++)
		sqlite3_finalize(inserts[i]);
	for (size_t i = 0; r == SQLITE_OK && i < *ret_n; i++)
		r = create_index(db, &t->tables[first + i]);
	free(inserts);
	ky_scan_close(scan);
	return r == SQLITE_OK ? run_statement(db, sqlite3_mprintf(keep_complete)) : r;
}

/* The same room as that of other formats. */
static uint64_t n_pages_max(const struct ky_tables *t)
{
	return KY_MIN(ky_out_room(t->n_bytes).left / DB_PAGE, DB_PAGES_MAX);
}

static int copy_tables(sqlite3 *db, const struct ky_tables *t)
{
	int r = run_statement(
		db, sqlite3_mprintf("PRAGMA journal_mode = OFF; "
				    "PRAGMA synchronous = OFF; "
				    "PRAGMA page_size = %d; "
				    "PRAGMA max_page_count = %llu; %s; BEGIN",
			    DB_PAGE, (unsigned long long)n_pages_max(t), begin_complete));

	for (size_t i = 0, n = 1; i < t->n && r == SQLITE_OK; i += n, n = 1)
		if (t->tables[i].kind != KY_TABLE_EVENTS)
			r = copy_some(db, t, i, &n);
	return r == SQLITE_OK ? run_statement(db, sqlite3_mprintf("%s; COMMIT", restore_complete))
			      : r;
}

/* SQLite says the same of a disk that is full; a part of the file may still be in its cache. */
static bool is_beyond_room(const struct ky_tables *t, const char *path)
{
	struct stat st;

	return !stat(path, &st) && (uint64_t)st.st_size / DB_PAGE + CACHE_PAGES >= n_pages_max(t);
}

int ky_export_sqlite(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY])
{
	char left_out[KY_TABLES_TEXT];
	const char *missing;
	char *part = NULL;
	sqlite3 *db = NULL;
	int r;

	why[0] = '\0';
	if (ky_tables_left_out(t, left_out)) {
		snprintf(why, KY_EXPORT_WHY, "%s: select some with -e, or use another format",
			left_out);
		return -E2BIG;
	}
	missing = ky_sqlite_load();
	if (missing) {
		snprintf(why, KY_EXPORT_WHY, "%s", missing);
		return -ENOENT;
	}
	if (asprintf(&part, "%s.part", path) < 0)
		return -ENOMEM;
	unlink(part);
	r = sqlite3_open(part, &db);
	if (r == SQLITE_OK)
		r = copy_tables(db, t);
	if (r == SQLITE_FULL && is_beyond_room(t, part))
		r = -EFBIG;
	if (r > 0)
		snprintf(why, KY_EXPORT_WHY, "cannot write %s: %s", path, sqlite3_errmsg(db));
	sqlite3_close(db);
	if (!r && rename(part, path) < 0) {
		r = -errno;
		snprintf(why, KY_EXPORT_WHY, "cannot write %s: %s", path, strerror(errno));
	}
	if (r)
		unlink(part);
	free(part);
	return r > 0 ? -EIO : r;
}
