/* SPDX-License-Identifier: MIT */
/*
 * CPU samples: what threads executed between two of their events. They are no events of the thread:
 * when they come depends on the clock alone.
 */
#include "explain/accounting.h"

#define MAX_GAPS ((size_t)4096)

/* The name of the function at an address of a process. */
struct known_function {
	struct ky_hnode node;
	uint64_t key[3]; /* process, address, whether it is behind a call */
	uint32_t name;
};

static int compare_gaps(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void ky_samples_add_event(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	struct ky_stack s = {.ns = e->ns};

	ky_account_check(a, ky_timeline_run(t, e->ns));
	if (t->has_sample && a->gaps.n < MAX_GAPS)
		ky_account_check(a, ky_vec_add(&a->gaps, e->ns - t->sample_ns));
	t->has_sample = true;
	t->sample_ns = e->ns;
	if (!t->had_event || t->stacks.n >= KY_MAX_SAMPLES)
		return;
	ky_source_stack(e, s.addresses, KY_SAMPLE_DEPTH);
	ky_account_check(a, ky_vec_add(&t->stacks, s));
}

static uint32_t find_name(
	struct ky_account *a, const struct ky_explain_thread *t, uint64_t address, bool is_return)
{
	const struct ky_explain_symbols *s = a->x->symbols;
	char text[KY_TEXTS_LENGTH];

	if (!s || !s->find_function(s->arg, ky_texts_get(&a->x->names, t->host), t->pid, address,
			  is_return, text, sizeof(text)))
		return 0;
	return ky_texts_add(&a->x->names, text, strlen(text));
}

static uint32_t function_at(
	struct ky_account *a, const struct ky_timeline *t, uint64_t address, bool is_return)
{
	const struct ky_explain_thread *thread = a->x->threads.v[t->thread];
	const uint64_t key[] = {thread->process, address, is_return};
	uint32_t hash = ky_hash(key, sizeof(key));
	struct known_function *f;

	for (struct ky_hnode *n = ky_htab_first(&a->functions, hash); n; n = ky_htab_next(n)) {
		f = ky_container_of(n, struct known_function, node);
		if (!memcmp(f->key, key, sizeof(key)))
			return f->name;
	}
	f = calloc(1, sizeof(*f));
	if (!f || ky_htab_add(&a->functions, &f->node, hash) < 0) {
		free(f);
		ky_account_check(a, -ENOMEM);
		return 0;
	}
	memcpy(f->key, key, sizeof(key));
	f->name = find_name(a, thread, address, is_return);
	return f->name;
}

/* Of an instance's samples beyond the bound, the last one of a component stands for them. */
static void add_sample(struct ky_account *a, const struct ky_timeline *t, struct ky_instance *i,
	const struct ky_stack *stack, uint32_t component)
{
	struct ky_sample *last = i->samples.n ? &i->samples.v[i->samples.n - 1] : NULL;
	struct ky_sample s = {.component = component, .n = 1};

	if (i->samples.n >= KY_MAX_SAMPLES) {
		last->n += last->component == component;
		return;
	}
	for (size_t k = 0; k < KY_SAMPLE_DEPTH && stack->addresses[k]; k++)
		s.functions[k] = function_at(a, t, stack->addresses[k], k > 0);
	ky_account_check(a, ky_vec_add(&i->samples, s));
}

void ky_samples_take(
	struct ky_account *a, const struct ky_timeline *t, struct ky_window *w, uint32_t component)
{
	for (size_t i = 0; i < t->stacks.n; i++) {
		const struct ky_stack *s = &t->stacks.v[i];

		if (s->ns >= KY_MAX(w->from, t->last_ns) && s->ns <= w->to)
			add_sample(a, t, w->instance, s, component);
	}
}

void ky_samples_end(struct ky_account *a)
{
	/* A thread that runs on is sampled at equal distances; one that does not, later. */
	if (a->gaps.n) {
		qsort(a->gaps.v, a->gaps.n, sizeof(*a->gaps.v), compare_gaps);
		a->x->sample_ns = a->gaps.v[a->gaps.n / 4];
	}
	ky_vec_deinit(&a->gaps);
	ky_htab_free_all(&a->functions, struct known_function, node);
}
