/* SPDX-License-Identifier: MIT */
/* Asynchronous spans: what a thread works on, and instances. */
#include "explain/accounting.h"

#include "base/bisect.h"

/* Begun in a thread, and not ended. */
struct open_async {
	struct ky_hnode node;
	uint32_t name;
	uint64_t id;
	struct ky_timeline *thread;
};

static uint32_t hash_async(uint32_t name, uint64_t id)
{
	const uint64_t key[] = {name, id};

	return ky_hash(key, sizeof(key));
}

static void find_async(struct ky_account *a, const struct ky_source_event *e)
{
	uint64_t id = ky_source_id(e);
	bool is_begin = e->kind == KY_EVENT_ASYNC_BEGIN;
	size_t first;

	if (e->class->base != a->x->span || !a->x->is_async)
		return;
	if (is_begin)
		ky_repeats_add(a, e, UINT32_MAX);
	ky_running_add(a, e, is_begin ? KY_TRAIT_BEGIN : KY_TRAIT_END, UINT32_MAX);
	ky_bisect(first, a->by_id.n, k, a->by_id.v[k]->id < id);
	for (; first < a->by_id.n && a->by_id.v[first]->id == id; first++) {
		struct ky_instance *i = a->by_id.v[first];

		if (is_begin && i->begin_ns == e->ns && !i->company_before)
			ky_account_begin_instance(a, i, e, NULL);
		else if (!is_begin && i->end_ns == e->ns && i->company_before)
			ky_account_end_instance(a, i, e);
	}
}

/* An asynchronous span belongs to the thread where it began, until it ends anywhere. */
static void begin_async(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e, uint64_t id)
{
	struct open_async *o = calloc(1, sizeof(*o));

	if (!o || ky_htab_add(&a->open_async, &o->node, hash_async(e->class->base, id)) < 0) {
		free(o);
		ky_account_check(a, -ENOMEM);
		return;
	}
	o->name = e->class->base;
	o->id = id;
	o->thread = t;
	t->n_async++;
	t->async_name = o->name;
	t->async_id = id;
	t->is_async_new = true;
}

static struct open_async *find_open_async(struct ky_account *a, uint32_t name, uint64_t id)
{
	for (struct ky_hnode *n = ky_htab_first(&a->open_async, hash_async(name, id)); n;
		n = ky_htab_next(n)) {
		struct open_async *o = ky_container_of(n, struct open_async, node);

		if (o->name == name && o->id == id)
			return o;
	}
	return NULL;
}

/* The one that is left, if only one is, is looked up among all: threads with several are rare. */
static void find_last_async(struct ky_account *a, struct ky_timeline *t)
{
	struct ky_hnode *n, *tmp;
	size_t i;

	ky_htab_foreach(&a->open_async, i, n, tmp)
	{
		const struct open_async *o = ky_container_of(n, struct open_async, node);

		if (o->thread == t) {
			t->async_name = o->name;
			t->async_id = o->id;
		}
	}
}

static void end_async(struct ky_account *a, const struct ky_source_event *e, uint64_t id)
{
	struct open_async *o = find_open_async(a, e->class->base, id);
	struct ky_timeline *t = o ? o->thread : NULL;

	if (!o)
		return;
	ky_htab_remove(&a->open_async, &o->node);
	free(o);
	if (--t->n_async == 1)
		find_last_async(a, t);
}

void ky_async_add_event(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	uint64_t id = ky_source_id(e);

	/* Instances themselves are what is looked at, not what a thread works on. */
	if (t && e->kind == KY_EVENT_ASYNC_BEGIN && e->class->base != a->x->span)
		begin_async(a, t, e, id);
	else if (e->kind == KY_EVENT_ASYNC_END)
		end_async(a, e, id);
	find_async(a, e);
	if (e->kind == KY_EVENT_ASYNC_BEGIN && e->class->base == a->x->span && a->x->is_async)
		a->begun_ns = e->ns;
	if (e->kind == KY_EVENT_ASYNC_BEGIN)
		ky_company_begin(a, e->class->base, t ? t->thread : UINT32_MAX, e->ns);
	else
		ky_company_end(a, e->class->base, UINT32_MAX, e->ns, e->ns);
}

void ky_async_deinit(struct ky_account *a)
{
	ky_htab_free_all(&a->open_async, struct open_async, node);
}
