/* SPDX-License-Identifier: MIT */
#include "read-back.h"

#include <stdio.h>
#include <stdlib.h>

#include "reader/cursor.h"
#include "reader/reader.h"

static void complain(void *arg, const char *text)
{
	fprintf(stderr, "%s\n", text);
	abort();
}

void read_back(
	const char *path, void (*record)(const struct read_event *event), struct read_back *ret)
{
	const struct ky_trace_reader_options options = {.warn = complain};
	const struct ky_select all = KY_SELECT_ALL;
	struct ky_totals totals;
	struct ky_cursor *cursor;
	struct ky_trace_reader *reader;
	struct ky_values values = {0};
	struct ky_item item;
	char why[256];

	*ret = (struct read_back){0};
	if (ky_trace_reader_open(&reader, &path, 1, &options, why, sizeof(why)) < 0)
		return;
	if (ky_cursor_open(&cursor, reader, &all, &options) < 0)
		abort();
	while (ky_cursor_next(cursor, &item, &values) > 0) {
		if (item.kind == KY_ITEM_EVENT) {
			const struct ky_value *v = &values.v[item.scopes[KY_SCOPE_FIELDS].first];

			record(&(struct read_event){v[0].u, v[1].n, v[1].text, item.ns});
		}
		values.n = 0;
	}
	free(values.v);
	ky_cursor_totals(cursor, &totals);
	if (totals.n_corrupt || totals.n_truncated)
		abort();
	*ret = (struct read_back){totals.n_events, totals.n_discarded};
	ky_cursor_close(cursor);
	ky_trace_reader_close(reader);
}
