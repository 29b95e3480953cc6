/* SPDX-License-Identifier: MIT */
#include "explain/subgroup.h"

#include "explain/search.h"
#include "explain/stats.h"

#define MIN_PURITY 0.6 /* of the instances with the value are slow */
#define MIN_SIZE   5   /* instances */
#define MIN_PART   0.1 /* of the slow ones */
#define N_PARTS	   6   /* halves of the largest and the smallest sizes: 1/2 .. 1/64 */
#define N_TEXTS	   8   /* of them, beginnings, endings and words are tried */
#define N_AFFIXES  256 /* of these, about */
#define N_DIVISORS 71
#define MAX_KEPT   12 /* picks that are tried two at a time */

/*
 * A way to pick instances: a value, a size from `from` to `to`, a remainder, a piece of a text, how
 * often something comes.
 */
struct pick {
	uint32_t key;	    /* or one of the positions below */
	uint32_t component; /* how often it comes; 0: this is about the key */
	uint32_t company;   /* a span of other threads, for half of its time; 0: likewise */
	enum { IS_VALUE, IS_SIZE, IS_LIKE, IS_AFFIX } kind;
	struct ky_fact fact;
	double from, to;
	struct ky_likeness likeness;
	struct ky_affix affix;
	double n_choices;	  /* from which it was chosen; 0: one */
	const struct pick *other; /* it must pick the instance, too; or NULL */
};

#define MAX_REMAINDERS 1024

#define POSITION_IN_TRACE  UINT32_MAX
#define POSITION_IN_THREAD (UINT32_MAX - 1)

struct search {
	const struct ky_explain *x;
	const struct ky_group *group;
	struct ky_instance *const *all;
	size_t n_all, n_tests;
	struct ky_shifts shifts; /* of all; empty with two traces */
	struct pick
		kept[MAX_KEPT]; /* picks that slow instances have more often than typical ones */
	double contrasts[MAX_KEPT];
	size_t n_kept;
	struct pick best;
	size_t best_size;
	double best_p;
	int error;
};

static bool get_size(const struct ky_instance *i, uint32_t key, double *ret)
{
	const struct ky_fact *f;

	if (key == POSITION_IN_TRACE || key == POSITION_IN_THREAD) {
		*ret = key == POSITION_IN_TRACE ? i->ordinal : i->thread_ordinal;
		return true;
	}
	f = ky_instance_fact(i, key);
	if (!f || f->type == KY_FACT_TEXT || f->is_hex)
		return false;
	*ret = f->type == KY_FACT_INT ? (double)f->number : f->real;
	return true;
}

static bool is_picked(const struct ky_explain *x, const struct ky_instance *i, const struct pick *p)
{
	const struct ky_part *part = p->component ? ky_instance_part(i, p->component) : NULL;
	const struct ky_fact *f;
	double size;

	if (p->other && !is_picked(x, i, p->other))
		return false;
	if (p->company)
		return ky_instance_company(i, p->company) >= .5;
	if (p->component)
		return part && part->count >= p->from;
	f = p->kind == IS_SIZE ? NULL : ky_instance_fact(i, p->key);
	if (p->kind == IS_VALUE)
		return f && !ky_fact_compare(f, &p->fact);
	if (p->kind == IS_LIKE)
		return ky_likeness_has(&p->likeness, f);
	if (p->kind == IS_AFFIX)
		return f && ky_affix_has(x, f, &p->affix);
	return get_size(i, p->key, &size) && size >= p->from && size <= p->to;
}

static size_t count_picked(
	const struct ky_explain *x, struct ky_instance *const *v, size_t n, const struct pick *p)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += is_picked(x, v[i], p);
	return found;
}

static bool is_slow(const struct search *s, const struct ky_instance *i)
{
	return i->ns >= s->group->from_ns && (s->group->to_ns <= 0 || i->ns <= s->group->to_ns);
}

struct picked {
	const struct ky_explain *x;
	const struct pick *p;
};

static bool has_pick(const void *arg, const struct ky_instance *i)
{
	const struct picked *picked = arg;

	return is_picked(picked->x, i, picked->p);
}

static bool is_chance(struct search *s, const struct pick *p)
{
	struct pick alone = *p;
	int r = ky_shifts_test(
		&s->shifts, s->group->slow, s->group->n_slow, has_pick, &(struct picked){s->x, p});

	s->error = r < 0 ? r : s->error;
	alone.other = NULL;
	/* One of two properties may be in runs, although both together are not. */
	return r > 0 || (p->other && (is_chance(s, &alone) || is_chance(s, p->other)));
}

