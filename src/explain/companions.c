/* SPDX-License-Identifier: MIT */
#include "explain/culprits.h"
#include "explain/search.h"
#include "explain/stats.h"
#include "explain/words.h"

bool ky_search_is_inside(const struct ky_search *w, uint32_t name)
{
	for (uint32_t c = 1; c <= w->x->components.all.n; c++) {
		const struct ky_component *o = ky_component_of(w->x, c);

		if (o->kind == KY_PART_SPAN && o->a == name)
			return true;
	}
	return false;
}

/* Spans around the instance, of its own thread. */
static bool is_around(const struct ky_search *w, uint32_t name)
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

#define NEARLY	     .9 /* as good as the best */
#define MIN_HANDOFF  .6 /* must be explained */
#define MIN_MEETINGS 3
#define MAIN_CULPRIT .6	 /* of the time that is charged */
#define LATE	     1.5 /* of the typical time: an instance that is still open is slow */
#define MOSTLY_LATE  .75 /* of the affected instances */

struct companion {
	uint32_t name;
	double p, explained, affected, typical;
};

/* Whether a tenth of some instances or more pass time in a span of that name. */
static bool comes_in(
	const struct ky_search *w, struct ky_instance *const *v, size_t n, uint32_t name)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		bool comes = false;

		for (size_t k = 0; k < v[i]->parts.n && !comes; k++) {
			const struct ky_component *c = ky_component_of(
				w->x, v[i]->parts.v[k].component);

			comes = c->kind == KY_PART_SPAN && c->a == name && v[i]->parts.v[k].count;
		}
		found += comes;
	}
	return 10 * found >= n;
}

/*
 * A span inside instances gets slower with them. But if only a few other instances have it inside,
 * these instances may wait until it ends.
 */
static bool is_inside(const struct ky_search *w, uint32_t name)
{
	const struct ky_group *g = w->d->group;

	return ky_search_is_inside(w, name) &&
	       (comes_in(w, w->f->affected.v, w->f->affected.n, name) ||
		       comes_in(w, g->typical, g->n_typical, name));
}

/* The finding's place is in a span of that name. */
static bool is_place(const struct ky_search *w, uint32_t name)
{
	for (uint32_t c = w->f->component; c;) {
		const struct ky_component *o = ky_component_of(w->x, c);

		if (o->kind == KY_PART_SPAN && o->a == name)
			return true;
		c = o->parent;
	}
	return false;
}

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

static void keep_best(struct companion best[2], const struct companion *c)
{
	if (!best[0].name || c->explained > best[0].explained) {
		best[1] = best[0];
		best[0] = *c;
	} else if (!best[1].name || c->explained > best[1].explained) {
		best[1] = *c;
	}
}

static double handoff_ns(const struct ky_instance *i, uint32_t name)
{
	const struct ky_company *c = ky_instance_find_company(i, name);

	return c ? (double)c->handoff_ns : 0;
}

/* The thread that most of the affected instances wait for; UINT32_MAX: there is no such. */
static uint32_t handoff_thread(const struct ky_finding *f, uint32_t name)
{
	uint32_t thread = UINT32_MAX;
	size_t n = 0;

	/* Boyer and Moore: a majority survives when others are struck out against it. */
	for (size_t pass = 0; pass < 2; pass++) {
		size_t votes = 0;

		for (size_t i = 0; i < f->affected.n; i++) {
			const struct ky_company *c = ky_instance_find_company(
				f->affected.v[i], name);

			if (!c || !c->handoff_ns)
				continue;
			if (pass) {
				n += c->handoff_thread == thread;
			} else if (!votes) {
				thread = c->handoff_thread;
				votes = 1;
			} else {
				votes += c->handoff_thread == thread ? 1 : (size_t)-1;
			}
		}
	}
	return 2 * n > f->affected.n ? thread : UINT32_MAX;
}

