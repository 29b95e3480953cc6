/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>

#include "base/bisect.h"
#include "explain/search.h"
#include "explain/stats.h"
#include "explain/words.h"

#define N_CLASSES    16 /* of a size, for a line through their medians */
#define MAX_NEAR     8	/* instances on either side that predict one */
#define MIN_NEAR     3
#define N_THRESHOLDS 50 /* of those tried */

struct pair {
	double number, ns, weight;
	size_t i;
};

static int compare_pairs(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return (x->i > y->i) - (x->i < y->i);
}

struct size_effect {
	double explained, linear, slope, r2;
	bool is_supported; /* not by one class, or one value, alone */
};

struct classes {
	double x[N_CLASSES], y[N_CLASSES];
	size_t n;
};

/*
 * The time of an instance as those with nearly the same number predict it: the fewer, the closer it
 * is to an end of the range, where numbers are often far apart. Returns the mean, and the median.
 */
static double predict(const struct pair *pairs, size_t n, size_t i, double *ret_median)
{
	size_t half = KY_MIN(KY_MIN(i, n - 1 - i) / 2, (size_t)MAX_NEAR);
	size_t width = 2 * KY_MAX(half, (size_t)MIN_NEAR), k = 0, from;
	struct ky_weighted near[2 * MAX_NEAR + 1];
	double sum = 0, weights = 0;

	width = KY_MIN(width, n - 1);
	from = KY_MIN(i - KY_MIN(i, width / 2), n - 1 - width);
	for (size_t j = from; j <= from + width; j++) {
		if (j == i)
			continue;
		near[k++] = (struct ky_weighted){pairs[j].ns, pairs[j].weight};
		sum += pairs[j].weight * pairs[j].ns;
		weights += pairs[j].weight;
	}
	*ret_median = ky_stats_weighted_median(near, k);
	return k ? sum / weights : pairs[i].ns;
}

static bool is_half_as_steep(struct ky_stats_line line, double slope)
{
	return slope > 0 ? line.slope > slope / 2 : line.slope < slope / 2;
}

/* The line through all of these. r2 is -1 without memory. */
static struct ky_stats_line fit_pairs(const struct pair *pairs, size_t n)
{
	double *x = calloc(n + 1, sizeof(*x)), *y = calloc(n + 1, sizeof(*y));
	struct ky_stats_line line = {.r2 = -1};

	for (size_t i = 0; x && y && i < n; i++) {
		x[i] = pairs[i].number;
		y[i] = pairs[i].ns;
	}
	if (x && y)
		line = ky_stats_line(x, y, n);
	free(x);
	free(y);
	return line;
}

/*
 * Whether the line does not depend on one class alone, the farthest: that would be a threshold. The
 * others, or those in the class, make a line that is at least half as steep. Instances that are
 * nearer to the next class do not count in the class: one value and all others make a line, too.
 */
static bool is_supported(const struct classes *c, const struct pair *pairs, size_t n, double slope)
{
	const double *x = c->x;
	size_t last = c->n - 1, from, to;
	bool is_last = x[last] - x[c->n / 2] > x[c->n / 2] - x[0];
	double middle = is_last ? (x[last - 1] + x[last]) / 2 : (x[0] + x[1]) / 2;

	if (is_half_as_steep(ky_stats_line(x + !is_last, c->y + !is_last, last), slope))
		return true;
	from = is_last ? last * n / c->n : 0;
	to = is_last ? n : n / c->n;
	while (is_last && from < to && pairs[from].number < middle)
		from++;
	while (!is_last && from < to && pairs[to - 1].number > middle)
		to--;
	return is_half_as_steep(fit_pairs(pairs + from, to - from), slope);
}

/*
 * Whether the line is one through one value, which half of the instances have or more, and all
 * others, whatever these are: then it does not go through the others alone.
 */
static bool is_by_usual(const struct pair *pairs, size_t n, double slope)
{
	struct pair *others = calloc(n + 1, sizeof(*others));
	double usual = n ? pairs[n / 2].number : 0;
	size_t n_others = 0;
	bool is_line = true;

	for (size_t i = 0; others && i < n; i++) {
		if (pairs[i].number != usual)
			others[n_others++] = pairs[i];
	}
	if (others && 2 * n_others <= n)
		is_line = is_half_as_steep(fit_pairs(others, n_others), slope);
	free(others);
	return !is_line;
}

