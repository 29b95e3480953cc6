/* SPDX-License-Identifier: MIT */
/*
 * A buffer that is written when it is full: affected instances come each time that a field adds up
 * to so much.
 */
#include <math.h>

#include "explain/search.h"
#include "explain/stats.h"

#define NEAR	 .1 /* of the usual sum: an instance may exceed it by its own number */
#define MIN_NEAR .8 /* part of the sums: some affected instances have another reason */
#define MIN_SUMS 8
#define MAX_FULL 3  /* times that it was filled, where not all were slow */
#define LESS	 .5 /* the spread of the sums, of that of the times and counts between */

/* Between the begins of two affected instances, without the first. */
struct gap {
	double sum, n, ns;
};

static bool is_affected(const struct ky_search *w, const struct ky_instance *i)
{
	for (size_t k = 0; k < w->f->affected.n; k++) {
		if (w->f->affected.v[k] == i)
			return true;
	}
	return false;
}

static uint32_t place_of(const struct ky_instance *i, bool by_thread)
{
	return by_thread ? i->thread_ordinal : i->ordinal;
}

/* The sum of the numbers between two instances; if it was not kept: `otherwise`. */
static double sum_between(const struct ky_instance *from, const struct ky_instance *to,
	uint32_t key, bool by_thread, double otherwise)
{
	const struct ky_sum *a = ky_instance_sum(from, key), *b = ky_instance_sum(to, key);

	if (!a || !b)
		return otherwise;
	return by_thread ? b->thread - a->thread : b->all - a->all;
}

/*
 * Of one thread, or of all (UINT32_MAX). If there are no sums, the numbers of instances that are
 * not in the sample are taken to be like those that are. The gaps: how many.
 */
static size_t find_gaps(const struct ky_search *w, const struct ky_column *c, uint32_t key,
	uint32_t thread, struct gap *gaps)
{
	const struct ky_instance *last = NULL;
	bool by_thread = thread != UINT32_MAX;
	double sum = 0, known = 0;
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		const struct ky_instance *o = c->instances[i];

		if (by_thread && o->thread != thread)
			continue;
		sum += c->numbers[i];
		known++;
		if (!is_affected(w, o))
			continue;
		if (last) {
			double between = place_of(o, by_thread) - place_of(last, by_thread);

			gaps[n++] = (struct gap){
				sum_between(last, o, key, by_thread, sum * between / known),
				between, (double)(o->begin_ns - last->begin_ns)};
		}
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
			gaps[kept++] = (struct gap){
				gaps[i].sum / full, gaps[i].n / full, gaps[i].ns / full};
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

/* Of a timer, or each 64th, sums are nearly the same, too; but so are its times or its counts. */
static bool is_by_sum(const struct gap *gaps, size_t n, double *scratch)
{
	double spreads[3];

	for (size_t k = 0; k < KY_ARRAY_SIZE(spreads); k++) {
		for (size_t i = 0; i < n; i++)
			scratch[i] = k == 0 ? gaps[i].sum : k == 1 ? gaps[i].n : gaps[i].ns;
		spreads[k] = spread(scratch, n);
	}
	return spreads[0] < LESS * KY_MIN(spreads[1], spreads[2]);
}

static void add_sum(struct ky_search *w, const struct ky_column *c, double p, double part,
	double usual, bool by_thread)
{
	struct ky_condition condition = {
		.p = p, .explained = part, .contrast = 1, .about = KY_ABOUT_TIME};
	struct ky_buf b = {0};

	ky_buf_puts(&b, "each time that ");
	ky_column_put(&b, w, c);
	ky_buf_printf(
		&b, " adds up to %.*f%s", usual < 100, usual, by_thread ? " in its thread" : "");
	condition.n_brief = b.len;
	ky_buf_printf(&b, " (%.0f %% of the sums)", 100 * part);
	ky_search_add(w, condition, &b);
}

static bool test_gaps(struct ky_search *w, const struct ky_column *c, struct gap *gaps, size_t n,
	bool by_thread, double *scratch)
{
	double usual = median_sum(gaps, n, scratch), part, p;
	size_t kept = keep_near(gaps, n, usual);

	w->n_tests++;
	part = (double)kept / (double)KY_MAX(n, (size_t)1);
	if (kept < MIN_SUMS || part < MIN_NEAR || !is_by_sum(gaps, kept, scratch))
		return false;
	/* By chance, so many sums are near the usual one or a multiple of it. */
	p = ky_stats_binomial(n, kept, 2 * NEAR);
	add_sum(w, c, p, part, usual, by_thread);
	return true;
}

/* Is it the second affected instance of its thread? A thread with one has no gaps. */
static bool is_second_of_thread(const struct ky_finding *f, size_t affected)
{
	size_t n = 0;

	for (size_t k = 0; k < affected && n < 2; k++)
		n += f->affected.v[k]->thread == f->affected.v[affected]->thread;
	return n == 1;
}

/* The gaps of each thread. */
static size_t find_thread_gaps(
	const struct ky_search *w, const struct ky_column *c, uint32_t key, struct gap *gaps)
{
	size_t n = 0;

	for (size_t k = 0; k < w->f->affected.n; k++) {
		if (is_second_of_thread(w->f, k))
			n += find_gaps(w, c, key, w->f->affected.v[k]->thread, gaps + n);
	}
	return n;
}

int ky_sums_test(struct ky_search *w, const struct ky_column *c, uint32_t key)
{
	size_t size = w->f->affected.n + 1, n;
	struct gap *gaps = calloc(size, sizeof(*gaps));
	double *scratch = calloc(size, sizeof(*scratch));
	bool found = true;

	for (size_t i = 0; i < c->n && found; i++)
		found = c->numbers[i] >= 0;
	if (gaps && scratch && found) {
		n = find_gaps(w, c, key, UINT32_MAX, gaps);
		if (!test_gaps(w, c, gaps, n, false, scratch) && w->x->threads.n > 1) {
			n = find_thread_gaps(w, c, key, gaps);
			test_gaps(w, c, gaps, n, true, scratch);
		}
	}
	found = gaps && scratch;
	free(gaps);
	free(scratch);
	return found ? w->error : -ENOMEM;
}
