/* SPDX-License-Identifier: MIT */
/*
 * Spans are pairs of events of one name and one number: a thread's, or the span's own. What has begun is kept in a table;
 * of several with the same name and number the one that began last ends first, which is how calls nest.
 */
#include "analysis/spans.h"

/* Begun, and not ended yet. */
struct open_span {
	struct ky_hnode node;
	struct open_span *below; /* the same, begun before; not in the table */
	struct ky_span_name *name;
	const struct ky_trace *trace; /* whose threads have such numbers; NULL: not of a thread */
	uint64_t id;
	const struct ky_stream *stream; /* of its begin */
	int64_t begin_ns;
};

/* --- what is missing --- */

static int raise_time(struct ky_span_times *t, size_t i, int64_t ns)
{
	if (i >= t->n) {
		size_t n = KY_MAX(2 * t->n, i + 1);
		int64_t *more = reallocarray(t->ns, n, sizeof(*more));

		if (!more)
			return -ENOMEM;
		t->ns = more;
		for (; t->n < n; t->n++)
			t->ns[t->n] = INT64_MIN;
	}
	t->ns[i] = KY_MAX(t->ns[i], ns);
	return 0;
}

static int64_t get_time(const struct ky_span_times *t, size_t i)
{
	return i < t->n ? t->ns[i] : INT64_MIN;
}

int ky_spans_gap(struct ky_spans *s, const struct ky_stream *stream, int64_t until_ns)
{
	int r = raise_time(&s->of_stream, stream->rank, until_ns);

	if (!r)
		r = raise_time(&s->of_trace, stream->files[0].trace->group, until_ns);
	return r ? r : raise_time(&s->of_all, 0, until_ns);
}

int ky_spans_begin(struct ky_spans *s, const struct ky_trace_reader *r)
{
	int error = 0;

	for (size_t i = 0; i < r->n_streams && !error; i++) {
		const struct ky_stream *stream = r->streams[i];
		int64_t ns;

		if (ky_stream_is_cut(stream, &ns))
			error = ky_spans_gap(s, stream, ns);
	}
	return error;
}

/* True if nothing is missing between the begin of o and now, when it ends in this stream. */
static bool is_complete(
	const struct ky_spans *s, const struct open_span *o, const struct ky_stream *stream)
{
	if (o->begin_ns >= get_time(&s->of_all, 0))
		return true;
	if (o->trace && o->stream == stream && ky_stream_is_of_thread(stream))
		return o->begin_ns >= get_time(&s->of_stream, stream->rank);
	return o->trace && o->begin_ns >= get_time(&s->of_trace, o->trace->group);
}

/* --- spans --- */

static bool ends_in(const char *name, const char *ending, size_t *ret_len)
{
	size_t len = strlen(name), n = strlen(ending);

	if (len <= n || strcmp(name + len - n, ending) != 0)
		return false;
	*ret_len = len - n;
	return true;
}

static struct ky_span_name *find_name(
	struct ky_spans *s, const char *name, size_t len, bool is_async)
{
	uint32_t hash = ky_hash(name, len) + is_async;
	struct ky_span_name *found;

	for (struct ky_hnode *n = ky_htab_first(&s->names, hash); n; n = ky_htab_next(n)) {
		found = ky_container_of(n, struct ky_span_name, node);
		if (found->is_async == is_async && found->name_len == len &&
			!memcmp(found->name, name, len))
			return found;
	}
	found = calloc(1, sizeof(*found));
	if (!found || ky_htab_add(&s->names, &found->node, hash) < 0) {
		free(found);
		return NULL;
	}
	found->name = name;
	found->name_len = len;
	found->is_async = is_async;
	return found;
}

static uint32_t hash_of(const struct open_span *o)
{
	const uint64_t group = o->trace ? o->trace->group + 1 : 0;
	const uint64_t key[] = {(uintptr_t)o->name, group, o->id};

	return ky_hash(key, sizeof(key));
}

/* Traces of one group are chunks of one trace. */
static bool is_same_trace(const struct ky_trace *x, const struct ky_trace *y)
{
	return x == y || (x && y && x->group == y->group);
}

static struct open_span *find_open(const struct ky_spans *s, const struct open_span *like)
{
	for (struct ky_hnode *n = ky_htab_first(&s->open, hash_of(like)); n; n = ky_htab_next(n)) {
		struct open_span *o = ky_container_of(n, struct open_span, node);

		if (o->name == like->name && o->id == like->id &&
			is_same_trace(o->trace, like->trace))
			return o;
	}
	return NULL;
}