/* Work of others that ends when the instance ends, and takes as much longer as that. */
static int test_handoff(struct ky_search *w, uint32_t name, struct companion *best)
{
	struct ky_instance *const *v[2] = {w->f->affected.v, w->d->group->typical};
	size_t n[2] = {w->f->affected.n, w->d->group->n_typical};
	struct companion c = {.name = name};
	double means[2] = {0}, longer = mean_time(v[0], n[0], NULL) - mean_time(v[1], n[1], NULL);
	double *ns[2];

	for (size_t k = 0; k < 2; k++) {
		ns[k] = calloc(n[k] + 1, sizeof(**ns));
		for (size_t i = 0; ns[k] && i < n[k]; i++)
			ns[k][i] = handoff_ns(v[k][i], name);
		means[k] = ns[k] ? ky_stats_mean(ns[k], n[k]) : 0;
	}
	w->n_tests++;
	c.explained = (means[0] - means[1]) / KY_MAX(1, longer);
	c.affected = means[0];
	c.typical = means[1];
	c.p = ns[0] && ns[1] ? ky_stats_mann_whitney(ns[0], n[0], ns[1], n[1]) : -1;
	free(ns[0]);
	free(ns[1]);
	if (c.p >= 0 && c.explained >= MIN_HANDOFF && c.affected >= 2 * c.typical &&
		c.explained > best->explained)
		*best = c;
	return c.p < 0 ? -ENOMEM : 0;
}

static int test_company(struct ky_search *w, uint32_t name, struct companion best[2])
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
		if (!r && c.affected >= .5 && c.affected >= 2 * c.typical)
			keep_best(best, &c);
	}
	free(a);
	free(t);
	return r;
}

static bool meets(const struct ky_instance *i, uint32_t name)
{
	const struct ky_company *c = ky_instance_find_company(i, name);

	return c && c->ns > 0;
}

static size_t count_meetings(struct ky_instance *const *v, size_t n, uint32_t name)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += meets(v[i], name);
	return found;
}

/* How much of the difference the means of those that meet it, and of the others, predict. */
static double explained_by_meeting(const struct ky_search *w, uint32_t name, double contrast)
{
	double sums[2] = {0}, weights[2] = {0};
	size_t n[2] = {0};

	for (size_t i = 0; i < w->n_all; i++) {
		bool is_met = meets(w->all[i], name);
		double weight = ky_group_weight(w->d->group, w->all[i]);

		sums[is_met] += weight * ky_finding_ns(w->f, w->all[i]);
		weights[is_met] += weight;
		n[is_met]++;
	}
	if (n[0] < MIN_MEETINGS || n[1] < MIN_MEETINGS)
		return 0;
	return contrast * (sums[1] / weights[1] - sums[0] / weights[0]) /
	       KY_MAX(1, w->affected_ns - w->typical_ns);
}

/*
 * A rare span of another thread that affected instances meet for any part of their time: the thread
 * they wait for may lose its processor after it. Longer instances meet more by chance, in
 * proportion to their lengths.
 */
static void test_meeting(struct ky_search *w, uint32_t name, struct companion *best)
{
	size_t n = w->f->affected.n, n_typical = w->d->group->n_typical;
	size_t met = count_meetings(w->f->affected.v, n, name);
	size_t met_typical = count_meetings(w->d->group->typical, n_typical, name);
	double lengths = mean_time(w->f->affected.v, n, NULL) /
			 KY_MAX(1, mean_time(w->d->group->typical, n_typical, NULL));
	double by_chance = KY_MIN(1, lengths * (double)(met_typical + 1) / (double)(n_typical + 1));
	struct companion c = {.name = name,
		.affected = (double)met / (double)n,
		.typical = (double)met_typical / (double)n_typical};

	w->n_tests++;
	if (c.affected < .6)
		return;
	c.p = ky_stats_binomial(n, met, by_chance);
	c.explained = explained_by_meeting(w, name, c.affected - by_chance);
	if (c.explained >= .25 && c.explained > best->explained)
		*best = c;
}

