/* SPDX-License-Identifier: MIT */
#include "explain/conditions.h"

#include <inttypes.h>
#include <math.h>

#include "base/buf.h"
#include "explain/stats.h"
#include "explain/times.h"

#define MANY_VALUES  8	  /* numbers with more different values are compared as sizes */
#define N_CLASSES    16	  /* of a size */
#define MAX_PICKED   3	  /* values in one condition */
#define MAX_PREFIXES 4096 /* beginnings and endings of texts that are tried */

/* One field over all instances. */
struct column {
	struct ky_trait_key key;
	bool is_number; /* a size, not one of few values */
	bool is_length; /* the length of a text */
	size_t n;
	struct ky_instance *
		*instances;    /* owned; in order of their begins; all that have the field */
	struct ky_fact *facts; /* owned */
	double *numbers;       /* owned */
	double *ns;	       /* owned; what the finding takes in each */
	size_t n_values;       /* different ones; MANY_VALUES + 1: more than that */
};

struct work {
	struct ky_explain *x;
	struct ky_difference *d;
	struct ky_finding *f;
	struct ky_instance *const *all;
	size_t n_all;
	double affected_ns, typical_ns; /* means of the finding */
	double affected_median, typical_median;
	double all_ns;
	size_t n_tests;
	KY_VEC(struct ky_condition) found;
	int error;
};

const char *ky_explain_duration(char *buf, size_t size, double ns)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	double v = ns;
	size_t i = 0;

	for (; fabs(v) >= 999.5 && i + 1 < KY_ARRAY_SIZE(units); i++)
		v /= 1000;
	if (fabs(v) >= 1000)
		snprintf(buf, size, "%.0f %s", v, units[i]);
	else
		snprintf(buf, size, "%.3g %s", v, units[i]);
	return buf;
}

const char *ky_explain_thread_text(
	const struct ky_explain *x, char *buf, size_t size, uint32_t thread)
{
	const struct ky_explain_thread *t = x->threads.v[thread];
	const char *name = ky_texts_get(&x->names, t->name);

	if (t->tid <= KY_DEVICE_TID)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "thread %" PRId64 "%s%s%s", t->tid, *name ? " (" : "", name,
			*name ? ")" : "");
	return buf;
}

/* Frees the text. */
static void add_condition(struct work *w, double p, double explained, int rank, struct ky_buf *text)
{
	struct ky_condition c = {
		text->error ? NULL : strdup(text->data), p, KY_MIN(explained, 1), rank};

	ky_buf_deinit(text);
	if (!c.text || ky_vec_add(&w->found, c) < 0) {
		free(c.text);
		w->error = -ENOMEM;
	}
}

/* --- columns --- */

static double number_of(const struct work *w, const struct column *c, const struct ky_fact *f)
{
	if (f->type == KY_FACT_TEXT)
		return c->is_length ? (double)strlen(ky_texts_get(&w->x->names, f->text)) : NAN;
	return f->type == KY_FACT_INT ? (double)f->number : f->real;
}

static size_t count_values(const struct column *c)
{
	struct ky_fact seen[MANY_VALUES];
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		size_t k = 0;

		while (k < n && ky_fact_compare(&seen[k], &c->facts[i]))
			k++;
		if (k < n)
			continue;
		if (n == MANY_VALUES)
			return MANY_VALUES + 1;
		seen[n++] = c->facts[i];
	}
	return n;
}

/* Numbers that are names of something, or one of few, have no size. */
static bool is_size(const struct column *c)
{
	bool has_text = false, is_hex = false;

	for (size_t i = 0; i < c->n; i++) {
		has_text = has_text || c->facts[i].type == KY_FACT_TEXT;
		is_hex = is_hex || c->facts[i].is_hex;
	}
	return !has_text && !is_hex && c->n_values > MANY_VALUES &&
	       (c->key.kind < KY_TRAIT_THREAD || c->key.kind > KY_TRAIT_CALLER);
}

static void free_column(struct column *c)
{
	free(c->instances);
	free(c->facts);
	free(c->numbers);
	free(c->ns);
}

static int make_column(struct work *w, struct column *c, uint32_t key, bool is_length)
{
	*c = (struct column){.key = w->x->keys.v[key],
		.is_length = is_length,
		.instances = calloc(w->n_all + 1, sizeof(struct ky_instance *)),
		.facts = calloc(w->n_all + 1, sizeof(struct ky_fact)),
		.numbers = calloc(w->n_all + 1, sizeof(double)),
		.ns = calloc(w->n_all + 1, sizeof(double))};
	if (!c->instances || !c->facts || !c->numbers || !c->ns) {
		free_column(c);
		return -ENOMEM;
	}
	for (size_t i = 0; i < w->n_all; i++) {
		const struct ky_fact *fact = ky_instance_fact(w->all[i], key);

		if (!fact || (is_length && fact->type != KY_FACT_TEXT))
			continue;
		c->instances[c->n] = w->all[i];
		c->facts[c->n] = *fact;
		c->numbers[c->n] = number_of(w, c, fact);
		c->ns[c->n++] = ky_finding_ns(w->f, w->all[i]);
	}
	c->n_values = count_values(c);
	c->is_number = is_length || is_size(c);
	return 0;
}

