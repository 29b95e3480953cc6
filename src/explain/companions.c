/* SPDX-License-Identifier: MIT */
#include "explain/search.h"
#include "explain/stats.h"

/* A span inside instances suffers, too. */
static bool is_inside(const struct ky_search *w, uint32_t name)
{
	for (uint32_t c = 1; c <= w->x->components.all.n; c++) {
		const struct ky_component *o = ky_component_get(&w->x->components, c);

		if (o->kind == KY_PART_SPAN && o->a == name)
			return true;
	}
	return false;
}

/* Spans around the instance, of its own thread. */
static bool is_around(const struct ky_search *w, uint32_t name)
{
	for (uint32_t key = 0; key < w->x->keys.n; key++) {
		if (w->x->keys.v[key].kind != KY_TRAIT_CALLER)
			continue;
		for (size_t i = 0; i < w->f->affected.n; i++) {
			const struct ky_fact *fact = ky_instance_fact(w->f->affected.v[i], key);

			if (fact && fact->text == name)
				return true;
		}
	}
	return false;
}

struct companion {
	uint32_t name;
	double p, explained, affected, typical;
};

static double *companies(struct ky_instance *const *v, size_t n, uint32_t name)
{
	double *parts = calloc(n + 1, sizeof(*parts));

	for (size_t i = 0; parts && i < n; i++)
		parts[i] = ky_instance_company(v[i], name);
	return parts;
}

static double mean_time(struct ky_instance *const *v, size_t n, const double *parts)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i]->ns * (parts ? parts[i] : 1) / (double)n;
	return sum;
}

static int test_company(struct ky_search *w, uint32_t name, struct companion *best)
{
	const struct ky_finding *f = w->f;
	const struct ky_group *g = w->d->group;
	double *a = companies(f->affected.v, f->affected.n, name);
	double *t = companies(g->typical, g->n_typical, name);
	struct companion c = {.name = name};
	int r = a && t ? 0 : -ENOMEM;

	if (!r) {
		double longer = mean_time(f->affected.v, f->affected.n, NULL) -
				mean_time(g->typical, g->n_typical, NULL);

		w->n_tests++;
		c.affected = ky_stats_mean(a, f->affected.n);
		c.typical = ky_stats_mean(t, g->n_typical);
		c.explained = (mean_time(f->affected.v, f->affected.n, a) -
				      mean_time(g->typical, g->n_typical, t)) /
			      KY_MAX(1, longer);
		c.p = ky_stats_mann_whitney(a, f->affected.n, t, g->n_typical);
		r = c.p < 0 ? -ENOMEM : 0;
		if (!r && c.affected >= .5 && c.affected >= 2 * c.typical &&
			(!best->name || c.explained > best->explained))
			*best = c;
	}
	free(a);
	free(t);
	return r;
}

int ky_companions_test(struct ky_search *w)
{
	struct companion best = {0};
	struct ky_condition condition;
	struct ky_buf b = {0};

	if (ky_finding_is_wait(w->x, w->f))
		return 0;
	for (size_t i = 0; i < w->x->company.n; i++) {
		uint32_t name = w->x->company.v[i];
		int r = is_inside(w, name) || is_around(w, name) ? 0 : test_company(w, name, &best);

		if (r < 0)
			return r;
	}
	if (!best.name)
		return 0;
	ky_buf_printf(&b, "while %s runs in another thread", ky_texts_get(&w->x->names, best.name));
	condition = (struct ky_condition){.n_brief = b.len,
		.p = best.p,
		.explained = best.explained,
		.contrast = best.affected - best.typical,
		.rank = 3,
		.about = KY_ABOUT_COMPANY};
	ky_buf_printf(&b, " (%.0f %% of their time, %.0f %% of typical ones')", 100 * best.affected,
		100 * best.typical);
	ky_search_add(w, condition, &b);
	return w->error;
}
