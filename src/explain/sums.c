/* SPDX-License-Identifier: MIT */
/*
 * A buffer that is written when it is full: affected instances come each time that a field adds up
 * to so much.
 */
#include <math.h>

#include "explain/search.h"
#include "explain/stats.h"

#define NEAR	  .1 /* of the usual sum: an instance may exceed it by its own number */
#define MIN_NEAR  .8 /* part of the sums: some affected instances have another reason */
#define MIN_SUMS  8
#define MAX_FULL  3  /* times that it was filled, where not all were slow */
#define MIN_ADDED 2  /* instances, usually */
#define MAX_OWN	  .9 /* of the sum, usually, the number of the affected instance itself */
#define LESS	  .5 /* the spread of the sums, of that of the times and counts between */

/* Between the begins of two affected instances, without the first; own: the second's number. */
struct gap {
	double sum, n, ns, own;
};

enum scope {
	OF_TRACE,
	OF_THREAD,
	OF_VALUE, /* of the field `by`, in one process */
};

/* Instances like one of them. */
struct set {
	const struct ky_search *w;
	enum scope scope;
	uint32_t by;
	const bool *affected; /* of the column's instances */
	uint32_t thread, process;
	const struct ky_fact *value; /* of `by` */
};

static uint32_t process_of(const struct ky_search *w, const struct ky_instance *i)
{
	return w->x->threads.v[i->thread]->process;
}

static void set_like(struct set *s, const struct ky_instance *i)
{
	s->thread = i->thread;
	if (s->scope != OF_VALUE)
		return;
	s->process = process_of(s->w, i);
	s->value = ky_instance_fact(i, s->by);
}

static bool is_in(const struct set *s, const struct ky_instance *i)
{
	const struct ky_fact *value;

	if (s->scope != OF_VALUE)
		return s->scope == OF_TRACE || i->thread == s->thread;
	if (!s->value || process_of(s->w, i) != s->process)
		return false;
	value = ky_instance_fact(i, s->by);
	return value && !ky_fact_compare(s->value, value);
}

/* The sum of a key's numbers between two instances of the set; NAN: it was not kept. */
static double sum_between(const struct set *s, const struct ky_instance *from,
	const struct ky_instance *to, uint32_t key)
{
	const struct ky_sum *a = ky_instance_sum(from, key, s->by);
	const struct ky_sum *b = ky_instance_sum(to, key, s->by);

	if (!a || !b)
		return NAN;
	return s->scope == OF_THREAD ? b->thread - a->thread : b->all - a->all;
}

static double count_between(
	const struct set *s, const struct ky_instance *from, const struct ky_instance *to)
{
	if (s->scope == OF_VALUE)
		return sum_between(s, from, to, KY_NO_KEY);
	return s->scope == OF_THREAD ? to->thread_ordinal - from->thread_ordinal
				     : to->ordinal - from->ordinal;
}

/*
 * Of a set. If there are no sums, the numbers of instances that are not in the sample are taken to
 * be like those that are; but not of a value. The gaps: how many.
 */
static size_t find_gaps(
	const struct set *s, const struct ky_column *c, uint32_t key, struct gap *gaps)
{
	const struct ky_instance *last = NULL;
	double sum = 0, known = 0;
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		const struct ky_instance *o = c->instances[i];
		double between, n_between;

		if ((s->scope == OF_VALUE && !s->affected[i]) || !is_in(s, o))
			continue;
		sum += c->numbers[i];
		known++;
		if (!s->affected[i])
			continue;
		between = last ? sum_between(s, last, o, key) : NAN;
		n_between = last ? count_between(s, last, o) : NAN;
		if (isnan(between) && s->scope != OF_VALUE)
			between = sum * n_between / known;
		if (!isnan(between) && !isnan(n_between))
			gaps[n++] = (struct gap){between, n_between,
				(double)(o->begin_ns - last->begin_ns), c->numbers[i]};
		last = o;
		sum = known = 0;
	}
	return n;
}

