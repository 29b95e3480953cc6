/* SPDX-License-Identifier: MIT */
/* SQLite copies the rows itself, from the tables of `kymo sql` into those of a file. */
#include <sys/stat.h>

#include "export/export.h"
#include "export/out.h"
#include "sql/sql.h"

#define DB_PAGE	     4096 /* bytes */
#define DB_PAGES_MAX ((uint64_t)1 << 30)
#define CACHE_PAGES  2048 /* at most; SQLite's default is 2 MB */

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

static int copy_table(sqlite3 *db, const struct ky_table *t)
{
	char *columns = ky_sql_columns(t);
	int r = columns ? run_statement(db,
				  sqlite3_mprintf("CREATE TABLE new.\"%w\"(%s)", t->name, columns))
			: SQLITE_NOMEM;

	sqlite3_free(columns);
	if (r == SQLITE_OK)
		r = run_statement(
			db, sqlite3_mprintf("INSERT INTO new.\"%w\" SELECT * FROM main.\"%w\"",
				    t->name, t->name));
	if (r == SQLITE_OK && has_column(t, "ts"))
		r = run_statement(db, sqlite3_mprintf("CREATE INDEX new.\"ts of %w\" ON \"%w\"(ts)",
					      t->name, t->name));
	return r;
}

/* The same room as that of other formats. */
static uint64_t n_pages_max(const struct ky_tables *t)
{
	return KY_MIN(ky_out_room(t->n_bytes).left / DB_PAGE, DB_PAGES_MAX);
}

static int copy_tables(sqlite3 *db, const struct ky_tables *t, const char *path)
{
	int r = ky_sql_add_tables(db, t);

	if (r == SQLITE_OK)
		r = run_statement(db, sqlite3_mprintf("ATTACH %Q AS new", path));
	if (r == SQLITE_OK)
		r = run_statement(db, sqlite3_mprintf("PRAGMA new.journal_mode = OFF; "
						      "PRAGMA new.synchronous = OFF; "
						      "PRAGMA new.page_size = %d; "
						      "PRAGMA new.max_page_count = %llu; BEGIN",
					      DB_PAGE, (unsigned long long)n_pages_max(t)));
	for (size_t i = 0; i < t->n && r == SQLITE_OK; i++)
		if (t->tables[i].kind != KY_TABLE_EVENTS)
			r = copy_table(db, &t->tables[i]);
	return r == SQLITE_OK ? run_statement(db, sqlite3_mprintf("COMMIT; DETACH new")) : r;
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
	bool is_full;
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
	r = sqlite3_open(":memory:", &db);
	if (r == SQLITE_OK)
		r = copy_tables(db, t, part);
	is_full = r == SQLITE_FULL && is_beyond_room(t, part);
	if (r != SQLITE_OK && !is_full)
		snprintf(why, KY_EXPORT_WHY, "%s", sqlite3_errmsg(db));
	sqlite3_close(db);
	if (r == SQLITE_OK && rename(part, path) < 0) {
		r = SQLITE_IOERR;
		snprintf(why, KY_EXPORT_WHY, "%s: %s", path, strerror(errno));
	}
	if (r != SQLITE_OK)
		unlink(part);
	free(part);
	return r == SQLITE_OK ? 0 : is_full ? -EFBIG : -EIO;
}