/* "total", "size of db:query", "length of path". */
static void put_column(struct ky_buf *b, const struct work *w, const struct column *c)
{
	const char *field = ky_texts_get(&w->x->names, c->key.field);
	const char *of = ky_texts_get(&w->x->names, c->key.name);

	ky_buf_printf(
		b, "%s%s%s%s", c->is_length ? "length of " : "", field, *of ? " of " : "", of);
}

static int rank_of(const struct column *c)
{
	/* The text itself says more. */
	if (c->is_length)
		return 2;
	switch (c->key.kind) {
	case KY_TRAIT_BEGIN:
	case KY_TRAIT_OUTER:
		return 0;
	case KY_TRAIT_CONTEXT:
	case KY_TRAIT_THREAD:
	case KY_TRAIT_PROCESS:
	case KY_TRAIT_CALLER:
		return 1;
	/* Others may use a processor: that is evidence, not a cause in the program. */
	case KY_TRAIT_CPU:
		return 4;
	case KY_TRAIT_END:
	case KY_TRAIT_INNER:
		break;
	}
	return 2;
}

/* The numbers of a group's instances; NULL without memory. */
static double *numbers_of(const struct work *w, const struct column *c, uint32_t key,
	struct ky_instance *const *v, size_t n, size_t *ret_n)
{
	double *numbers = calloc(n + 1, sizeof(*numbers));

	*ret_n = 0;
	for (size_t i = 0; numbers && i < n; i++) {
		const struct ky_fact *fact = ky_instance_fact(v[i], key);

		if (fact && !isnan(number_of(w, c, fact)))
			numbers[(*ret_n)++] = number_of(w, c, fact);
	}
	if (numbers)
		ky_stats_sort(numbers, *ret_n);
	return numbers;
}

/* --- numbers that mean nothing --- */

