/* SPDX-License-Identifier: MIT */
#include "explain/accounting.h"

static struct ky_company_span *find_company(struct ky_account *a, uint32_t name, uint32_t thread)
{
	const struct ky_company_name new = {name, thread};

	while (a->company_of.n <= name) {
		if (ky_vec_add(&a->company_of, 0) < 0)
			return NULL;
	}
	if (!a->company_of.v[name]) {
		size_t i = 0;

		while (i < a->x->company.n && a->x->company.v[i].name != name)
			i++;
		if (i == KY_MAX_COMPANY ||
			(i == a->x->company.n && ky_vec_add(&a->x->company, new) < 0))
			return NULL;
		a->company_of.v[name] = (uint32_t)i + 1;
	}
	while (a->company.n < a->company_of.v[name]) {
		if (ky_vec_add(&a->company, (struct ky_company_span){0}) < 0)
			return NULL;
	}
	return &a->company.v[a->company_of.v[name] - 1];
}

void ky_company_begin(struct ky_account *a, uint32_t name, uint32_t thread, int64_t ns)
{
	struct ky_company_span *c = find_company(a, name, thread);
	struct ky_company_name *n = c ? &a->x->company.v[c - a->company.v] : NULL;

	if (!c)
		return;
	if (n->thread != thread)
		n->thread = UINT32_MAX;
	if (!c->n_open++)
		c->since = ns;
}

void ky_company_end(struct ky_account *a, uint32_t name, uint32_t thread, int64_t from, int64_t ns)
{
	struct ky_company_span *c = find_company(a, name, UINT32_MAX);
	size_t i = c ? c->n_ended++ % KY_N_ENDED : 0;

	if (c) {
		c->ended[i].thread = thread;
		c->ended[i].from = from;
		c->ended[i].to = ns;
	}

	if (c && c->n_open && !--c->n_open)
		c->total += ns - c->since;
}

static int64_t company_until(const struct ky_account *a, size_t i, int64_t ns)
{
	const struct ky_company_span *c = &a->company.v[i];

	return c->total + (c->n_open ? ns - c->since : 0);
}

void ky_company_open(struct ky_account *a, struct ky_instance *i)
{
	i->company_before = calloc(KY_MAX_COMPANY, sizeof(*i->company_before));
	if (!i->company_before)
		ky_account_check(a, -ENOMEM);
	for (size_t k = 0; i->company_before && k < a->company.n; k++)
		i->company_before[k] = company_until(a, k, i->begin_ns);
}

/*
 * An instance that waits for another thread by means that are not recorded (a barrier, a semaphore,
 * a pipe) ends when the other one's work ends: that is in the last part of the instance.
 */
static void find_handoff(
	struct ky_company *ret, const struct ky_company_span *c, const struct ky_instance *i)
{
	int64_t last = i->end_ns - (i->end_ns - i->begin_ns) / 5;

	for (size_t k = 0; k < KY_MIN(c->n_ended, (size_t)KY_N_ENDED); k++) {
		int64_t from = KY_MAX(c->ended[k].from, i->begin_ns), to = c->ended[k].to;

		if (to < last || to > i->end_ns || c->ended[k].thread == i->thread ||
			to - from <= ret->handoff_ns)
			continue;
		ret->handoff_ns = to - from;
		ret->handoff_thread = c->ended[k].thread;
	}
}

void ky_company_close(struct ky_account *a, struct ky_instance *i)
{
	for (size_t k = 0; i->company_before && k < a->company.n; k++) {
		struct ky_company c = {.name = a->x->company.v[k].name,
			.ns = company_until(a, k, i->end_ns) - i->company_before[k]};

		find_handoff(&c, &a->company.v[k], i);
		if (c.ns > 0)
			ky_account_check(a, ky_vec_add(&i->company, c));
	}
}
