/* SPDX-License-Identifier: MIT */
/*
 * SQLite for code that is in two programs: in the command line, which links libsqlite3, and in the
 * module that other programs load into their own SQLite (KY_SQL_MODULE).
 */
#ifndef SQL_SQLITE_H
#define SQL_SQLITE_H

#ifdef KY_SQL_MODULE
#include <sqlite3ext.h>
extern const sqlite3_api_routines *sqlite3_api;
#else
#include <sqlite3.h>
#endif

#endif