static int compare_threads(const void *a, const void *b)
{
	const struct ky_instance *x = **(struct ky_instance *const *const *)a;
	const struct ky_instance *y = **(struct ky_instance *const *const *)b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* Identifiers and counters: they rise with time in their thread, and say what time says. */
static bool rises_with_time(const struct column *c)
{
	struct ky_instance ***order = calloc(c->n + 1, sizeof(*order));
	double *numbers = calloc(c->n + 1, sizeof(*numbers)), sum = 0;
	size_t n_groups = 0;

	if (!order || !numbers) {
		free(order);
		free(numbers);
		return true;
	}
	for (size_t i = 0; i < c->n; i++)
		order[i] = &c->instances[i];
	qsort(order, c->n, sizeof(*order), compare_threads);
	for (size_t i = 0, j; i < c->n; i = j) {
		for (j = i; j < c->n && (*order[j])->thread == (*order[i])->thread; j++)
			numbers[j] = c->numbers[order[j] - c->instances];
		if (j - i < 3)
			continue;
		sum += fabs(ky_stats_spearman(numbers + i, j - i));
		n_groups++;
	}
	free(order);
	free(numbers);
	return n_groups && sum / (double)n_groups > 0.9;
}

/* A field of the end like elapsed_us: proportional to the duration. */
static bool restates_duration(const struct column *c)
{
	double *ratios = calloc(c->n + 1, sizeof(*ratios)), low, high;
	size_t n = 0;

	if (!ratios)
		return true;
	for (size_t i = 0; i < c->n; i++) {
		if (c->numbers[i] > 0)
			ratios[n++] = c->instances[i]->ns / c->numbers[i];
	}
	ky_stats_sort(ratios, n);
	low = ky_stats_quantile(ratios, n, .1);
	high = ky_stats_quantile(ratios, n, .9);
	free(ratios);
	return (double)n > .8 * (double)c->n && high < 1.4 * low;
}

/* --- sizes --- */

struct pair {
	double number, ns;
	size_t i;
};

static int compare_pairs(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return (x->i > y->i) - (x->i < y->i);
}

static int compare_pair_times(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return (x->i > y->i) - (x->i < y->i);
}

struct size_effect {
	double explained, linear, slope, r2;
};

static double mean_at(const struct work *w, const struct column *c, const double *expected,
	struct ky_instance *const *v, size_t n)
{
	double sum = 0;
	size_t found = 0;

	(void)w;
	for (size_t i = 0; i < n; i++) {
		/* Instances of the column are in order of their begins. */
		size_t lo = 0, hi = c->n;

		while (lo < hi) {
			size_t mid = (lo + hi) / 2;

			if (c->instances[mid]->begin_ns < v[i]->begin_ns)
				lo = mid + 1;
			else
				hi = mid;
		}
		while (lo < c->n && c->instances[lo] != v[i] &&
			c->instances[lo]->begin_ns == v[i]->begin_ns)
			lo++;
		if (lo == c->n || c->instances[lo] != v[i])
			continue;
		sum += expected[lo];
		found++;
	}
	return found ? sum / (double)found : 0;
}

/*
 * How much of the difference a prediction explains: one time for each instance of the column. It is
 * measured by means, or by medians where the machine's noise makes some instances much longer.
 */
static double explained_by(
	const struct work *w, const struct column *c, const double *expected, bool by_medians)
{
	double a = mean_at(w, c, expected, w->f->affected.v, w->f->affected.n);
	double t = mean_at(w, c, expected, w->d->group->typical, w->d->group->n_typical);
	double difference = by_medians ? w->affected_median - w->typical_median
				       : w->affected_ns - w->typical_ns;

	return (a - t) / KY_MAX(1, difference);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Classes of about equal size: means without the instance itself, and a line through medians. */
static int measure_size(struct work *w, const struct column *c, double mean_a, double mean_t,
	struct size_effect *ret)
{
	size_t bins = KY_MAX((size_t)4, KY_MIN((size_t)N_CLASSES, c->n / 20));
	struct pair *pairs = calloc(c->n + 1, sizeof(*pairs));
	double *expected = calloc(c->n + 1, sizeof(*expected));
	double *medians = calloc(c->n + 1, sizeof(*medians));
	double *ns = calloc(c->n + 1, sizeof(*ns));
	double x[N_CLASSES] = {0}, y[N_CLASSES] = {0}, difference;
	struct ky_stats_line line;

	if (!pairs || !expected || !medians || !ns) {
		free(pairs);
		free(expected);
		free(medians);
		free(ns);
		return -ENOMEM;
	}
	for (size_t i = 0; i < c->n; i++)
		pairs[i] = (struct pair){c->numbers[i], c->ns[i], i};
	qsort(pairs, c->n, sizeof(*pairs), compare_pairs);
	for (size_t b = 0; b < bins; b++) {
		size_t from = b * c->n / bins, to = (b + 1) * c->n / bins, n = to - from;
		double sum = 0;

		for (size_t i = from; i < to; i++) {
			sum += pairs[i].ns;
			x[b] += pairs[i].number / (double)n;
			ns[i] = pairs[i].ns;
		}
		qsort(ns + from, n, sizeof(*ns), compare_doubles);
		y[b] = ky_stats_quantile(ns + from, n, .5);
		for (size_t i = from; i < to; i++) {
			medians[pairs[i].i] = y[b];
			expected[pairs[i].i] = (sum - pairs[i].ns) /
					       (double)KY_MAX(n - 1, (size_t)1);
		}
	}
	line = ky_stats_line(x, y, bins);
	difference = KY_MIN(w->affected_ns - w->typical_ns, w->affected_median - w->typical_median);
	*ret = (struct size_effect){
		.explained = KY_MAX(
			explained_by(w, c, expected, false), explained_by(w, c, medians, true)),
		.slope = line.slope,
		.r2 = line.r2,
		.linear = line.slope * (mean_a - mean_t) / KY_MAX(1, difference),
	};
	free(medians);
	free(pairs);
	free(expected);
	free(ns);
	return 0;
}

/* At least, or at most, this value: in parts a of affected and b of typical instances. */
struct threshold {
	bool is_found, is_at_most;
	double at, a, b;
};

static size_t count_below(const double *sorted, size_t n, double at, bool inclusive)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (sorted[mid] < at || (inclusive && sorted[mid] <= at))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void try_threshold(struct threshold *best, double at, bool is_at_most, double a, double b)
{
	if (a >= .6 && b <= a / 2 && (!best->is_found || a - b > best->a - best->b))
		*best = (struct threshold){true, is_at_most, at, a, b};
}

static struct threshold find_threshold(
	const double *a, size_t na, const double *b, size_t nb, size_t n_affected, size_t n_typical)
{
	struct threshold best = {0};

	for (size_t i = 0; i < na; i += KY_MAX(na / 50, (size_t)1)) {
		double at = a[i], all_a = (double)n_affected, all_b = (double)n_typical;

		try_threshold(&best, at, false,
			(double)(na - count_below(a, na, at, false)) / all_a,
			(double)(nb - count_below(b, nb, at, false)) / all_b);
		try_threshold(&best, at, true, (double)count_below(a, na, at, true) / all_a,
			(double)count_below(b, nb, at, true) / all_b);
	}
	return best;
}

static void add_growth(struct work *w, const struct column *c, const struct size_effect *e,
	double p, double mean_a, double mean_t)
{
	struct ky_buf b = {0};
	char slope[32];

	ky_buf_puts(&b, "grows with ");
	put_column(&b, w, c);
	ky_buf_printf(&b,
		": %s for each 1 more (r² = %.2f); it is %.4g in these, %.4g in typical ones",
		ky_explain_duration(slope, sizeof(slope), e->slope), e->r2, mean_a, mean_t);
	add_condition(w, p, KY_MAX(e->explained, e->linear), rank_of(c), &b);
}

static void add_threshold(struct work *w, const struct column *c, const struct threshold *t,
	double p, double explained)
{
	struct ky_buf b = {0};

	put_column(&b, w, c);
	ky_buf_printf(&b, " %s %.6g (%.0f %% of these, %.0f %% of typical ones)%s",
		t->is_at_most ? "≤" : "≥", t->at, 100 * t->a, 100 * t->b,
		c->key.kind == KY_TRAIT_END ? "; known at the end only" : "");
	add_condition(w, p, explained, rank_of(c), &b);
}

static int test_size_of(struct work *w, const struct column *c, const double *a, size_t na,
	const double *b, size_t nb)
{
	double mean_a = ky_stats_mean(a, na), mean_b = ky_stats_mean(b, nb);
	double up = ky_stats_mann_whitney(a, na, b, nb), down = ky_stats_mann_whitney(b, nb, a, na);
	double p = KY_MIN(up, down);
	struct size_effect e;
	struct threshold t;
	int r = p < 0 ? -ENOMEM : measure_size(w, c, mean_a, mean_b, &e);

	w->n_tests += 2;
	if (r < 0)
		return r;
	if (e.r2 > .85 && e.linear > .4 && (e.explained > .3 || e.linear > .7)) {
		add_growth(w, c, &e, p, mean_a, mean_b);
		return 0;
	}
	t = find_threshold(a, na, b, nb, w->f->affected.n, w->d->group->n_typical);
	if (t.is_found && e.explained > .3)
		add_threshold(w, c, &t, p, e.explained);
	return 0;
}

static int test_size(struct work *w, const struct column *c, uint32_t key)
{
	double *a, *b;
	size_t na, nb;
	int r = 0;

	if (c->n_values > MANY_VALUES && c->n > 20 && rises_with_time(c))
		return 0;
	if (c->key.kind != KY_TRAIT_BEGIN && c->key.kind != KY_TRAIT_OUTER && restates_duration(c))
		return 0;
	a = numbers_of(w, c, key, w->f->affected.v, w->f->affected.n, &na);
	b = numbers_of(w, c, key, w->d->group->typical, w->d->group->n_typical, &nb);
	if (!a || !b)
		r = -ENOMEM;
	else if (na >= 3 && nb >= 3)
		r = test_size_of(w, c, a, na, b, nb);
	free(a);
	free(b);
	return r;
}

/* --- values --- */

/* A value, or a beginning or ending of texts, and how often it comes. */
struct value {
	struct ky_fact fact;
	size_t length; /* of a beginning or ending; 0: the whole */
	bool is_ending;
	size_t affected, typical, n;
	double ns; /* sum over all instances */
};

struct values {
	KY_VEC(struct value) v; /* sorted by fact */
};

static int compare_values(const void *a, const void *b)
{
	return ky_fact_compare(&((const struct value *)a)->fact, &((const struct value *)b)->fact);
}

static struct value *find_value(struct values *values, const struct ky_fact *fact)
{
	const struct value like = {.fact = *fact};

	return values->v.n ? bsearch(&like, values->v.v, values->v.n, sizeof(like), compare_values)
			   : NULL;
}

static int collect_values(
	struct work *w, const struct column *c, uint32_t key, struct values *values)
{
	size_t k = 0;

	for (size_t i = 0; i < c->n; i++) {
		if (ky_vec_add(&values->v, (struct value){.fact = c->facts[i]}) < 0)
			return -ENOMEM;
	}
	qsort(values->v.v, values->v.n, sizeof(*values->v.v), compare_values);
	for (size_t i = 0; i < values->v.n; i++) {
		if (!k || compare_values(&values->v.v[k - 1], &values->v.v[i]))
			values->v.v[k++] = values->v.v[i];
	}
	values->v.n = k;
	for (size_t i = 0; i < c->n; i++) {
		struct value *v = find_value(values, &c->facts[i]);

		if (!v)
			continue;
		v->n++;
		v->ns += c->ns[i];
	}
	for (size_t i = 0; i < w->f->affected.n + w->d->group->n_typical; i++) {
		bool is_affected = i < w->f->affected.n;
		const struct ky_fact *fact = ky_instance_fact(
			is_affected ? w->f->affected.v[i]
				    : w->d->group->typical[i - w->f->affected.n],
			key);
		struct value *v = fact ? find_value(values, fact) : NULL;

		if (v)
			*(is_affected ? &v->affected : &v->typical) += 1;
	}
	return 0;
}

static int compare_frequency(const void *a, const void *b)
{
	const struct value *x = *(const struct value *const *)a,
			   *y = *(const struct value *const *)b;

	if (x->affected != y->affected)
		return x->affected > y->affected ? -1 : 1;
	return ky_fact_compare(&x->fact, &y->fact);
}

/* Several values that are one condition together. */
struct picked {
	const struct value *v[MAX_PICKED];
	size_t n, affected, typical;
};

static int pick_values(const struct work *w, struct values *values, struct picked *picked)
{
	double na = (double)w->f->affected.n, nt = (double)w->d->group->n_typical;
	const struct value **order = calloc(values->v.n + 1, sizeof(*order));
	size_t n = 0;

	*picked = (struct picked){0};
	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < values->v.n; i++) {
		const struct value *v = &values->v.v[i];

		if (v->affected >= 2 && (double)v->affected / na >= 2 * (double)v->typical / nt)
			order[n++] = v;
	}
	qsort(order, n, sizeof(*order), compare_frequency);
	for (size_t i = 0; i < KY_MIN(n, (size_t)MAX_PICKED); i++) {
		picked->v[picked->n++] = order[i];
		picked->affected += order[i]->affected;
		picked->typical += order[i]->typical;
		if ((double)picked->affected >= .8 * na)
			break;
	}
	free(order);
	return 0;
}

static bool is_telling(const struct work *w, const struct picked *p)
{
	double na = (double)w->f->affected.n, nt = (double)w->d->group->n_typical;

	return p->n && (double)p->affected >= .6 * na &&
	       (double)p->typical / nt <= .5 * (double)p->affected / na;
}

/* Sorts the times of the instances with each value; medians by instance. */
static int find_medians(
	struct work *w, const struct column *c, struct values *values, double *medians)
{
	struct pair *pairs = calloc(c->n + 1, sizeof(*pairs));

	if (!pairs)
		return -ENOMEM;
	for (size_t i = 0; i < c->n; i++) {
		const struct value *v = find_value(values, &c->facts[i]);

		pairs[i] = (struct pair){v ? (double)(v - values->v.v) : -1, c->ns[i], i};
	}
	qsort(pairs, c->n, sizeof(*pairs), compare_pair_times);
	for (size_t from = 0, to; from < c->n; from = to) {
		for (to = from; to < c->n && pairs[to].number == pairs[from].number;)
			to++;
		/* A value that comes once or twice predicts nothing. */
		for (size_t i = from; i < to; i++)
			medians[pairs[i].i] = to - from > 2 ? pairs[(from + to) / 2].ns
							    : w->typical_median;
	}
	free(pairs);
	return 0;
}

/* The mean time of the other instances with the same value, or their median. */
static double explained_by_values(struct work *w, const struct column *c, struct values *values)
{
	double *expected = calloc(c->n + 1, sizeof(*expected)), explained = 0;
	double *medians = calloc(c->n + 1, sizeof(*medians));

	if (!expected || !medians || find_medians(w, c, values, medians) < 0)
		w->error = -ENOMEM;
	for (size_t i = 0; i < c->n && !w->error; i++) {
		const struct value *v = find_value(values, &c->facts[i]);

		expected[i] = v && v->n > 2 ? (v->ns - c->ns[i]) / (double)(v->n - 1) : w->all_ns;
	}
	if (!w->error)
		explained = KY_MAX(
			explained_by(w, c, expected, false), explained_by(w, c, medians, true));
	free(expected);
	free(medians);
	return explained;
}

static void put_fact(
	struct ky_buf *b, const struct work *w, const struct column *c, const struct ky_fact *f)
{
	char text[KY_TEXTS_LENGTH + 64];

	if (c->key.kind == KY_TRAIT_THREAD)
		ky_buf_puts(
			b, ky_explain_thread_text(w->x, text, sizeof(text), (uint32_t)f->number));
	else if (c->key.kind == KY_TRAIT_PROCESS)
		ky_buf_printf(b, "%" PRId64, w->x->threads.v[f->number]->pid);
	else if (f->type == KY_FACT_TEXT && c->key.kind == KY_TRAIT_CALLER)
		ky_buf_puts(b, ky_texts_get(&w->x->names, f->text));
	else if (f->type == KY_FACT_TEXT)
		ky_buf_printf(b, "\"%s\"", ky_texts_get(&w->x->names, f->text));
	else if (f->type == KY_FACT_REAL)
		ky_buf_printf(b, "%.6g", f->real);
	else
		ky_buf_printf(b, f->is_hex ? "0x%" PRIx64 : "%" PRId64, f->number);
}

static void put_counts(struct ky_buf *b, const struct work *w, size_t affected, size_t typical)
{
	ky_buf_printf(b, " (%zu of %zu of these, %.2g %% of typical ones)", affected,
		w->f->affected.n,
		100 * (double)typical / (double)KY_MAX(w->d->group->n_typical, (size_t)1));
}

static void add_picked(struct work *w, const struct column *c, const struct picked *p,
	double chance, double explained)
{
	static const char *const words[] = {[KY_TRAIT_THREAD] = "only in ",
		[KY_TRAIT_PROCESS] = "only on process ",
		[KY_TRAIT_CPU] = "only on cpu ",
		[KY_TRAIT_CALLER] = "when called in "};
	bool is_own = c->key.kind >= KY_TRAIT_THREAD && c->key.kind <= KY_TRAIT_CALLER;
	struct ky_buf b = {0};

	ky_buf_puts(&b, is_own ? words[c->key.kind] : "when ");
	if (!is_own) {
		put_column(&b, w, c);
		ky_buf_puts(&b, " = ");
	}
	for (size_t i = 0; i < p->n; i++) {
		ky_buf_puts(&b, i ? ", " : "");
		put_fact(&b, w, c, &p->v[i]->fact);
	}
	put_counts(&b, w, p->affected, p->typical);
	if (c->key.kind == KY_TRAIT_END)
		ky_buf_puts(&b, "; known at the end only");
	add_condition(w, chance, explained, rank_of(c), &b);
}

static int test_values(struct work *w, const struct column *c, uint32_t key)
{
	struct values values = {0};
	struct picked picked = {0};
	size_t n_values = 0;
	int r = collect_values(w, c, key, &values);

	if (!r)
		r = pick_values(w, &values, &picked);
	for (size_t i = 0; i < values.v.n; i++)
		n_values += values.v.v[i].affected > 0;
	w->n_tests += n_values;
	if (!r && values.v.n > 1 && is_telling(w, &picked) && 2 * picked.n <= values.v.n) {
		double p = ky_stats_fisher(
			picked.affected, w->f->affected.n, picked.typical, w->d->group->n_typical);
		double explained = explained_by_values(w, c, &values);

		if (explained >= .25)
			add_picked(w, c, &picked, p * (picked.n == 1 ? 1 : (double)n_values),
				explained);
	}
	ky_vec_deinit(&values.v);
	return r ? r : w->error;
}

/* --- beginnings and endings of texts --- */

static bool is_delimiter(char c)
{
	return c && strchr("/:-.?_=@ ,;#&|", c);
}

static bool has_affix(const char *text, const char *affix, size_t n, bool is_ending)
{
	size_t length = strlen(text);

	return length >= n && !memcmp(is_ending ? text + length - n : text, affix, n);
}

static size_t count_affix(const struct work *w, uint32_t key, const struct value *v,
	struct ky_instance *const *instances, size_t n)
{
	const char *text = ky_texts_get(&w->x->names, v->fact.text);
	const char *affix = v->is_ending ? text + strlen(text) - v->length : text;
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		const struct ky_fact *fact = ky_instance_fact(instances[i], key);

		found += fact && fact->type == KY_FACT_TEXT &&
			 has_affix(ky_texts_get(&w->x->names, fact->text), affix, v->length,
				 v->is_ending);
	}
	return found;
}