/* In the place of the one that it stands on. */
static int begin(struct ky_spans *s, const struct open_span *span)
{
	struct open_span *o = malloc(sizeof(*o));

	if (!o)
		return -ENOMEM;
	*o = *span;
	o->below = find_open(s, span);
	if (o->below)
		ky_htab_remove(&s->open, &o->below->node);
	if (ky_htab_add(&s->open, &o->node, hash_of(o)) < 0) {
		if (o->below)
			ky_htab_add(
				&s->open, &o->below->node, hash_of(o)); /* has room: it was there */
		free(o);
		return -ENOMEM;
	}
	o->name->n_open++;
	return 0;
}

static int add_duration(struct ky_span_name *name, uint64_t ns)
{
	if (name->n == name->cap) {
		size_t cap = name->cap ? 2 * name->cap : 16;
		uint64_t *more = reallocarray(name->ns, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		name->ns = more;
		name->cap = cap;
	}
	name->ns[name->n++] = ns;
	if (__builtin_add_overflow(name->total_ns, ns, &name->total_ns))
		name->total_ns = UINT64_MAX;
	return 0;
}

static int end(struct ky_spans *s, const struct open_span *span, int64_t ns)
{
	struct open_span *o = find_open(s, span);
	int r;

	if (!o) {
		span->name->n_unbegun++;
		return 0;
	}
	ky_htab_remove(&s->open, &o->node);
	if (o->below)
		ky_htab_add(
			&s->open, &o->below->node, hash_of(o->below)); /* has room: the other's */
	o->name->n_open--;
	if (is_complete(s, o, span->stream)) {
		r = add_duration(
			o->name, ns > o->begin_ns ? (uint64_t)ns - (uint64_t)o->begin_ns : 0);
	} else {
		o->name->n_cut++;
		r = 0;
	}
	free(o);
	return r;
}

int ky_spans_add(struct ky_spans *s, const struct ky_item *item)
{
	const struct ky_decoder *d = item->d;
	bool is_async, is_begin;
	struct open_span span = {.begin_ns = item->ns};
	const char *name;
	size_t len;

	if (item->kind != KY_ITEM_EVENT)
		return ky_spans_gap(s, item->stream, item->lost.end_ns);
	name = item->event->name;
	is_async = d->have & 1u << KY_ROLE_ASYNC_ID;
	if (!name || !item->has_time || !(is_async || d->have & 1u << KY_ROLE_SPAN_TID))
		return 0;
	is_begin = ends_in(name, "_begin", &len);
	if (!is_begin && !ends_in(name, "_end", &len))
		return 0;
	span.name = find_name(s, name, len, is_async);
	if (!span.name)
		return -ENOMEM;
	span.id = d->role[is_async ? KY_ROLE_ASYNC_ID : KY_ROLE_SPAN_TID];
	span.trace = is_async ? NULL : item->stream->files[0].trace;
	span.stream = item->stream;
	return is_begin ? begin(s, &span) : end(s, &span, item->ns);
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int by_total(const void *a, const void *b)
{
	const struct ky_span_name *x = *(struct ky_span_name *const *)a;
	const struct ky_span_name *y = *(struct ky_span_name *const *)b;
	int r;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	r = memcmp(x->name, y->name, KY_MIN(x->name_len, y->name_len));
	return r ? r : (x->name_len > y->name_len) - (x->name_len < y->name_len);
}

int ky_spans_finish(struct ky_spans *s)
{
	struct ky_hnode *n, *tmp;
	size_t i, k = 0;

	s->by_total = calloc(s->names.n + 1, sizeof(struct ky_span_name *));
	if (!s->by_total)
		return -ENOMEM;
	ky_htab_foreach(&s->names, i, n, tmp)
	{
		struct ky_span_name *name = ky_container_of(n, struct ky_span_name, node);

		if (name->n)
			qsort(name->ns, name->n, sizeof(*name->ns), by_number);
		s->by_total[k++] = name;
	}
	qsort(s->by_total, k, sizeof(struct ky_span_name *), by_total);
	return 0;
}

uint64_t ky_span_percentile(const struct ky_span_name *name, unsigned percent)
{
	size_t n = name->n, rank = n / 100 * percent + (n % 100 * percent + 99) / 100;

	return n ? name->ns[rank ? rank - 1 : 0] : 0;
}

void ky_spans_deinit(struct ky_spans *s)
{
	struct ky_hnode *n, *tmp;
	size_t i;

	ky_htab_foreach(&s->open, i, n, tmp)
	{
		struct open_span *o = ky_container_of(n, struct open_span, node), *below;

		for (; o; o = below) {
			below = o->below;
			free(o);
		}
	}
	ky_htab_foreach(&s->names, i, n, tmp)
	{
		struct ky_span_name *name = ky_container_of(n, struct ky_span_name, node);

		free(name->ns);
		free(name);
	}
	ky_htab_deinit(&s->open);
	ky_htab_deinit(&s->names);
	free(s->by_total);
	free(s->of_stream.ns);
	free(s->of_trace.ns);
	free(s->of_all.ns);
	*s = (struct ky_spans){0};
}
