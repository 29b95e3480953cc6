/* SPDX-License-Identifier: MIT */
#include "merge/flows.h"

#include <stdlib.h>

#include "base/vec.h"

#define KEY 3

/* The first and the last event of a host with a key. */
struct sight {
	uint64_t key[KEY];
	size_t host;
	bool arrival;
	int64_t first, last;
};

struct sights {
	KY_VEC(struct sight) all;
};

static int compare_sights(const void *a, const void *b)
{
	const struct sight *x = a, *y = b;
	const int keys = memcmp(x->key, y->key, sizeof(x->key));

	if (keys || x->arrival != y->arrival)
		return keys ? keys : x->arrival - y->arrival;
	return x->host < y->host ? -1 : x->host > y->host;
}

static uint64_t value_of(const struct kymo_batch *b, size_t column, size_t row)
{
	return ((const uint64_t *)b->columns[column].values)[row];
}

static bool is_cell_valid(const struct kymo_batch *b, size_t column, size_t row)
{
	return b->columns[column].valid[row / 64] >> row % 64 & 1;
}

static int add_sight(struct flows *f, struct sights *s, const struct kymo_batch *b, size_t row,
	const uint64_t key[KEY], bool arrival)
{
	const struct kymo_stream_info *stream = kymo_reader_stream(f->reader, b->stream[row]);
	struct sight x = {.host = f->hosts[stream->trace],
		.arrival = arrival,
		.first = b->ns[row],
		.last = b->ns[row]};

	memcpy(x.key, key, sizeof(x.key));
	return ky_vec_add(&s->all, x);
}

/* Makes one of those of the same host. */
static void unite(struct sights *s)
{
	size_t n = 0;

	qsort(s->all.v, s->all.n, sizeof(*s->all.v), compare_sights);
	for (size_t i = 0; i < s->all.n; i++) {
		const struct sight x = s->all.v[i];
		struct sight *last = n ? &s->all.v[n - 1] : NULL;

		if (last && !compare_sights(last, &x)) {
			last->first = KY_MIN(last->first, x.first);
			last->last = KY_MAX(last->last, x.last);
		} else {
			s->all.v[n++] = x;
		}
	}
	s->all.n = n;
}

/* The departure of a key, and its arrivals on other hosts. */
static void add_bounds(
	struct flows *f, const struct sight *departure, const struct sight *end, bool calls)
{
	const struct sight *a = departure + 1;

	if (departure->arrival || (a < end && !a->arrival))
		return; /* none, or two hosts have it: then nothing is certain */
	for (; a < end; a++) {
		if (a->host == departure->host)
			continue;
		f->n_pairs++;
		offsets_add(f->offsets, departure->host, departure->first, a->host, a->first);
		if (calls && departure->last > departure->first) /* else its end is not known */
			offsets_add(f->offsets, a->host, a->last, departure->host, departure->last);
	}
}

static void add_all_bounds(struct flows *f, struct sights *s, bool calls)
{
	const struct sight *v = s->all.v, *last;

	unite(s);
	last = v + s->all.n;
	for (const struct sight *end; v < last; v = end) {
		for (end = v + 1; end < last && !memcmp(end->key, v->key, sizeof(v->key)); end++)
			;
		add_bounds(f, v, end, calls);
	}
}

static int fail_with_error(struct flows *f, int error, const char *what)
{
	snprintf(f->why, sizeof(f->why), "%s: %s", what, strerror(-error));
	return error;
}

/* Calls `take` for each row of the query. Returns 0 or -errno. */
static int read_rows(struct flows *f, const struct kymo_query *q, struct sights *s, bool arrival,
	int (*take)(struct flows *f, struct sights *s, const struct kymo_batch *b, size_t row,
		bool arrival))
{
	struct kymo_cursor *cursor = NULL;
	const struct kymo_batch *b;
	int r = kymo_cursor_open(&cursor, q), more = 0;

	while (!r && (more = kymo_cursor_next(cursor, &b)) > 0)
		for (size_t i = 0; i < b->n && !r; i++)
			if (b->item[i] == KYMO_ITEM_EVENT)
				r = take(f, s, b, i, arrival);
	kymo_cursor_close(cursor);
	return r ? r : more;
}

