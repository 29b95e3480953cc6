/* SPDX-License-Identifier: MIT */
/* Pass 1: when the instances of the span began and ended. */
#include "explain/account.h"

#define MAX_LOSSES ((size_t)4096)

/* Begun, and not ended yet. */
struct open_instance {
	struct ky_hnode node;
	uint64_t key;		     /* thread, or async_id */
	struct open_instance *below; /* the same key, begun before; not in the table */
	unsigned depth;		     /* how many are below */
	bool is_filtered;	     /* left out */
	struct ky_instance instance;
};

struct loss {
	uint32_t stream, group;
	bool is_of_thread;
	int64_t from, to;
};

struct pass {
	struct ky_explain *x;
	struct ky_source *source;
	struct ky_instances *v;
	struct ky_htab open[2]; /* of threads, asynchronous */
	KY_VEC(struct loss) losses;
	uint64_t random;
	uint32_t n_begun;
};

/* A sequence of numbers that looks random and is the same in each run. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

int64_t ky_event_tid(const struct ky_source_event *e)
{
	int64_t tid = ky_source_number(e, KY_FIELD_TID, -1);

	/* A span knows its thread; its begin and its end must agree. */
	if (e->kind == KY_EVENT_SPAN_BEGIN || e->kind == KY_EVENT_SPAN_END)
		return ky_source_number(e, KY_FIELD_SPAN, tid);
	return tid;
}

static struct open_instance *find_open(const struct ky_htab *open, uint64_t key)
{
	uint32_t hash = ky_hash(&key, sizeof(key));

	for (struct ky_hnode *n = ky_htab_first(open, hash); n; n = ky_htab_next(n)) {
		struct open_instance *o = ky_container_of(n, struct open_instance, node);

		if (o->key == key)
			return o;
	}
	return NULL;
}

static int begin_instance(struct pass *p, const struct ky_source_event *e, bool is_async,
	uint64_t key, uint32_t thread)
{
	struct ky_explain_thread *t = p->x->threads.v[thread];
	struct open_instance *o = calloc(1, sizeof(*o)),
			     *below = find_open(&p->open[is_async], key);

	if (!o)
		return -ENOMEM;
	*o = (struct open_instance){
		.key = key,
		.below = below,
		.depth = below ? below->depth + 1 : 0,
		.is_filtered = !ky_source_passes(p->source, e),
		.instance = {.begin_ns = e->ns,
			.id = is_async ? key : 0,
			.streams = {e->stream},
			.group = e->group,
			.thread = thread,
			.ordinal = p->n_begun++,
			.thread_ordinal = t->n_instances++,
			.process_ordinal = p->x->threads.v[t->process]->n_process_instances++,
			.pause_ns = t->ended_ns && !is_async ? e->ns - t->ended_ns : -1,
			.is_second = p->v->is_second},
	};
	if (below)
		ky_htab_remove(&p->open[is_async], &below->node);
	if (ky_htab_add(&p->open[is_async], &o->node, ky_hash(&key, sizeof(key))) < 0) {
		free(o);
		return -ENOMEM;
	}
	return 0;
}

static bool is_longer(const struct ky_instance *a, const struct ky_instance *b)
{
	return a->ns != b->ns ? a->ns > b->ns : a->begin_ns < b->begin_ns;
}

/* A heap whose root is the shortest. */
static void sift(struct ky_instance *v, size_t n, size_t i)
{
	for (size_t c; (c = 2 * i + 1) < n; i = c) {
		struct ky_instance t;

		if (c + 1 < n && is_longer(&v[c], &v[c + 1]))
			c++;
		if (!is_longer(&v[i], &v[c]))
			return;
		t = v[i];
		v[i] = v[c];
		v[c] = t;
	}
}

static int keep_longest(struct ky_instances *v, const struct ky_instance *i)
{
	int r;

	if (v->longest.n == KY_MAX_LONGEST) {
		if (is_longer(i, &v->longest.v[0])) {
			v->longest.v[0] = *i;
			sift(v->longest.v, v->longest.n, 0);
		}
		return 0;
	}
	r = ky_vec_add(&v->longest, *i);
	for (size_t k = v->longest.n / 2; k-- > 0 && v->longest.n == KY_MAX_LONGEST;)
		sift(v->longest.v, v->longest.n, k);
	return r;
}

static int add_instance(struct pass *p, struct ky_instance *i)
{
	struct ky_instances *v = p->v;
	uint64_t at;

	i->ns = (double)(i->end_ns - i->begin_ns);
	i->random = next_random(&p->random);
	v->n++;
	if (v->n <= KY_MAX_INSTANCES)
		return ky_vec_add(&v->all, *i) < 0 ? -ENOMEM : keep_longest(v, i);
	at = next_random(&p->random) % v->n;
	if (at < KY_MAX_INSTANCES)
		v->all.v[at] = *i;
	return keep_longest(v, i);
}

static int end_instance(struct pass *p, const struct ky_source_event *e, bool is_async,
	uint64_t key, uint32_t thread)
{
	struct open_instance *o = find_open(&p->open[is_async], key);
	int r = 0;

	if (!o) {
		p->v->n_unbegun++;
		return 0;
	}
	ky_htab_remove(&p->open[is_async], &o->node);
	if (o->below)
		ky_htab_add(&p->open[is_async], &o->below->node, ky_hash(&key, sizeof(key)));
	o->instance.end_ns = e->ns;
	o->instance.end_thread = thread;
	p->x->threads.v[thread]->ended_ns = e->ns;
	o->instance.streams[1] = e->stream;
	if (!is_async && o->depth >= KY_MAX_DEPTH)
		p->v->n_nested++;
	else if (o->instance.end_ns <= o->instance.begin_ns)
		p->v->n_instant += !o->is_filtered;
	else if (!o->is_filtered)
		r = add_instance(p, &o->instance);
	free(o);
	return r;
}

