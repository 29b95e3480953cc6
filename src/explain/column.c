/* SPDX-License-Identifier: MIT */
#include "explain/search.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "base/bisect.h"
#include "explain/stats.h"
#include "explain/words.h"

static double degree_of(const struct ky_column *c, double number)
{
	for (size_t i = 0; i < c->n_values; i++) {
		if (c->degrees[i] == number)
			return (double)i;
	}
	return NAN;
}

double ky_column_number(const struct ky_column *c, const struct ky_fact *f)
{
	double number = f->type != KY_FACT_INT ? f->real
			: f->is_hex	       ? (double)(uint64_t)f->number
					       : (double)f->number;

	if (f->type == KY_FACT_TEXT)
		return c->is_length ? (double)f->length : NAN;
	return c->is_degree ? degree_of(c, number) : number;
}

static size_t count_values(const struct ky_column *c)
{
	struct ky_fact seen[KY_MANY_VALUES];
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		size_t k = 0;

		while (k < n && ky_fact_compare(&seen[k], &c->facts[i]))
			k++;
		if (k < n)
			continue;
		if (n == KY_MANY_VALUES)
			return KY_MANY_VALUES + 1;
		seen[n++] = c->facts[i];
	}
	return n;
}

#define FEW_VALUES 4 /* through which a line can be shown to go */

/* Numbers that are names of something have no size. */
static bool is_size(const struct ky_column *c)
{
	bool has_text = false;

	for (size_t i = 0; i < c->n; i++)
		has_text = has_text || c->facts[i].type == KY_FACT_TEXT;
	return !has_text && !c->is_hex && c->n_values >= FEW_VALUES &&
	       (c->key.kind < KY_TRAIT_THREAD || c->key.kind > KY_TRAIT_CALLER);
}

/* Distances between few numbers mean little: their order counts. */
static void set_degrees(struct ky_column *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n && n < c->n_values; i++) {
		size_t k = 0;

		while (k < n && c->degrees[k] != c->numbers[i])
			k++;
		if (k == n && !isnan(c->numbers[i]))
			c->degrees[n++] = c->numbers[i];
	}
	c->n_values = n;
	ky_stats_sort(c->degrees, n);
	for (size_t i = 0; i < c->n; i++)
		c->numbers[i] = degree_of(c, c->numbers[i]);
	c->is_degree = true;
}

void ky_column_free(struct ky_column *c)
{
	free(c->instances);
	free(c->facts);
	free(c->numbers);
	free(c->ns);
	free(c->weights);
}

bool ky_column_is_presence(const struct ky_trait_key *key)
{
	return key->kind == KY_TRAIT_INNER && !key->field;
}

const struct ky_fact *ky_column_fact(
	const struct ky_search *w, const struct ky_instance *i, uint32_t key)
{
	static const struct ky_fact absent = {KY_FACT_INT, .number = 0};
	const struct ky_fact *fact = ky_instance_fact(i, key);

	return fact || !ky_column_is_presence(&w->x->keys.v[key]) ? fact : &absent;
}

int ky_column_make(struct ky_search *w, struct ky_column *c, uint32_t key, bool is_length)
{
	*c = (struct ky_column){.key = w->x->keys.v[key],
		.is_length = is_length,
		.instances = calloc(w->n_all + 1, sizeof(struct ky_instance *)),
		.facts = calloc(w->n_all + 1, sizeof(struct ky_fact)),
		.numbers = calloc(w->n_all + 1, sizeof(double)),
		.ns = calloc(w->n_all + 1, sizeof(double)),
		.weights = calloc(w->n_all + 1, sizeof(double))};
	if (!c->instances || !c->facts || !c->numbers || !c->ns || !c->weights) {
		ky_column_free(c);
		return -ENOMEM;
	}
	for (size_t i = 0; i < w->n_all; i++) {
		const struct ky_fact *fact = ky_column_fact(w, w->all[i], key);

		if (!fact || (is_length && fact->type != KY_FACT_TEXT))
			continue;
		c->instances[c->n] = w->all[i];
		c->facts[c->n] = *fact;
		c->is_hex = c->is_hex || fact->is_hex;
		c->numbers[c->n] = ky_column_number(c, fact);
		c->weights[c->n] = ky_group_weight(w->d->group, w->all[i]);
		c->ns[c->n++] = ky_finding_ns(w->f, w->all[i]);
	}
	c->n_values = count_values(c);
	c->is_number = is_length || is_size(c);
	if (c->is_number && !is_length && c->n_values <= KY_MANY_VALUES) {
		c->is_number = false;
		set_degrees(c);
	}
	return 0;
}