static void try_pick(struct search *s, const struct pick *p)
{
	size_t slow = count_picked(s->x, s->group->slow, s->group->n_slow, p), typical;
	double n = 0, hits = 0, chance;

	s->n_tests++;
	if (slow < MIN_SIZE || (double)slow < MIN_PART * (double)s->group->n_slow)
		return;
	for (size_t i = 0; i < s->n_all; i++) {
		double weight = ky_group_weight(s->group, s->all[i]);

		if (!is_picked(s->x, s->all[i], p))
			continue;
		n += weight;
		hits += is_slow(s, s->all[i]) ? weight : 0;
	}
	if (hits < MIN_PURITY * n || slow < s->best_size)
		return;
	typical = count_picked(s->x, s->group->typical, s->group->n_typical, p);
	chance = KY_MAX(1, p->n_choices) *
		 ky_stats_fisher(slow, s->group->n_slow, typical, s->group->n_typical);
	if (slow == s->best_size && chance >= s->best_p)
		return;
	if (chance > KY_ALPHA / 1e4 || is_chance(s, p))
		return;
	s->best = *p;
	s->best_size = slow;
	s->best_p = chance;
}

/* How much more often slow instances have it than typical ones. */
static double measure_contrast(const struct search *s, const struct pick *p)
{
	double slow = (double)count_picked(s->x, s->group->slow, s->group->n_slow, p);
	double typical = (double)count_picked(s->x, s->group->typical, s->group->n_typical, p);

	return slow / (double)s->group->n_slow - typical / KY_MAX(1, (double)s->group->n_typical);
}

static void take_better(const struct search *s, struct pick *best, const struct pick *p)
{
	if (best->kind != IS_SIZE || measure_contrast(s, p) > measure_contrast(s, best))
		*best = *p;
}

/* Keeps those with the greatest contrasts: values, and the best range of each size. */
static void keep_pick(struct search *s, const struct pick *p)
{
	double contrast = measure_contrast(s, p);
	size_t at = s->n_kept;

	if (s->n_kept == MAX_KEPT) {
		at = 0;
		for (size_t i = 1; i < MAX_KEPT; i++)
			at = s->contrasts[i] < s->contrasts[at] ? i : at;
		if (contrast <= s->contrasts[at])
			return;
	} else {
		s->n_kept++;
	}
	s->kept[at] = *p;
	s->contrasts[at] = contrast;
}

static void try_pairs(struct search *s)
{
	for (size_t i = 0; i < s->n_kept; i++) {
		for (size_t k = i + 1; k < s->n_kept; k++) {
			struct pick p = s->kept[i];

			p.other = &s->kept[k];
			if (p.key != p.other->key)
				try_pick(s, &p);
		}
	}
}

static int compare_facts(const void *a, const void *b)
{
	return ky_fact_compare(a, b);
}

/* The values that enough of the slow instances have. */
static int try_values(struct search *s, uint32_t key)
{
	size_t n = 0,
	       least = KY_MAX((size_t)MIN_SIZE, (size_t)(MIN_PART * (double)s->group->n_slow));
	struct ky_fact *facts = calloc(s->group->n_slow + 1, sizeof(*facts));

	if (!facts)
		return -ENOMEM;
	for (size_t i = 0; i < s->group->n_slow; i++) {
		const struct ky_fact *f = ky_instance_fact(s->group->slow[i], key);

		if (f)
			facts[n++] = *f;
	}
	if (n)
		qsort(facts, n, sizeof(*facts), compare_facts);
	for (size_t i = 0, j; i < n; i = j) {
		for (j = i; j < n && !ky_fact_compare(&facts[i], &facts[j]);)
			j++;
		if (j - i >= least) {
			const struct pick p = {.key = key, .fact = facts[i]};

			try_pick(s, &p);
			keep_pick(s, &p);
		}
	}
	free(facts);
	return 0;
}

/* The largest and the smallest half, quarter, and so on. */
static int try_sizes(struct search *s, uint32_t key)
{
	double *sizes = calloc(s->n_all + 1, sizeof(*sizes));
	struct pick best = {0};
	size_t n = 0;

	if (!sizes)
		return -ENOMEM;
	for (size_t i = 0; i < s->n_all; i++)
		n += get_size(s->all[i], key, &sizes[n]);
	ky_stats_sort(sizes, n);
	for (size_t k = 1; k <= N_PARTS && n >> k > 2; k++) {
		struct pick large = {.key = key,
			.kind = IS_SIZE,
			.from = sizes[n - (n >> k)],
			.to = sizes[n - 1]};
		struct pick small = {
			.key = key, .kind = IS_SIZE, .from = sizes[0], .to = sizes[n >> k]};

		if (key < POSITION_IN_THREAD) {
			try_pick(s, &large);
			take_better(s, &best, &large);
		}
		try_pick(s, &small);
		take_better(s, &best, &small);
	}
	if (best.kind == IS_SIZE)
		keep_pick(s, &best);
	free(sizes);
	return 0;
}

/* The most frequent remainder of each divisor, if it is so much more frequent than by chance. */
#define MUCH_MORE 2