/* Classes of about equal size: means of their numbers, and medians of their times. */
static int make_classes(struct classes *c, const struct pair *pairs, size_t n)
{
	double *ns = calloc(n + 1, sizeof(*ns));
	int r = ns ? 0 : -ENOMEM;

	*c = (struct classes){.n = KY_MAX((size_t)4, KY_MIN((size_t)N_CLASSES, n / 20))};
	for (size_t b = 0; !r && b < c->n; b++) {
		size_t from = b * n / c->n, to = (b + 1) * n / c->n;

		for (size_t i = from; i < to; i++) {
			c->x[b] += pairs[i].number / (double)(to - from);
			ns[i] = pairs[i].ns;
		}
		ky_stats_sort(ns + from, to - from);
		c->y[b] = ky_stats_quantile(ns + from, to - from, .5);
	}
	free(ns);
	return r;
}

static int measure_size(struct ky_search *w, const struct ky_column *c, double mean_a,
	double mean_t, struct size_effect *ret)
{
	struct pair *pairs = calloc(c->n + 1, sizeof(*pairs));
	double *expected = calloc(c->n + 1, sizeof(*expected));
	double *medians = calloc(c->n + 1, sizeof(*medians));
	double difference = KY_MIN(
		w->affected_ns - w->typical_ns, w->affected_median - w->typical_median);
	struct ky_stats_line line;
	struct classes classes;
	size_t n = 0;
	int r = pairs && expected && medians ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < c->n; i++) {
		expected[i] = medians[i] = w->all_ns;
		if (!isnan(c->numbers[i]))
			pairs[n++] = (struct pair){c->numbers[i], c->ns[i], c->weights[i], i};
	}
	if (!r) {
		qsort(pairs, n, sizeof(*pairs), compare_pairs);
		r = make_classes(&classes, pairs, n);
	}
	if (!r) {
		for (size_t i = 0; i < n; i++)
			expected[pairs[i].i] = predict(pairs, n, i, &medians[pairs[i].i]);
		line = ky_stats_line(classes.x, classes.y, classes.n);
		*ret = (struct size_effect){
			.explained = KY_MAX(ky_column_explained(w, c, expected, false),
				ky_column_explained(w, c, medians, true)),
			.slope = line.slope,
			.r2 = line.r2,
			.is_supported = (c->is_degree ||
						is_supported(&classes, pairs, n, line.slope)) &&
					!is_by_usual(pairs, n, line.slope),
			.linear = line.slope * (mean_a - mean_t) / KY_MAX(1, difference),
		};
	}
	free(medians);
	free(pairs);
	free(expected);
	return r;
}

/* At least, or at most, this value: in parts a of affected and b of typical instances. */
struct threshold {
	bool is_found, is_at_most;
	double at, a, b;
	double max; /* of b, as a part of a */
};

static size_t count_below(const double *sorted, size_t n, double at, bool inclusive)
{
	size_t first;

	ky_bisect(first, n, k, sorted[k] < at || (inclusive && sorted[k] <= at));
	return first;
}

static void try_threshold(struct threshold *best, double at, bool is_at_most, double a, double b)
{
	if (a >= .6 && b <= best->max * a && (!best->is_found || a - b > best->a - best->b))
		*best = (struct threshold){true, is_at_most, at, a, b, best->max};
}

static struct threshold find_threshold(const double *a, size_t na, const double *b, size_t nb,
	size_t n_affected, size_t n_typical, double max)
{
	struct threshold best = {.max = max};

	for (size_t i = 0; i < na; i += KY_MAX(na / N_THRESHOLDS, (size_t)1)) {
		double at = a[i], all_a = (double)n_affected, all_b = (double)n_typical;

		try_threshold(&best, at, false,
			(double)(na - count_below(a, na, at, false)) / all_a,
			(double)(nb - count_below(b, nb, at, false)) / all_b);
		try_threshold(&best, at, true, (double)count_below(a, na, at, true) / all_a,
			(double)count_below(b, nb, at, true) / all_b);
	}
	return best;
}

/* Noise of the machine may be most of the extra time, and leaves the line as it is. */
static bool is_law(const struct size_effect *e)
{
	return e->r2 > .95 && e->linear > .25;
}

