/* SPDX-License-Identifier: MIT */
/*
 * A span is a pair of events with the same name and the same number: a thread's, or the span's own.
 * A table has the spans that have begun. If several have the same name and number, the one that
 * began last ends first, as nested calls do.
 *
 * Most spans end before those that began before them in their thread. So a thread's spans are put
 * into the table only when another than its innermost one is looked for.
 */
#include "analysis/spans.h"

#include "base/bisect.h"
#include "base/hash.h"
#include "base/vec.h"

/* A begin, or an end that looks for its begin. */
struct ky_span_begin {
	struct ky_span_name *name;
	const struct ky_trace *trace; /* its threads have such numbers; NULL: not of a thread */
	uint64_t id;
	const struct ky_stream *stream;
	struct thread *thread; /* NULL: not of a thread */
	int64_t ns;
	const char *key; /* key_len bytes */
	size_t key_len;
	uint64_t number;
	struct ky_span_owner owner;
};

/* A span that has begun, and not ended yet. */
struct ky_open_span {
	struct ky_hnode node;
	struct ky_span_begin b;	    /* its key is behind this structure */
	struct ky_open_span *below; /* same name and number, began before; not in the table */
	struct ky_open_span *outer; /* the span of the thread that was begun before */
	struct ky_open_span *inner; /* the one that was begun after it */
	uint64_t inner_ns;	    /* of the spans that were begun in it and have ended */
	struct ky_open_span *last;  /* of a queue, in its first: the one that began last */
	uint64_t parent;	    /* number of the begin of `outer` at that time, or 0 */
	unsigned depth;
	bool crosses;	  /* one that began before it in its thread ended before it */
	bool is_in_table; /* it, or it is below one that is */
};

/* A span whose begin has a number above `after`, up to `until`, crosses the end of another one. */
struct crossing {
	uint64_t after, until;
};

/* The open spans of a thread, the last one first. */
struct thread {
	struct ky_hnode node;
	size_t group; /* of its trace */
	uint64_t id;
	struct ky_open_span *innermost;
	KY_VEC(struct crossing) crossings; /* ascending, disjoint; an open span is in each */
};

/* --- missing records --- */

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

/* Returns true if no record is missing between the begin of o and its end now, in this stream. */
static bool is_complete(
	const struct ky_spans *s, const struct ky_open_span *o, const struct ky_stream *stream)
{
	if (o->b.ns >= get_time(&s->of_all, 0))
		return true;
	if (o->b.trace && o->b.stream == stream && ky_stream_is_of_thread(stream))
		return o->b.ns >= get_time(&s->of_stream, stream->rank);
	return o->b.trace && o->b.ns >= get_time(&s->of_trace, o->b.trace->group);
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
	if (found)
		found->index = (uint32_t)s->names.n;
	if (!found || ky_htab_add(&s->names, &found->node, hash) < 0) {
		free(found);
		return NULL;
	}
	found->name = name;
	found->name_len = len;
	found->is_async = is_async;
	return found;
}

static uint32_t hash_of(const struct ky_span_begin *b)
{
	const uint64_t group = b->trace ? b->trace->group + 1 : 0;
	const uint64_t key[] = {(uintptr_t)b->name, group, b->id};

	return ky_hash(key, sizeof(key));
}

/* Traces of one group are chunks of one trace. */
static bool is_same_trace(const struct ky_trace *x, const struct ky_trace *y)
{
	return x == y || (x && y && x->group == y->group);
}

static struct ky_open_span *find_open(const struct ky_spans *s, const struct ky_span_begin *like)
{
	for (struct ky_hnode *n = ky_htab_first(&s->open, hash_of(like)); n; n = ky_htab_next(n)) {
		struct ky_open_span *o = ky_container_of(n, struct ky_open_span, node);

		if (o->b.name == like->name && o->b.id == like->id &&
			is_same_trace(o->b.trace, like->trace) && o->b.key_len == like->key_len &&
			(!like->key_len || !memcmp(o->b.key, like->key, like->key_len)))
			return o;
	}
	return NULL;
}

static struct ky_open_span *copy_open(struct ky_spans *s, const struct ky_span_begin *span)
{
	struct ky_open_span *o = span->key_len ? NULL : s->unused;

	if (o)
		s->unused = o->below;
	else
		o = malloc(sizeof(*o) + span->key_len);
	if (!o)
		return NULL;
	/* One by one: the compiler would clear it in a way that takes long to start. */
	o->b = *span;
	if (span->key_len)
		memcpy(o + 1, span->key, span->key_len);
	o->b.key = (const char *)(o + 1);
	o->below = o->outer = o->inner = NULL;
	o->last = o;
	o->inner_ns = o->parent = 0;
	o->depth = 0;
	o->crosses = o->is_in_table = false;
	return o;
}

