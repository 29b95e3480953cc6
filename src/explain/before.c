/* SPDX-License-Identifier: MIT */
/*
 * Traits of an instance that are older than the instance: the newest value of each counter, and
 * whether an event of the application, or the end of a span of it, came since the instance before.
 */
#include "explain/accounting.h"

/* The one of this name and process; or an unused one; NULL: there are too many. */
static struct ky_before_mark *find_mark(struct ky_account *a, uint32_t name, uint32_t process)
{
	for (size_t i = 0; i < a->n_marks; i++) {
		if (a->marks[i].name == name && a->marks[i].process == process)
			return &a->marks[i];
	}
	if (a->n_marks == KY_MAX_MARKS)
		return NULL;
	a->marks[a->n_marks] = (struct ky_before_mark){.name = name, .process = process};
	return &a->marks[a->n_marks++];
}

void ky_before_add_event(
	struct ky_account *a, const struct ky_timeline *t, const struct ky_source_event *e)
{
	const struct ky_field *counter = e->class->known[KY_FIELD_COUNTER];
	bool is_span = e->kind == KY_EVENT_SPAN_END && e->class->base != a->x->span &&
		       !e->class->is_library;
	struct ky_before_mark *m;

	if (!e->class->is_own && !is_span)
		return;
	m = find_mark(a, is_span ? e->class->base : e->class->name,
		t ? a->x->threads.v[t->thread]->process : UINT32_MAX);
	if (!m)
		return;
	m->ns = e->ns;
	m->first_ns = m->n++ ? m->first_ns : e->ns;
	if (counter && !is_span)
		m->counter = ky_source_fact(a->source, e, counter);
}

int ky_before_keep_rare(struct ky_account *a)
{
	int r = 0;

	for (size_t i = 0; i < a->n_marks && !r; i++) {
		const struct ky_before_mark *m = &a->marks[i];

		if (m->n <= 2 && m->counter.type == KY_FACT_NONE)
			r = ky_vec_add(&a->x->rare, (struct ky_rare){m->name, m->first_ns});
		if (m->n == 2 && m->counter.type == KY_FACT_NONE && !r)
			r = ky_vec_add(&a->x->rare, (struct ky_rare){m->name, m->ns});
	}
	return r;
}

static void add_since(struct ky_account *a, struct ky_instance *i, const struct ky_before_mark *m,
	enum ky_trait_kind kind, int64_t since)
{
	/* Before the first instance lies the start of the program. */
	if (since != INT64_MIN)
		ky_traits_add_fact(a, i, (struct ky_trait_key){kind, m->name, 0},
			(struct ky_fact){KY_FACT_INT, .number = m->ns > since});
}

void ky_before_add_traits(struct ky_account *a, struct ky_instance *i, int64_t thread_begun_ns)
{
	uint32_t process = a->x->threads.v[i->thread]->process;

	for (size_t k = 0; k < a->n_marks; k++) {
		const struct ky_before_mark *m = &a->marks[k];

		if (m->process != process && m->process != UINT32_MAX)
			continue;
		if (m->counter.type != KY_FACT_NONE) {
			ky_traits_add_fact(a, i,
				(struct ky_trait_key){KY_TRAIT_COUNTER, m->name, 0}, m->counter);
			continue;
		}
		add_since(a, i, m, KY_TRAIT_FIRST, a->begun_ns);
		add_since(a, i, m, KY_TRAIT_FIRST_OF_THREAD, thread_begun_ns);
	}
}