static void add_growth(struct ky_search *w, const struct ky_column *c, const struct size_effect *e,
	double p, double mean_a, double mean_t)
{
	struct ky_condition condition = ky_column_condition(c, p, KY_MAX(e->explained, e->linear));
	struct ky_buf b = {0};
	char slope[32];

	condition.is_law = is_law(e);
	condition.r2 = e->r2;
	if (c->is_degree || e->slope < 0) {
		ky_buf_printf(&b, "the %s ", e->slope > 0 ? "greater" : "smaller");
		ky_column_put(&b, w, c);
		ky_buf_puts(&b, ", the longer");
	} else {
		ky_buf_puts(&b, "grows with ");
		ky_column_put(&b, w, c);
	}
	if (c->is_degree) {
		condition.n_brief = b.len;
		ky_buf_printf(&b, " (r² = %.2f)", e->r2);
		ky_search_add(w, condition, &b);
		return;
	}
	ky_buf_printf(&b, ": %s for each 1 %s",
		ky_words_duration(slope, sizeof(slope), fabs(e->slope)),
		e->slope > 0 ? "more" : "less");
	condition.n_brief = b.len;
	ky_buf_printf(&b, " (r² = %.2f); it is %.4g in these, %.4g in typical ones", e->r2, mean_a,
		mean_t);
	ky_search_add(w, condition, &b);
}

/* Numbers from one to another, and the parts of affected and of typical instances in it. */
struct range {
	double from, to, a, b;
	bool is_outside; /* all others are in it: they are below `from` or above `to` */
};

static bool has_number(const struct range *r, double number)
{
	return r->is_outside ? number < r->from || number > r->to
			     : number >= r->from && number <= r->to;
}

static struct range range_of(const struct threshold *t)
{
	return (struct range){.from = t->is_at_most ? -INFINITY : t->at,
		.to = t->is_at_most ? t->at : INFINITY,
		.a = t->a,
		.b = t->b};
}

struct in_range {
	const struct ky_search *w;
	const struct ky_column *c;
	const struct range *r;
	uint32_t key;
};

static bool is_in_range(const void *arg, const struct ky_instance *i)
{
	const struct in_range *v = arg;
	const struct ky_fact *fact = ky_instance_fact(i, v->key);
	double number = fact ? ky_column_number(v->c, fact) : NAN;

	return has_number(v->r, number);
}

static void put_bound(struct ky_buf *b, const struct ky_column *c, double number)
{
	if (c->is_degree)
		number = c->degrees[(size_t)number];
	if (c->is_hex)
		ky_buf_printf(b, "0x%" PRIx64, number < 0x1p64 ? (uint64_t)number : UINT64_MAX);
	else
		ky_buf_printf(b, number == round(number) && fabs(number) < 1e15 ? "%.0f" : "%.4g",
			number);
}

static void add_range(struct ky_search *w, const struct ky_column *c, uint32_t key,
	const struct range *r, double p, double explained)
{
	struct ky_condition condition = ky_column_condition(c, p, explained);
	const bool has_end = r->to < INFINITY;
	struct ky_buf b = {0};

	ky_buf_puts(&b, "when ");
	if (has_end && r->from > -INFINITY && !r->is_outside) {
		put_bound(&b, c, r->from);
		ky_buf_puts(&b, " ≤ ");
	}
	ky_column_put(&b, w, c);
	if (r->is_outside) {
		ky_buf_puts(&b, " < ");
		put_bound(&b, c, r->from);
		ky_buf_puts(&b, " or > ");
	} else {
		ky_buf_puts(&b, has_end ? " ≤ " : " ≥ ");
	}
	put_bound(&b, c, has_end ? r->to : r->from);
	ky_buf_puts(&b, c->key.kind == KY_TRAIT_END ? ", known at the end only" : "");
	condition.n_brief = b.len;
	condition.is_range = true;
	condition.contrast *= r->a - r->b;
	condition.part = r->a;
	ky_buf_printf(&b, " (%.0f %% of these, %.0f %% of typical ones)", 100 * r->a, 100 * r->b);
	ky_search_mark(w, &condition, is_in_range, &(struct in_range){w, c, r, key});
	ky_search_add(w, condition, &b);
}

/* How much of the excess it explains to be in the range, whatever the number. */
static double explained_by_range(
	struct ky_search *w, const struct ky_column *c, const struct range *r)
{
	bool *has = calloc(c->n + 1, sizeof(*has));
	double explained = 0;