/* The key is the value of a counter, which has another one at the instance's begin. */
static bool is_counter_inside(const struct ky_search *w, const struct ky_trait_key *key)
{
	if (strcmp(ky_texts_get(&w->x->names, key->field), "counter") != 0)
		return false;
	for (size_t i = 0; i < w->x->keys.n; i++) {
		const struct ky_trait_key *k = &w->x->keys.v[i];

		if (k->kind == KY_TRAIT_COUNTER && k->name == key->name)
			return key->kind == KY_TRAIT_INNER;
	}
	return false;
}

static const char *behind_of(enum ky_trait_kind kind)
{
	return kind == KY_TRAIT_COUNTER		   ? " at its begin"
	       : kind == KY_TRAIT_BEFORE	   ? " of the instance before"
	       : kind == KY_TRAIT_BEFORE_OF_THREAD ? " of the instance before in its thread"
						   : "";
}

void ky_column_put(struct ky_buf *b, const struct ky_search *w, const struct ky_column *c)
{
	const char *field = ky_texts_get(&w->x->names, c->key.field);
	const char *of = ky_texts_get(&w->x->names, c->key.name);

	if (is_counter_inside(w, &c->key)) {
		ky_buf_printf(b, "%s in it", of);
	} else {
		ky_buf_printf(b, "%s%s%s%s%s", c->is_length ? "length of " : "", field,
			*field && *of ? " of " : "", of, behind_of(c->key.kind));
	}
	if (c->by) {
		static const char *const signs[] = {[KY_JOIN_PRODUCT] = " × ",
			[KY_JOIN_DIFFERENCE] = " - ",
			[KY_JOIN_SUM] = " + "};
		const struct ky_column by = {.key = w->x->keys.v[c->by - 1]};

		ky_buf_puts(b, signs[c->join]);
		ky_column_put(b, w, &by);
	}
}

static int rank_of(const struct ky_column *c)
{
	/* The text itself says more. */
	if (c->is_length)
		return c->key.kind < KY_TRAIT_CALL ? 2 : 3;
	switch (c->key.kind) {
	case KY_TRAIT_BEGIN:
	case KY_TRAIT_OUTER:
	case KY_TRAIT_COUNTER:
	case KY_TRAIT_FIRST:
	case KY_TRAIT_FIRST_OF_THREAD:
	case KY_TRAIT_NEW:
	case KY_TRAIT_NEW_OF_THREAD:
	case KY_TRAIT_CHANGED:
	case KY_TRAIT_CHANGED_OF_THREAD:
	case KY_TRAIT_AGE:
		return 0;
	case KY_TRAIT_BEFORE:
	case KY_TRAIT_BEFORE_OF_THREAD:
	case KY_TRAIT_CONTEXT:
	case KY_TRAIT_HOST:
	case KY_TRAIT_THREAD:
	case KY_TRAIT_PROCESS:
	case KY_TRAIT_CALLER:
		return 1;
	case KY_TRAIT_CPU:
		return 4;
	case KY_TRAIT_PAUSE:
	case KY_TRAIT_CALL:
	case KY_TRAIT_END:
	case KY_TRAIT_CALL_END:
	case KY_TRAIT_INNER:
		break;
	}
	return 2;
}

struct ky_condition ky_column_condition(const struct ky_column *c, double p, double explained)
{
	bool is_thread = c->key.kind == KY_TRAIT_THREAD || c->key.kind == KY_TRAIT_PROCESS;

