/* SPDX-License-Identifier: MIT */
#include "explain/conditions.h"

#include <math.h>

#include "explain/search.h"
#include "explain/stats.h"
#include "explain/times.h"

/* --- for all kinds of conditions --- */

void ky_search_add(struct ky_search *w, struct ky_condition c, struct ky_buf *text)
{
	c.text = text->error ? NULL : strdup(text->data);
	c.n_brief = c.n_brief ? c.n_brief : text->len;
	c.explained = KY_MIN(c.explained, 1);
	c.by_means = c.by_means ? KY_MIN(c.by_means, 1) : c.explained;
	ky_buf_deinit(text);
	if (!c.text || ky_vec_add(&w->found, c) < 0) {
		ky_condition_deinit(&c);
		w->error = -ENOMEM;
	}
}

bool ky_search_is_chance(struct ky_search *w, ky_shifts_has *has, const void *arg)
{
	int r = ky_shifts_test(&w->shifts, w->f->affected.v, w->f->affected.n, has, arg);

	w->error = r < 0 ? r : w->error;
	return r > 0;
}

void ky_search_mark(
	struct ky_search *w, struct ky_condition *c, ky_shifts_has *has, const void *arg)
{
	c->has = calloc(w->f->affected.n + 1, 1);
	for (size_t i = 0; c->has && i < w->f->affected.n; i++)
		c->has[i] = has(arg, w->f->affected.v[i]);
	c->is_chance = ky_search_is_chance(w, has, arg);
}

void ky_search_put_counts(
	struct ky_buf *b, const struct ky_search *w, size_t affected, size_t typical)
{
	ky_buf_printf(b, " (%zu of %zu of these, %.2g %% of typical ones)", affected,
		w->f->affected.n,
		100 * (double)typical / (double)KY_MAX(w->d->group->n_typical, (size_t)1));
}

double ky_search_contrast(const struct ky_search *w, size_t affected, size_t typical)
{
	return (double)affected / (double)KY_MAX(w->f->affected.n, (size_t)1) -
	       (double)typical / (double)KY_MAX(w->d->group->n_typical, (size_t)1);
}

/* --- all fields --- */

static bool is_text(const struct ky_column *c)
{
	return c->n && c->facts[0].type == KY_FACT_TEXT;
}

#define NO_BETTER .02 /* of the contrast */

/*
 * Of a field of which all values but one are slow, a range of these other values says no more: its
 * ends are there by chance. That the time grows with them says more.
 */
static void drop_lesser(struct ky_search *w, size_t from)
{
	const struct ky_condition *v = w->found.v;
	double other = -1;
	bool is_growth = false;
	size_t n = from;

	for (size_t i = from; i < w->found.n; i++) {
		other = v[i].is_other ? v[i].contrast : other;
		is_growth = is_growth || v[i].r2 > 0;
	}
	for (size_t i = from; i < w->found.n; i++) {
		bool is_lesser = v[i].is_other
					 ? is_growth
					 : v[i].is_range && v[i].contrast <= other + NO_BETTER;

		if (is_lesser)
			ky_condition_deinit(&w->found.v[i]);
		else
			w->found.v[n++] = w->found.v[i];
	}
	w->found.n = n;
}

static int test_column(struct ky_search *w, uint32_t key, bool is_length)
{
	struct ky_column c;
	size_t n_before = w->found.n;
	int r = ky_column_make(w, &c, key, is_length);

	if (r < 0)
		return r;
	if (!c.n || c.n_values < 2)
		r = 0;
	else if (c.is_number || c.is_degree || (c.is_hex && c.n_values > KY_MANY_VALUES))
		r = ky_sizes_test(w, &c, key);
	if (!r && c.n_values > KY_MANY_VALUES && !is_length && c.key.kind <= KY_TRAIT_OUTER)
		r = ky_residues_test(w, &c, key);
	if (!r && c.is_number && (c.key.kind == KY_TRAIT_BEGIN || c.key.kind == KY_TRAIT_END))
		r = ky_sums_test(w, &c, key);
	if (!r && !is_length && c.n_values > 1 && !ky_trait_is_pause(c.key.kind) &&
		(!c.key.name || c.key.name != w->x->largest_allocation))
		r = ky_values_test(w, &c, key);
	drop_lesser(w, n_before);
	if (!r && !is_length && is_text(&c) && c.n_values > KY_MANY_VALUES)
		r = ky_affixes_test(w, &c, key);
	is_length = !is_length && is_text(&c) && c.n_values > KY_MANY_VALUES;
	ky_column_free(&c);
	return r || !is_length ? r : test_column(w, key, true);
}

static bool is_of_two_traces(const struct ky_search *w)
{
	return w->f->affected.v[0]->is_second != w->d->group->typical[0]->is_second;
}

