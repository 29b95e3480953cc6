/* SPDX-License-Identifier: MIT */
/*
 * Two or three properties together: tenant = "mega" and format = "pdf". Each alone selects too many
 * typical instances to explain anything.
 */
#include "explain/search.h"
#include "explain/stats.h"

#define MIN_EXPLAINED .5
#define MIN_BETTER    .2 /* more than a field alone explains, or one property less */
#define MAX_TOGETHER  3

/*
 * Threads and positions belong to one program run; what is known later may follow from the time.
 * The begin of a span inside is known before the time that passes in it.
 */
static bool is_known_before(const struct ky_column *c)
{
	return c->key.kind <= KY_TRAIT_COUNTER || c->key.kind == KY_TRAIT_CONTEXT ||
	       c->key.kind == KY_TRAIT_HOST || c->key.kind == KY_TRAIT_CALLER ||
	       c->key.kind == KY_TRAIT_CALL;
}

void ky_both_offer(struct ky_search *w, const struct ky_column *c, struct ky_predicate p,
	double affected, double typical)
{
	size_t least = 0;

	if (!is_known_before(c) || c->is_length || affected < .6 ||
		typical > KY_MAX_OF_TYPICAL * affected)
		return;
	p.contrast = affected - typical;
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

static bool matches(
	const struct ky_search *w, const struct ky_instance *i, const struct ky_predicate *p)
{
	const struct ky_fact *f = ky_instance_fact(i, p->key);
	double number;

	if (!f)
		return false;
	if (p->kind == KY_HAS_VALUE)
		return !ky_fact_compare(f, &p->fact);
	if (p->kind == KY_HAS_AFFIX)
		return ky_affix_has(w->x, f, &p->affix);
	if (p->kind == KY_HAS_LIKENESS)
		return ky_likeness_has(&p->likeness, f);
	if (f->type == KY_FACT_TEXT)
		return false;
	number = f->type == KY_FACT_INT ? (double)f->number : f->real;
	return p->kind == KY_HAS_AT_MOST ? number <= p->at : number >= p->at;
}

/* Which of the properties each instance has: a bit of each. NULL without memory. */
static uint16_t *find_bits(const struct ky_search *w, struct ky_instance *const *v, size_t n)
{
	uint16_t *bits = calloc(n + 1, sizeof(*bits));

	for (size_t i = 0; bits && i < n; i++) {
		for (size_t k = 0; k < w->n_predicates; k++)
			bits[i] |= (uint16_t)(matches(w, v[i], &w->predicates[k]) << k);
	}
	return bits;
}

/* Some of the properties, and how much they explain together. */
struct together {
	uint16_t bits;
	size_t affected, typical;
	double explained;
};

struct bits {
	const struct ky_search *w;
	uint16_t *affected, *typical, *all;
	struct together best;
};

static size_t count_bits(const uint16_t *v, size_t n, uint16_t bits)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += (v[i] & bits) == bits;
	return found;
}

/* As ky_column_explained(): the means of those with all of them, and of the others, predict. */
static double explained_by(const struct bits *b, const struct together *t)
{
	const struct ky_search *w = b->w;
	double sums[2] = {0}, weights[2] = {0};
	size_t n[2] = {0};

	for (size_t i = 0; i < w->n_all; i++) {
		bool is_in = (b->all[i] & t->bits) == t->bits;
		double weight = ky_group_weight(w->d->group, w->all[i]);

		sums[is_in] += weight * ky_finding_ns(w->f, w->all[i]);
		weights[is_in] += weight;
		n[is_in]++;
	}
	if (n[0] < 3 || n[1] < 3)
		return 0;
	return ky_search_contrast(w, t->affected, t->typical) *
	       (sums[1] / weights[1] - sums[0] / weights[0]) /
	       KY_MAX(1, w->affected_ns - w->typical_ns);
}

static void try_together(struct bits *b, uint16_t bits)
{
	struct together t = {.bits = bits};

	t.affected = count_bits(b->affected, b->w->f->affected.n, bits);
	if ((double)t.affected < .6 * (double)b->w->f->affected.n)
		return;
	t.typical = count_bits(b->typical, b->w->d->group->n_typical, bits);
	t.explained = explained_by(b, &t);
	if (t.explained > b->best.explained)
		b->best = t;
}