	if (!has)
		w->error = -ENOMEM;
	for (size_t i = 0; has && i < c->n; i++)
		has[i] = has_number(r, c->numbers[i]);
	if (has)
		explained = ky_column_explained_by(w, c, has);
	free(has);
	return explained;
}

/* --- degrees from one on --- */

#define MIN_STEP 2 /* degrees on the fast side: all others than one are named by that one */
#define STEP_R2	 .95

/* The medians of the times with each degree. */
static int find_degree_medians(const struct ky_column *c, double *medians)
{
	double *ns = calloc(c->n + 1, sizeof(*ns));

	if (!ns)
		return -ENOMEM;
	for (size_t k = 0; k < c->n_values; k++) {
		size_t n = 0;

		for (size_t i = 0; i < c->n; i++) {
			if (c->numbers[i] == (double)k)
				ns[n++] = c->ns[i];
		}
		ky_stats_sort(ns, n);
		medians[k] = ky_stats_quantile(ns, n, .5);
	}
	free(ns);
	return 0;
}

/* The r2 of two levels, below a degree and from it on; which of them is longer. */
static double fit_step(const double *y, size_t n, size_t from, bool *ret_up)
{
	double low = ky_stats_mean(y, from), high = ky_stats_mean(y + from, n - from);
	double mean = ky_stats_mean(y, n), all = 0, within = 0;

	for (size_t k = 0; k < n; k++) {
		double level = k < from ? low : high;

		all += (y[k] - mean) * (y[k] - mean);
		within += (y[k] - level) * (y[k] - level);
	}
	*ret_up = high > low;
	return all > 0 ? 1 - within / all : 0;
}

/*
 * Degrees of which more than half are slow, from one on, all for the same time: they are on no
 * line, although one through a usual degree and the others may be near. Returns 1 if it is so, or
 * 0, or -ENOMEM.
 */
static int find_step(const struct ky_column *c, struct range *ret)
{
	double medians[KY_MANY_VALUES], order[KY_MANY_VALUES], best = 0;
	size_t n = c->n_values;
	int r = find_degree_medians(c, medians), found = 0;

	for (size_t k = 0; k < n; k++)
		order[k] = (double)k;
	if (!r)
		best = KY_MAX(STEP_R2, ky_stats_line(order, medians, n).r2);
	for (size_t from = 1; !r && from < n; from++) {
		bool is_up;
		double r2 = fit_step(medians, n, from, &is_up);
		size_t fast = is_up ? from : n - from;

		if (r2 <= best)
			continue;
		best = r2;
		found = fast >= MIN_STEP && 2 * (n - fast) > n;
		*ret = is_up ? (struct range){.from = (double)from, .to = INFINITY}
			     : (struct range){.from = -INFINITY, .to = (double)from - 1};
	}
	return r ? r : found;
}

static double part_in(const struct range *r, const double *sorted, size_t n, size_t n_all)
{
	return (double)(count_below(sorted, n, r->to, true) -
			count_below(sorted, n, r->from, false)) /
	       (double)n_all;
}

static int test_step(struct ky_search *w, const struct ky_column *c, uint32_t key, struct range r,
	double p, const double *a, size_t na, const double *b, size_t nb)
{
	double explained = explained_by_range(w, c, &r);

	r.a = part_in(&r, a, na, w->f->affected.n);
	r.b = part_in(&r, b, nb, w->d->group->n_typical);
	if (r.a >= .6 && r.b <= .5 * r.a && explained >= .25)
		add_range(w, c, key, &r, p, explained);
	return w->error;
}

/* --- numbers in the middle --- */

#define OF_TYPICAL	    4	/* times as bad as an affected one is good */
#define MIN_IN_RANGE	    .8	/* part of the affected instances */
#define MAX_RANGE	    .25 /* of that, the part of typical instances */
#define MIN_ON_SIDE	    .1	/* part of the affected instances, if the range is between them */
#define MIN_RANGE_EXPLAINED .5
#define MIN_NUMBERS	    4 /* different ones: fewer are named as values */

