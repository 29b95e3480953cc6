/* SPDX-License-Identifier: MIT */
/*
 * Adds up the bytes that the events "libc:malloc" of a trace request, with libkymo-reader.
 *
 *	kymo record --with=libc -o trace -- program
 *	cc sizes.c $(pkg-config --cflags --libs kymo-reader) -o sizes && ./sizes trace
 */
#include <inttypes.h>
#include <stdio.h>

#include <kymo/reader.h>

static int sum(struct kymo_query *query)
{
	const struct kymo_batch *b;
	struct kymo_cursor *cursor;
	uint64_t n = 0, bytes = 0;
	size_t size;
	int r;

	kymo_query_events(query, "libc:malloc");
	r = kymo_query_column(query, "size", KYMO_UINT64, &size);
	if (!r)
		r = kymo_cursor_open(&cursor, query);
	if (r)
		return r;
	while ((r = kymo_cursor_next(cursor, &b)) > 0) {
		const uint64_t *sizes = b->columns[size].values;

		for (size_t i = 0; i < b->n; i++)
			bytes += kymo_batch_has(b, size, i) ? sizes[i] : 0;
		n += b->n;
	}
	kymo_cursor_close(cursor);
	printf("%" PRIu64 " calls, %" PRIu64 " bytes\n", n, bytes);
	return r;
}

int main(int argc, char **argv)
{
	struct kymo_reader_error error = {0};
	struct kymo_reader *reader;
	struct kymo_query *query;
	const char *path = argv[1];
	int r;

	if (argc != 2) {
		fprintf(stderr, "usage: sizes TRACE\n");
		return 2;
	}
	if (kymo_reader_open(&reader, &path, 1, NULL, &error) < 0) {
		fprintf(stderr, "sizes: %s\n", error.text);
		return 1;
	}
	r = kymo_query_new(&query, reader);
	if (!r) {
		r = sum(query);
		kymo_query_free(query);
	}
	kymo_reader_close(reader);
	return r < 0;
}