static int try_remainders(struct search *s, uint32_t key)
{
	const struct ky_group *g = s->group;
	uint32_t *counts = calloc(MAX_REMAINDERS, sizeof(*counts));

	for (size_t k = 0; counts && ky_likeness_divisor(k); k++) {
		struct pick p = {.key = key, .kind = IS_LIKE};
		size_t n = 0;

		p.likeness.divisor = ky_likeness_divisor(k);
		p.n_choices = N_DIVISORS * (double)p.likeness.divisor;
		memset(counts, 0, MAX_REMAINDERS * sizeof(*counts));
		for (size_t i = 0; i < g->n_slow; i++) {
			const struct ky_fact *f = ky_instance_fact(g->slow[i], key);
			uint64_t rest = f ? (uint64_t)f->number % p.likeness.divisor : 0;

			if (!f || f->type != KY_FACT_INT)
				continue;
			n++;
			if (++counts[rest] > counts[p.likeness.rest])
				p.likeness.rest = rest;
		}
		if ((double)counts[p.likeness.rest] * (double)p.likeness.divisor >
			MUCH_MORE * (double)n)
			try_pick(s, &p);
	}
	free(counts);
	return counts ? 0 : -ENOMEM;
}

struct texts {
	struct search *s;
	uint32_t key;
};

static void try_affix(void *arg, const struct ky_affix *v)
{
	const struct texts *t = arg;

	try_pick(t->s,
		&(struct pick){
			.key = t->key, .kind = IS_AFFIX, .affix = *v, .n_choices = N_AFFIXES});
}

/* Beginnings, endings and words of some texts. */
static void try_affixes(struct search *s, uint32_t key)
{
	const struct ky_group *g = s->group;
	struct texts t = {s, key};

	for (size_t i = 0; i < KY_MIN(g->n_slow, (size_t)N_TEXTS); i++) {
		const struct ky_fact *f = ky_instance_fact(
			g->slow[i * (g->n_slow - 1) / (N_TEXTS - 1)], key);

		if (f)
			ky_affixes_of(s->x, f, try_affix, &t);
	}
}

/* Tries a component that comes more often than in any typical instance; the load is no property. */
static void try_count(struct search *s, uint32_t component)
{
	struct pick p = {.component = component};
	const struct ky_component *o = ky_component_of(s->x, component);

	if (o->kind == KY_PART_READY || ky_component_of(s->x, o->parent)->kind == KY_PART_READY)
		return;
	for (size_t i = 0; i < s->group->n_typical; i++) {
		const struct ky_part *part = ky_instance_part(s->group->typical[i], component);

		p.from = KY_MAX(p.from, part ? part->count : 0);
	}
	p.from++;
	try_pick(s, &p);
}

static int take_picked(struct ky_group *ret, const struct search *s)
{
	const struct ky_group *g = s->group;

	*ret = *g;
	ret->n_slow = 0;
	ret->is_part = true;
	ret->slow = calloc(g->n_slow + 1, sizeof(*ret->slow));
	ret->typical = calloc(g->n_typical + 1, sizeof(*ret->typical));
	if (!ret->slow || !ret->typical)
		return -ENOMEM;
	memcpy(ret->typical, g->typical, g->n_typical * sizeof(*ret->typical));
	for (size_t i = 0; i < g->n_slow; i++) {
		if (is_picked(s->x, g->slow[i], &s->best))
			ret->slow[ret->n_slow++] = g->slow[i];
	}
	ret->n_all_slow = g->n_all_slow * (double)ret->n_slow / (double)g->n_slow;
	snprintf(ret->how, sizeof(ret->how), "a part of %.0f", g->n_all_slow);
	return 0;
}

int ky_subgroup_find(struct ky_group *ret, const struct ky_explain *x, const struct ky_group *group,
	struct ky_instance *const *all, size_t n_all)
{
	struct search s = {.x = x, .group = group, .all = all, .n_all = n_all};
	bool is_of_two_traces = group->slow[0]->is_second != group->typical[0]->is_second;
	int r = is_of_two_traces ? 0 : ky_shifts_make(&s.shifts, all, n_all);

	*ret = (struct ky_group){0};
	for (uint32_t key = 0; key < x->keys.n && !r; key++) {
		/* A field of the end may follow from being slow; a pause, from a busy machine. */
		if (x->keys.v[key].kind >= KY_TRAIT_END || ky_trait_is_pause(x->keys.v[key].kind))
			continue;
		r = try_values(&s, key);
		if (!r)
			r = try_sizes(&s, key);
		if (!r && x->keys.v[key].kind <= KY_TRAIT_OUTER)
			r = try_remainders(&s, key);
		if (!r && x->keys.v[key].kind <= KY_TRAIT_OUTER)
			try_affixes(&s, key);
	}
	for (uint32_t c = KY_ROOT + 1; c <= x->components.all.n; c++)
		try_count(&s, c);
	for (size_t i = 0; i < x->company.n; i++)
		try_pick(&s, &(struct pick){.company = x->company.v[i].name});
	if (!r)
		r = try_sizes(&s, POSITION_IN_TRACE);
	if (!r)
		r = try_sizes(&s, POSITION_IN_THREAD);
	if (!s.best_size)
		try_pairs(&s);
	ky_shifts_deinit(&s.shifts);
	r = r ? r : s.error;
	return r || !s.best_size ? r : take_picked(ret, &s);
}
