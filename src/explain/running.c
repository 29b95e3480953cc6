/* SPDX-License-Identifier: MIT */
/*
 * The sums of the numbers of all instances up to each chosen one. Only a sample of the instances is
 * chosen, and numbers of a sample do not say what the numbers between two instances add up to.
 */
#include <math.h>

#include "explain/accounting.h"

static struct ky_running *get_running(struct ky_account *a, enum ky_trait_kind kind, uint32_t field)
{
	struct ky_running new = {.kind = kind, .field = field};

	for (size_t k = 0; k < a->running.n; k++) {
		if (a->running.v[k].kind == kind && a->running.v[k].field == field)
			return &a->running.v[k];
	}
	if (a->running.n == KY_MAX_RUNNING)
		return NULL;
	new.key = ky_explain_key(a->x, (struct ky_trait_key){kind, 0, field});
	if (new.key == UINT32_MAX)
		return NULL;
	ky_account_check(a, ky_vec_add(&a->running, new));
	return a->error ? NULL : &a->running.v[a->running.n - 1];
}

static void add_number(struct ky_account *a, struct ky_running *r, double number, uint32_t thread)
{
	r->all += number;
	for (size_t k = 0; k < a->n_repeats && r->kind == KY_TRAIT_BEGIN; k++) {
		if (a->repeats[k].sums)
			a->repeats[k].sums->sums[r - a->running.v] += number;
	}
	if (thread == UINT32_MAX)
		return;
	while (r->threads.n <= thread && !a->error)
		ky_account_check(a, ky_vec_add(&r->threads, 0));
	if (!a->error)
		r->threads.v[thread] += number;
}

void ky_running_add(struct ky_account *a, const struct ky_source_event *e, enum ky_trait_kind kind,
	uint32_t thread)
{
	for (size_t k = 0; k < e->class->fields.n; k++) {
		const struct ky_field *f = &e->class->fields.v[k];
		struct ky_running *r;
		double number;

		if (f->scope != KY_SCOPE_FIELDS || ky_traits_is_no_fact(a, e, f))
			continue;
		r = get_running(a, kind, f->name);
		number = r ? ky_source_real(e, f) : NAN;
		if (isfinite(number))
			add_number(a, r, number, thread);
	}
}

/* The sums of the instances with the same value of another field. */
static void keep_by_values(struct ky_account *a, struct ky_instance *i, const struct ky_running *r)
{
	for (size_t k = 0; k < a->n_repeats; k++) {
		const struct ky_field_repeat *by = &a->repeats[k];

		if (by->sums && by->field != r->field)
			ky_account_check(a,
				ky_vec_add(&i->sums, (struct ky_sum){r->key, by->key,
							     by->sums->sums[r - a->running.v], 0}));
	}
}

void ky_running_keep(struct ky_account *a, struct ky_instance *i, enum ky_trait_kind kind)
{
	for (size_t k = 0; k < a->running.n; k++) {
		const struct ky_running *r = &a->running.v[k];
		double thread = i->thread < r->threads.n ? r->threads.v[i->thread] : 0;

		if (r->kind != kind)
			continue;
		ky_account_check(a,
			ky_vec_add(&i->sums, (struct ky_sum){r->key, KY_NO_KEY, r->all, thread}));
		if (kind == KY_TRAIT_BEGIN)
			keep_by_values(a, i, r);
	}
}

void ky_running_deinit(struct ky_account *a)
{
	for (size_t k = 0; k < a->running.n; k++)
		ky_vec_deinit(&a->running.v[k].threads);
	ky_vec_deinit(&a->running);
}
