/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>

#include "base/util.h"
#include "sql/sqlite.h"

#define VERSION_MIN 3038000

const sqlite3_api_routines *sqlite3_api;

/* SQLite gives its table to extensions; this one has nothing else to do. */
static int take_table(sqlite3 *db, char **why, const sqlite3_api_routines *table)
{
	sqlite3_api = table;
	return SQLITE_OK;
}

const char *ky_sqlite_load(void)
{
	int (*add_extension)(void (*)(void)), (*open)(const char *, sqlite3 **);
	sqlite3 *db = NULL;
	void *lib;

	if (sqlite3_api)
		return NULL;
	lib = dlopen("libsqlite3.so.0", RTLD_LAZY | RTLD_LOCAL);
	*(void **)&add_extension = lib ? dlsym(lib, "sqlite3_auto_extension") : NULL;
	*(void **)&open = add_extension ? dlsym(lib, "sqlite3_open") : NULL;
	if (!open)
		return dlerror();
	if (add_extension((void (*)(void))take_table) == SQLITE_OK)
		open(":memory:", &db);
	if (!sqlite3_api)
		return "this build of libsqlite3 takes no extensions";
	sqlite3_close(db);
	sqlite3_reset_auto_extension();
	if (sqlite3_libversion_number() < VERSION_MIN) {
		sqlite3_api = NULL;
		return "libsqlite3 is older than 3.38";
	}
	return NULL;
}