static bool has_key(const struct ky_search *w, uint32_t key)
{
	for (size_t i = 0; i < w->f->affected.n; i++) {
		if (ky_instance_fact(w->f->affected.v[i], key))
			return true;
	}
	return false;
}

/* Whether the finding says itself what comes. */
static bool is_of_events(const struct ky_finding *f)
{
	return f->kind == KY_FINDING_COUNT || f->kind == KY_FINDING_NEW ||
	       f->kind == KY_FINDING_EVENT;
}

static bool is_below(const struct ky_search *w, const struct ky_component *c, uint32_t above)
{
	while (c->number != above && c->parent)
		c = ky_component_of(w->x, c->parent);
	return c->number == above;
}

/*
 * Whether an event comes outside of what the finding is about: it may be the reason, as a conflict
 * is for a pause. Events inside follow from it.
 */
static bool is_apart(const struct ky_search *w, uint32_t name)
{
	for (uint32_t k = 1; k <= w->x->components.all.n; k++) {
		const struct ky_component *c = ky_component_of(w->x, k);

		if (c->a != name && c->b != name)
			continue;
		if (c->kind != KY_PART_WAY || is_below(w, c, w->f->component))
			return false;
	}
	return true;
}

static bool is_in_path(const struct ky_search *w, uint32_t name)
{
	const struct ky_component *o = ky_component_of(w->x, w->f->component);

	while (o->kind != KY_PART_SPAN || o->a != name) {
		if (!o->parent)
			return false;
		o = ky_component_of(w->x, o->parent);
	}
	return true;
}

/*
 * A span of the finding follows itself, where slow ones come one after the other. If only one of
 * two traces has the span, each instance there is the first after it, whatever is slow in it.
 */
static bool is_first_after_itself(const struct ky_search *w, const struct ky_trait_key *key)
{
	return (key->kind == KY_TRAIT_FIRST || key->kind == KY_TRAIT_FIRST_OF_THREAD) &&
	       (is_in_path(w, key->name) ||
		       (is_of_two_traces(w) && ky_search_is_inside(w, key->name)));
}

static bool is_of_longest(const struct ky_trait_key *key)
{
	return key->kind == KY_TRAIT_CALL || key->kind == KY_TRAIT_CALL_END;
}

/*
 * Of several calls of a span, the longest one makes a time longer, and the first one is the reason
 * of more calls.
 */
static bool is_other_call(const struct ky_search *w, const struct ky_trait_key *key)
{
	if (w->f->kind != KY_FINDING_LONGER)
		return is_of_longest(key);
	for (uint32_t k = 0; key->kind == KY_TRAIT_INNER && key->field && k < w->x->keys.n; k++) {
		const struct ky_trait_key *o = &w->x->keys.v[k];

		if (is_of_longest(o) && o->name == key->name && o->field == key->field)
			return true;
	}
	return false;
}

/* Whether an affected and a typical instance have the same text. */
static bool is_in_both(const struct ky_search *w, uint32_t key)
{
	const struct ky_fact *a = ky_instance_fact(w->f->affected.v[0], key);

	for (size_t i = 0; a && i < w->d->group->n_typical; i++) {
		const struct ky_fact *t = ky_instance_fact(w->d->group->typical[i], key);

		if (t && !ky_fact_compare(a, t))
			return true;
	}
	return false;
}

/*
 * Two runs have other threads, processes and processors, and meet values at other times. They may
 * be of the same hosts.
 */
static bool is_of_one_run(const struct ky_search *w, uint32_t key)
{
	enum ky_trait_kind kind = w->x->keys.v[key].kind;

	if (kind == KY_TRAIT_HOST)
		return !is_in_both(w, key);
	return (kind >= KY_TRAIT_CONTEXT && kind <= KY_TRAIT_CPU) || kind == KY_TRAIT_NEW ||
	       kind == KY_TRAIT_NEW_OF_THREAD || ky_trait_is_pause(kind);
}

/* Part of the instances in which the property is, or is not, so. */
static double flag_part(struct ky_instance *const *v, size_t n, uint32_t key, int64_t is_set)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		const struct ky_fact *fact = ky_instance_fact(v[i], key);

		found += fact && fact->number == is_set;
	}
	return (double)found / (double)KY_MAX(n, (size_t)1);
}

/* Whether an order of values can be a condition at all (values.c); a column of it costs more. */
static bool is_telling_order(const struct ky_search *w, uint32_t key)
{
	for (int64_t is_set = 0; is_set < 2; is_set++) {
		double part = flag_part(w->f->affected.v, w->f->affected.n, key, is_set);

		if (part >= .6 && flag_part(w->d->group->typical, w->d->group->n_typical, key,
					  is_set) <= .5 * part)
			return true;
	}
	return false;
}

