/* SPDX-License-Identifier: MIT */
/*
 * Spans and latencies of libkymo-reader (include/kymo/reader.h): rows for the spans that ky_spans
 * reports as they end.
 */
#include "analysis/measure.h"
#include "reader/api.h"

/* The fields of a class that have the process and the thread. */
struct owner_fields {
	struct ky_field_ref pid, tid;
};

struct kymo_spans {
	struct ky_reading reading;
	struct ky_values values;
	struct ky_spans declared;    /* without a latency */
	struct ky_measures measures; /* with one */
	struct owner_fields *owners; /* owned: by class */
	char **names;		     /* owned: by ky_span_name.index */
	size_t n_names;
	struct ky_buf keys;
	struct kymo_span_batch batch;
	int64_t begin_ns[KYMO_BATCH_MAX], pid[KYMO_BATCH_MAX], tid[KYMO_BATCH_MAX];
	uint64_t duration_ns[KYMO_BATCH_MAX], self_ns[KYMO_BATCH_MAX];
	uint64_t number[KYMO_BATCH_MAX], end_number[KYMO_BATCH_MAX], parent[KYMO_BATCH_MAX];
	uint32_t depth[KYMO_BATCH_MAX], name[KYMO_BATCH_MAX], keys_ends[KYMO_BATCH_MAX];
	uint8_t flags[KYMO_BATCH_MAX];
};

static int add_name(struct kymo_spans *s, const struct ky_span_name *name)
{
	size_t n = KY_MAX(2 * s->n_names, (size_t)name->index + 1);
	char **more;

	if (name->index < s->n_names && s->names[name->index])
		return 0;
	if (name->index >= s->n_names) {
		more = reallocarray(s->names, n, sizeof(*more));
		if (!more)
			return -ENOMEM;
		memset(more + s->n_names, 0, (n - s->n_names) * sizeof(*more));
		s->names = more;
		s->n_names = n;
	}
	s->names[name->index] = strndup(name->name, name->name_len);
	return s->names[name->index] ? 0 : -ENOMEM;
}

static int add_span(void *arg, const struct ky_ended_span *e)
{
	struct kymo_spans *s = arg;
	size_t i = s->batch.n++;

	s->begin_ns[i] = e->begin_ns;
	s->duration_ns[i] = e->ns;
	s->self_ns[i] = e->self_ns;
	s->number[i] = e->begin;
	s->end_number[i] = e->end;
	s->parent[i] = e->parent;
	s->depth[i] = e->depth;
	s->name[i] = e->name->index;
	s->pid[i] = e->owner.pid;
	s->tid[i] = e->owner.tid;
	s->flags[i] = (uint8_t)((e->name->is_async ? KYMO_SPAN_ASYNC : 0) |
				(e->crosses ? KYMO_SPAN_CROSSES : 0));
	ky_buf_append(&s->keys, e->key, e->key_len);
	s->keys_ends[i] = (uint32_t)s->keys.len;
	return s->keys.error ? s->keys.error : add_name(s, e->name);
}

/* --- opening --- */

static void set_error(struct kymo_reader_error *error, const char *text)
{
	if (!error)
		return;
	error->position = 0;
	snprintf(error->text, sizeof(error->text), "%s", text);
}

static int bind_latency(struct kymo_spans *s, const char *text, uint8_t *want,
	const struct ky_query *q, struct kymo_reader_error *error)
{
	const char *why_not = "";
	char why[256] = "";
	int r = ky_measures_add_latency(&s->measures, text, &why_not);

	if (!r) {
		s->measures.latencies[0].spans.ended = add_span;
		s->measures.latencies[0].spans.arg = s;
		r = ky_measures_bind(&s->measures, want, q, why, sizeof(why));
		why_not = why;
	}
	if (r)
		set_error(error, why_not);
	return r;
}

static int bind_declared(struct kymo_spans *s, uint8_t *want, const struct ky_query *q)
{
	const struct ky_trace_reader *r = q->reader;

	s->declared.ended = add_span;
	s->declared.arg = s;
	for (size_t i = 0; i < r->n_classes; i++) {
		if (ky_query_has(q, i) && r->classes[i]->is_span)
			want[i] |= KY_WANT_EVENT;
	}
	return ky_spans_begin(&s->declared, r);
}

