/* SPDX-License-Identifier: MIT */
#include "explain/culprits.h"

#include "analysis/source-class.h"

static const char *name_of(const struct ky_explain *x, uint32_t name)
{
	return ky_texts_get(&x->names, name);
}

static struct ky_culprit *find_culprit(
	struct ky_culprit *v, size_t n, const struct ky_culprit *like)
{
	for (size_t i = 0; i < n; i++) {
		if (v[i].thread == like->thread && v[i].span == like->span &&
			v[i].caller == like->caller)
			return &v[i];
	}
	return NULL;
}

/* A thread that runs instead of the one that is waited for neither holds nor wakes anything. */
static int add_instead(struct ky_culprits *c, const struct ky_blame *b)
{
	const struct ky_culprit new = {b->thread, b->span, 0, b->ns};
	struct ky_culprit *o = find_culprit(c->instead.v, c->instead.n, &new);

	if (b->ready == UINT32_MAX)
		return 0;
	c->instead_ns += b->ns;
	if (!o)
		return ky_vec_add(&c->instead, new);
	o->ns += b->ns;
	return 0;
}

static int add_chain(struct ky_culprits *c, const struct ky_blame *b)
{
	size_t i = 0;

	while (i < c->chains.n && c->chains.v[i].via != b->via)
		i++;
	if (i == c->chains.n)
		return ky_vec_add(&c->chains, (struct ky_chain){b->via, b->ns});
	c->chains.v[i].ns += b->ns;
	return 0;
}

static int add_culprit(struct ky_culprits *c, const struct ky_blame *b)
{
	bool is_ready = b->ready != UINT32_MAX;
	const struct ky_culprit new = {is_ready ? b->ready : b->thread,
		is_ready ? b->ready_span : b->span, b->caller, b->ns};
	struct ky_culprit *o = find_culprit(c->v.v, c->v.n, &new);

	c->ns += b->ns;
	if (add_instead(c, b) < 0 || (b->via && add_chain(c, b) < 0))
		return -ENOMEM;
	if (!o)
		return ky_vec_add(&c->v, new);
	o->ns += b->ns;
	return 0;
}

static int compare_culprits(const void *a, const void *b)
{
	const struct ky_culprit *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->span > y->span) - (x->span < y->span);
}

/* Charges for failed trylocks stand at the span itself: their ways are below. */
static bool is_of_finding(const struct ky_explain *x, const struct ky_finding *f, uint32_t c)
{
	for (size_t i = 0; i < f->components.n; i++) {
		uint32_t o = f->components.v[i];

		if (f->kind == KY_FINDING_LOCKS)
			o = ky_component_of(x, o)->parent;
		if (o == c)
			return true;
	}
	return false;
}

struct mutex_time {
	uint64_t mutex;
	int64_t ns;
};

static int compare_mutexes(const void *a, const void *b)
{
	const struct mutex_time *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (x->mutex > y->mutex) - (x->mutex < y->mutex);
}

static bool is_idle(const struct ky_explain *x, const struct ky_culprit *c)
{
	return c->span && ky_source_is_library(name_of(x, c->span));
}

/* Threads that wait in calls of libraries themselves say nothing if others work meanwhile. */
static void drop_idle(struct ky_culprits *c, const struct ky_explain *x)
{
	int64_t idle = 0;
	size_t n = 0;

	for (size_t i = 0; i < c->v.n; i++)
		idle += is_idle(x, &c->v.v[i]) ? c->v.v[i].ns : 0;
	if ((double)(c->ns - idle) < KY_CULPRIT_SECOND * (double)c->ns)
		return;
	for (size_t i = 0; i < c->v.n; i++) {
		if (!is_idle(x, &c->v.v[i]))
			c->v.v[n++] = c->v.v[i];
	}
	c->v.n = n;
	c->ns -= idle;
}

bool ky_culprit_is_others(const struct ky_explain *x, uint32_t thread)
{
	return x->threads.v[thread]->tid == KY_OTHERS_TID;
}

/* Those that are not recorded are named alone, or not at all. */
static void drop_others(struct ky_culprits *c, const struct ky_explain *x)
{
	int64_t ns = 0;
	size_t n = 0;
	bool only_others;

	for (size_t i = 0; i < c->v.n; i++)
		ns += ky_culprit_is_others(x, c->v.v[i].thread) ? c->v.v[i].ns : 0;
	only_others = (double)ns > (1 - KY_CULPRIT_MOST) * (double)c->ns;
	for (size_t i = 0; i < c->v.n; i++) {
		if (ky_culprit_is_others(x, c->v.v[i].thread) == only_others)
			c->v.v[n++] = c->v.v[i];
	}
	c->v.n = n;
	c->ns = only_others ? ns : c->ns - ns;
}