static double explained_by_affix(struct work *w, const struct column *c, const struct value *v)
{
	const char *text = ky_texts_get(&w->x->names, v->fact.text);
	const char *affix = v->is_ending ? text + strlen(text) - v->length : text;
	double *expected = calloc(c->n + 1, sizeof(*expected)), sums[2] = {0}, explained;
	size_t n[2] = {0};

	if (!expected) {
		w->error = -ENOMEM;
		return 0;
	}
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < c->n; i++) {
			bool has = c->facts[i].type == KY_FACT_TEXT &&
				   has_affix(ky_texts_get(&w->x->names, c->facts[i].text), affix,
					   v->length, v->is_ending);

			if (!pass) {
				sums[has] += c->ns[i];
				n[has]++;
			} else {
				expected[i] = (sums[has] - c->ns[i]) /
					      (double)KY_MAX(n[has] - 1, (size_t)1);
			}
		}
	}
	explained = explained_by(w, c, expected, false);
	free(expected);
	return explained;
}

static bool is_better_affix(const struct value *a, const struct value *b)
{
	if (a->affected != b->affected)
		return a->affected > b->affected;
	return a->length > b->length;
}

/* The affix of a text of an affected instance, up to or from this place. */
static void try_affix(
	struct work *w, uint32_t key, struct value *best, struct value v, size_t *n_tried)
{
	double na = (double)w->f->affected.n, nt = (double)w->d->group->n_typical;

