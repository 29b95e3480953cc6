/* SPDX-License-Identifier: MIT */
/*
 * Events for ClickHouse: one JSON object in a line (its format JSONEachRow), with the columns of
 * the table in docs/export.md. A byte that is no UTF-8 becomes U+FFFD.
 */
#include <inttypes.h>

#include "export/export.h"
#include "export/out.h"
#include "reader/format.h"

static void put_string(struct ky_buf *b, const char *column, const char *text, size_t len)
{
	ky_buf_printf(b, ",\"%s\":", column);
	ky_format_json_string(b, text, len);
}

static void put_cell(
	struct ky_buf *b, struct ky_scan *scan, enum ky_event_column i, const char *name)
{
	struct ky_cell c;

	ky_scan_cell(scan, i, &c);
	if (c.type == KY_CELL_INT)
		ky_buf_printf(b, ",\"%s\":%" PRId64, name, c.i);
	else if (c.type == KY_CELL_TEXT)
		put_string(b, name, c.text, c.len);
}

static void put_row(struct ky_buf *b, const struct ky_tables *t, struct ky_scan *scan)
{
	const struct kymo_stream_info *stream;
	const struct kymo_trace_info *trace;
	struct ky_cell c;

	ky_scan_cell(scan, KY_EVENT_TS, &c);
	ky_buf_printf(b, "{\"ts_ns\":%" PRId64, c.type == KY_CELL_INT ? c.i : 0);
	ky_scan_cell(scan, KY_EVENT_STREAM, &c);
	stream = kymo_reader_stream(t->reader, (size_t)c.i);
	trace = stream ? kymo_reader_trace(t->reader, stream->trace) : NULL;
	if (trace) {
		put_string(b, "host", trace->host, strlen(trace->host));
		put_string(b, "trace", trace->name, strlen(trace->name));
	}
	put_cell(b, scan, KY_EVENT_NAME, "name");
	put_cell(b, scan, KY_EVENT_CPU, "cpu");
	put_cell(b, scan, KY_EVENT_PID, "pid");
	put_cell(b, scan, KY_EVENT_TID, "tid");
	put_cell(b, scan, KY_EVENT_PROCNAME, "procname");
	put_cell(b, scan, KY_EVENT_FIELDS, "fields");
	ky_buf_append(b, "}\n", 2);
}

static const struct ky_table *find_events(const struct ky_tables *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->tables[i].kind == KY_TABLE_EVENTS)
			return &t->tables[i];
	return NULL;
}

int ky_export_clickhouse(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY])
{
	const struct ky_scan_limits all = KY_SCAN_ALL;
	struct ky_out_room room = ky_out_room(t->n_bytes);
	struct ky_scan *scan = NULL;
	struct ky_out out;
	int r = ky_scan_open(&scan, t, find_events(t), &all), more = 0, e;

	why[0] = '\0';
	if (r)
		return r;
	r = ky_out_open(&out, path, &room);
	while (!r && (more = ky_scan_next(scan)) > 0) {
		put_row(&out.buf, t, scan);
		r = ky_out_flush(&out);
	}
	e = ky_out_close(&out, !r && more >= 0);
	ky_scan_close(scan);
	return r ? r : more < 0 ? more : e;
}
