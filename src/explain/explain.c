/* SPDX-License-Identifier: MIT */
#include "explain/explain.h"

#include "explain/answer.h"
#include "explain/conditions.h"
#include "explain/culprits.h"
#include "explain/executed.h"
#include "explain/sentence.h"
#include "explain/stats.h"
#include "explain/subgroup.h"
#include "explain/times.h"
#include "explain/unknown.h"
#include "explain/validity.h"

#define MANY_SLOW .15 /* part of the instances */
#define FAR_ABOVE 2   /* times the mean of slow instances */

/* The filter is about fields of the begin: names them. */
static void put_filtered(
	const struct ky_explanation *e, const char *path, char *why, size_t why_size)
{
	struct ky_buf fields = {0};

	ky_source_put_fields(e->sources[0], e->question.span, &fields);
	snprintf(why, why_size,
		"the filter lets no %s pass that ended in %s: -f is about the fields of its begin%s%s",
		e->question.span, path, fields.len ? ": " : ", which has none",
		fields.len ? fields.data : "");
	ky_buf_deinit(&fields);
}

static bool has_limits(const struct ky_query *q)
{
	return q->select.from_ns != INT64_MIN || q->select.to_ns != INT64_MAX;
}

static void put_limited(
	const struct ky_explanation *e, const char *path, char *why, size_t why_size)
{
	char clock[48];

	ky_times_clock(clock, sizeof(clock), ky_source_begin_ns(e->sources[0]));
	snprintf(why, why_size,
		"no %s ended within --begin and --end in %s, which begins at %.12s: write +1s for a second later",
		e->question.span, path, clock);
}

static int no_such_span(const struct ky_explanation *e, size_t i, char *why, size_t why_size)
{
	const char *path = i ? e->question.against : e->question.paths[0];
	const struct ky_instances *v = &e->instances[i];

	if (v->n_lost)
		snprintf(why, why_size,
			"events were lost during each %s in %s: record it with larger buffers "
			"(--subbuf-size), or let it wait for room (--blocking-timeout=inf)",
			e->question.span, path);
	else if (e->question.query->expr && !i)
		put_filtered(e, path, why, why_size);
	else if (!i && has_limits(e->question.query))
		put_limited(e, path, why, why_size);
	else if (v->n_nested)
		snprintf(why, why_size, "each %s that ends in %s is nested too deeply in others",
			e->question.span, path);
	else if (v->n_unfinished && v->n_unbegun)
		snprintf(why, why_size, "no %s both begins and ends in %s", e->question.span, path);
	else if (v->n_unfinished && ky_source_is_of_function(e->sources[i]))
		snprintf(why, why_size,
			"no %s returns in %s: all are unfinished, or left by longjmp() or exit()",
			e->question.span, path);
	else if (v->n_unfinished || v->n_unbegun)
		snprintf(why, why_size,
			"no %s %s in %s: %s are not recorded (-e '%s_*' selects both events)",
			e->question.span, v->n_unbegun ? "begins" : "ends", path,
			v->n_unbegun ? "its begins" : "all are unfinished, or their ends",
			e->question.span);
	else if (v->n_instant)
		snprintf(why, why_size,
			"each %s in %s ends at the time at which it begins: the clock is too coarse",
			e->question.span, path);
	else
		snprintf(why, why_size, "no %s ended in %s", e->question.span, path);
	return KY_EXPLAIN_E_SPAN;
}

