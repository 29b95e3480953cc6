/* SPDX-License-Identifier: MIT */
/*
 * Two sizes together: width × height, to - from, or left + right. Work on two dimensions grows with
 * the product, work on a range with the difference, work on two parts with the sum; and with
 * neither of them alone.
 */

#include "explain/search.h"
#include "explain/stats.h"

#define MAX_FACTORS 8
#define MIN_BETTER  .2 /* more than one of the fields known at the begin explains */

struct factor {
	uint32_t key;
	struct ky_column column;
};

static bool may_be_factor(const struct ky_trait_key *key)
{
	return key->kind == KY_TRAIT_BEGIN || key->kind == KY_TRAIT_OUTER;
}

static bool is_factor(const struct ky_column *c)
{
	for (size_t i = 0; i < c->n; i++) {
		if (!(c->numbers[i] >= 0))
			return false;
	}
	return c->is_number && c->n > 20 && !ky_column_rises(c);
}

static int find_factors(struct ky_search *w, struct factor *v, size_t *ret_n)
{
	for (uint32_t key = 0; key < w->x->keys.n && *ret_n < MAX_FACTORS; key++) {
		struct factor *f = &v[*ret_n];
		int r = may_be_factor(&w->x->keys.v[key])
				? ky_column_make(w, &f->column, key, false)
				: 1;

		if (r < 0)
			return r;
		f->key = key;
		if (!r && is_factor(&f->column))
			(*ret_n)++;
		else if (!r)
			ky_column_free(&f->column);
	}
	return 0;
}

/* The instances that have both. 0 or -ENOMEM; then there is nothing to free. */
static int combine_factors(struct ky_search *w, struct ky_column *c, const struct factor *a,
	const struct factor *b, enum ky_join join)
{
	int r = ky_column_make(w, c, a->key, false);
	size_t n = 0;

	if (r < 0)
		return r;
	c->by = b->key + 1;
	c->join = join;
	for (size_t i = 0; i < c->n; i++) {
		const struct ky_fact *fact = ky_instance_fact(c->instances[i], b->key);

		if (!fact || fact->type == KY_FACT_TEXT)
			continue;
		c->instances[n] = c->instances[i];
		c->ns[n] = c->ns[i];
		c->weights[n] = c->weights[i];
		c->numbers[n++] = ky_column_combine(
			c, c->numbers[i], ky_column_number(&b->column, fact));
	}
	c->n = n;
	return 0;
}

static double best_field(const struct ky_search *w)
{
	double most = 0;

	for (size_t i = 0; i < w->found.n; i++) {
		if (w->found.v[i].about == KY_ABOUT_FIELD && !w->found.v[i].rank)
			most = KY_MAX(most, w->found.v[i].explained);
	}
	return most;
}

static int test_pair(struct ky_search *w, const struct factor *a, const struct factor *b,
	enum ky_join join, double min_explained)
{
	struct ky_column c;
	int r = combine_factors(w, &c, a, b, join);

	if (r < 0)
		return r;
	c.min_explained = min_explained;
	if (c.n > 20)
		r = ky_sizes_test(w, &c, a->key);
	ky_column_free(&c);
	return r;
}

/* Of what was found of the same two sizes, the best line is meant. */
static void keep_best_line(struct ky_search *w, size_t from)
{
	for (size_t i = from + 1; i < w->found.n; i++) {
		bool is_better = w->found.v[i].r2 > w->found.v[from].r2;
		size_t worse = is_better ? from : i;

		ky_condition_deinit(&w->found.v[worse]);
		if (is_better)
			w->found.v[from] = w->found.v[i];
	}
	w->found.n = KY_MIN(w->found.n, from + 1);
}

/* Of a difference, the smaller number is taken from the greater one. */
static int test_factors(
	struct ky_search *w, const struct factor *a, const struct factor *b, double min_explained)
{
	bool is_less = ky_stats_mean(a->column.numbers, a->column.n) <
		       ky_stats_mean(b->column.numbers, b->column.n);
	size_t from = w->found.n;
	int r = test_pair(w, a, b, KY_JOIN_PRODUCT, min_explained);

	if (!r)
		r = test_pair(w, a, b, KY_JOIN_SUM, min_explained);
	if (!r)
		r = test_pair(
			w, is_less ? b : a, is_less ? a : b, KY_JOIN_DIFFERENCE, min_explained);
	keep_best_line(w, from);
	return r;
}

int ky_products_test(struct ky_search *w)
{
	struct factor v[MAX_FACTORS];
	double most = best_field(w) + MIN_BETTER;
	size_t n = 0;
	int r = most < 1 ? find_factors(w, v, &n) : 0;

	for (size_t i = 0; i < n && !r; i++) {
		for (size_t k = i + 1; k < n && !r; k++)
			r = test_factors(w, &v[i], &v[k], most);
	}
	for (size_t i = 0; i < n; i++)
		ky_column_free(&v[i].column);
	return r ? r : w->error;
}