static void drop_open(struct ky_spans *s, struct ky_open_span *o)
{
	if (o->b.key_len) {
		free(o);
		return;
	}
	o->below = s->unused;
	s->unused = o;
}

/* Adds a span behind those that began before. */
static int enqueue_span(struct ky_spans *s, const struct ky_span_begin *span)
{
	struct ky_open_span *o = copy_open(s, span), *first = find_open(s, span);

	if (!o || (!first && ky_htab_add(&s->open, &o->node, hash_of(&o->b)) < 0)) {
		free(o);
		return -ENOMEM;
	}
	if (first) {
		first->last->below = o;
		first->last = o;
	}
	o->is_in_table = true;
	o->b.name->n_open++;
	return 0;
}

/* Adds a span to the table, in the place of the one below it. */
static int add_to_table(struct ky_spans *s, struct ky_open_span *o)
{
	o->below = find_open(s, &o->b);
	if (o->below)
		ky_htab_remove(&s->open, &o->below->node);
	if (ky_htab_add(&s->open, &o->node, hash_of(&o->b)) < 0) {
		if (o->below)
			ky_htab_add(&s->open, &o->below->node,
				hash_of(&o->b)); /* has room: it was there */
		return -ENOMEM;
	}
	o->is_in_table = true;
	return 0;
}

/* Adds those spans of a thread that only its list has: the last ones that began. */
static int add_all_to_table(struct ky_spans *s, struct thread *t)
{
	struct ky_open_span *next = NULL, *o = t->innermost;
	int r = 0;

	/* From the outermost on: `below`, which they do not have yet, turns the list round. */
	for (; o && !o->is_in_table; o = o->outer) {
		o->below = next;
		next = o;
	}
	for (o = next; o; o = next) {
		next = o->below;
		o->below = NULL;
		r = r ? r : add_to_table(s, o);
	}
	return r;
}

static int open_span(struct ky_spans *s, const struct ky_span_begin *span)
{
	struct ky_open_span *o = copy_open(s, span);

	if (!o)
		return -ENOMEM;
	if (!o->b.thread && add_to_table(s, o)) {
		drop_open(s, o);
		return -ENOMEM;
	}
	o->b.name->n_open++;
	if (o->b.thread) {
		o->outer = o->b.thread->innermost;
		o->b.thread->innermost = o;
	}
	if (o->outer) {
		o->outer->inner = o;
		o->parent = o->outer->b.number;
		o->depth = o->outer->depth + 1;
	}
	return 0;
}

static struct thread *find_thread(struct ky_spans *s, const struct ky_span_begin *span)
{
	const uint64_t key[] = {span->trace->group, span->id};
	struct thread *t = s->last_thread;
	uint32_t hash;

	if (t && t->group == key[0] && t->id == key[1])
		return t;
	hash = ky_hash(key, sizeof(key));
	for (struct ky_hnode *n = ky_htab_first(&s->threads, hash); n; n = ky_htab_next(n)) {
		t = ky_container_of(n, struct thread, node);
		if (t->group == key[0] && t->id == key[1])
			return s->last_thread = t;
	}
	t = calloc(1, sizeof(*t));
	if (!t || ky_htab_add(&s->threads, &t->node, hash) < 0) {
		free(t);
		return NULL;
	}
	t->group = key[0];
	t->id = key[1];
	return s->last_thread = t;
}

/* Returns true if a span that began before o has ended since o began. */
static bool has_crossed(const struct thread *t, const struct ky_open_span *o)
{
	size_t i;

	ky_bisect(i, t->crossings.n, k, t->crossings.v[k].until < o->b.number);
	return i < t->crossings.n && t->crossings.v[i].after < o->b.number;
}

/* All spans that are open now and began after o cross its end. */
static int add_crossing(const struct ky_spans *s, struct thread *t, const struct ky_open_span *o)
{
	struct crossing c = {o->b.number, s->n_events};

	while (t->crossings.n && t->crossings.v[t->crossings.n - 1].until >= c.after) {
		t->crossings.n--;
		c.after = KY_MIN(c.after, t->crossings.v[t->crossings.n].after);
	}
	return ky_vec_add(&t->crossings, c);
}