static int read_instances(struct ky_explanation *e, size_t i, char *why, size_t why_size)
{
	const struct ky_query *query = i ? e->question.against_query : e->question.query;
	struct ky_instances *v = &e->instances[i];
	int r = ky_source_new(&e->sources[i], query, &e->x.names);

	v->is_second = i;
	if (!r)
		ky_source_report(e->sources[i], e->question.report);
	if (!r)
		ky_source_name_functions(
			e->sources[i], i ? e->question.against_functions : e->question.functions);
	if (!r)
		ky_source_read_ahead(e->sources[i]);
	for (size_t k = 0; k < e->question.n_pairs && !r; k++)
		r = ky_source_add_pair(e->sources[i], e->question.pairs[k], why, why_size);
	if (r == -EINVAL && *why)
		return KY_EXPLAIN_E_PAIR;
	if (!r)
		r = ky_instances_read(v, &e->x, e->sources[i]);
	return r || v->n ? r : no_such_span(e, i, why, why_size);
}

/* --- what is looked at --- */

/* Weight of instances that are in a group, but in no sample: they count if no others do. */
#define NO_WEIGHT .001

static int add_chosen(struct ky_instance ***v, size_t *n, size_t *cap,
	struct ky_instance *const *more, size_t n_more)
{
	if (ky_vec_reserve((void **)v, cap, *n + n_more + 1, sizeof(**v)) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n_more; i++) {
		if (more[i]->is_chosen)
			continue;
		more[i]->is_chosen = true;
		more[i]->weight = NO_WEIGHT;
		(*v)[(*n)++] = more[i];
	}
	return 0;
}

static int choose_sample(
	struct ky_explanation *e, size_t i, struct ky_instance ***v, size_t *n, size_t *cap)
{
	struct ky_instances *all = &e->instances[i];
	struct ky_instance **each = calloc(all->all.n + 1, sizeof(*each)), **sample = NULL;
	size_t n_sample = 0, max = e->sources[1] ? KY_MAX_SAMPLE / 2 : KY_MAX_SAMPLE;
	int r = each ? 0 : -ENOMEM;

	for (size_t k = 0; each && k < all->all.n; k++)
		each[k] = &all->all.v[k];
	if (!r)
		r = ky_groups_sample(&sample, &n_sample, each, all->all.n, max);
	if (!r)
		r = add_chosen(v, n, cap, sample, n_sample);
	for (size_t k = 0; k < n_sample; k++)
		sample[k]->weight = e->sources[1] ? 1 : (double)all->n / (double)n_sample;
	free(each);
	free(sample);
	return r;
}

/* The groups and the sample of one trace: an array in order of their begins. */
static int choose_all(struct ky_explanation *e, size_t i, struct ky_instance ***ret, size_t *ret_n)
{
	size_t cap = 0;
	int r = 0;

	for (size_t k = 0; k < e->c->groups.n && !r; k++) {
		const struct ky_group *g = &e->c->groups.v[k];

		if (!i)
			r = add_chosen(ret, ret_n, &cap, g->slow, g->n_slow);
		if (!r && i == (e->sources[1] != NULL))
			r = add_chosen(ret, ret_n, &cap, g->typical, g->n_typical);
	}
	if (!r)
		r = choose_sample(e, i, ret, ret_n, &cap);
	if (*ret_n)
		qsort(*ret, *ret_n, sizeof(**ret), ky_instance_by_begin);
	return r;
}

/* --- one choice of the slow ones --- */

/*
 * Stalls at certain times may hit anywhere: such times make a finding only of a place that has
 * nearly all of the extra time.
 */
static bool is_stall(
	const struct ky_group *g, const struct ky_finding *f, const struct ky_condition *c)
{
	return c->about == KY_ABOUT_TIME && c->rank == 3 && (g->is_part || f->share < .9);
}

#define LIMITS .8 /* contrast of a condition that makes a finding because it limits the cause */

static bool has_strong_condition(const struct ky_group *g, const struct ky_finding *f)
{
	for (size_t i = 0; i < f->conditions.n; i++) {
		const struct ky_condition *c = &f->conditions.v[i];

		bool is_limit = g->is_remarkable && !g->is_part && ky_condition_is_limit(c) &&
				!c->is_call && c->about != KY_ABOUT_THREAD &&
				c->explained >= KY_MIN_EXPLAINED && c->contrast >= LIMITS;

		if (!is_stall(g, f, c) && (c->explained >= .6 || c->is_law || is_limit) &&
			c->rank < 4 && !c->is_evidence)
			return true;
	}
	return false;
}