static int test_fields(struct ky_search *w)
{
	for (uint32_t key = 0; key < w->x->keys.n; key++) {
		enum ky_trait_kind kind = w->x->keys.v[key].kind;
		int r;

		if (is_of_two_traces(w) && is_of_one_run(w, key))
			continue;
		/* A span that comes more often is a finding of its own. */
		if (is_of_events(w->f) && ky_column_is_presence(&w->x->keys.v[key]) &&
			!is_apart(w, w->x->keys.v[key].name))
			continue;
		if (is_first_after_itself(w, &w->x->keys.v[key]) ||
			is_other_call(w, &w->x->keys.v[key]))
			continue;
		/* A process with one thread is named as a process. */
		if (kind == KY_TRAIT_THREAD && ky_explain_has_single_threads(w->x))
			continue;
		if (kind >= KY_TRAIT_NEW && kind <= KY_TRAIT_CHANGED_OF_THREAD) {
			w->n_tests++;
			if (!is_telling_order(w, key))
				continue;
		}
		r = has_key(w, key) ? test_column(w, key, false) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- all --- */

/* A finding with few instances proves nothing. */
#define MIN_AFFECTED 3

#define MAX_CONDITIONS 3 /* besides company, positions and times */

static int compare_conditions(const void *a, const void *b)
{
	const struct ky_condition *x = a, *y = b;
	double ex, ey;

	if (x->is_evidence != y->is_evidence)
		return x->is_evidence - y->is_evidence;
	ex = round(x->explained * x->contrast * 5);
	ey = round(y->explained * y->contrast * 5);

	if (ex != ey)
		return ex > ey ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	/* A value that few instances have is often new, and the one before is another. */
	if (x->is_order != y->is_order)
		return x->is_order - y->is_order;
	if (x->is_other != y->is_other)
		return x->is_other - y->is_other;
	/* A process with slow instances alone on its host says no more than the host. */
	if ((x->about == KY_ABOUT_HOST) != (y->about == KY_ABOUT_HOST))
		return x->about == KY_ABOUT_HOST ? -1 : 1;
	if (x->explained != y->explained)
		return x->explained > y->explained ? -1 : 1;
	ex = round(x->by_means * 10);
	ey = round(y->by_means * 10);
	if (ex != ey)
		return ex > ey ? -1 : 1;
	return strcmp(x->text, y->text);
}

#define MUCH_SLOWER 2 /* than any processor is than another */

/*
 * A processor may be slower than others, and threads stay on theirs: a thread that is hardly slower
 * than others is no reason if its processor explains as much.
 */
static void find_evidence(struct ky_search *w)
{
	bool is_much = w->affected_median > MUCH_SLOWER * w->typical_median;
	double by_cpu = 0;

	for (size_t i = 0; i < w->found.n; i++) {
		if (w->found.v[i].about == KY_ABOUT_CPU)
			by_cpu = w->found.v[i].explained * w->found.v[i].contrast;
	}
	for (size_t i = 0; i < w->found.n; i++) {
		struct ky_condition *c = &w->found.v[i];

		c->is_evidence = (c->about == KY_ABOUT_CPU && !c->is_law) ||
				 (c->about == KY_ABOUT_THREAD && !is_much &&
					 by_cpu >= .85 * c->explained * c->contrast);
	}
}

static int add_all(struct ky_finding *f, const struct ky_condition *v, size_t n, int rank)
{
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		if (rank < 0 || !v[i].rank == !rank)
			r = ky_vec_add(&f->conditions, v[i]);
	}
	return r;
}

#define BETTER .05 /* more that a position explains */

/* Among the first instances, many values are new: then their position is the reason. */
static bool is_of_position(const struct ky_condition *c, const struct ky_times *times)
{
	return c->is_order && times->n && !times->v[0].rank &&
	       times->v[0].explained > c->explained * c->contrast + BETTER;
}

/*
 * Keeps the best of those that pass. A position (each 18th, the first 12) is better than anything
 * but a field of the begin; other patterns of times come last.
 */
static int choose_conditions(struct ky_search *w, bool with_times)
{
	struct ky_times times = {0};
	size_t n = 0, first;
	int r = with_times ? ky_times_find(&times, w->d, w->f, w->all, w->n_all) : 0;

	for (size_t i = 0; i < w->found.n; i++) {
		if (w->found.v[i].p * (double)KY_MAX(w->n_tests, (size_t)1) < KY_ALPHA &&
			!w->found.v[i].is_chance)
			w->found.v[n++] = w->found.v[i];
		else
			ky_condition_deinit(&w->found.v[i]);
	}
	w->found.n = n;
	find_evidence(w);
	if (n)
		qsort(w->found.v, n, sizeof(*w->found.v), compare_conditions);
	for (size_t i = w->found.n; i-- > MAX_CONDITIONS;) {
		if (w->found.v[i].about == KY_ABOUT_COMPANY)
			continue;
		ky_condition_deinit(&w->found.v[i]);
		w->found.v[i] = w->found.v[--w->found.n];
	}
	for (n = 0; n < w->found.n && !w->found.v[n].is_evidence;)
		n++;
	first = n && !w->found.v[0].rank && !is_of_position(&w->found.v[0], &times);
	if (!r)
		r = add_all(w->f, w->found.v, first, -1);
	if (!r)
		r = add_all(w->f, times.v, times.n, 0);
	if (!r)
		r = add_all(w->f, w->found.v + first, n - first, -1);
	if (!r)
		r = add_all(w->f, times.v, times.n, 1);
	return r ? r : add_all(w->f, w->found.v + n, w->found.n - n, -1);
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

static double weighted_mean(const struct ky_difference *d, const struct ky_finding *f,
	struct ky_instance *const *v, size_t n)
{
	double sum = 0, weights = 0;

	for (size_t i = 0; i < n; i++) {
		double weight = ky_group_weight(d->group, v[i]);

		sum += weight * ky_finding_ns(f, v[i]);
		weights += weight;
	}
	return weights > 0 ? sum / weights : 0;
}

static int find_all(
	struct ky_difference *d, struct ky_finding *f, struct ky_instance *const *all, size_t n_all)
{
	struct ky_search w = {.x = d->x, .d = d, .f = f, .all = all, .n_all = n_all};
	int r;

	if (f->affected.n < MIN_AFFECTED || !d->group->n_typical)
		return 0;
	w.affected_ns = mean_finding(f, f->affected.v, f->affected.n, &w.affected_median);
	w.typical_ns = mean_finding(f, d->group->typical, d->group->n_typical, &w.typical_median);
	w.all_ns = weighted_mean(d, f, all, n_all);
	r = is_of_two_traces(&w) ? 0 : ky_shifts_make(&w.shifts, all, n_all);
	if (!r)
		r = test_fields(&w);
	if (!r)
		r = ky_products_test(&w);
	if (!r)
		r = ky_both_test(&w);
	if (!r)
		r = ky_alike_test(&w);
	if (!r)
		r = ky_companions_test(&w);
	if (!r)
		r = choose_conditions(&w, !is_of_two_traces(&w));
	ky_vec_deinit(&w.found);
	ky_shifts_deinit(&w.shifts);
	return r;
}

#define MIN_OTHERS	 5   /* instances that lack the first condition */
#define MIN_OTHER_PART	 .15 /* of the affected ones */
#define MIN_OTHER_REASON .6  /* of what their condition explains, and of the contrast */

static bool is_other_reason(const struct ky_condition *c)
{
	return !c->is_evidence && c->has && c->explained >= MIN_OTHER_REASON &&
	       c->contrast >= MIN_OTHER_REASON && c->about != KY_ABOUT_THREAD &&
	       c->about != KY_ABOUT_CPU;
}

/* Looks for the condition of the instances that lack the first one: two causes may be at work. */
static int find_other(
	struct ky_difference *d, struct ky_finding *f, struct ky_instance *const *all, size_t n_all)
{
	const struct ky_condition *first = f->conditions.v;
	struct ky_finding rest = *f;
	int r = 0;

	memset(&rest.affected, 0, sizeof(rest.affected));
	memset(&rest.conditions, 0, sizeof(rest.conditions));
	for (size_t i = 0; i < f->affected.n && !r; i++) {
		if (!first->has[i])
			r = ky_vec_add(&rest.affected, f->affected.v[i]);
	}
	if (!r && (double)rest.affected.n >=
			  KY_MAX(MIN_OTHERS, MIN_OTHER_PART * (double)f->affected.n))
		r = find_all(d, &rest, all, n_all);
	if (!r && rest.conditions.n && is_other_reason(&rest.conditions.v[0])) {
		f->other = rest.conditions.v[0];
		rest.conditions.v[0] = (struct ky_condition){0};
	}
	for (size_t i = 0; i < rest.conditions.n; i++)
		ky_condition_deinit(&rest.conditions.v[i]);
	ky_vec_deinit(&rest.conditions);
	ky_vec_deinit(&rest.affected);
	return r;
}

int ky_conditions_find(
	struct ky_difference *d, struct ky_finding *f, struct ky_instance *const *all, size_t n_all)
{
	int r = find_all(d, f, all, n_all);

	if (r || !f->conditions.n || !f->conditions.v[0].has || f->conditions.v[0].is_evidence)
		return r;
	return find_other(d, f, all, n_all);
}