	if (!v.length || *n_tried >= MAX_PREFIXES / 16)
		return;
	++*n_tried;
	v.affected = count_affix(w, key, &v, w->f->affected.v, w->f->affected.n);
	if ((double)v.affected < .6 * na || (best->length && !is_better_affix(&v, best)))
		return;
	v.typical = count_affix(w, key, &v, w->d->group->typical, w->d->group->n_typical);
	if ((double)v.typical / nt <= .5 * (double)v.affected / na)
		*best = v;
}

static void add_affix(struct work *w, const struct column *c, const struct value *v, double p)
{
	const char *whole = ky_texts_get(&w->x->names, v->fact.text);
	double explained = explained_by_affix(w, c, v);
	struct ky_buf b = {0};

	if (explained < .25)
		return;
	ky_buf_puts(&b, "when ");
	put_column(&b, w, c);
	ky_buf_printf(&b, " %s with \"%.*s\"", v->is_ending ? "ends" : "begins", (int)v->length,
		v->is_ending ? whole + strlen(whole) - v->length : whole);
	put_counts(&b, w, v->affected, v->typical);
	add_condition(w, p, explained, rank_of(c), &b);
}

/* Texts that are all different may begin or end alike. Three of the affected ones are looked at. */
static int test_affixes(struct work *w, const struct column *c, uint32_t key)
{
	struct value best = {0};
	size_t n_tried = 0;

	for (size_t i = 0; i < KY_MIN(w->f->affected.n, (size_t)3); i++) {
		const struct ky_fact *fact = ky_instance_fact(
			w->f->affected.v[i * (w->f->affected.n - 1) / 2], key);
		const char *text = fact && fact->type == KY_FACT_TEXT
					   ? ky_texts_get(&w->x->names, fact->text)
					   : "";
		size_t n = strlen(text);

		for (size_t k = 1; k < n; k++) {
			if (is_delimiter(text[k]))
				try_affix(w, key, &best,
					(struct value){.fact = *fact, .length = k + 1}, &n_tried);
			if (is_delimiter(text[k]) || is_delimiter(text[k - 1]))
				try_affix(w, key, &best,
					(struct value){
						.fact = *fact, .length = n - k, .is_ending = true},
					&n_tried);
		}
	}
	w->n_tests += n_tried;
	if (best.length)
		add_affix(w, c, &best,
			ky_stats_fisher(best.affected, w->f->affected.n, best.typical,
				w->d->group->n_typical));
	return w->error;
}