/* Whether it is ready while the tracer runs: that is no property of the program. */
static bool is_of_tracer(const struct ky_explain *x, const struct ky_finding *f)
{
	struct ky_culprits c = {0};
	int64_t ns = 0;

	if (ky_finding_part(x, f) == KY_PART_READY && !ky_culprits_find(&c, x, f)) {
		for (size_t i = 0; i < c.v.n; i++)
			ns += ky_explain_is_tracer(x, c.v.v[i].thread) ? c.v.v[i].ns : 0;
	}
	ky_culprits_deinit(&c);
	return 2 * ns > c.ns;
}

static int compare_groups(struct ky_explanation *e, struct ky_difference *d, size_t i,
	struct ky_instance *const *all, size_t n)
{
	int r = ky_difference_find(d, &e->x, &e->c->groups.v[i], all, n);

	if (!r && d->extra_ns > 0)
		r = ky_validity_test(d);
	for (size_t k = 0; k < d->findings.n && !r && d->extra_ns > 0; k++) {
		struct ky_finding *f = d->findings.v[k];

		if (f->share < KY_MIN_SHARE)
			continue;
		r = ky_conditions_find(d, f, all, n);
		if (!r)
			r = ky_executed_find(d, f);
		f->is_shown = !ky_finding_is_unseen(d->x, f) &&
			      (f->is_valid || f->is_executed || has_strong_condition(d->group, f));
		if (!r && f->is_shown)
			r = ky_sentence_make(&e->x, f);
		f->is_tracer = !r && f->is_shown && is_of_tracer(&e->x, f);
		f->is_shown = f->is_shown && !f->is_tracer;
	}
	return r;
}

/*
 * Whether findings account for half of the extra time. A mere place in which typical ones pass most
 * of their time, too, counts only if no other choice of the slow ones has more to say, or if delays
 * there are of nearly the same length.
 */
static bool is_sure(const struct ky_difference *d, bool with_places)
{
	double share = 0;

	for (size_t i = 0; i < d->findings.n; i++) {
		const struct ky_finding *f = d->findings.v[i];

		if (f->is_shown && (f->conditions.n || !ky_finding_is_place(d->x, f) ||
					   (f->is_valid && (with_places || f->is_tight ||
								   f->typical_share < .5))))
			share += f->share;
	}
	return share >= .5;
}

/* Of the extra time of all slow ones, the part that a group of some of them has. */
static double part_of(const struct ky_difference *d, const struct ky_difference *whole)
{
	return (double)d->n_slow * d->extra_ns / ((double)whole->n_slow * whole->extra_ns);
}

/* Looks for a part of a group that is explained, where the whole is not. */
static int try_part(struct ky_explanation *e, const struct ky_difference *whole,
	struct ky_instance *const *all, size_t n)
{
	size_t i = e->c->groups.n;
	struct ky_group *part = &e->c->groups.v[i];
	struct ky_difference *d = &e->c->differences[e->c->n_differences];
	int r = ky_subgroup_find(part, &e->x, whole->group, all, n);

	if (!r && part->n_slow)
		r = compare_groups(e, d, i, all, n);
	if (!r && part->n_slow && is_sure(d, true) && part_of(d, whole) >= KY_MIN_SHARE) {
		e->c->groups.n++;
		e->c->n_differences++;
		e->c->chosen = d;
		e->c->whole = whole;
		e->c->part = part_of(d, whole);
		return 0;
	}
	ky_difference_deinit(d);
	ky_group_deinit(part);
	return r;
}

