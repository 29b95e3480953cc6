/* SPDX-License-Identifier: MIT */
/* Asynchronous spans: what a thread works on, and instances. */
#include "explain/accounting.h"

#include "base/bisect.h"

/* Remembers the values of an instance until it ends. */
static void note_values(struct ky_account *a, const struct ky_source_event *e, uint64_t id)
{
	struct ky_async_values *v;

	if (e->kind == KY_EVENT_ASYNC_BEGIN) {
		v = ky_open_async_begin(&a->open_instances, sizeof(*v), e->class->base, id);
		ky_account_check(a, v ? 0 : -ENOMEM);
		if (v)
			ky_repeats_add(a, e, UINT32_MAX, &v->values);
		return;
	}
	v = ky_open_async_end(&a->open_instances, e->class->base, id);
	if (v)
		ky_repeats_end(&v->values, e->ns);
	free(v);
}

static void find_async(struct ky_account *a, const struct ky_source_event *e)
{
	uint64_t id = ky_source_id(e);
	bool is_begin = e->kind == KY_EVENT_ASYNC_BEGIN;
	size_t first;

	if (e->class->base != a->x->span || !a->x->is_async)
		return;
	note_values(a, e, id);
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
	struct ky_thread_async *o = ky_open_async_begin(
		&a->open_async, sizeof(*o), e->class->base, id);

	if (!o) {
		ky_account_check(a, -ENOMEM);
		return;
	}
	ky_list_append(&t->asyncs, &o->of_thread);
	t->is_async_new = true;
}

static void end_async(struct ky_account *a, const struct ky_source_event *e, uint64_t id)
{
	_cleanup_free_ struct ky_thread_async *o = ky_open_async_end(
		&a->open_async, e->class->base, id);

	if (o)
		ky_list_remove(&o->of_thread);
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
	ky_open_async_free_all(&a->open_async);
	ky_open_async_free_all(&a->open_instances);
}