/* The range from one affected number to another, with most of these and fewest typical ones. */
static struct range find_range(
	const double *a, size_t na, const double *b, size_t nb, size_t n_affected, size_t n_typical)
{
	double sum = 0, most = 0, from = NAN;
	struct range best = {0};

	for (size_t i = 0, k = 0; i < na; i++) {
		size_t first = k;

		while (k < nb && b[k] < a[i])
			k++;
		sum -= OF_TYPICAL * (double)(k - first) / (double)n_typical;
		if (sum <= 0) {
			sum = 0;
			from = a[i];
		}
		sum += 1 / (double)n_affected;
		if (sum > most) {
			most = sum;
			best = (struct range){.from = from, .to = a[i]};
		}
	}
	best.a = (double)(count_below(a, na, best.to, true) -
			  count_below(a, na, best.from, false)) /
		 (double)n_affected;
	best.b = (double)(count_below(b, nb, best.to, true) -
			  count_below(b, nb, best.from, false)) /
		 (double)n_typical;
	return best;
}

static bool has_several_numbers(const struct range *r, const double *sorted, size_t n)
{
	size_t first = count_below(sorted, n, r->from, false), found = 0;

	for (size_t i = first; i < n && sorted[i] <= r->to; i++)
		found += i == first || sorted[i] != sorted[i - 1];
	return found >= MIN_NUMBERS;
}

/* Both ends, from one affected number to another, or all but those that most typical ones have. */
static struct range find_best_range(
	const double *a, size_t na, const double *b, size_t nb, size_t n_affected, size_t n_typical)
{
	struct range r = find_range(a, na, b, nb, n_affected, n_typical), all;

	if (r.a >= MIN_IN_RANGE && r.b <= MAX_RANGE * r.a)
		return r;
	all = find_range(b, nb, a, na, n_typical, n_affected);
	r = (struct range){.from = all.from,
		.to = all.to,
		.a = (double)na / (double)n_affected - all.b,
		.b = (double)nb / (double)n_typical - all.a,
		.is_outside = true};
	/* Few on one side are there by chance, and the others are beyond a threshold. */
	return KY_MIN(count_below(a, na, r.from, false), na - count_below(a, na, r.to, true)) >=
			       MIN_ON_SIDE * (double)na
		       ? r
		       : (struct range){0};
}

static int test_range(struct ky_search *w, const struct ky_column *c, uint32_t key, const double *a,
	size_t na, const double *b, size_t nb)
{
	struct range r = find_best_range(a, na, b, nb, w->f->affected.n, w->d->group->n_typical);
	double p, explained;

	if (r.a < MIN_IN_RANGE || r.b > MAX_RANGE * r.a ||
		(!r.is_outside && !has_several_numbers(&r, a, na)))
		return 0;
	explained = explained_by_range(w, c, &r);
	/* Both ends were chosen. */
	p = ky_stats_fisher((size_t)lround(r.a * (double)w->f->affected.n), w->f->affected.n,
		    (size_t)lround(r.b * (double)w->d->group->n_typical), w->d->group->n_typical) *
	    (double)(w->f->affected.n * w->f->affected.n);
	if (explained >= MIN_RANGE_EXPLAINED)
		add_range(w, c, key, &r, p, explained);
	return w->error;
}

/* --- pauses --- */

/*
 * After a pause, a connection may be closed, or memory cold. Pauses are no property of the
 * instance, and depend on the machine's load: most of the slow ones must come after such a pause,
 * and most of the extra time with it. On a busy machine, all pauses become somewhat longer: a pause
 * must be apart from the usual ones. A pause costs less than it lasts, so it must be at least as
 * long as the extra time.
 */
#define MIN_PAUSE_CONTRAST  .7
#define MIN_PAUSE_EXPLAINED .6
#define MIN_PAUSE	    2 /* times the median of typical instances */

static bool is_apart(const struct ky_search *w, const struct ky_column *c,
	const struct threshold *t, double median)
{
	return c->key.kind == KY_TRAIT_AGE ||
	       t->at >= KY_MAX(MIN_PAUSE * median, w->affected_ns - w->typical_ns);
}