/* Of a larger group, the part may be clear that the machine's noise hides in a smaller one. */
static int find_part(struct ky_explanation *e, struct ky_instance *const *all, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < e->c->n_differences && !e->c->chosen && !r && !e->sources[1]; i++) {
		const struct ky_difference *whole = &e->c->differences[i];

		if (!whole->group->n_longer && whole->group->is_remarkable)
			r = try_part(e, whole, all, n);
	}
	return r;
}

/* Whether the sentence names it. */
static bool has_key(const struct ky_difference *d, const struct ky_finding_key *key)
{
	const struct ky_finding *top[KY_MAX_CLAUSES];
	size_t n = ky_answer_find_top(d, top);

	for (size_t i = 0; i < n; i++) {
		if (ky_finding_has_key(top[i], key))
			return true;
	}
	return false;
}

/*
 * If many instances are slow for one reason, the slowest of them may be much slower for another.
 * The first group far above the chosen one decides.
 */
static int find_slowest(struct ky_explanation *e, struct ky_instance *const *all, size_t n)
{
	const struct ky_difference *chosen = e->c->chosen;
	struct ky_difference *d = &e->c->differences[e->c->n_differences];
	size_t i = e->c->n_differences;
	int r;

	if (chosen->group->n_all_slow < MANY_SLOW * (double)e->instances[0].n)
		return 0;
	while (i < e->c->groups.n &&
		(e->c->groups.v[i].n_longer ||
			e->c->groups.v[i].from_ns < FAR_ABOVE * chosen->slow_ns))
		i++;
	if (i == e->c->groups.n)
		return 0;
	e->c->n_differences++;
	r = compare_groups(e, d, i, all, n);
	if (!r && is_sure(d, false) && !has_key(chosen, &d->findings.v[0]->key))
		e->c->slowest = d;
	return r;
}

#define MIN_BELOW .5 /* of the typical time, that those below longer ones take longer */
#define MAX_ABOVE 10 /* times their extra time, that longer ones have together */

/* Whether it is known when it is slow. That a processor is busier than others says little. */
static bool has_reason(const struct ky_finding *f)
{
	for (size_t i = 0; i < f->conditions.n; i++) {
		if (f->conditions.v[i].about != KY_ABOUT_CPU)
			return true;
	}
	return false;
}

/* A size says how long the longer ones take, too. */
static bool has_law(const struct ky_finding *f)
{
	for (size_t i = 0; i < f->conditions.n; i++) {
		if (f->conditions.v[i].is_law && f->conditions.v[i].about == KY_ABOUT_FIELD)
			return true;
	}
	return false;
}

/* The extra time of the longer instances that are left out, in that of the slow ones. */
static double extra_above(const struct ky_difference *d)
{
	const struct ky_group *g = d->group;

	return (double)g->n_longer * (g->longer_ns - d->typical_ns) /
	       KY_MAX(1, g->n_all_slow * d->extra_ns);
}

/*
 * Whether the instances that are longer than these matter more: these are hardly longer than
 * typical ones; the longer ones have nearly all of the extra time; or there are half as many longer
 * ones and of these a mere place is known. The answer would hide that nothing is known of the
 * longer ones.
 */
static bool hides_longer(const struct ky_difference *d)
{
	const struct ky_group *g = d->group;
	const struct ky_finding *f = d->findings.v[0];
	bool is_place = ky_finding_is_place(d->x, f) && !has_reason(f);

	return g->n_longer && (d->extra_ns < MIN_BELOW * d->typical_ns ||
				      (extra_above(d) > MAX_ABOVE && !has_law(f)) ||
				      (is_place && (double)g->n_longer > .5 * g->n_all_slow));
}

/* If nothing is known, that most instances are slow says more than that some are longer. */
static bool is_tail_of_most(const struct ky_comparison *c)
{
	const struct ky_group *last = &c->groups.v[c->groups.n - 1];

	return last->is_most && last->is_remarkable && !c->groups.v[0].is_remarkable;
}

