/* SPDX-License-Identifier: MIT */
/*
 * Two fields with the same value, or with different ones: a copy between regions (from ≠ to), a
 * transfer within a page (source = target). No value of either field says that.
 */
#include "explain/search.h"
#include "explain/stats.h"

#define MAX_FIELDS    8
#define MIN_EXPLAINED .5
#define MIN_BETTER    .2 /* more than one of the fields alone explains */
#define MIN_VALUES    3	 /* two values of two fields together say more than that they differ */
#define MIN_PART      .2 /* of the affected ones, with each of two values: two flags */

struct alike {
	uint32_t keys[2];
	bool is_same;
};

static bool may_be_alike(const struct ky_trait_key *key)
{
	return key->kind == KY_TRAIT_BEGIN || key->kind == KY_TRAIT_OUTER;
}

static bool is_name(const struct ky_fact *f)
{
	return f && f->type != KY_FACT_REAL && !ky_column_is_cut(f);
}

static bool is_alike(const void *arg, const struct ky_instance *i)
{
	const struct alike *l = arg;
	const struct ky_fact *a = ky_instance_fact(i, l->keys[0]);
	const struct ky_fact *b = ky_instance_fact(i, l->keys[1]);

	return is_name(a) && is_name(b) && a->type == b->type &&
	       !ky_fact_compare(a, b) == l->is_same;
}

static size_t count_alike(const struct alike *l, struct ky_instance *const *v, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += is_alike(l, v[i]);
	return found;
}

/* Affected ones have three different values of the first field, or two that are frequent. */
static bool has_several_values(const struct ky_search *w, const struct alike *l)
{
	struct ky_fact seen[MIN_VALUES];
	size_t n = 0, n_seen[MIN_VALUES] = {0};

	for (size_t i = 0; i < w->f->affected.n && n < MIN_VALUES; i++) {
		const struct ky_fact *f = ky_instance_fact(w->f->affected.v[i], l->keys[0]);
		size_t k = 0;

		if (!is_alike(l, w->f->affected.v[i]))
			continue;
		while (k < n && ky_fact_compare(&seen[k], f))
			k++;
		n_seen[k]++;
		if (k == n)
			seen[n++] = *f;
	}
	return n == MIN_VALUES || (n == 2 && (double)KY_MIN(n_seen[0], n_seen[1]) >=
						     MIN_PART * (double)w->f->affected.n);
}

static void add_alike(struct ky_search *w, const struct ky_column *c, const struct alike *l,
	size_t affected, size_t typical, double explained)
{
	const struct ky_column other = {.key = w->x->keys.v[l->keys[1]]};
	double p = ky_stats_fisher(affected, w->f->affected.n, typical, w->d->group->n_typical);
	struct ky_condition condition = ky_column_condition(c, p, explained);
	struct ky_buf b = {0};

	condition.contrast = ky_search_contrast(w, affected, typical);
	condition.part = (double)affected / (double)w->f->affected.n;
	ky_buf_puts(&b, "when ");
	ky_column_put(&b, w, c);
	ky_buf_puts(&b, l->is_same ? " = " : " ≠ ");
	ky_column_put(&b, w, &other);
	condition.n_brief = b.len;
	ky_search_put_counts(&b, w, affected, typical);
	ky_search_mark(w, &condition, is_alike, l);
	ky_search_add(w, condition, &b);
}

static int test_alike(struct ky_search *w, const struct alike *l, double min_explained)
{
	size_t na = w->f->affected.n, nt = w->d->group->n_typical;
	size_t affected = count_alike(l, w->f->affected.v, na);
	size_t typical = count_alike(l, w->d->group->typical, nt);
	struct ky_column c;
	double explained;
	bool *has;

	w->n_tests++;
	if ((double)affected < .6 * (double)na ||
		(double)typical / (double)nt > .5 * (double)affected / (double)na ||
		!has_several_values(w, l))
		return 0;
	if (ky_column_make(w, &c, l->keys[0], false) < 0)
		return -ENOMEM;
	has = calloc(c.n + 1, sizeof(*has));
	if (!has)
		w->error = -ENOMEM;
	for (size_t i = 0; has && i < c.n; i++)
		has[i] = is_alike(l, c.instances[i]);
	explained = has ? ky_column_explained_by(w, &c, has) : 0;
	if (explained >= min_explained)
		add_alike(w, &c, l, affected, typical, explained);
	free(has);
	ky_column_free(&c);
	return w->error;
}

static size_t find_names(const struct ky_search *w, uint32_t keys[MAX_FIELDS])
{
	size_t n = 0;

	for (uint32_t key = 0; key < w->x->keys.n && n < MAX_FIELDS; key++) {
		if (may_be_alike(&w->x->keys.v[key]) &&
			is_name(ky_instance_fact(w->f->affected.v[0], key)))
			keys[n++] = key;
	}
	return n;
}

int ky_alike_test(struct ky_search *w)
{
	double most = MIN_EXPLAINED;
	uint32_t keys[MAX_FIELDS];
	size_t n = find_names(w, keys);
	int r = 0;

	for (size_t i = 0; i < w->found.n; i++) {
		if (w->found.v[i].about == KY_ABOUT_FIELD)
			most = KY_MAX(most, w->found.v[i].explained + MIN_BETTER);
	}
	for (size_t i = 0; i < n && !r; i++) {
		for (size_t k = i + 1; k < n && !r; k++) {
			struct alike l = {{keys[i], keys[k]}, true};

			r = test_alike(w, &l, most);
			l.is_same = false;
			if (!r)
				r = test_alike(w, &l, most);
		}
	}
	return r;
}
