/* SPDX-License-Identifier: MIT */
/*
 * Slices are taken in order by whichever thread is free. `lock` protects the numbers of slices that
 * are taken and put together, and `is_ready`. A slice's contents belong to the thread that took it
 * until it is ready, then to the caller's thread. Threads do not run far ahead of it, so that the
 * memory for spans' events is bounded.
 *
 * Slices give what the trace as a whole does if the records of each stream are in order of time.
 * Damage breaks that: if a slice meets any, all slices are given up, and one thread reads the trace
 * as a whole.
 */
#include "analysis/count.h"

#include <pthread.h>

#include "base/processors.h"

#define MAX_THREADS 64
#define SLICE_MIN   ((uint64_t)1 << 20) /* bytes: smaller ones cost more than they gain */
#define SLICE_MAX   ((uint64_t)4 << 20)
#define N_SLICES    64 /* in between: so many, which keeps all threads at work */
#define AHEAD	    2  /* slices for each thread that may wait to be put together */

struct slice {
	struct ky_select select;
	struct ky_spans *spans;	      /* borrowed: takes the events at once; NULL: they are kept */
	struct ky_span_event *events; /* owned */
	size_t n, cap;
	uint64_t *counts; /* owned */
	struct ky_totals totals;
	bool is_ready;
	int error;
};

struct counter {
	const struct ky_query *query;
	const uint8_t *want;
	const struct ky_trace_reader_options *options;
	struct slice *slices; /* owned */
	size_t n_slices, n_threads;
	pthread_mutex_t lock;
	pthread_cond_t ready, merged;
	size_t n_taken, n_merged;
	bool is_ended; /* by an error */
};

static int add_event(struct slice *s, const struct ky_item *item)
{
	struct ky_span_event e;

	if (!ky_span_event_of(&e, item))
		return 0;
	if (s->spans)
		return ky_spans_add_event(s->spans, &e);
	if (s->n == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 64;
		struct ky_span_event *more = reallocarray(s->events, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->events = more;
		s->cap = cap;
	}
	s->events[s->n++] = e;
	return 0;
}

/* Counts of classes that were not wanted are none of the query's. */
static int take_counts(struct slice *s, const struct counter *c, const struct ky_reading *r)
{
	size_t n = c->query->reader->n_classes;
	const uint64_t *counts = ky_cursor_counts(r->cursor);

	ky_cursor_totals(r->cursor, &s->totals);
	s->totals.n_events = 0;
	s->counts = calloc(n + 1, sizeof(*s->counts));
	if (!s->counts)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (!ky_query_has(c->query, i) || (c->query->expr && !r->wanted[i]))
			continue;
		s->counts[i] = counts[i];
		s->totals.n_events += counts[i];
	}
	return 0;
}

static void read_slice(const struct counter *c, struct slice *s)
{
	struct ky_reading reading;
	struct ky_item item;
	int64_t last_ns = INT64_MIN;
	bool is_doubtful = false;
	int r = ky_reading_init(&reading, c->query, c->want, &s->select, c->options);

	while (!r && (r = ky_cursor_next(reading.cursor, &item, NULL)) > 0) {
		is_doubtful |= ky_query_is_misplaced(&s->select, &item, last_ns);
		last_ns = item.ns;
		r = add_event(s, &item);
	}
	if (!r)
		r = take_counts(s, c, &reading);
	if (!r && c->n_slices > 1 && (is_doubtful || s->totals.is_doubtful))
		r = -EAGAIN;
	s->error = r;
	ky_reading_deinit(&reading);
}

/* The next slice that nobody has taken, once it is near enough; NULL: there is none. */
static struct slice *take_slice(struct counter *c)
{
	struct slice *s = NULL;

	pthread_mutex_lock(&c->lock);
	while (!c->is_ended && c->n_taken < c->n_slices &&
		c->n_taken >= c->n_merged + AHEAD * c->n_threads)
		pthread_cond_wait(&c->merged, &c->lock);
	if (!c->is_ended && c->n_taken < c->n_slices)
		s = &c->slices[c->n_taken++];
	pthread_mutex_unlock(&c->lock);
	return s;
}

static void *read_slices(void *arg)
{
	struct counter *c = arg;
	struct slice *s;

	while ((s = take_slice(c))) {
		read_slice(c, s);
		pthread_mutex_lock(&c->lock);
		s->is_ready = true;
		pthread_cond_signal(&c->ready);
		pthread_mutex_unlock(&c->lock);
	}
	return NULL;
}

static void add_totals(struct ky_totals *to, const struct ky_totals *t)
{
	if (t->has_time) {
		to->begin_ns = to->has_time ? KY_MIN(to->begin_ns, t->begin_ns) : t->begin_ns;
		to->end_ns = to->has_time ? KY_MAX(to->end_ns, t->end_ns) : t->end_ns;
		to->has_time = true;
	}
	to->n_events += t->n_events;
	to->n_discarded += t->n_discarded;
	to->n_packets += t->n_packets;
	to->n_packets_lost += t->n_packets_lost;
	to->n_corrupt += t->n_corrupt;
	to->n_truncated += t->n_truncated;
}

/* Adds a slice to the result. */
static int merge_slice(
	struct ky_counts *to, struct slice *s, struct ky_spans *spans, size_t n_classes)
{
	int r = s->error;