static int compare_all(struct ky_explanation *e, struct ky_instance *const *all, size_t n)
{
	int r;

	e->c->part = 1;
	for (size_t i = 0; i < e->c->groups.n; i++) {
		struct ky_difference *d = &e->c->differences[e->c->n_differences++];

		r = compare_groups(e, d, i, all, n);
		if (r < 0)
			return r;
		if (is_sure(d, false) && !hides_longer(d)) {
			e->c->chosen = d;
			return find_slowest(e, all, n);
		}
	}
	for (size_t i = 0; i < e->c->n_differences; i++) {
		if (!e->c->differences[i].group->n_longer && is_sure(&e->c->differences[i], true)) {
			e->c->chosen = &e->c->differences[i];
			return 0;
		}
	}
	r = find_part(e, all, n);
	for (size_t i = 0; i < e->c->n_differences && !e->c->chosen && !r; i++) {
		/* Not of those below noise: that would be silent about the slowest. */
		if (!e->c->differences[i].group->n_longer &&
			ky_answer_share(&e->c->differences[i]) > 0)
			e->c->chosen = &e->c->differences[i];
	}
	if (!e->c->chosen)
		e->c->chosen = &e->c->differences[is_tail_of_most(e->c) ? e->c->groups.n - 1 : 0];
	return r;
}

/* --- below the load of the machine --- */

#define MIN_LOAD .02 /* part of the time of all, to be looked below */
#define MIN_NET	 .5  /* of the typical time, that slow ones take longer without it */

static bool has_load(const struct ky_explanation *e, struct ky_instance *const *all, size_t n)
{
	double ns = 0, load = 0;

	for (size_t i = 0; i < n; i++) {
		ns += all[i]->ns;
		load += (double)ky_instance_load(all[i]);
	}
	return !e->sources[1] && e->question.slowest.kind == KY_SLOWEST_AUTO &&
	       load >= MIN_LOAD * ns;
}

/* A law, as a growth with time or size, makes no group of slow ones. */
static bool is_evident(const struct ky_difference *d, const struct ky_finding *f)
{
	return d->group->is_remarkable || has_strong_condition(d->group, f);
}

/* Whether causes that are seen without the load are no small matter beside it. */
static bool tells_more(const struct ky_comparison *gross, const struct ky_comparison *net)
{
	const struct ky_difference *d = net->chosen;
	const struct ky_finding *top[KY_MAX_CLAUSES];

	return ky_answer_find_top(d, top) && ky_answer_has_causes(net) &&
	       !ky_answer_is_queue(d->x, top[0]) && is_evident(d, top[0]) &&
	       d->extra_ns >= MIN_NET * d->typical_ns &&
	       (!ky_answer_has_causes(gross) || ky_answer_extra_load(gross->chosen) >=
							KY_MIN_NET_LOAD * gross->chosen->extra_ns);
}

static void set_net(struct ky_explanation *e, struct ky_instance *const *all, size_t n, bool is_net)
{
	for (size_t i = 0; i < n; i++)
		ky_instance_set_net(&e->x, all[i], is_net);
}

/*
 * On a busy machine, the longest instances are those that lost their processor to other programs,
 * whatever the program itself does. So the comparison is made again without the time in which
 * others ran; what that finds is the answer, and the load is named beside it.
 */
static int compare_net(struct ky_explanation *e, struct ky_instance *const *all, size_t n)
{
	struct ky_comparison *gross = e->c, *net = &e->comparisons[1];
	int r;

	if (!has_load(e, all, n))
		return 0;
	set_net(e, all, n, true);
	e->c = net;
	r = ky_groups_find_net(&net->groups, all, n, (double)e->instances[0].n);
	if (!r)
		r = compare_all(e, all, n);
	if (!r && tells_more(gross, net))
		return 0;
	set_net(e, all, n, false);
	e->c = gross;
	return r;
}

/* --- all --- */