/* Removes a span from its thread's list, at any position. */
static int leave_thread(const struct ky_spans *s, struct ky_open_span *o)
{
	struct thread *t = o->b.thread;
	uint64_t last;

	if (!t)
		return 0;
	o->crosses = has_crossed(t, o);
	if (o->outer)
		o->outer->inner = o->inner;
	if (o->inner) {
		o->inner->outer = o->outer;
		return add_crossing(s, t, o);
	}
	t->innermost = o->outer;
	last = o->outer ? o->outer->b.number : 0;
	while (t->crossings.n && t->crossings.v[t->crossings.n - 1].after >= last)
		t->crossings.n--;
	return 0;
}

/* Remembers the longest span of its name. */
static int compare_longest(const struct ky_open_span *o, uint64_t ns)
{
	struct ky_span_name *n = o->b.name;
	char *key;

	if (n->ns.n && ns <= n->ns.max)
		return 0;
	key = strndup(o->b.key, o->b.key_len);
	if (!key)
		return -ENOMEM;
	free(n->longest_key);
	n->longest_key = key;
	n->longest_ns = o->b.ns;
	return 0;
}

static int report_ended(
	const struct ky_spans *s, const struct ky_open_span *o, uint64_t ns, uint64_t self_ns)
{
	const struct ky_ended_span e = {.name = o->b.name,
		.begin = o->b.number,
		.end = s->n_events,
		.parent = o->parent,
		.begin_ns = o->b.ns,
		.ns = ns,
		.self_ns = self_ns,
		.owner = o->b.owner,
		.key = o->b.key,
		.key_len = o->b.key_len,
		.depth = o->depth,
		.crosses = o->crosses,
		.outer = o->outer};

	return s->ended ? s->ended(s->arg, &e) : 0;
}

/* Adds the duration of a span that ended. It does not count as its outer span's own time. */
static int add_duration(const struct ky_spans *s, struct ky_open_span *o, uint64_t ns)
{
	uint64_t self_ns = ns > o->inner_ns ? ns - o->inner_ns : 0;
	int r = compare_longest(o, ns);

	if (o->outer && o->b.thread)
		o->outer->inner_ns += ns;
	o->b.name->self_ns += self_ns;
	if (!r)
		r = report_ended(s, o, ns, self_ns);
	return r ? r : ky_histogram_add(&o->b.name->ns, ns);
}

/* Takes an open span out of the table. NULL: there is none. */
static int take_from_table(
	struct ky_spans *s, const struct ky_span_begin *like, struct ky_open_span **ret)
{
	struct ky_open_span *o;

	if (like->thread && add_all_to_table(s, like->thread))
		return -ENOMEM;
	*ret = o = find_open(s, like);
	if (!o)
		return 0;
	ky_htab_remove(&s->open, &o->node);
	if (o->below) {
		o->below->last = o->last;
		ky_htab_add(&s->open, &o->below->node,
			hash_of(&o->below->b)); /* has room: the other's */
	}
	return 0;
}

/* True if no other span than the innermost one of the thread can be meant. */
static bool ends_innermost(const struct ky_span_begin *span)
{
	const struct ky_open_span *o = span->thread ? span->thread->innermost : NULL;

	return o && o->b.name == span->name && !o->is_in_table;
}

static int close_span(struct ky_spans *s, const struct ky_span_begin *span)
{
	struct ky_open_span *o = ends_innermost(span) ? span->thread->innermost : NULL;
	int r = o ? 0 : take_from_table(s, span, &o);

	if (!o) {
		span->name->n_unbegun += !r;
		return r;
	}
	o->b.name->n_open--;
	r = leave_thread(s, o);
	if (!is_complete(s, o, span->stream))
		o->b.name->n_cut++;
	else if (!r)
		r = add_duration(
			s, o, span->ns > o->b.ns ? (uint64_t)span->ns - (uint64_t)o->b.ns : 0);
	drop_open(s, o);
	return r;
}

bool ky_span_event_of(struct ky_span_event *ret, const struct ky_item *item)
{
	const struct ky_decoder *d = item->d;
	enum ky_role role;

	*ret = (struct ky_span_event){.stream = item->stream, .ns = item->lost.end_ns};
	if (item->kind != KY_ITEM_EVENT)
		return true;
	ret->name = item->event->name;
	ret->class = item->event->index;
	ret->ns = item->ns;
	ret->is_async = d->have & 1u << KY_ROLE_ASYNC_ID;
	role = ret->is_async ? KY_ROLE_ASYNC_ID : KY_ROLE_SPAN_TID;
	ret->id = d->role[role];
	return ret->name && item->has_time && d->have & 1u << role;
}

struct ky_span_name *ky_spans_name(struct ky_spans *s, const char *name)
{
	return find_name(s, name, strlen(name), false);
}

