/* SPDX-License-Identifier: MIT */
/* Stages of asynchronous instances: asynchronous spans with their number. */
#include "explain/accounting.h"

static int compare_ids(const void *a, const void *b)
{
	const struct ky_instance *x = *(struct ky_instance *const *)a;
	const struct ky_instance *y = *(struct ky_instance *const *)b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

static bool is_chosen_id(const struct ky_account *a, uint64_t id)
{
	const struct ky_instance like = {.id = id, .begin_ns = INT64_MIN}, *key = &like;
	size_t lo = 0, hi = a->by_id.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (compare_ids(&a->by_id.v[mid], &key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < a->by_id.n && a->by_id.v[lo]->id == id;
}

static void add_stage_event(struct ky_account *a, const struct ky_source_event *e)
{
	uint64_t id = ky_source_id(e);
	int64_t tid = ky_event_tid(e);
	uint32_t thread = ky_explain_thread(
		a->x, a->of->is_second, e->host, tid, ky_source_number(e, KY_FIELD_PID, -1));

	if (e->class->base == a->x->span || !is_chosen_id(a, id))
		return;
	if (e->kind == KY_EVENT_ASYNC_BEGIN) {
		ky_account_check(
			a, ky_vec_add(&a->stages, (struct ky_stage){id, e->class->base, thread,
							  thread, e->ns, INT64_MAX}));
		return;
	}
	for (size_t i = a->stages.n; i-- > 0;) {
		struct ky_stage *s = &a->stages.v[i];

		if (s->id == id && s->name == e->class->base && s->to == INT64_MAX) {
			s->to = e->ns;
			s->end_thread = thread;
			return;
		}
	}
}

static int compare_stages(const void *a, const void *b)
{
	const struct ky_stage *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to < y->to) - (x->to > y->to);
}

int ky_stages_read(struct ky_account *a)
{
	struct ky_source_event e;
	int r;

	for (size_t i = 0; i < a->n; i++)
		ky_account_check(a, ky_vec_add(&a->by_id, a->chosen[i]));
	if (a->error)
		return a->error;
	qsort(a->by_id.v, a->by_id.n, sizeof(struct ky_instance *), compare_ids);
	r = ky_source_start(a->source, KY_SOURCE_ASYNC, 0);
	while (!r && (r = ky_source_next(a->source, &e)) > 0) {
		r = 0;
		if (e.kind != KY_EVENT_LOST)
			add_stage_event(a, &e);
		if (a->error)
			return a->error;
	}
	if (a->stages.n)
		qsort(a->stages.v, a->stages.n, sizeof(*a->stages.v), compare_stages);
	return r;
}

/* Stages that begin within another one are part of it. */
void ky_stages_add_windows(struct ky_account *a, struct ky_instance *i)
{
	int64_t at = i->begin_ns;

	for (size_t k = 0; k < a->stages.n; k++) {
		const struct ky_stage *s = &a->stages.v[k];
		uint32_t c;

		if (s->id != i->id || s->from < at || s->to > i->end_ns)
			continue;
		ky_windows_new(a, i, s->thread, at, s->from, KY_ROOT, false);
		c = ky_window_child(a, KY_ROOT, KY_PART_SPAN, s->name, 0);
		ky_account_check(a, ky_instance_add(i, c, 1, 0));
		ky_windows_new(a, i, s->end_thread, s->from, s->to, c, false);
		at = s->to;
	}
	ky_windows_new(a, i, i->end_thread, at, i->end_ns, KY_ROOT, false);
}