	for (size_t i = 0; i < s->n && !r; i++)
		r = ky_spans_add_event(spans, &s->events[i]);
	for (size_t i = 0; i < n_classes && !r; i++)
		to->of_class[i] += s->counts[i];
	if (!r)
		add_totals(&to->totals, &s->totals);
	free(s->events);
	free(s->counts);
	*s = (struct slice){0};
	return r;
}

/* Puts the slices together as they come. Without other threads this one reads them. */
static int merge_all(struct counter *c, struct ky_counts *to, struct ky_spans *spans, bool reads)
{
	int r = 0;

	for (size_t i = 0; i < c->n_slices && !r; i++) {
		struct slice *s = &c->slices[i];

		if (reads) {
			s->spans = spans;
			read_slice(c, s);
		}
		pthread_mutex_lock(&c->lock);
		while (!reads && !s->is_ready)
			pthread_cond_wait(&c->ready, &c->lock);
		pthread_mutex_unlock(&c->lock);
		r = merge_slice(to, s, spans, c->query->reader->n_classes);
		pthread_mutex_lock(&c->lock);
		c->n_merged = i + 1;
		c->is_ended = r;
		pthread_cond_broadcast(&c->merged);
		pthread_mutex_unlock(&c->lock);
	}
	return r;
}

/*
 * As many slices as are worth it; at least one. Packets at their borders are read twice, so slices
 * are large until near the end; but not if the events of spans have to be kept.
 */
static int make_slices(struct counter *c, bool has_spans)
{
	const struct ky_trace_reader *r = c->query->reader;
	struct ky_select *selects;
	uint64_t bytes = 0, least;

	for (size_t i = 0; i < r->n_streams; i++)
		bytes += r->streams[i]->n_bytes;
	least = KY_MIN(KY_MAX(bytes / N_SLICES, SLICE_MIN), SLICE_MAX);
	if (ky_query_slices(c->query, c->n_threads > 1 ? (size_t)(bytes / least) : 1, least,
		    has_spans ? 0 : c->n_threads, &selects, &c->n_slices) < 0)
		return -ENOMEM;
	c->slices = calloc(c->n_slices, sizeof(*c->slices));
	for (size_t i = 0; c->slices && i < c->n_slices; i++)
		c->slices[i].select = selects[i];
	free(selects);
	return c->slices ? 0 : -ENOMEM;
}

static int run_threads(struct counter *c, struct ky_counts *to, struct ky_spans *spans)
{
	pthread_t threads[MAX_THREADS];
	size_t n = 0, n_wanted = KY_MIN(KY_MIN(c->n_threads, c->n_slices), (size_t)MAX_THREADS);
	int r;

	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->ready, NULL);
	pthread_cond_init(&c->merged, NULL);
	while (n_wanted > 1 && n < n_wanted && !pthread_create(&threads[n], NULL, read_slices, c))
		n++;
	r = merge_all(c, to, spans, !n);
	while (n > 0)
		pthread_join(threads[--n], NULL);
	pthread_cond_destroy(&c->merged);
	pthread_cond_destroy(&c->ready);
	pthread_mutex_destroy(&c->lock);
	return r;
}

/* -EAGAIN: slices do not give the result, n_threads has to be 1. */
static int collect_counts(
	struct counter *c, struct ky_counts *to, struct ky_spans *spans, bool has_spans)
{
	const struct ky_trace_reader *reader = c->query->reader;
	const struct ky_trace_reader_options quiet = {0};
	int r = ky_spans_begin(spans, reader);

	*to = (struct ky_counts){.of_class = calloc(reader->n_classes + 1, sizeof(uint64_t))};
	if (!r)
		r = to->of_class ? make_slices(c, has_spans) : -ENOMEM;
	/* Each slice would report the damage of its own part. */
	if (c->n_slices > 1)
		c->options = &quiet;
	if (!r)
		r = run_threads(c, to, spans);
	for (size_t i = 0; c->slices && i < c->n_slices; i++) {
		free(c->slices[i].events);
		free(c->slices[i].counts);
	}
	free(c->slices);
	return r;
}

int ky_counts_collect(struct ky_counts *to, const struct ky_query *q, struct ky_spans *spans,
	const struct ky_trace_reader_options *options, size_t n_threads)
{
	const struct ky_trace_reader *reader = q->reader;
	_cleanup_free_ uint8_t *want = calloc(reader->n_classes + 1, 1);
	const struct counter whole = {.query = q, .want = want, .options = options, .n_threads = 1};
	struct counter c = whole;
	bool has_spans = false;
	int r;

	*to = (struct ky_counts){0};
	if (!want)
		return -ENOMEM;
	for (size_t i = 0; i < reader->n_classes; i++) {
		has_spans = has_spans || reader->classes[i]->is_span;
		want[i] = reader->classes[i]->is_span || q->expr ? KY_WANT_EVENT : 0;
	}
	c.n_threads = n_threads ? n_threads : ky_count_processors();
	r = collect_counts(&c, to, spans, has_spans);
	if (r != -EAGAIN)
		return r;
	ky_counts_deinit(to);
	ky_spans_deinit(spans);
	c = whole;
	return collect_counts(&c, to, spans, has_spans);
}

void ky_counts_deinit(struct ky_counts *c)
{
	free(c->of_class);
	*c = (struct ky_counts){0};
}