int ky_spans_add_pair(struct ky_spans *s, const struct ky_span_pair *p)
{
	struct ky_span_begin span = {.name = p->name,
		.trace = p->trace,
		.id = ky_hash_add(KY_HASH_BASIS, p->key, p->key_len),
		.stream = p->stream,
		.ns = p->ns,
		.key = p->key,
		.key_len = p->key_len,
		.number = ++s->n_events,
		.owner = s->owner};

	if (!p->is_begin)
		return close_span(s, &span);
	return p->is_fifo ? enqueue_span(s, &span) : open_span(s, &span);
}

/* Finds out what events of this name do. NULL: no memory. */
static const struct ky_event_role *find_role(struct ky_spans *s, const struct ky_span_event *e)
{
	struct ky_event_role *role = &s->roles[e->class % KY_SPAN_ROLES];
	size_t len;

	if (ky_likely(role->event == e->name && role->is_async == e->is_async))
		return role;
	*role = (struct ky_event_role){.is_async = e->is_async};
	role->is_begin = ends_in(e->name, "_begin", &len);
	if (role->is_begin || ends_in(e->name, "_end", &len)) {
		role->span = find_name(s, e->name, len, e->is_async);
		if (!role->span)
			return NULL;
	}
	role->event = e->name;
	return role;
}

int ky_spans_add_event(struct ky_spans *s, const struct ky_span_event *e)
{
	struct ky_span_begin span = {
		.ns = e->ns, .id = e->id, .stream = e->stream, .owner = s->owner};
	const struct ky_event_role *role;

	if (!e->name)
		return ky_spans_gap(s, e->stream, e->ns);
	role = find_role(s, e);
	if (!role)
		return -ENOMEM;
	if (!role->span)
		return 0;
	span.number = ++s->n_events;
	span.name = role->span;
	span.trace = e->is_async ? NULL : e->stream->files[0].trace;
	if (span.trace) {
		span.thread = find_thread(s, &span);
		if (!span.thread)
			return -ENOMEM;
	}
	return role->is_begin ? open_span(s, &span) : close_span(s, &span);
}

int ky_spans_add(struct ky_spans *s, const struct ky_item *item)
{
	struct ky_span_event e;

	return ky_span_event_of(&e, item) ? ky_spans_add_event(s, &e) : 0;
}

const struct ky_span_name *ky_open_span_name(const struct ky_open_span *o)
{
	return o->b.name;
}

const struct ky_open_span *ky_open_span_outer(const struct ky_open_span *o)
{
	return o->outer;
}

static int by_total(const void *a, const void *b)
{
	const struct ky_span_name *x = *(struct ky_span_name *const *)a;
	const struct ky_span_name *y = *(struct ky_span_name *const *)b;
	int r;

	if (x->ns.sum != y->ns.sum)
		return x->ns.sum < y->ns.sum ? 1 : -1;
	r = memcmp(x->name, y->name, KY_MIN(x->name_len, y->name_len));
	if (!r)
		r = (x->name_len > y->name_len) - (x->name_len < y->name_len);
	return r ? r : x->is_async - y->is_async;
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
		s->by_total[k++] = ky_container_of(n, struct ky_span_name, node);
	}
	qsort(s->by_total, k, sizeof(struct ky_span_name *), by_total);
	return 0;
}

static void free_below(struct ky_open_span *o)
{
	struct ky_open_span *below;

	for (; o; o = below) {
		below = o->below;
		free(o);
	}
}

void ky_spans_deinit(struct ky_spans *s)
{
	struct ky_hnode *n, *tmp;
	size_t i;

	ky_htab_foreach(&s->threads, i, n, tmp)
	{
		struct thread *t = ky_container_of(n, struct thread, node);
		struct ky_open_span *o = t->innermost, *outer;

		ky_vec_deinit(&t->crossings);
		for (; o && !o->is_in_table; o = outer) {
			outer = o->outer;
			free(o);
		}
	}
	ky_htab_foreach(&s->open, i, n, tmp)
	{
		free_below(ky_container_of(n, struct ky_open_span, node));
	}
	free_below(s->unused);
	ky_htab_foreach(&s->names, i, n, tmp)
	{
		struct ky_span_name *name = ky_container_of(n, struct ky_span_name, node);

		ky_histogram_deinit(&name->ns);
		free(name->longest_key);
		free(name);
	}
	ky_htab_free_all(&s->threads, struct thread, node);
	ky_htab_deinit(&s->open);
	ky_htab_deinit(&s->names);
	free(s->by_total);
	free(s->of_stream.ns);
	free(s->of_trace.ns);
	free(s->of_all.ns);
	*s = (struct ky_spans){0};
}