/*
 * A thread of the kernel that is not recorded finishes what a device has done: if much of the time
 * is the device's, threads without a name that are in no span say nothing.
 */
static void drop_nameless(struct ky_culprits *c, const struct ky_explain *x)
{
	int64_t device = 0, ns = 0;
	size_t n = 0;

	for (size_t i = 0; i < c->v.n; i++)
		device += x->threads.v[c->v.v[i].thread]->tid <= KY_DEVICE_TID ? c->v.v[i].ns : 0;
	if (!device || (double)device < KY_CULPRIT_SECOND * (double)c->ns)
		return;
	for (size_t i = 0; i < c->v.n; i++) {
		const struct ky_culprit *o = &c->v.v[i];

		if (o->span || x->threads.v[o->thread]->name) {
			ns += o->ns;
			c->v.v[n++] = *o;
		}
	}
	c->v.n = n;
	c->ns = ns;
}

/* Threads that a small part of the time is charged to are not why it waits. */
static bool is_of_nobody(
	const struct ky_explain *x, const struct ky_finding *f, int64_t charged, int64_t all)
{
	enum ky_component_kind kind = ky_finding_part(x, f);

	return (kind == KY_PART_WAIT || kind == KY_PART_READY || kind == KY_PART_CONDITION) &&
	       charged < all / 2;
}

/* The machine's load that the part's time is without. */
static int64_t net_load(const struct ky_instance *i, uint32_t component)
{
	for (size_t k = 0; i->is_net && k < i->loads.n; k++) {
		if (i->loads.v[k].component == component)
			return i->loads.v[k].ns;
	}
	return 0;
}

int ky_culprits_find(
	struct ky_culprits *ret, const struct ky_explain *x, const struct ky_finding *f)
{
	KY_VEC(struct mutex_time) mutexes = {0};
	double n_waits = 0, n_holders = 0;
	int64_t all = 0, charged = 0, load = 0;
	int r = 0;

	for (size_t i = 0; i < f->affected.n && !r; i++) {
		const struct ky_instance *s = f->affected.v[i];

		for (size_t k = 0; k < s->blames.n && !r; k++) {
			if (is_of_finding(x, f, s->blames.v[k].component) &&
				!(s->is_net && s->blames.v[k].is_load))
				r = add_culprit(ret, &s->blames.v[k]);
		}
		for (size_t k = 0; k < s->waits.n && !r; k++) {
			const struct ky_wait *w = &s->waits.v[k];
			size_t j = 0;

			if (!is_of_finding(x, f, w->component))
				continue;
			charged += w->charged;
			load += net_load(s, w->component);
			/* Short waits have one holder each; they would hide a convoy. */
			if ((double)w->ns > .1 * ky_finding_ns(f, s)) {
				n_waits += w->n;
				n_holders += w->n_holders;
			}
			while (j < mutexes.n && mutexes.v[j].mutex != w->mutex)
				j++;
			if (j == mutexes.n)
				r = ky_vec_add(&mutexes, (struct mutex_time){w->mutex, 0});
			if (!r)
				mutexes.v[j].ns += w->ns;
		}
	}
	if (mutexes.n)
		qsort(mutexes.v, mutexes.n, sizeof(*mutexes.v), compare_mutexes);
	for (size_t j = 0; j < mutexes.n; j++)
		all += mutexes.v[j].ns;
	if (mutexes.n)
		ret->mutex = mutexes.v[0].mutex;
	if (mutexes.n > 1 && (double)mutexes.v[1].ns >= KY_CULPRIT_SECOND * (double)all)
		ret->second = mutexes.v[1].mutex;
	ky_vec_deinit(&mutexes);
	ret->n_holders = n_waits > 0 ? n_holders / n_waits : 0;
	if (is_of_nobody(x, f, charged - load, all - load))
		ret->ns = 0, ret->v.n = ret->chains.n = 0;
	if (ret->v.n)
		qsort(ret->v.v, ret->v.n, sizeof(*ret->v.v), compare_culprits);
	if (ret->instead.n)
		qsort(ret->instead.v, ret->instead.n, sizeof(*ret->instead.v), compare_culprits);
	drop_others(ret, x);
	drop_idle(ret, x);
	drop_nameless(ret, x);
	return r;
}

void ky_culprits_deinit(struct ky_culprits *c)
{
	ky_vec_deinit(&c->v);
	ky_vec_deinit(&c->chains);
	ky_vec_deinit(&c->instead);
}