/* Properties of that many different fields, from number `from` on, besides those in the bits. */
static void try_more(struct bits *b, uint16_t bits, size_t from, size_t n)
{
	const struct ky_search *w = b->w;

	if (!n) {
		try_together(b, bits);
		return;
	}
	for (size_t k = from; k < w->n_predicates; k++) {
		bool is_new = true;

		for (size_t i = 0; i < k; i++)
			is_new = is_new &&
				 (!(bits >> i & 1) || w->predicates[i].key != w->predicates[k].key);
		if (is_new)
			try_more(b, (uint16_t)(bits | 1 << k), k + 1, n - 1);
	}
}

static void put_predicate(struct ky_buf *b, const struct ky_search *w, const struct ky_predicate *p)
{
	const struct ky_column c = {.key = w->x->keys.v[p->key]};
	bool is_caller = c.key.kind == KY_TRAIT_CALLER;

	ky_column_put(b, w, &c);
	switch (p->kind) {
	case KY_HAS_VALUE:
		ky_buf_puts(b, is_caller ? "called in " : " = ");
		ky_column_put_fact(b, w, &c, &p->fact);
		break;
	case KY_HAS_AT_LEAST:
	case KY_HAS_AT_MOST:
		ky_buf_printf(b, " %s %.6g", p->kind == KY_HAS_AT_MOST ? "≤" : "≥", p->at);
		break;
	case KY_HAS_AFFIX:
		ky_affix_put(b, w->x, &p->affix);
		break;
	case KY_HAS_LIKENESS:
		ky_likeness_put(b, &p->likeness);
		break;
	}
}

static bool has_all(const void *arg, const struct ky_instance *i)
{
	const struct bits *b = arg;
	bool has = true;

	for (size_t k = 0; k < b->w->n_predicates && has; k++)
		has = !(b->best.bits >> k & 1) || matches(b->w, i, &b->w->predicates[k]);
	return has;
}

/* One of the properties is in runs, although all of them together are not: one run is enough. */
static bool is_one_chance(struct ky_search *w, const struct bits *bits)
{
	bool is_chance = false;

	for (size_t k = 0; k < w->n_predicates && !is_chance; k++) {
		struct bits one = *bits;

		one.best.bits &= (uint16_t)(1 << k);
		is_chance = one.best.bits && ky_search_is_chance(w, has_all, &one);
	}
	return is_chance;
}

static void add_together(struct ky_search *w, const struct bits *bits)
{
	const struct together *t = &bits->best;
	struct ky_condition c = {.p = ky_stats_fisher(t->affected, w->f->affected.n, t->typical,
					 w->d->group->n_typical),
		.explained = t->explained,
		.contrast = ky_search_contrast(w, t->affected, t->typical),
		.part = (double)t->affected / (double)w->f->affected.n};
	struct ky_buf b = {0};

	for (size_t k = 0; k < w->n_predicates; k++) {
		if (!(t->bits >> k & 1))
			continue;
		ky_buf_puts(&b, b.len ? " and " : "when ");
		put_predicate(&b, w, &w->predicates[k]);
		/* Each was chosen, too. */
		c.p *= KY_MAX(1, w->predicates[k].n_choices);
	}
	c.n_brief = b.len;
	ky_search_put_counts(&b, w, t->affected, t->typical);
	ky_search_mark(w, &c, has_all, bits);
	c.is_chance = c.is_chance || is_one_chance(w, bits);
	ky_search_add(w, c, &b);
}

int ky_both_test(struct ky_search *w)
{
	struct bits b = {.w = w,
		.affected = find_bits(w, w->f->affected.v, w->f->affected.n),
		.typical = find_bits(w, w->d->group->typical, w->d->group->n_typical),
		.all = find_bits(w, w->all, w->n_all)};
	struct together found = {0};
	double least = MIN_EXPLAINED;

	if (!b.affected || !b.typical || !b.all)
		w->error = -ENOMEM;
	for (size_t i = 0; i < w->found.n; i++) {
		if (w->found.v[i].about == KY_ABOUT_FIELD)
			least = KY_MAX(least, w->found.v[i].by_means + MIN_BETTER);
	}
	for (size_t n = 2; n <= MAX_TOGETHER && !w->error; n++) {
		b.best = (struct together){0};
		try_more(&b, 0, 0, n);
		if (b.best.explained >= least) {
			found = b.best;
			least = found.explained + MIN_BETTER;
		}
	}
	b.best = found;
	if (found.bits)
		add_together(w, &b);
	free(b.affected);
	free(b.typical);
	free(b.all);
	return w->error;
}
