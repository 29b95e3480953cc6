/* SPDX-License-Identifier: MIT */
/*
 * Two conditions together: tenant = "mega" and format = "pdf". Each alone selects too many typical
 * instances to explain anything.
 */
#include "explain/search.h"
#include "explain/stats.h"

#define MIN_EXPLAINED .5
#define MIN_BETTER    .2 /* more than a field alone explains */

/* Threads and positions belong to one program run; what is known later may follow from the time. */
static bool is_known_before(const struct ky_column *c)
{
	return c->key.kind <= KY_TRAIT_COUNTER || c->key.kind == KY_TRAIT_CONTEXT ||
	       c->key.kind == KY_TRAIT_CALLER;
}

void ky_both_offer(struct ky_search *w, const struct ky_column *c, struct ky_predicate p)
{
	size_t least = 0;

	if (!is_known_before(c) || c->is_length)
		return;
	if (w->n_predicates < KY_MAX_PREDICATES) {
		w->predicates[w->n_predicates++] = p;
		return;
	}
	for (size_t i = 1; i < w->n_predicates; i++) {
		if (w->predicates[i].contrast < w->predicates[least].contrast)
			least = i;
	}
	if (p.contrast > w->predicates[least].contrast)
		w->predicates[least] = p;
}

static bool matches_predicate(const struct ky_instance *i, const struct ky_predicate *p)
{
	const struct ky_fact *f = ky_instance_fact(i, p->key);
	double number;

	if (!f || !p->is_size)
		return f && !ky_fact_compare(f, &p->fact);
	if (f->type == KY_FACT_TEXT)
		return false;
	number = f->type == KY_FACT_INT ? (double)f->number : f->real;
	return p->is_at_most ? number <= p->at : number >= p->at;
}

static bool has_both(const struct ky_instance *i, const struct ky_predicate *const both[2])
{
	return matches_predicate(i, both[0]) && matches_predicate(i, both[1]);
}

static bool has_these(const void *arg, const struct ky_instance *i)
{
	return has_both(i, arg);
}

static size_t count_both(
	struct ky_instance *const *v, size_t n, const struct ky_predicate *const both[2])
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += has_both(v[i], both);
	return found;
}

/* As ky_column_explained(): the means of those with both, and of the others, predict. */
static double explained_by(const struct ky_search *w, const struct ky_predicate *const both[2],
	size_t affected, size_t typical)
{
	double sums[2] = {0}, weights[2] = {0}, parts;
	size_t n[2] = {0};

	for (size_t i = 0; i < w->n_all; i++) {
		bool is_in = has_both(w->all[i], both);

		double weight = ky_group_weight(w->d->group, w->all[i]);

		sums[is_in] += weight * ky_finding_ns(w->f, w->all[i]);
		weights[is_in] += weight;
		n[is_in]++;
	}
	if (n[0] < 3 || n[1] < 3)
		return 0;
	parts = ky_search_contrast(w, affected, typical);
	return parts * (sums[1] / weights[1] - sums[0] / weights[0]) /
	       KY_MAX(1, w->affected_ns - w->typical_ns);
}

static void put_predicate(struct ky_buf *b, const struct ky_search *w, const struct ky_predicate *p)
{
	const struct ky_column c = {.key = w->x->keys.v[p->key]};

	ky_column_put(b, w, &c);
	if (p->is_size) {
		ky_buf_printf(b, " %s %.6g", p->is_at_most ? "≤" : "≥", p->at);
		return;
	}
	ky_buf_puts(b, " = ");
	ky_column_put_fact(b, w, &c, &p->fact);
}

static void add_both(struct ky_search *w, const struct ky_predicate *const both[2], size_t affected,
	size_t typical, double explained)
{
	struct ky_condition c = {
		.p = ky_stats_fisher(affected, w->f->affected.n, typical, w->d->group->n_typical),
		.explained = explained,
		.contrast = ky_search_contrast(w, affected, typical)};
	struct ky_buf b = {0};

	ky_buf_puts(&b, "when ");
	put_predicate(&b, w, both[0]);
	ky_buf_puts(&b, " and ");
	put_predicate(&b, w, both[1]);
	c.n_brief = b.len;
	ky_search_put_counts(&b, w, affected, typical);
	c.has = ky_search_mark(w, has_these, both);
	ky_search_add(w, c, &b);
}

int ky_both_test(struct ky_search *w)
{
	const struct ky_predicate *best[2] = {0};
	double most = MIN_EXPLAINED;
	size_t affected = 0, typical = 0;

	for (size_t i = 0; i < w->found.n; i++) {
		if (w->found.v[i].about == KY_ABOUT_FIELD)
			most = KY_MAX(most, w->found.v[i].explained + MIN_BETTER);
	}
	for (size_t i = 0; i < w->n_predicates; i++) {
		for (size_t k = i + 1; k < w->n_predicates; k++) {
			const struct ky_predicate *both[2] = {&w->predicates[i], &w->predicates[k]};
			size_t a, t;
			double explained;

			if (both[0]->key == both[1]->key)
				continue;
			w->n_tests++;
			a = count_both(w->f->affected.v, w->f->affected.n, both);
			t = count_both(w->d->group->typical, w->d->group->n_typical, both);
			if ((double)a < .6 * (double)w->f->affected.n)
				continue;
			explained = explained_by(w, both, a, t);
			if (explained < most)
				continue;
			most = explained;
			affected = a;
			typical = t;
			memcpy(best, both, sizeof(best));
		}
	}
	if (best[0])
		add_both(w, best, affected, typical, most);
	return w->error;
}
