/* SPDX-License-Identifier: MIT */
/*
 * Numbers that are alike though their sizes say nothing: a remainder (user % 100 = 7: a shard, a
 * bucket, a turn), or a bit that is set (flags & 0x8) or not (flags & 0x8 = 0).
 */
#include <inttypes.h>

#include "explain/search.h"
#include "explain/stats.h"

#define MAX_DIVISOR  64
#define N_BITS	     64
#define MIN_ALIKE    .8	 /* part of the affected instances */
#define MIN_VALUES   4	 /* of them: a value says more than its remainder */
#define LESS	     .85 /* values and thresholds that explain as much come first */
#define MIN_CONTRAST .5

static const uint64_t round_divisors[] = {100, 128, 200, 256, 500, 512, 1000, 1024};

struct likeness {
	struct ky_likeness is;
	double contrast;
	size_t affected, typical;
	size_t n_tests; /* remainders that it was chosen from */
};

uint64_t ky_likeness_divisor(size_t n)
{
	if (n + 2 <= MAX_DIVISOR)
		return n + 2;
	n -= MAX_DIVISOR - 1;
	return n < KY_ARRAY_SIZE(round_divisors) ? round_divisors[n] : 0;
}

/* Numbers below 0 have no bits, and no remainders; those in base 16 have no sign. */
static bool is_usable(const struct ky_fact *f)
{
	return f && f->type == KY_FACT_INT && (f->number >= 0 || f->is_hex);
}

bool ky_likeness_has(const struct ky_likeness *l, const struct ky_fact *f)
{
	uint64_t number = is_usable(f) ? (uint64_t)f->number : 0;

	if (!is_usable(f))
		return false;
	return l->bit ? !(number & l->bit) == l->is_unset : number % l->divisor == l->rest;
}

static size_t count_like(
	const struct ky_likeness *l, uint32_t key, struct ky_instance *const *v, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += ky_likeness_has(l, ky_instance_fact(v[i], key));
	return found;
}

static void try_likeness(
	struct ky_search *w, uint32_t key, struct likeness l, struct likeness *best)
{
	const struct ky_group *g = w->d->group;

	w->n_tests++;
	l.affected = count_like(&l.is, key, w->f->affected.v, w->f->affected.n);
	if ((double)l.affected < MIN_ALIKE * (double)w->f->affected.n)
		return;
	l.typical = count_like(&l.is, key, g->typical, g->n_typical);
	l.contrast = ky_search_contrast(w, l.affected, l.typical);
	/* Of those that are as good, the smallest divisor comes first. */
	if (l.contrast > best->contrast)
		*best = l;
}

/* The remainder that the middle one of the affected numbers has, or one of three. */
static void try_divisor(struct ky_search *w, uint32_t key, uint64_t divisor, struct likeness *best)
{
	size_t n = w->f->affected.n;

	for (size_t i = 0; i < 3; i++) {
		const struct ky_fact *f = ky_instance_fact(w->f->affected.v[i * (n - 1) / 2], key);

		if (is_usable(f))
			try_likeness(w, key,
				(struct likeness){
					{.divisor = divisor, .rest = (uint64_t)f->number % divisor},
					.n_tests = 3},
				best);
	}
}

void ky_likeness_put(struct ky_buf *b, const struct ky_likeness *l)
{
	if (l->bit)
		ky_buf_printf(b, " & 0x%" PRIx64 "%s", l->bit, l->is_unset ? " = 0" : "");
	else
		ky_buf_printf(b, " %% %" PRIu64 " = %" PRIu64, l->divisor, l->rest);
}

struct alike_numbers {
	const struct ky_likeness *is;
	uint32_t key;
};

static bool is_alike(const void *arg, const struct ky_instance *i)
{
	const struct alike_numbers *l = arg;

	return ky_likeness_has(l->is, ky_instance_fact(i, l->key));
}

static int add_likeness(struct ky_search *w, const struct ky_column *c, uint32_t key,
	const struct likeness *l, double p)
{
	bool *has = calloc(c->n + 1, sizeof(*has));
	struct ky_condition condition;
	struct ky_buf b = {0};

	if (!has)
		return -ENOMEM;
	for (size_t i = 0; i < c->n; i++)
		has[i] = ky_likeness_has(&l->is, &c->facts[i]);
	condition = ky_column_condition(c, p, ky_column_explained_by(w, c, has));
	free(has);
	if (condition.explained < .25)
		return w->error;
	condition.contrast = LESS * l->contrast;
	condition.part = (double)l->affected / (double)w->f->affected.n;
	condition.is_chance = ky_search_is_chance(
		w, is_alike, &(struct alike_numbers){&l->is, key});
	ky_buf_puts(&b, "when ");
	ky_column_put(&b, w, c);
	ky_likeness_put(&b, &l->is);
	condition.n_brief = b.len;
	ky_search_put_counts(&b, w, l->affected, l->typical);
	ky_search_add(w, condition, &b);
	return w->error;
}

/* Whether the affected instances that are alike have several numbers. */
static bool has_several(const struct ky_search *w, uint32_t key, const struct likeness *l)
{
	int64_t seen[MIN_VALUES];
	size_t n = 0;

	for (size_t i = 0; i < w->f->affected.n && n < MIN_VALUES; i++) {
		const struct ky_fact *f = ky_instance_fact(w->f->affected.v[i], key);
		size_t k = 0;

		if (!ky_likeness_has(&l->is, f))
			continue;
		while (k < n && seen[k] != f->number)
			k++;
		if (k == n)
			seen[n++] = f->number;
	}
	return n == MIN_VALUES;
}

int ky_residues_test(struct ky_search *w, const struct ky_column *c, uint32_t key)
{
	struct likeness best = {0};
	size_t n_before = w->n_tests;
	uint64_t any = 0;

	for (size_t i = 0; i < c->n; i++) {
		if (c->facts[i].type != KY_FACT_INT)
			return 0;
		any |= is_usable(&c->facts[i]) ? (uint64_t)c->facts[i].number : 0;
	}
	for (size_t i = 0; ky_likeness_divisor(i); i++)
		try_divisor(w, key, ky_likeness_divisor(i), &best);
	/* The highest bit is a threshold. */
	for (int i = 0; i < N_BITS && any >> i > 1; i++) {
		struct likeness l = {{.bit = UINT64_C(1) << i}, .n_tests = 1};

		try_likeness(w, key, l, &best);
		l.is.is_unset = true;
		try_likeness(w, key, l, &best);
	}
	if (!best.affected || !has_several(w, key, &best))
		return w->error;
	ky_both_offer(w, c,
		(struct ky_predicate){.key = key,
			.kind = KY_HAS_LIKENESS,
			.likeness = best.is,
			.n_choices = (double)(w->n_tests - n_before)},
		(double)best.affected / (double)w->f->affected.n,
		(double)best.typical / (double)w->d->group->n_typical);
	if (best.contrast < MIN_CONTRAST)
		return w->error;
	return add_likeness(w, c, key, &best,
		(double)best.n_tests * ky_stats_fisher(best.affected, w->f->affected.n,
					       best.typical, w->d->group->n_typical));
}