static int add_span_event(struct pass *p, const struct ky_source_event *e)
{
	bool is_async = e->kind == KY_EVENT_ASYNC_BEGIN || e->kind == KY_EVENT_ASYNC_END;
	bool is_begin = e->kind == KY_EVENT_SPAN_BEGIN || e->kind == KY_EVENT_ASYNC_BEGIN;
	int64_t tid = ky_event_tid(e);
	uint32_t thread = ky_explain_thread(
		p->x, p->v->is_second, e->host, tid, ky_source_number(e, KY_FIELD_PID, -1));
	uint64_t key = is_async ? ky_source_id(e) : thread;

	if (thread == UINT32_MAX)
		return -ENOMEM;
	/* A name is of one kind: that of its first event. */
	if (!p->n_begun && !p->v->n_unbegun && !p->v->is_second)
		p->x->is_async = is_async;
	if (is_async != p->x->is_async)
		return 0;
	return is_begin ? begin_instance(p, e, is_async, key, thread)
			: end_instance(p, e, is_async, key, thread);
}

static int add_loss(struct pass *p, const struct ky_source_event *e)
{
	/* Beyond that many, the last one is made longer: too much is left out, not too little. */
	if (p->losses.n == MAX_LOSSES) {
		p->losses.v[MAX_LOSSES - 1].to = e->ns;
		return 0;
	}
	return ky_vec_add(&p->losses,
		(struct loss){e->stream, e->group, e->is_of_thread, e->begin_ns, e->ns});
}

/* A thread's own stream has no events of others. */
static bool is_hit(const struct loss *l, const struct ky_instance *i)
{
	bool is_own = l->stream == i->streams[0] || l->stream == i->streams[1];

	return l->from < i->end_ns && l->to > i->begin_ns && l->group == i->group &&
	       (is_own || !l->is_of_thread);
}

static bool had_loss(const struct pass *p, const struct ky_instance *i)
{
	for (size_t k = 0; k < p->losses.n; k++) {
		if (is_hit(&p->losses.v[k], i))
			return true;
	}
	return false;
}

static int compare_begins(const void *a, const void *b)
{
	const struct ky_instance *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

static int compare_lengths(const void *a, const void *b)
{
	return is_longer(b, a) - is_longer(a, b);
}

/* Drops the instances during which events were lost. Returns the number of those that stay. */
static size_t drop_lost(const struct pass *p, struct ky_instance *list, size_t n)
{
	size_t stay = 0;

	for (size_t i = 0; i < n; i++)
		if (!had_loss(p, &list[i]))
			list[stay++] = list[i];
	return stay;
}

static void finish_instances(struct pass *p)
{
	struct ky_instances *v = p->v;
	size_t n = drop_lost(p, v->all.v, v->all.n);

	v->longest.n = v->n <= KY_MAX_INSTANCES ? 0 : drop_lost(p, v->longest.v, v->longest.n);
	if (v->all.n)
		/* of a sample: as large a part of all */
		v->n_lost = (uint64_t)((double)v->n * (double)(v->all.n - n) / (double)v->all.n);
	v->n -= v->n_lost;
	v->all.n = n;
	if (n)
		qsort(v->all.v, n, sizeof(*v->all.v), compare_begins);
	if (v->longest.n)
		qsort(v->longest.v, v->longest.n, sizeof(*v->longest.v), compare_lengths);
}

static void close_pass(struct pass *p)
{
	for (size_t k = 0; k < KY_ARRAY_SIZE(p->open); k++) {
		struct ky_hnode *n, *tmp;
		size_t i;

		ky_htab_foreach(&p->open[k], i, n, tmp)
		{
			struct open_instance *o = ky_container_of(n, struct open_instance, node);

			for (struct open_instance *below; o; o = below) {
				below = o->below;
				p->v->n_unfinished++;
				free(o);
			}
		}
		ky_htab_deinit(&p->open[k]);
	}
	ky_vec_deinit(&p->losses);
}

int ky_instances_read(struct ky_instances *v, struct ky_explain *x, struct ky_source *s)
{
	struct pass p = {.x = x, .source = s, .v = v};
	struct ky_source_event e;
	int r = ky_source_start(s, KY_SOURCE_SPAN, x->span);

	v->trace_ns = ky_source_begin_ns(s);
	while (!r && (r = ky_source_next(s, &e)) > 0)
		r = e.kind == KY_EVENT_LOST ? add_loss(&p, &e) : add_span_event(&p, &e);
	if (!r)
		finish_instances(&p);
	close_pass(&p);
	return r ? r : x->names.error;
}

void ky_instances_deinit(struct ky_instances *v)
{
	for (size_t i = 0; i < v->all.n; i++)
		ky_instance_deinit(&v->all.v[i]);
	for (size_t i = 0; i < v->longest.n; i++)
		ky_instance_deinit(&v->longest.v[i]);
	ky_vec_deinit(&v->all);
	ky_vec_deinit(&v->longest);
}