/* --- all fields --- */

static bool is_text(const struct column *c)
{
	return c->n && c->facts[0].type == KY_FACT_TEXT;
}

static int test_column(struct work *w, uint32_t key, bool is_length)
{
	struct column c;
	int r = make_column(w, &c, key, is_length);

	if (r < 0)
		return r;
	if (!c.n || c.n_values < 2)
		r = 0;
	else if (c.is_number)
		r = test_size(w, &c, key);
	if (!r && !is_length && c.n_values > 1)
		r = test_values(w, &c, key);
	if (!r && !is_length && is_text(&c) && c.n_values > MANY_VALUES)
		r = test_affixes(w, &c, key);
	is_length = !is_length && is_text(&c) && c.n_values > MANY_VALUES;
	free_column(&c);
	return r || !is_length ? r : test_column(w, key, true);
}

static bool is_of_two_traces(const struct work *w)
{
	return w->f->affected.v[0]->is_second != w->d->group->typical[0]->is_second;
}

static bool has_key(const struct work *w, uint32_t key)
{
	for (size_t i = 0; i < w->f->affected.n; i++) {
		if (ky_instance_fact(w->f->affected.v[i], key))
			return true;
	}
	return false;
}

static int test_fields(struct work *w)
{
	for (uint32_t key = 0; key < w->x->keys.n; key++) {
		enum ky_trait_kind kind = w->x->keys.v[key].kind;
		int r;

		/* Two runs have other threads, processes and processors. */
		if (is_of_two_traces(w) && kind >= KY_TRAIT_CONTEXT && kind <= KY_TRAIT_CPU)
			continue;
		r = has_key(w, key) ? test_column(w, key, false) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- company --- */

/* A span inside instances suffers, too. */
static bool is_inside(const struct work *w, uint32_t name)
{
	for (uint32_t c = 1; c <= w->x->components.all.n; c++) {
		const struct ky_component *o = ky_component_get(&w->x->components, c);

		if (o->kind == KY_PART_SPAN && o->a == name)
			return true;
	}
	return false;
}

/* Spans around the instance, of its own thread. */
static bool is_around(const struct work *w, uint32_t name)
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

static int test_company(struct work *w, uint32_t name, struct companion *best)
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

static int test_companies(struct work *w)
{
	struct companion best = {0};
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
	ky_buf_printf(&b,
		"while %s runs in another thread (%.0f %% of their time, %.0f %% of typical ones')",
		ky_texts_get(&w->x->names, best.name), 100 * best.affected, 100 * best.typical);
	add_condition(w, best.p, best.explained, 3, &b);
	return w->error;
}

/* --- all --- */

/* A finding with few instances proves nothing. */
#define MIN_AFFECTED 3

static int compare_conditions(const void *a, const void *b)
{
	const struct ky_condition *x = a, *y = b;
	double ex = round(x->explained * 5), ey = round(y->explained * 5);

	if (ex != ey)
		return ex > ey ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->explained != y->explained)
		return x->explained > y->explained ? -1 : 1;
	return strcmp(x->text, y->text);
}

/* Keeps the best two of those that pass, then merges in positions and times. */
static int choose(struct work *w, bool with_times)
{
	struct ky_finding *f = w->f;
	KY_VEC(struct ky_condition) times = {0};
	size_t n = 0, first = 0;
	int r = 0;

	for (size_t i = 0; i < w->found.n; i++) {
		if (w->found.v[i].p * (double)KY_MAX(w->n_tests, (size_t)1) < KY_ALPHA)
			w->found.v[n++] = w->found.v[i];
		else
			free(w->found.v[i].text);
	}
	w->found.n = n;
	if (n)
		qsort(w->found.v, n, sizeof(*w->found.v), compare_conditions);
	while (w->found.n > 3)
		free(w->found.v[--w->found.n].text);
	if (with_times) {
		struct ky_times found = {0};

		r = ky_times_find(&found, w->x, f, w->all, w->n_all);
		for (size_t i = 0; i < found.n && !r; i++)
			r = ky_vec_add(&times, found.v[i]);
	}
	/* A time of rank 0 is better than anything but a field of the begin. */
	first = w->found.n && !w->found.v[0].rank;
	for (size_t i = 0; i < w->found.n && i < first && !r; i++)
		r = ky_vec_add(&f->conditions, w->found.v[i]);
	for (size_t i = 0; i < times.n && !r; i++) {
		if (!times.v[i].rank)
			r = ky_vec_add(&f->conditions, times.v[i]);
	}
	for (size_t i = first; i < w->found.n && !r; i++)
		r = ky_vec_add(&f->conditions, w->found.v[i]);
	for (size_t i = 0; i < times.n && !r; i++) {
		if (times.v[i].rank)
			r = ky_vec_add(&f->conditions, times.v[i]);
	}
	ky_vec_deinit(&times);
	return r;
}

/* Means of a finding over some instances, and their median. */
static double mean_finding(
	const struct ky_finding *f, struct ky_instance *const *v, size_t n, double *ret_median)
{
	double *ns = calloc(n + 1, sizeof(*ns)), mean;

	if (!ns)
		return 0;
	for (size_t i = 0; i < n; i++)
		ns[i] = ky_finding_ns(f, v[i]);
	ky_stats_sort(ns, n);
	*ret_median = ky_stats_quantile(ns, n, .5);
	mean = ky_stats_mean(ns, n);
	free(ns);
	return mean;
}

int ky_conditions_find(
	struct ky_difference *d, struct ky_finding *f, struct ky_instance *const *all, size_t n_all)
{
	struct work w = {.x = d->x, .d = d, .f = f, .all = all, .n_all = n_all};
	double median;
	int r;

	if (f->affected.n < MIN_AFFECTED || !d->group->n_typical)
		return 0;
	w.affected_ns = mean_finding(f, f->affected.v, f->affected.n, &w.affected_median);
	w.typical_ns = mean_finding(f, d->group->typical, d->group->n_typical, &w.typical_median);
	w.all_ns = mean_finding(f, all, n_all, &median);
	r = test_fields(&w);
	if (!r)
		r = test_companies(&w);
	if (!r)
		r = choose(&w, !is_of_two_traces(&w));
	ky_vec_deinit(&w.found);
	return r;
}