/* The thread that has all spans of that name; UINT32_MAX: several have. */
static uint32_t thread_of(const struct ky_explain *x, uint32_t name)
{
	for (size_t i = 0; i < x->company.n; i++) {
		if (x->company.v[i].name == name)
			return x->company.v[i].thread;
	}
	return UINT32_MAX;
}

/* "thread 14110 (gc) is in gc:collect". */
static void put_company(
	struct ky_buf *b, const struct ky_explain *x, uint32_t thread, uint32_t name)
{
	if (thread != UINT32_MAX)
		ky_words_put_thread(b, x, thread);
	else
		ky_buf_puts(b, "another thread");
	ky_buf_printf(b, " is in %s", ky_texts_get(&x->names, name));
}

/* Whether the span, whose name this is, runs for half of the time. */
static bool has_company(const void *arg, const struct ky_instance *i)
{
	return ky_instance_company(i, *(const uint32_t *)arg) >= .5;
}

static void add_companions(struct ky_search *w, const struct companion best[2])
{
	struct ky_condition condition = {.p = best[0].p,
		.explained = best[0].explained,
		.contrast = best[0].affected - best[0].typical,
		.rank = 3,
		.about = KY_ABOUT_COMPANY};
	struct ky_buf b = {0};

	ky_buf_puts(&b, "while ");
	put_company(&b, w->x, thread_of(w->x, best[0].name), best[0].name);
	if (best[1].name && best[1].explained >= NEARLY * best[0].explained &&
		best[1].affected - best[1].typical >= NEARLY * condition.contrast) {
		ky_buf_puts(&b, " and ");
		put_company(&b, w->x, thread_of(w->x, best[1].name), best[1].name);
	}
	condition.n_brief = b.len;
	ky_buf_printf(&b, " (%.0f %% of their time, %.0f %% of typical ones')",
		100 * best[0].affected, 100 * best[0].typical);
	ky_search_mark(w, &condition, has_company, &best[0].name);
	ky_search_add(w, condition, &b);
}

static void add_handoff(struct ky_search *w, const struct companion *c)
{
	struct ky_condition condition = {.p = c->p,
		.explained = c->explained,
		/* Fields and positions that explain as much come first. */
		.contrast = .8,
		.rank = 3,
		.about = KY_ABOUT_COMPANY};
	struct ky_buf b = {0};

	ky_buf_puts(&b, "while ");
	put_company(&b, w->x, handoff_thread(w->f, c->name), c->name);
	condition.n_brief = b.len;
	ky_buf_puts(&b, " (which ends when they end, after ");
	ky_words_put_duration(&b, c->affected);
	ky_buf_puts(&b, " instead of ");
	ky_words_put_duration(&b, c->typical);
	ky_buf_puts(&b, ")");
	ky_search_add(w, condition, &b);
}

static void add_meeting(struct ky_search *w, const struct companion *c)
{
	struct ky_condition condition = {.p = c->p,
		.explained = c->explained,
		.contrast = .8 * (c->affected - c->typical),
		.rank = 3,
		.about = KY_ABOUT_COMPANY};
	struct ky_buf b = {0};

	ky_buf_puts(&b, "while ");
	put_company(&b, w->x, thread_of(w->x, c->name), c->name);
	ky_buf_puts(&b, " for a part of it");
	condition.n_brief = b.len;
	ky_buf_printf(&b, " (%.0f %% of these, %.2g %% of typical ones)", 100 * c->affected,
		100 * c->typical);
	ky_search_add(w, condition, &b);
}

/* Whether one thread has most of the time that is charged, or two that do different things. */
static bool has_one(const struct ky_culprits *c)
{
	const struct ky_culprit *v = c->v.v;

	if (c->v.n > 1 && v[0].span != v[1].span &&
		(double)(v[0].ns + v[1].ns) >= MAIN_CULPRIT * (double)c->ns)
		return true;
	for (size_t i = 0; i < c->v.n; i++) {
		int64_t ns = 0;

		for (size_t k = 0; k < c->v.n; k++)
			ns += v[k].thread == v[i].thread ? v[k].ns : 0;
		if ((double)ns >= MAIN_CULPRIT * (double)c->ns)
			return true;
	}
	return false;
}

