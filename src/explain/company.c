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

static double each_until(const struct ky_company_span *c, int64_t ns)
{
	return c->each_ns + (c->n_open ? (double)c->n_open * (double)(ns - c->changed_ns) : 0);
}

/* Before the number of open ones changes. */
static void change_open(struct ky_company_span *c, int64_t ns)
{
	c->each_ns = each_until(c, ns);
	c->changed_ns = ns;
}

void ky_company_begin(struct ky_account *a, uint32_t name, uint32_t thread, int64_t ns)
{
	struct ky_company_span *c = find_company(a, name, thread);
	struct ky_company_name *n = c ? &a->x->company.v[c - a->company.v] : NULL;

	if (!c)
		return;
	if (n->thread != thread)
		n->thread = UINT32_MAX;
	change_open(c, ns);
	c->begun[c->n_begun++ % KY_N_BEGUN] = ns;
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
		change_open(c, ns);
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
	for (size_t k = 0; i->company_before && k < a->company.n; k++) {
		const struct ky_company_span *c = &a->company.v[k];

		i->company_before[k] = (struct ky_company_before){company_until(a, k, i->begin_ns),
			each_until(c, i->begin_ns), c->n_begun, c->n_open > 0};
	}
}

/* The instance's company of that name, added if it has none; or NULL. */
static struct ky_company *get_company(struct ky_instance *i, uint32_t name)
{
	for (size_t k = 0; k < i->company.n; k++) {
		if (i->company.v[k].name == name)
			return &i->company.v[k];
	}
	if (i->company.n == KY_MAX_COMPANY ||
		ky_vec_add(&i->company, (struct ky_company){.name = name}) < 0)
		return NULL;
	return &i->company.v[i->company.n - 1];
}

#define MAX_NESTED 16 /* windows that are looked at */

/* The frames of the waiting thread are company that waits, of the window's instance. */
static void add_waiting(
	const struct ky_timeline *t, const struct ky_window *w, int64_t from, int64_t to)
{
	int64_t ns = KY_MIN(to, w->to) - KY_MAX(from, w->from);

	for (size_t k = 0; k < t->stack.n && ns > 0; k++) {
		const struct ky_frame *f = &t->stack.v[k];
		struct ky_company *c;

		if (f->is_lock || f->is_pair)
			continue;
		c = get_company(w->instance, f->name);
		if (c)
			c->waiting_ns += (double)ns;
	}
}

void ky_company_wait(struct ky_account *a, const struct ky_timeline *t, uint32_t thread,
	int64_t from, int64_t to)
{
	const struct ky_timeline *other = ky_machine_timeline(&a->machine, thread);
	size_t first, k = other ? other->next_window : 0;

	if (!k || t->thread == thread)
		return;
	first = k > MAX_NESTED ? k - MAX_NESTED : 0;
	while (k-- > first)
		add_waiting(t, other->windows.v[k], from, to);
}

/* When the first of them began, from the instance's begin on. Of too many, it is not known. */
static int64_t find_late(const struct ky_company_span *c, const struct ky_company_before *before,
	const struct ky_instance *i)
{
	if (before->is_open || c->n_begun - before->n_begun > KY_N_BEGUN)
		return 0;
	return c->begun[before->n_begun % KY_N_BEGUN] - i->begin_ns;
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
		const struct ky_company_before *before = &i->company_before[k];
		const struct ky_company_span *span = &a->company.v[k];
		int64_t ns = company_until(a, k, i->end_ns) - before->ns;
		struct ky_company *c;

		c = ns > 0 ? get_company(i, a->x->company.v[k].name) : NULL;
		if (!c)
			continue;
		c->ns = ns;
		c->each_ns = each_until(span, i->end_ns) - before->each_ns;
		c->late_ns = find_late(span, before, i);
		find_handoff(c, span, i);
	}
}