static int finish_explanation(struct ky_explanation *e, struct ky_buf *first_line)
{
	int r = ky_unknown_find(e);

	e->first_line = first_line->error || !first_line->data ? NULL : strdup(first_line->data);
	ky_buf_deinit(first_line);
	return r ? r : e->first_line ? 0 : -ENOMEM;
}

static int too_few(struct ky_explanation *e, struct ky_buf *b)
{
	const struct ky_instances *v =
		&e->instances[e->sources[1] && e->instances[1].n < KY_MIN_INSTANCES];

	e->verdict = KY_VERDICT_TOO_FEW;
	ky_buf_printf(b, "%s: %llu instance%s %s too few to compare (%d are needed)",
		e->question.span, (unsigned long long)v->n, v->n == 1 ? "" : "s",
		v->n == 1 ? "is" : "are", KY_MIN_INSTANCES);
	if (v->is_second)
		ky_buf_printf(b, " in %s", e->question.against);
	return finish_explanation(e, b);
}

static int compare_chosen(struct ky_explanation *e)
{
	struct ky_instance **chosen[2] = {NULL}, **all = NULL;
	size_t n[2] = {0};
	int r = e->sources[1]
			? ky_groups_against(&e->c->groups, &e->instances[0], &e->instances[1],
				  &e->question.slowest)
			: ky_groups_find(&e->c->groups, &e->instances[0], &e->question.slowest);

	for (size_t i = 0; i < 2 && !r && e->sources[i]; i++) {
		r = choose_all(e, i, &chosen[i], &n[i]);
		if (!r)
			r = ky_account_read(
				&e->x, e->sources[i], &e->instances[i], chosen[i], n[i]);
	}
	if (!r)
		all = calloc(n[0] + n[1] + 1, sizeof(*all));
	if (all) {
		for (size_t i = 0; i < n[0] + n[1]; i++)
			all[i] = i < n[0] ? chosen[0][i] : chosen[1][i - n[0]];
		qsort(all, n[0] + n[1], sizeof(*all), ky_instance_by_begin);
		r = compare_all(e, all, n[0] + n[1]);
		if (!r)
			r = compare_net(e, all, n[0] + n[1]);
	} else if (!r) {
		r = -ENOMEM;
	}
	free(chosen[0]);
	free(chosen[1]);
	free(all);
	return r;
}

int ky_explain_trace(
	struct ky_explanation *e, const struct ky_explain_question *q, char *why, size_t why_size)
{
	struct ky_buf first_line = {0};
	int r;

	*e = (struct ky_explanation){.question = *q, .x.symbols = q->symbols};
	e->c = &e->comparisons[0];
	e->x.span = ky_texts_add(&e->x.names, q->span, strlen(q->span));
	r = read_instances(e, 0, why, why_size);
	if (!r && q->against_query)
		r = read_instances(e, 1, why, why_size);
	if (r)
		return r;
	if (e->instances[0].all.n < KY_MIN_INSTANCES ||
		(q->against_query && e->instances[1].all.n < KY_MIN_INSTANCES))
		return too_few(e, &first_line);
	r = compare_chosen(e);
	if (r < 0)
		return r;
	ky_answer_put(&first_line, e);
	return finish_explanation(e, &first_line);
}

void ky_explanation_deinit(struct ky_explanation *e)
{
	for (size_t k = 0; k < KY_ARRAY_SIZE(e->comparisons); k++) {
		for (size_t i = 0; i < e->comparisons[k].n_differences; i++)
			ky_difference_deinit(&e->comparisons[k].differences[i]);
		ky_groups_deinit(&e->comparisons[k].groups);
	}
	for (size_t i = 0; i < 2; i++) {
		ky_instances_deinit(&e->instances[i]);
		ky_source_free(e->sources[i]);
	}
	for (size_t i = 0; i < e->unknown.n; i++) {
		free(e->unknown.v[i].what);
		free(e->unknown.v[i].option);
	}
	ky_vec_deinit(&e->unknown);
	ky_explain_deinit(&e->x);
	free(e->first_line);
}