/*
 * The one that it waits for is in the sentence, and is no mere company. That several end the waits
 * in turn, as the users of a pool do, does not say why they come late.
 */
static bool has_culprit(const struct ky_search *w)
{
	struct ky_culprits c = {0};
	bool found = false;

	if (ky_finding_is_wait(w->x, w->f) || w->f->kind == KY_FINDING_LOCKS)
		found = ky_culprits_find(&c, w->x, w->f) < 0 || (c.ns && has_one(&c));
	ky_culprits_deinit(&c);
	return found || ky_finding_part(w->x, w->f) == KY_PART_READY;
}

static bool is_significant(const struct ky_search *w, const struct companion *c)
{
	return c->name && c->p * (double)w->n_tests < KY_ALPHA;
}

/* A thread that waits is no reason. */
static bool can_be_reason(const struct ky_search *w, uint32_t name)
{
	return !is_around(w, name) && strncmp(ky_texts_get(&w->x->names, name), "pthread:", 8);
}

/* Whether the instance was slow before its company of that name began. */
static bool is_late(const struct ky_search *w, const struct ky_company *c)
{
	return (double)c->late_ns > LATE * w->d->typical_ns;
}

/* Whether other company was there before: the span may be the next step of one work. */
static bool is_next_step(
	const struct ky_search *w, const struct ky_instance *i, const struct ky_company *late)
{
	for (size_t k = 0; k < i->company.n; k++) {
		const struct ky_company *c = ky_instance_find_company(i, i->company.v[k].name);

		if (c && 2 * c->ns >= late->late_ns && !is_late(w, c) &&
			can_be_reason(w, c->name) && !is_inside(w, c->name))
			return true;
	}
	return false;
}

/*
 * Whether most affected instances were slow before spans of that name began: then these wait for
 * the instances, rather than the other way round. Without a load, that is: it may come first.
 */
static bool is_consequence(const struct ky_search *w, uint32_t name)
{
	size_t n = 0, late = 0;

	for (size_t k = 0; k < w->f->affected.n; k++) {
		const struct ky_instance *i = w->f->affected.v[k];
		const struct ky_company *c = ky_instance_find_company(i, name);

		if (!c || !c->ns)
			continue;
		n++;
		late += !i->is_net && is_late(w, c) && !is_next_step(w, i, c);
	}
	return (double)late > MOSTLY_LATE * (double)n;
}

static int test(struct ky_search *w, uint32_t name, struct companion best[2],
	struct companion *handoff, struct companion *meeting)
{
	int r = 0;

	if (!can_be_reason(w, name) || is_consequence(w, name))
		return 0;
	if (!is_inside(w, name)) {
		r = test_company(w, name, best);
		test_meeting(w, name, meeting);
	} else if (is_place(w, name)) {
		return 0;
	}
	/* Threads that each do a part, and wait for the last one, have the same span. */
	return r ? r : test_handoff(w, name, handoff);
}

int ky_companions_test(struct ky_search *w)
{
	struct companion best[2] = {0}, handoff = {0}, meeting = {0};

	if (has_culprit(w))
		return 0;
	for (size_t i = 0; i < w->x->company.n; i++) {
		int r = test(w, w->x->company.v[i].name, best, &handoff, &meeting);

		if (r < 0)
			return r;
	}
	if (is_significant(w, &best[0]))
		add_companions(w, best);
	/* That some of another thread's work is long, too, is the tail of its distribution. */
	else if (is_significant(w, &handoff) && w->d->group->is_remarkable)
		add_handoff(w, &handoff);
	else if (is_significant(w, &meeting))
		add_meeting(w, &meeting);
	return w->error;
}