/* --- spans of W3C Trace Context --- */

enum { TRACE_HIGH, TRACE_LOW, SPAN, PARENT, N_COLUMNS };

static int take_span(
	struct flows *f, struct sights *s, const struct kymo_batch *b, size_t row, bool arrival)
{
	uint64_t key[KEY] = {0};
	int r = 0;

	if (!is_cell_valid(b, TRACE_HIGH, row) || !is_cell_valid(b, TRACE_LOW, row))
		return 0;
	key[0] = value_of(b, TRACE_HIGH, row);
	key[1] = value_of(b, TRACE_LOW, row);
	if (is_cell_valid(b, SPAN, row)) {
		key[2] = value_of(b, SPAN, row);
		r = add_sight(f, s, b, row, key, false);
	}
	if (!r && is_cell_valid(b, PARENT, row) && value_of(b, PARENT, row)) {
		key[2] = value_of(b, PARENT, row);
		r = add_sight(f, s, b, row, key, true);
	}
	return r;
}

static int read_spans(struct flows *f, struct sights *s)
{
	static const char *const names[N_COLUMNS] = {
		"trace_id[0]", "trace_id[1]", "span_id", "parent_span_id"};
	struct kymo_query *q = NULL;
	size_t column;
	int r = kymo_query_new(&q, f->reader);

	for (size_t i = 0; i < N_COLUMNS && !r; i++)
		r = kymo_query_column(q, names[i], KYMO_UINT64, &column);
	if (!r)
		r = read_rows(f, q, s, false, take_span);
	kymo_query_free(q);
	return r;
}

/* --- pairs of events --- */

static int take_event(
	struct flows *f, struct sights *s, const struct kymo_batch *b, size_t row, bool arrival)
{
	const uint64_t key[KEY] = {is_cell_valid(b, 0, row) ? value_of(b, 0, row) : 0};

	return is_cell_valid(b, 0, row) ? add_sight(f, s, b, row, key, arrival) : 0;
}

static int read_events(
	struct flows *f, struct sights *s, const char *name, const char *field, bool arrival)
{
	struct kymo_query *q = NULL;
	size_t column;
	int r = kymo_query_new(&q, f->reader);

	if (!r)
		r = kymo_query_events(q, name);
	if (!r)
		r = kymo_query_column(q, field, KYMO_UINT64, &column);
	if (!r)
		r = read_rows(f, q, s, arrival, take_event);
	kymo_query_free(q);
	return r;
}

static int read_pairs(struct flows *f, struct sights *s, const char *spec)
{
	char text[256], *rest = text, *departure, *arrival;
	int r;

	if (snprintf(text, sizeof(text), "%s", spec) >= (int)sizeof(text))
		return -EINVAL;
	departure = strsep(&rest, ",");
	arrival = rest ? strsep(&rest, ",") : NULL;
	if (!rest || !*departure || !*arrival || !*rest || strchr(rest, ','))
		return -EINVAL;
	r = read_events(f, s, departure, rest, false);
	return r ? r : read_events(f, s, arrival, rest, true);
}

int flows_add(struct flows *f, const char *spec)
{
	const bool calls = !strcmp(spec, "calls");
	struct sights s = {0};
	int r = calls || !strcmp(spec, "w3c") ? read_spans(f, &s) : read_pairs(f, &s, spec);

	if (r == -EINVAL)
		snprintf(f->why, sizeof(f->why),
			"--flows=%s is neither w3c, calls nor DEPARTURE,ARRIVAL,FIELD", spec);
	else if (r < 0)
		fail_with_error(f, r, "the events cannot be read");
	else
		add_all_bounds(f, &s, calls);
	free(s.all.v);
	return r;
}