/* Finds the fields of the owner in all classes that are read. */
static int bind_owners(struct kymo_spans *s, uint8_t *want, const struct ky_trace_reader *r)
{
	s->owners = calloc(r->n_classes + 1, sizeof(*s->owners));
	if (!s->owners)
		return -ENOMEM;
	for (size_t i = 0; i < r->n_classes; i++) {
		struct owner_fields *o = &s->owners[i];

		if (!want[i])
			continue;
		if (ky_keys_find(&o->pid, r->classes[i], "process") &&
			o->pid.place == KY_FIELD_ANYWHERE)
			want[i] |= KY_WANT_VALUES;
		if (ky_keys_find(&o->tid, r->classes[i], "thread") &&
			o->tid.place == KY_FIELD_ANYWHERE)
			want[i] |= KY_WANT_VALUES;
	}
	return 0;
}

KYMO_READER_API int kymo_spans_open(struct kymo_spans **ret_spans, struct kymo_query *query,
	const char *latency, struct kymo_reader_error *error)
{
	const struct ky_query *q = ky_query_inside(query);
	struct kymo_spans *s = calloc(1, sizeof(*s));
	uint8_t *want = calloc(q->reader->n_classes + 1, 1);
	int r = s && want ? 0 : -ENOMEM;

	if (!r)
		r = latency ? bind_latency(s, latency, want, q, error) : bind_declared(s, want, q);
	if (!r)
		r = bind_owners(s, want, q->reader);
	if (!r)
		r = ky_reading_init(&s->reading, q, want, NULL, &q->reader->options);
	free(want);
	if (r) {
		kymo_spans_close(s);
		return r;
	}
	*ret_spans = s;
	return 0;
}

KYMO_READER_API void kymo_spans_close(struct kymo_spans *spans)
{
	struct kymo_spans *s = spans;

	if (!s)
		return;
	ky_reading_deinit(&s->reading);
	ky_spans_deinit(&s->declared);
	ky_measures_deinit(&s->measures);
	ky_buf_deinit(&s->keys);
	for (size_t i = 0; i < s->n_names; i++)
		free(s->names[i]);
	free(s->names);
	free(s->owners);
	free(s->values.v);
	free(s);
}

/* --- reading --- */

static int64_t owner_number(struct ky_field_ref *f, const struct ky_item *item)
{
	struct ky_field_value value;

	if (!f->node || !ky_field_get(f, item, &value) || value.v->node->kind != KY_NODE_INT)
		return -1;
	return (int64_t)value.v->u;
}

static int add_item(struct kymo_spans *s, const struct ky_item *item)
{
	struct ky_spans *to = s->measures.n_latencies ? &s->measures.latencies[0].spans
						      : &s->declared;
	struct owner_fields *o = item->kind == KY_ITEM_EVENT ? &s->owners[item->event->index]
							     : NULL;

	if (o)
		to->owner = (struct ky_span_owner){
			owner_number(&o->pid, item), owner_number(&o->tid, item)};
	return s->measures.n_latencies ? ky_measures_add(&s->measures, item)
				       : ky_spans_add(to, item);
}

/* Reads items until the batch is full. Returns 0 or -ENOMEM. */
static int fill_batch(struct kymo_spans *s)
{
	struct ky_item item;
	int r = 1;

	while (r > 0 && s->batch.n < KYMO_BATCH_MAX) {
		s->values.n = 0;
		r = ky_cursor_next(s->reading.cursor, &item, &s->values);
		if (r > 0)
			r = add_item(s, &item) < 0 ? -ENOMEM : 1;
	}
	return r < 0 ? r : 0;
}

KYMO_READER_API int kymo_spans_next(
	struct kymo_spans *spans, const struct kymo_span_batch **ret_batch)
{
	struct kymo_spans *s = spans;
	int r;

	s->batch.n = 0;
	s->keys.len = 0;
	r = fill_batch(s);
	if (r < 0)
		return r;
	s->batch = (struct kymo_span_batch){.n = s->batch.n,
		.begin_ns = s->begin_ns,
		.duration_ns = s->duration_ns,
		.self_ns = s->self_ns,
		.number = s->number,
		.end_number = s->end_number,
		.parent = s->parent,
		.depth = s->depth,
		.name = s->name,
		.pid = s->pid,
		.tid = s->tid,
		.flags = s->flags,
		.keys = s->keys.data ? s->keys.data : "",
		.keys_ends = s->keys_ends};
	*ret_batch = &s->batch;
	return s->batch.n > 0;
}

KYMO_READER_API const char *kymo_spans_name(const struct kymo_spans *spans, uint32_t name)
{
	return name < spans->n_names ? spans->names[name] : NULL;
}
