/* SPDX-License-Identifier: MIT */
/*
 * The module that other programs load into their SQLite:
 *
 *	.load libkymo-sqlite
 *	SELECT kymo_open('TRACE');
 *	SELECT count(*) FROM "libc:malloc";
 *
 * kymo_open adds the tables of the traces that its arguments name; once for each connection. They
 * are temporary: the database of the connection does not change. An argument can name several, with
 * NULs between them: SQLite limits the number of arguments.
 */
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT1

#include "sql/sql.h"

#define WHY_SIZE (sizeof(((struct kymo_reader_error *)0)->text) + 16)

/* The traces of one connection. */
struct opened {
	struct kymo_reader *reader; /* owned */
	struct ky_tables tables;
	struct ky_sql_symbols symbols;
};

static void close_opened(void *arg)
{
	struct opened *o = arg;

	ky_symbols_free(o->symbols.symbols);
	ky_tables_deinit(&o->tables);
	kymo_reader_close(o->reader);
	free(o);
}

/* Adds the paths of an argument to *n paths. */
static int add_paths(const char ***paths, size_t *n, sqlite3_value *value)
{
	const char *text = (const char *)sqlite3_value_text(value);
	const char *end = text ? text + sqlite3_value_bytes(value) : NULL;

	if (!text)
		return -EINVAL;
	for (; text <= end; text += strlen(text) + 1) {
		const char **grown = reallocarray(*paths, *n + 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		*paths = grown;
		grown[(*n)++] = text;
	}
	return 0;
}

static int open_traces(struct opened *o, int argc, sqlite3_value **argv, char why[WHY_SIZE])
{
	const struct ky_tables_part all = KY_TABLES_ALL;
	struct kymo_reader_error error = {0};
	const char **paths = NULL;
	size_t n = 0;
	int r = 0;

	for (int i = 0; i < argc && !r; i++)
		r = add_paths(&paths, &n, argv[i]);
	if (!r)
		r = kymo_reader_open(&o->reader, paths, n, NULL, &error);
	free(paths);
	o->symbols.reader = o->reader;
	if (!r)
		r = ky_tables_init(&o->tables, o->reader, &all);
	snprintf(why, WHY_SIZE, "kymo_open: %s", *error.text ? error.text : strerror(-r));
	return r;
}

static void open_in_sql(sqlite3_context *x, int argc, sqlite3_value **argv)
{
	struct opened *o = sqlite3_user_data(x);
	sqlite3 *db = sqlite3_context_db_handle(x);
	char why[WHY_SIZE];

	if (!argc) {
		sqlite3_result_error(x, "kymo_open: name a trace", -1);
	} else if (o->reader) {
		sqlite3_result_error(
			x, "kymo_open: this connection has a trace: name all in one call", -1);
	} else if (open_traces(o, argc, argv, why)) {
		ky_tables_deinit(&o->tables);
		kymo_reader_close(o->reader);
		o->reader = NULL;
		sqlite3_result_error(x, why, -1);
	} else if (ky_sql_add_tables(db, "temp", &o->tables) != SQLITE_OK ||
		   ky_sql_add_symbol(db, &o->symbols) != SQLITE_OK) {
		sqlite3_result_error(x, sqlite3_errmsg(db), -1);
	} else {
		sqlite3_result_int64(x, (sqlite3_int64)o->tables.n);
	}
}

/* SQLite finds it by the name of the file, without "lib" and '-'. */
int sqlite3_kymosqlite_init(sqlite3 *db, char **error, const sqlite3_api_routines *api);

__attribute__((visibility("default"))) int sqlite3_kymosqlite_init(
	sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
	struct opened *o = calloc(1, sizeof(*o));
	int r;

	SQLITE_EXTENSION_INIT2(api);
	if (!o)
		return SQLITE_NOMEM;
	r = ky_sql_add_functions(db);
	if (r != SQLITE_OK) {
		free(o);
		return r;
	}
	/* The connection frees it, also if this fails. */
	return sqlite3_create_function_v2(db, "kymo_open", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, o,
		open_in_sql, NULL, NULL, close_opened);
}