	return (struct ky_condition){.p = p,
		.explained = explained,
		/* The text itself says more than its length; the end may follow from the time. */
		.contrast = c->is_length		  ? .9
			    : c->key.kind == KY_TRAIT_END ? .85
							  : 1,
		.rank = rank_of(c),
		.is_order = ky_trait_is_of_order(c->key.kind),
		.is_call = c->key.kind == KY_TRAIT_CALL,
		.about = is_thread			? KY_ABOUT_THREAD
			 : c->key.kind == KY_TRAIT_HOST ? KY_ABOUT_HOST
			 : c->key.kind == KY_TRAIT_CPU	? KY_ABOUT_CPU
							: KY_ABOUT_FIELD};
}

double ky_column_combine(const struct ky_column *c, double number, double other)
{
	return c->join == KY_JOIN_PRODUCT      ? number * other
	       : c->join == KY_JOIN_DIFFERENCE ? number - other
					       : number + other;
}

double *ky_column_numbers(const struct ky_column *c, uint32_t key, struct ky_instance *const *v,
	size_t n, size_t *ret_n)
{
	double *numbers = calloc(n + 1, sizeof(*numbers));

	*ret_n = 0;
	for (size_t i = 0; numbers && i < n; i++) {
		const struct ky_fact *fact = ky_instance_fact(v[i], key);
		const struct ky_fact *by = c->by ? ky_instance_fact(v[i], c->by - 1) : NULL;
		double number = fact ? ky_column_number(c, fact) : NAN;

		if (c->by)
			number = by ? ky_column_combine(c, number, ky_column_number(c, by)) : NAN;
		if (!isnan(number))
			numbers[(*ret_n)++] = number;
	}
	if (numbers)
		ky_stats_sort(numbers, *ret_n);
	return numbers;
}

/* The name of a status of libkymo-pthread, for those who do not know the number; or NULL. */
static const char *find_status(const struct ky_search *w, const struct ky_column *c, int64_t status)
{
	static const struct {
		int status;
		const char *name;
	} names[] = {{EAGAIN, "EAGAIN"}, {EBUSY, "EBUSY"}, {EDEADLK, "EDEADLK"}, {EINTR, "EINTR"},
		{EOWNERDEAD, "EOWNERDEAD"}, {ETIMEDOUT, "ETIMEDOUT"}};
	bool is_status = !strncmp(ky_texts_get(&w->x->names, c->key.name), "pthread:", 8) &&
			 !strcmp(ky_texts_get(&w->x->names, c->key.field), "status");

	for (size_t i = 0; i < KY_ARRAY_SIZE(names) && is_status; i++) {
		if (names[i].status == status)
			return names[i].name;
	}
	return NULL;
}

#define LONG_TEXT 60 /* bytes of a text that say what it is */