static double median_sum(const struct gap *gaps, size_t n, double *scratch)
{
	for (size_t i = 0; i < n; i++)
		scratch[i] = gaps[i].sum;
	ky_stats_sort(scratch, n);
	return ky_stats_quantile(scratch, n, .5);
}

/* Keeps gaps whose sum is nearly the usual one, or a multiple of it, and divides those. */
static size_t keep_near(struct gap *gaps, size_t n, double usual)
{
	size_t kept = 0;

	for (size_t i = 0; i < n && usual > 0; i++) {
		double ratio = gaps[i].sum / usual, full = round(ratio);

		if (full >= 1 && full <= MAX_FULL && fabs(ratio - full) < NEAR)
			gaps[kept++] = (struct gap){gaps[i].sum / full, gaps[i].n / full,
				gaps[i].ns / full, gaps[i].own};
	}
	return kept;
}

/* The distance of the quartiles, of the median. */
static double spread(double *v, size_t n)
{
	ky_stats_sort(v, n);
	return (ky_stats_quantile(v, n, .75) - ky_stats_quantile(v, n, .25)) /
	       KY_MAX(1e-9, ky_stats_quantile(v, n, .5));
}

/*
 * Nothing is added up if the numbers of all others are 0: then the sums are the numbers of the
 * affected instances themselves.
 */
static bool is_own(const struct gap *gaps, size_t n, double *scratch)
{
	for (size_t i = 0; i < n; i++)
		scratch[i] = gaps[i].own / gaps[i].sum;
	ky_stats_sort(scratch, n);
	return ky_stats_quantile(scratch, n, .5) > MAX_OWN;
}

/*
 * Of a timer, or each 64th, sums are nearly the same, too; but so are its times or its counts.
 * If slow ones follow each other, nothing is added up: the sums are the numbers themselves.
 */
static bool is_by_sum(const struct gap *gaps, size_t n, double *scratch)
{
	double spreads[3], n_added = 0;

	for (size_t k = 0; k < KY_ARRAY_SIZE(spreads); k++) {
		for (size_t i = 0; i < n; i++)
			scratch[i] = k == 0 ? gaps[i].sum : k == 1 ? gaps[i].n : gaps[i].ns;
		spreads[k] = spread(scratch, n);
		n_added = k == 1 ? ky_stats_quantile(scratch, n, .5) : n_added;
	}
	return n_added >= MIN_ADDED && spreads[0] < LESS * KY_MIN(spreads[1], spreads[2]);
}

static void add_sum(struct ky_search *w, const struct ky_column *c, double p, double part,
	double usual, const struct set *s)
{
	const struct ky_column by = {.key = s->by == KY_NO_KEY ? c->key : w->x->keys.v[s->by]};
	struct ky_condition condition = {
		.p = p, .explained = part, .contrast = 1, .about = KY_ABOUT_TIME};
	struct ky_buf b = {0};

	ky_buf_puts(&b, "each time that ");
	ky_column_put(&b, w, c);
	ky_buf_printf(&b, " adds up to %.*f%s", usual < 100, usual,
		s->scope == OF_THREAD  ? " in its thread"
		: s->scope == OF_VALUE ? " with the same "
				       : "");
	if (s->scope == OF_VALUE)
		ky_column_put(&b, w, &by);
	condition.n_brief = b.len;
	ky_buf_printf(&b, " (%.0f %% of the sums)", 100 * part);
	ky_search_add(w, condition, &b);
}

static bool test_gaps(struct ky_search *w, const struct ky_column *c, struct gap *gaps, size_t n,
	const struct set *s, double *scratch)
{
	double usual = median_sum(gaps, n, scratch), part, p;
	size_t kept = keep_near(gaps, n, usual);

	w->n_tests++;
	part = (double)kept / (double)KY_MAX(n, (size_t)1);
	if (kept < MIN_SUMS || part < MIN_NEAR || is_own(gaps, kept, scratch) ||
		!is_by_sum(gaps, kept, scratch))
		return false;
	/* By chance, so many sums are near the usual one or a multiple of it. */
	p = ky_stats_binomial(n, kept, 2 * NEAR);
	add_sum(w, c, p, part, usual, s);
	return true;
}

