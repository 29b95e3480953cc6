/* SPDX-License-Identifier: MIT */
/* Facts of instances: fields, contexts, threads, callers. */
#include "explain/accounting.h"

#define MAX_SEEN 64 /* event names of an instance whose fields were taken */

static struct ky_trait *find_trait(struct ky_instance *i, uint32_t key)
{
	for (size_t k = 0; k < i->traits.n; k++) {
		if (i->traits.v[k].key == key)
			return &i->traits.v[k];
	}
	return NULL;
}

void ky_traits_add_fact(
	struct ky_account *a, struct ky_instance *i, struct ky_trait_key key, struct ky_fact fact)
{
	uint32_t number = ky_explain_key(a->x, key);

	if (fact.type == KY_FACT_NONE || i->traits.n >= KY_MAX_TRAITS || number == UINT32_MAX ||
		find_trait(i, number))
		return;
	ky_account_check(a, ky_vec_add(&i->traits, (struct ky_trait){number, fact}));
}

/* Of two facts with one key, the newer is kept. */
static void set_fact(
	struct ky_account *a, struct ky_instance *i, struct ky_trait_key key, struct ky_fact fact)
{
	struct ky_trait *t = find_trait(i, ky_explain_key(a->x, key));

	if (t && fact.type != KY_FACT_NONE)
		t->fact = fact;
	else
		ky_traits_add_fact(a, i, key, fact);
}

/*
 * Addresses in calls of libraries and of the kernel say nothing to people. The kernel's other
 * numbers in base 16, such as flags, are smaller.
 */
static bool is_address(
	struct ky_account *a, const struct ky_source_event *e, const struct ky_field *f)
{
	struct ky_fact fact = {.type = KY_FACT_NONE};

	if (e->class->is_library || e->class->is_kernel)
		fact = ky_source_fact(a->source, e, f);
	return fact.type == KY_FACT_INT && fact.is_hex &&
	       (e->class->is_library || (uint64_t)fact.number > UINT32_MAX);
}

bool ky_traits_is_no_fact(
	struct ky_account *a, const struct ky_source_event *e, const struct ky_field *f)
{
	if (f->scope == KY_SCOPE_PACKET_CONTEXT)
		return true;
	for (size_t i = 0; i <= KY_FIELD_SPAN; i++) {
		if (e->class->known[i] == f)
			return true;
	}
	return is_address(a, e, f);
}

typedef void keep_fact(
	struct ky_account *a, struct ky_instance *i, struct ky_trait_key key, struct ky_fact fact);

/* Fields of the event in the scopes that make sense for the kind. */
static void add_fields(struct ky_account *a, struct ky_instance *i, const struct ky_source_event *e,
	struct ky_trait_key key, bool contexts, keep_fact *keep)
{
	for (size_t k = 0; k < e->class->fields.n; k++) {
		const struct ky_field *f = &e->class->fields.v[k];

		if ((f->scope == KY_SCOPE_FIELDS) == contexts || ky_traits_is_no_fact(a, e, f))
			continue;
		key.field = f->name;
		keep(a, i, key, ky_source_fact(a->source, e, f));
	}
}

void ky_traits_add(struct ky_account *a, struct ky_instance *i, const struct ky_source_event *e,
	enum ky_trait_kind kind, uint32_t name, bool contexts)
{
	add_fields(a, i, e, (struct ky_trait_key){kind, name, 0}, contexts, ky_traits_add_fact);
}

static struct ky_fact number_fact(int64_t number)
{
	return (struct ky_fact){KY_FACT_INT, .number = number};
}

static void add_host(struct ky_account *a, struct ky_instance *i, uint32_t host)
{
	struct ky_trait_key key = {KY_TRAIT_HOST, 0, ky_texts_add(&a->x->names, "host", 4)};
	const char *name = ky_texts_get(&a->x->names, host);

	ky_traits_add_fact(a, i, key,
		(struct ky_fact){KY_FACT_TEXT, .text = host, .length = (uint32_t)strlen(name)});
}

void ky_traits_add_begin(struct ky_account *a, struct ky_instance *i,
	const struct ky_source_event *e, const struct ky_timeline *t)
{
	const struct ky_explain_thread *thread = a->x->threads.v[i->thread];
	int64_t cpu = ky_source_number(e, KY_FIELD_CPU, -1);

	ky_traits_add(a, i, e, KY_TRAIT_BEGIN, 0, false);
	ky_traits_add(a, i, e, KY_TRAIT_CONTEXT, 0, true);
	ky_traits_add_fact(
		a, i, (struct ky_trait_key){KY_TRAIT_THREAD, 0, 0}, number_fact(i->thread));
	if (thread->pid >= 0)
		ky_traits_add_fact(a, i, (struct ky_trait_key){KY_TRAIT_PROCESS, 0, 0},
			number_fact(thread->process));
	if (cpu >= 0)
		ky_traits_add_fact(a, i, (struct ky_trait_key){KY_TRAIT_CPU, 0, 0},
			number_fact(ky_explain_processor(e->host, cpu)));
	if (e->host)
		add_host(a, i, e->host);
	if (i->pause_ns >= 0)
		ky_traits_add_fact(a, i, (struct ky_trait_key){KY_TRAIT_PAUSE, 0, 0},
			number_fact(i->pause_ns));
	if (!t || !ky_timeline_span(t))
		return;
	ky_traits_add_fact(a, i, (struct ky_trait_key){KY_TRAIT_CALLER, 0, 0},
		(struct ky_fact){KY_FACT_TEXT, .text = ky_timeline_span(t)});
	for (size_t k = t->outer.n; k-- > 0;)
		ky_traits_add_fact(a, i, a->x->keys.v[t->outer.v[k].key], t->outer.v[k].fact);
}

