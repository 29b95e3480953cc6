/* SPDX-License-Identifier: MIT */
/*
 * Traces in the formats of other programs. Each function reads the part of the traces that the
 * tables have, and writes a file, or a directory of files.
 *
 * They return 0, or a negative errno with a line in `why`, which is empty if the errno says it all.
 * With 0, a line in `why` is a warning.
 */
#ifndef EXPORT_EXPORT_H
#define EXPORT_EXPORT_H

#include "tables/tables.h"

#define KY_EXPORT_WHY 512

/* Comma-separated values: one file if the part has one name of events, else one for each. */
int ky_export_csv(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY]);
/* A directory with CTF 1.8 traces, one for each trace that was opened: export/ctf.h. */
int ky_export_ctf(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY]);
/* JSON for chrome://tracing and what reads its format. -EFBIG beyond 500 MB. */
int ky_export_chrome(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY]);
/* Perfetto's protobuf. */
int ky_export_perfetto(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY]);

/* Events for ClickHouse: a JSON object in each line, of the table in docs/export.md. */
int ky_export_clickhouse(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY]);
/* Spans with W3C identifiers as OpenTelemetry's: protobuf of OTLP. */
int ky_export_otlp(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY]);

enum ky_stacks {
	KY_STACKS_ANY, /* of spans if there are events of spans, else call stacks */
	KY_STACKS_SPANS,
	KY_STACKS_CALLS,
};

struct ky_folded_options {
	enum ky_stacks stacks;
	const char *const *dirs; /* to look for the files of programs in, before the system */
	size_t n_dirs;
	/* Called with each reason why addresses have no symbols. May be NULL. */
	void (*warn)(void *arg, const char *text);
	void *arg;
};

/* Stacks of spans with their own time in nanoseconds, or call stacks: export/folded.h. */
int ky_export_folded(const struct ky_tables *t, const char *path,
	const struct ky_folded_options *options, char why[KY_EXPORT_WHY]);
/* A database of SQLite. */
int ky_export_sqlite(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY]);

#endif
