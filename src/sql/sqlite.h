/* SPDX-License-Identifier: MIT */
/*
 * SQLite by a table of its functions, for code that is in two programs. A module of another program
 * gets the table of that program's SQLite. The command line loads libsqlite3 when a command needs
 * it, because every command would take longer to start.
 */
#ifndef SQL_SQLITE_H
#define SQL_SQLITE_H

#include <sqlite3ext.h>

extern const sqlite3_api_routines *sqlite3_api;

/*
 * Loads libsqlite3, which stays loaded. Returns NULL, or why it cannot be loaded. One thread at a
 * time may call this. Not in the module.
 */
const char *ky_sqlite_load(void);

#endif