/* Is it the second affected instance of its set? A set with one has no gaps. */
static bool is_second(const struct set *s, size_t affected)
{
	const struct ky_finding *f = s->w->f;
	size_t n = 0;

	for (size_t k = 0; k < affected && n < 2; k++)
		n += is_in(s, f->affected.v[k]);
	return n == 1;
}

/* The gaps of each set. Returns whether they make a condition. */
static bool test_sets(struct set *s, struct ky_search *w, const struct ky_column *c, uint32_t key,
	struct gap *gaps)
{
	double *scratch = calloc(w->f->affected.n + 1, sizeof(*scratch));
	bool found = false;
	size_t n = 0;

	if (!scratch)
		w->error = -ENOMEM;
	for (size_t k = 0; scratch && k < w->f->affected.n; k++) {
		set_like(s, w->f->affected.v[k]);
		if (s->scope == OF_TRACE ? !k : is_second(s, k))
			n += find_gaps(s, c, key, gaps + n);
	}
	if (n)
		found = test_gaps(w, c, gaps, n, s, scratch);
	free(scratch);
	return found;
}

/* Whether numbers were added up by the values of that field. */
static bool is_by(const struct ky_search *w, uint32_t by)
{
	for (size_t k = 0; k < w->f->affected.n; k++) {
		if (ky_instance_sum(w->f->affected.v[k], KY_NO_KEY, by))
			return true;
	}
	return false;
}

static void test_scopes(struct ky_search *w, const struct ky_column *c, uint32_t key,
	const bool *affected, struct gap *gaps)
{
	struct set s = {.w = w, .scope = OF_TRACE, .by = KY_NO_KEY, .affected = affected};

	if (test_sets(&s, w, c, key, gaps))
		return;
	s.scope = OF_THREAD;
	if (w->x->threads.n > 1 && test_sets(&s, w, c, key, gaps))
		return;
	s.scope = OF_VALUE;
	for (s.by = 0; s.by < w->x->keys.n; s.by++) {
		if (s.by != key && is_by(w, s.by))
			test_sets(&s, w, c, key, gaps);
	}
}

static int compare_pointers(const void *a, const void *b)
{
	const uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return (x > y) - (x < y);
}

/* Which of the column's instances are affected; NULL without memory. The caller frees it. */
static bool *mark_affected(const struct ky_search *w, const struct ky_column *c)
{
	size_t n = w->f->affected.n;
	struct ky_instance **sorted = calloc(n + 1, sizeof(struct ky_instance *));
	bool *marks = sorted ? calloc(c->n + 1, sizeof(*marks)) : NULL;

	if (marks && n) {
		memcpy(sorted, w->f->affected.v, n * sizeof(*sorted));
		qsort(sorted, n, sizeof(*sorted), compare_pointers);
	}
	for (size_t i = 0; marks && n && i < c->n; i++)
		marks[i] = bsearch(&c->instances[i], sorted, n, sizeof(*sorted), compare_pointers);
	free(sorted);
	return marks;
}

int ky_sums_test(struct ky_search *w, const struct ky_column *c, uint32_t key)
{
	struct gap *gaps = calloc(w->f->affected.n + 1, sizeof(*gaps));
	bool *affected = mark_affected(w, c), found = true;

	for (size_t i = 0; i < c->n && found; i++)
		found = c->numbers[i] >= 0;
	if (gaps && affected && found)
		test_scopes(w, c, key, affected, gaps);
	found = gaps && affected;
	free(gaps);
	free(affected);
	return found ? w->error : -ENOMEM;
}