/* A long text is cut, but not within a character. */
static void put_text(struct ky_buf *b, const char *text, size_t length)
{
	size_t n = LONG_TEXT;

	while (n && length > LONG_TEXT && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	ky_buf_printf(b, "\"%.*s%s\"", (int)(length > LONG_TEXT ? n : length), text,
		length > LONG_TEXT ? "..." : "");
}

bool ky_column_is_cut(const struct ky_fact *f)
{
	return f->type == KY_FACT_TEXT && f->length > KY_TEXTS_LENGTH;
}

void ky_column_put_fact(struct ky_buf *b, const struct ky_search *w, const struct ky_column *c,
	const struct ky_fact *f)
{
	if (c->key.kind == KY_TRAIT_THREAD)
		ky_words_put_thread(b, w->x, (uint32_t)f->number);
	else if (c->key.kind == KY_TRAIT_PROCESS)
		ky_words_put_process(b, w->x, (uint32_t)f->number);
	else if (c->key.kind == KY_TRAIT_CPU)
		ky_words_put_processor(b, w->x, f->number);
	else if (f->type == KY_FACT_TEXT &&
		 (c->key.kind == KY_TRAIT_CALLER || c->key.kind == KY_TRAIT_HOST))
		ky_buf_puts(b, ky_texts_get(&w->x->names, f->text));
	else if (f->type == KY_FACT_TEXT)
		put_text(b, ky_texts_get(&w->x->names, f->text),
			strlen(ky_texts_get(&w->x->names, f->text)));
	else if (f->type == KY_FACT_REAL)
		ky_buf_printf(b, "%.6g", isnan(f->real) ? (double)NAN : f->real);
	else if (f->type == KY_FACT_INT && find_status(w, c, f->number))
		ky_buf_printf(b, "%" PRId64 " (%s)", f->number, find_status(w, c, f->number));
	else
		ky_buf_printf(b, f->is_hex ? "0x%" PRIx64 : "%" PRId64, f->number);
}

/* --- how much a field explains --- */

static double mean_at(
	const struct ky_column *c, const double *expected, struct ky_instance *const *v, size_t n)
{
	double sum = 0;
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		size_t lo;

		/* Instances of the column are in order of their begins. */
		ky_bisect(lo, c->n, k, c->instances[k]->begin_ns < v[i]->begin_ns);
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

double ky_column_explained(const struct ky_search *w, const struct ky_column *c,
	const double *expected, bool by_medians)
{
	double a = mean_at(c, expected, w->f->affected.v, w->f->affected.n);
	double t = mean_at(c, expected, w->d->group->typical, w->d->group->n_typical);
	double difference = by_medians ? w->affected_median - w->typical_median
				       : w->affected_ns - w->typical_ns;

	return (a - t) / KY_MAX(1, difference);
}

double ky_column_mean_without(const struct ky_column *c, size_t i, double sum, double weight)
{
	double rest = weight - c->weights[i];

	/* Of one alone, or of those that hardly count, nothing else is known. */
	return rest > 1e-9 * weight ? (sum - c->weights[i] * c->ns[i]) / rest : 0;
}

double ky_column_explained_by(struct ky_search *w, const struct ky_column *c, const bool *has)
{
	double *expected = calloc(c->n + 1, sizeof(*expected)), explained;
	double sums[2] = {0}, weights[2] = {0};

	if (!expected) {
		w->error = -ENOMEM;
		return 0;
	}
	for (size_t i = 0; i < c->n; i++) {
		sums[has[i]] += c->weights[i] * c->ns[i];
		weights[has[i]] += c->weights[i];
	}
	for (size_t i = 0; i < c->n; i++)
		expected[i] = ky_column_mean_without(c, i, sums[has[i]], weights[has[i]]);
	explained = ky_column_explained(w, c, expected, false);
	free(expected);
	return explained;
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

bool ky_column_rises(const struct ky_column *c)
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

#define SAME_RATIO 1.4

/* Sorted ratios of time and number of instances of at least that length; NULL without memory. */
static double *find_ratios(const struct ky_column *c, double from_ns, size_t *ret_n)
{
	double *ratios = calloc(c->n + 1, sizeof(*ratios));

	*ret_n = 0;
	for (size_t i = 0; ratios && i < c->n; i++) {
		if (c->numbers[i] > 0 && c->instances[i]->ns >= from_ns)
			ratios[(*ret_n)++] = c->instances[i]->ns / c->numbers[i];
	}
	if (ratios)
		ky_stats_sort(ratios, *ret_n);
	return ratios;
}

bool ky_column_is_duration(const struct ky_search *w, const struct ky_column *c)
{
	size_t n, n_slow;
	double *all = find_ratios(c, 0, &n);
	double *slow = find_ratios(c, w->d->group->from_ns, &n_slow);
	double low = all ? ky_stats_quantile(all, n, .1) : 0;
	double high = all ? ky_stats_quantile(all, n, .9) : 0;
	/* Numbers that hardly differ, of instances that hardly differ, have one ratio by chance. */
	double of_slow = slow ? ky_stats_quantile(slow, n_slow, .5) : 0;
	bool has_memory = all && slow;

	free(all);
	free(slow);
	return !has_memory || ((double)n > .8 * (double)c->n && high < SAME_RATIO * low &&
				      of_slow * SAME_RATIO > low && of_slow < SAME_RATIO * high);
}