void ky_traits_add_inner(struct ky_account *a, struct ky_window *w, const struct ky_source_event *e)
{
	uint32_t name;

	for (size_t i = 0; i < w->seen.n; i++) {
		if (w->seen.v[i] == e->class->name)
			return;
	}
	/* The end of the span itself is kept as such. */
	if (e->kind == KY_EVENT_SPAN_END && e->class->base == a->x->span)
		return;
	/* Fields of the kernel are addresses, numbers of descriptors and the like. */
	if (w->seen.n >= MAX_SEEN || e->class->is_kernel || e->class->is_function)
		return;
	ky_account_check(a, ky_vec_add(&w->seen, e->class->name));
	name = e->class->base ? e->class->base : e->class->name;
	ky_traits_add(a, w->instance, e, KY_TRAIT_INNER, name, false);
	if (e->class->is_own)
		ky_traits_add_fact(a, w->instance, (struct ky_trait_key){KY_TRAIT_INNER, name, 0},
			number_fact(1));
}

void ky_traits_add_allocation(struct ky_instance *i, const struct ky_source_event *e)
{
	double size = (double)ky_source_number(e, KY_FIELD_SIZE, 0) *
		      (double)ky_source_number(e, KY_FIELD_NMEMB, 1);

	i->largest_allocation = KY_MIN(KY_MAX(i->largest_allocation, size), 1e18);
}

void ky_traits_end_allocations(struct ky_account *a, struct ky_instance *i)
{
	struct ky_trait_key key = {.kind = KY_TRAIT_INNER};

	if (i->largest_allocation <= 0)
		return;
	key.name = a->x->largest_allocation = ky_texts_add(
		&a->x->names, "the largest allocation", 22);
	key.field = ky_texts_add(&a->x->names, "size", 4);
	ky_traits_add_fact(a, i, key, number_fact((int64_t)i->largest_allocation));
}

/* Whether the call is the longest of its name that ended in the instance. */
static bool is_longest(struct ky_account *a, struct ky_instance *i, uint32_t name, int64_t ns)
{
	for (size_t k = 0; k < i->longest.n; k++) {
		struct ky_longest *l = &i->longest.v[k];

		if (l->name != name)
			continue;
		if (l->ns >= ns)
			return false;
		l->ns = ns;
		return true;
	}
	if (i->longest.n >= MAX_SEEN)
		return false;
	ky_account_check(a, ky_vec_add(&i->longest, (struct ky_longest){name, ns}));
	return true;
}

/* The span's own fields are kept as those of the begin and of the end. */
static bool is_itself(
	const struct ky_account *a, const struct ky_instance *i, const struct ky_frame *f)
{
	return f->name == a->x->span && f->begin_ns == i->begin_ns;
}

void ky_traits_end_inner(struct ky_account *a, const struct ky_timeline *t, size_t n,
	const struct ky_source_event *e)
{
	const struct ky_frame *f = &t->stack.v[n];
	size_t end = n + 1 < t->stack.n ? t->stack.v[n + 1].n_outer : t->outer.n;

	if (f->is_pair || e->class->is_kernel || e->class->is_function)
		return;
	for (size_t i = 0; i < t->active.n; i++) {
		struct ky_window *w = t->active.v[i];

		if (f->begin_ns < w->from || is_itself(a, w->instance, f) ||
			!is_longest(a, w->instance, f->name, e->ns - f->begin_ns))
			continue;
		for (size_t k = f->n_outer; k < end; k++) {
			struct ky_trait_key key = a->x->keys.v[t->outer.v[k].key];

			key.kind = KY_TRAIT_CALL;
			set_fact(a, w->instance, key, t->outer.v[k].fact);
		}
		add_fields(a, w->instance, e, (struct ky_trait_key){KY_TRAIT_CALL_END, f->name, 0},
			false, set_fact);
	}
}

void ky_traits_push_outer(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	for (size_t k = 0; k < e->class->fields.n && t->outer.n < KY_MAX_TRAITS; k++) {
		const struct ky_field *f = &e->class->fields.v[k];
		uint32_t key;

		if (f->scope != KY_SCOPE_FIELDS || ky_traits_is_no_fact(a, e, f))
			continue;
		key = ky_explain_key(
			a->x, (struct ky_trait_key){KY_TRAIT_OUTER, e->class->base, f->name});
		ky_account_check(
			a, ky_vec_add(&t->outer,
				   (struct ky_trait){key, ky_source_fact(a->source, e, f)}));
	}
}
