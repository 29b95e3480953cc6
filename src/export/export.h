/* SPDX-License-Identifier: MIT */
/*
 * Traces in the formats of other programs. Each function reads the part of the traces that the
 * tables have, and writes a file, or a directory of files.
 *
 * They return 0, or a negative errno with a line in `why`, which is empty if the errno says it all.
 */
#ifndef EXPORT_EXPORT_H
#define EXPORT_EXPORT_H

#include "tables/tables.h"

#define KY_EXPORT_WHY 512

/* Comma-separated values: one file if the part has one name of events, else one for each. */
int ky_export_csv(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY]);
/* JSON for chrome://tracing and what reads its format. -EFBIG beyond 500 MB. */
int ky_export_chrome(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY]);
/* Perfetto's protobuf. */
int ky_export_perfetto(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY]);
/* Stacks of spans with their own time, in nanoseconds. */
int ky_export_folded(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY]);
/* A database of SQLite. */
int ky_export_sqlite(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY]);

#endif