static int test_pause(struct ky_search *w, const struct ky_column *c, const double *a, size_t na,
	const double *b, size_t nb, double p)
{
	struct threshold t = find_threshold(
		a, na, b, nb, w->f->affected.n, w->d->group->n_typical, .5);
	struct ky_buf text = {0};
	struct ky_condition condition;
	struct range side;
	double explained;

	/* That a value never came before is a condition of its own. */
	if (!t.is_found || t.is_at_most || t.a - t.b < MIN_PAUSE_CONTRAST ||
		t.at >= (double)INT64_MAX || !is_apart(w, c, &t, ky_stats_quantile(b, nb, .5)))
		return 0;
	side = range_of(&t);
	explained = explained_by_range(w, c, &side);
	if (explained < MIN_PAUSE_EXPLAINED)
		return w->error;
	condition = ky_column_condition(c, p, explained);
	ky_buf_puts(&text, "when ");
	if (c->key.kind == KY_TRAIT_AGE)
		ky_column_put(&text, w, c);
	ky_buf_puts(&text,
		c->key.kind == KY_TRAIT_AGE ? " had not come for " : "its thread had none for ");
	ky_words_put_duration(&text, t.at);
	ky_buf_puts(&text, " or longer before");
	condition.n_brief = text.len;
	condition.contrast *= t.a - t.b;
	ky_buf_printf(&text, " (%.0f %% of these, %.0f %% of typical ones)", 100 * t.a, 100 * t.b);
	ky_search_add(w, condition, &text);
	return w->error;
}

static bool is_growth(const struct size_effect *e)
{
	return e->is_supported && (is_law(e) || (e->r2 > .85 && e->linear > .4 &&
							(e->explained > .3 || e->linear > .7)));
}

static int test_size_of(struct ky_search *w, const struct ky_column *c, uint32_t key,
	const double *a, size_t na, const double *b, size_t nb)
{
	double mean_a = ky_stats_mean(a, na), mean_b = ky_stats_mean(b, nb);
	double up = ky_stats_mann_whitney(a, na, b, nb), down = ky_stats_mann_whitney(b, nb, a, na);
	double p = KY_MIN(up, down);
	struct size_effect e;
	struct threshold t;
	struct range side;
	int r;

	w->n_tests += 2;
	if (p < 0)
		return -ENOMEM;
	if (ky_trait_is_pause(c->key.kind))
		return test_pause(w, c, a, na, b, nb, up);
	if (c->is_hex)
		return test_range(w, c, key, a, na, b, nb);
	r = measure_size(w, c, mean_a, mean_b, &e);
	if (r < 0)
		return r;
	if (c->is_degree) {
		r = find_step(c, &side);
		if (r)
			return r < 0 ? r : test_step(w, c, key, side, p, a, na, b, nb);
	}
	/* Few numbers may be names: only that they are in order shows that they are none. */
	if (c->by || c->is_degree) {
		if (is_growth(&e) && KY_MAX(e.explained, e.linear) >= c->min_explained)
			add_growth(w, c, &e, p, mean_a, mean_b);
		return w->error;
	}
	if (is_growth(&e)) {
		add_growth(w, c, &e, p, mean_a, mean_b);
		return 0;
	}
	t = find_threshold(
		a, na, b, nb, w->f->affected.n, w->d->group->n_typical, KY_MAX_OF_TYPICAL);
	if (t.is_found)
		ky_both_offer(w, c,
			(struct ky_predicate){.key = key,
				.kind = t.is_at_most ? KY_HAS_AT_MOST : KY_HAS_AT_LEAST,
				.at = t.at,
				.n_choices = N_THRESHOLDS},
			t.a, t.b);
	t = find_threshold(a, na, b, nb, w->f->affected.n, w->d->group->n_typical, .5);
	side = range_of(&t);
	if (t.is_found && e.explained > .3 && explained_by_range(w, c, &side) >= .25) {
		add_range(w, c, key, &side, p, e.explained);
		return w->error;
	}
	return test_range(w, c, key, a, na, b, nb);
}

int ky_sizes_test(struct ky_search *w, const struct ky_column *c, uint32_t key)
{
	double *a, *b;
	size_t na, nb;
	int r = 0;

	if (c->key.kind != KY_TRAIT_AGE && c->n_values > KY_MANY_VALUES && c->n > 20 &&
		ky_column_rises(c))
		return 0;
	if (c->key.kind >= KY_TRAIT_CONTEXT && !ky_trait_is_pause(c->key.kind) &&
		ky_column_is_duration(w, c))
		return 0;
	a = ky_column_numbers(c, key, w->f->affected.v, w->f->affected.n, &na);
	b = ky_column_numbers(c, key, w->d->group->typical, w->d->group->n_typical, &nb);
	if (!a || !b)
		r = -ENOMEM;
	else if (na >= 3 && nb >= 3)
		r = test_size_of(w, c, key, a, na, b, nb);
	free(a);
	free(b);
	return r;
}
