/* SPDX-License-Identifier: MIT */
/* Stages of asynchronous instances: asynchronous spans with their number. */
#include "explain/account.h"
#include "explain/accounting.h"

#include "analysis/open-async.h"
#include "base/bisect.h"

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
	size_t first;

	ky_bisect(first, a->by_id.n, k, compare_ids(&a->by_id.v[k], &key) < 0);
	return first < a->by_id.n && a->by_id.v[first]->id == id;
}

/* Begun, and not ended yet. */
struct open_stage {
	struct ky_open_async open;
	size_t index; /* in a->stages */
};

static int begin_stage(struct ky_account *a, struct ky_htab *open, const struct ky_stage *s)
{
	struct open_stage *o = ky_open_async_begin(open, sizeof(*o), s->name, s->id);

	if (!o)
		return -ENOMEM;
	o->index = a->stages.n;
	return ky_vec_add(&a->stages, *s);
}

static void end_stage(struct ky_account *a, struct ky_htab *open, uint64_t id, uint32_t name,
	uint32_t thread, int64_t ns)
{
	_cleanup_free_ struct open_stage *o = ky_open_async_end(open, name, id);

	if (!o)
		return;
	a->stages.v[o->index].to = ns;
	a->stages.v[o->index].end_thread = thread;
}

static void add_stage_event(
	struct ky_account *a, struct ky_htab *open, const struct ky_source_event *e)
{
	uint64_t id = ky_source_id(e);
	int64_t tid = ky_event_tid(e);
	uint32_t thread = ky_explain_thread(
		a->x, a->of->is_second, e->host, tid, ky_source_number(e, KY_FIELD_PID, -1));

	if (e->class->base == a->x->span || !is_chosen_id(a, id))
		return;
	if (e->kind == KY_EVENT_ASYNC_BEGIN)
		ky_account_check(a, begin_stage(a, open,
					    &(struct ky_stage){id, e->class->base, thread, thread,
						    e->ns, INT64_MAX}));
	else
		end_stage(a, open, id, e->class->base, thread, e->ns);
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
	struct ky_htab open = {0};
	int r;

	for (size_t i = 0; i < a->n; i++)
		ky_account_check(a, ky_vec_add(&a->by_id, a->chosen[i]));
	if (a->error)
		return a->error;
	qsort(a->by_id.v, a->by_id.n, sizeof(struct ky_instance *), compare_ids);
	r = ky_source_start(a->source, KY_SOURCE_ASYNC, 0);
	while (!r && (r = ky_source_next(a->source, &e)) > 0) {
		if (e.kind != KY_EVENT_LOST)
			add_stage_event(a, &open, &e);
		r = a->error;
	}
	ky_open_async_free_all(&open);
	if (a->stages.n)
		qsort(a->stages.v, a->stages.n, sizeof(*a->stages.v), compare_stages);
	return r;
}

static size_t first_stage(const struct ky_account *a, uint64_t id)
{
	size_t first;

	ky_bisect(first, a->stages.n, k, a->stages.v[k].id < id);
	return first;
}

static void add_window(struct ky_account *a, struct ky_instance *i, uint32_t giver, uint32_t thread,
	int64_t from, int64_t to, uint32_t prefix)
{
	struct ky_window *w = ky_windows_new(a, i, thread, from, to, prefix, false);

	if (w)
		w->giver = giver;
}

/* Stages that begin within another one are part of it. */
void ky_stages_add_windows(struct ky_account *a, struct ky_instance *i)
{
	int64_t at = i->begin_ns;
	uint32_t giver = i->thread;

	for (size_t k = first_stage(a, i->id); k < a->stages.n; k++) {
		const struct ky_stage *s = &a->stages.v[k];
		uint32_t c;

		if (s->id != i->id || s->from > i->end_ns)
			break;
		if (s->from < at || s->to > i->end_ns)
			continue;
		add_window(a, i, giver, s->thread, at, s->from, KY_ROOT);
		c = ky_window_child(a, KY_ROOT, KY_PART_SPAN, s->name, 0);
		ky_component_count_stage(&a->x->components, c, s->end_thread != s->thread);
		ky_account_check(a, ky_instance_add(i, c, 1, 0));
		add_window(a, i, s->thread, s->end_thread, s->from, s->to, c);
		at = s->to;
		giver = s->end_thread;
	}
	add_window(a, i, giver, i->end_thread, at, i->end_ns, KY_ROOT);
}
