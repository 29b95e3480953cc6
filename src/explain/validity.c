/* SPDX-License-Identifier: MIT */
#include "explain/validity.h"

#include <math.h>

#include "analysis/source-class.h"
#include "explain/culprits.h"
#include "explain/stats.h"

#define MIN_EXCESS 0.3 /* of the mean excess */
#define MIN_ODDS   8   /* a thread that wakes may have to wait for a processor: stalls hit sleeps */
#define TIGHT	   0.25 /* the quartiles of delays of nearly the same length are so near */
#define MIN_MOST   0.5	/* of the extra time: some instances may be slow for another reason */
#define NEARLY_ALL 0.9	/* of the extra time, and of the slow instances */
#define MIN_NEARLY 10	/* slow instances */
#define COMES_BY   1.25 /* as a share of the extra time, of that of typical time */

/* Of each instance of a group, by a finding: its time, or its number. */
static double *measure_instances(const struct ky_difference *d, const struct ky_finding *f,
	struct ky_instance *const *v, size_t n, bool count)
{
	double *values = calloc(n + 1, sizeof(*values));

	for (size_t i = 0; values && i < n; i++)
		values[i] = count ? ky_finding_count(d->x, f, v[i]) : ky_finding_ns(f, v[i]);
	return values;
}

static double compare_groups(const struct ky_difference *d, const struct ky_finding *f, bool count)
{
	double *slow = measure_instances(d, f, d->slow, d->n_slow, count);
	double *typical = measure_instances(d, f, d->group->typical, d->group->n_typical, count);
	double p = slow && typical
			   ? ky_stats_mann_whitney(slow, d->n_slow, typical, d->group->n_typical)
			   : -1;

	free(slow);
	free(typical);
	return p;
}

/*
 * How likely it is that chance puts all instances with such an excess into the slow ones. The ranks
 * of all slow ones do not show that if some of them are slow for another reason, as by a stall of
 * the machine.
 */
static double compare_affected(const struct ky_difference *d, const struct ky_finding *f)
{
	size_t n_typical = d->group->n_typical, n = 0;

	for (size_t i = 0; i < n_typical; i++)
		n += ky_finding_ns(f, d->group->typical[i]) - f->typical_ns >=
		     MIN_EXCESS * f->amount;
	return ky_stats_fisher(f->affected.n, d->n_slow, n, n_typical);
}

static int set_typical(struct ky_difference *d, struct ky_finding *f)
{
	size_t n = d->group->n_typical;
	double *ns = measure_instances(d, f, d->group->typical, n, false);
	double *count = measure_instances(d, f, d->group->typical, n, true);
	int r = ns && count ? 0 : -ENOMEM;

	if (!r) {
		f->typical_ns = ky_stats_mean(ns, n);
		f->typical_count = ky_stats_mean(count, n);
	}
	free(ns);
	free(count);
	for (size_t i = 0; i < n; i++)
		f->late += ky_finding_late(f, d->group->typical[i]) / (double)n;
	f->share = f->amount / d->extra_ns;
	f->typical_share = d->typical_ns > 0 ? KY_MIN(1, f->typical_ns / d->typical_ns) : 0;
	f->exposure = f->typical_share;
	return r;
}

static bool is_affected(
	const struct ky_difference *d, const struct ky_finding *f, const struct ky_instance *i)
{
	double excess = ky_finding_ns(f, i) - f->typical_ns;

	return excess >= KY_MAX(0.4 * (i->ns - d->typical_ns), 0.3 * f->amount);
}

/* Those in which it only took longer do not have more of it. */
static int find_affected(struct ky_difference *d, struct ky_finding *f)
{
	bool is_count = f->kind != KY_FINDING_LONGER;
	double more = 0;

	for (size_t i = 0; i < d->n_slow && is_count; i++)
		more += (ky_finding_count(d->x, f, d->slow[i]) - f->typical_count) /
			(double)d->n_slow;
	for (size_t i = 0; i < d->n_slow; i++) {
		if (!is_affected(d, f, d->slow[i]) ||
			(is_count && ky_finding_count(d->x, f, d->slow[i]) - f->typical_count <
					     MIN_EXCESS * more))
			continue;
		if (ky_vec_add(&f->affected, d->slow[i]) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* The finding with the greatest excess in this instance. */
static struct ky_finding *find_blamed(const struct ky_difference *d, const struct ky_instance *i)
{
	struct ky_finding *found = NULL;
	double most = 0;

	for (size_t k = 0; k < d->findings.n; k++) {
		struct ky_finding *f = d->findings.v[k];
		double excess = ky_finding_ns(f, i) - f->typical_ns;

		if (!found || excess > most) {
			most = excess;
			found = f;
		}
	}
	return found;
}

/* Blames of slow instances, and of the longer half of typical ones: how often that is noise. */
static int count_blames(struct ky_difference *d)
{
	size_t n = d->group->n_typical, half = n / 2;
	struct ky_instance **typical = calloc(n + 1, sizeof(*typical));
	struct ky_finding *f;

	if (!typical)
		return -ENOMEM;
	memcpy(typical, d->group->typical, n * sizeof(*typical));
	qsort(typical, n, sizeof(*typical), ky_instance_by_length);
	for (size_t i = 0; i < d->n_slow; i++) {
		/* Of those that are hardly longer, noise would decide. */
		if (d->slow[i]->ns - d->typical_ns < MIN_EXCESS * d->extra_ns)
			continue;
		d->n_blaming++;
		f = find_blamed(d, d->slow[i]);
		if (f)
			f->blamed++;
	}
	for (size_t i = half; i < n; i++) {
		f = find_blamed(d, typical[i]);
		if (f)
			f->noise += 1 / (double)(n - half);
	}
	free(typical);
	return 0;
}

/* Three quarters of the excesses are five times the spread of all others: that is no noise. */
static int drop_noise(struct ky_difference *d, struct ky_finding *f)
{
	double *ns = calloc(d->n_all + 1, sizeof(*ns)), spread, low, high;
	double *affected = measure_instances(d, f, f->affected.v, f->affected.n, false);
	int r = ns && affected ? 0 : -ENOMEM;
	size_t n = 0;

	for (size_t i = 0; i < d->n_all && !r; i++) {
		if (!is_affected(d, f, d->all[i]))
			ns[n++] = ky_finding_ns(f, d->all[i]);
	}
	if (!r) {
		ky_stats_sort(ns, n);
		ky_stats_sort(affected, f->affected.n);
		spread = ky_stats_quantile(ns, n, .95) - f->typical_ns;
		low = ky_stats_quantile(affected, f->affected.n, .25) - f->typical_ns;
		high = ky_stats_quantile(affected, f->affected.n, .75) - f->typical_ns;
		if (low >= 5 * spread)
			f->noise = 0;
		/* The cut alone makes those of a tail narrow. */
		f->is_tight = d->group->is_mode && low >= 5 * spread && high - low < TIGHT * low;
		if (!f->is_tight)
			f->exposure = KY_MAX(f->exposure, f->late);
	}
	free(ns);
	free(affected);
	return r;
}

/*
 * Whether the affected times are beyond the tail of the finding's own times, as whole instances
 * must be (groups.h). Otherwise the finding varies that much anyway.
 */
static int find_tail(struct ky_difference *d, struct ky_finding *f)
{
	double *logs = calloc(d->n_all + 1, sizeof(*logs)), affected = 0;
	size_t n = 0;

	if (!logs)
		return -ENOMEM;
	for (size_t i = 0; i < d->n_all; i++) {
		if (!is_affected(d, f, d->all[i]))
			logs[n++] = log(KY_MAX(1, ky_finding_ns(f, d->all[i])));
	}
	for (size_t i = 0; i < f->affected.n; i++)
		affected += log(KY_MAX(1, ky_finding_ns(f, f->affected.v[i]))) /
			    (double)f->affected.n;
	ky_stats_sort(logs, n);
	f->is_in_tail = affected <=
			ky_stats_tail(logs, n,
				(double)f->affected.n / (double)KY_MAX(n + f->affected.n, 1));
	free(logs);
	return 0;
}

static bool is_candidate(const struct ky_difference *d, const struct ky_finding *f)
{
	return f->share >= KY_MIN_SHARE && f->affected.n >= KY_MIN((size_t)3, d->n_slow);
}

/* Whether three quarters of typical instances pass time in it. */
static bool is_usual(const struct ky_difference *d, const struct ky_finding *f)
{
	size_t n = 0;

	for (size_t i = 0; i < d->group->n_typical; i++)
		n += ky_finding_ns(f, d->group->typical[i]) > 0;
	return 4 * n >= 3 * d->group->n_typical;
}

/*
 * Whether the thread does something that may be a reason. To sleep is none, nor is the call by
 * which it wakes others.
 */
static bool does_something(const struct ky_difference *d, const struct ky_culprit *c)
{
	static const char *const calls[] = {"nanosleep()", "clock_nanosleep()", "futex()",
		"write()", "writev()", "sendto()", "sendmsg()"};
	const char *name = ky_texts_get(&d->x->names, c->span);

	for (size_t i = 0; i < KY_ARRAY_SIZE(calls); i++) {
		if (!strcmp(name, calls[i]))
			return false;
	}
	return *name;
}

/* Whether instances end in another thread than they begin. */
static bool do_change_threads(const struct ky_difference *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_slow; i++)
		n += d->slow[i]->thread != d->slow[i]->end_thread;
	return 2 * n > d->n_slow;
}

/*
 * A call of a library, in which a thread waits for work; of the kernel, too, if instances end in
 * another thread than they begin.
 */
static bool is_pickup(const struct ky_difference *d, const struct ky_component *c)
{
	const char *name = ky_texts_get(&d->x->names, c->a);

	return c->kind == KY_PART_SPAN && c->parent == KY_ROOT &&
	       (ky_source_is_library(name) ||
		       (ky_texts_end_in(name, "()", NULL) && do_change_threads(d)));
}

/* A stage that begins in one thread, and ends in another, waits to be taken. */
static bool is_queue(const struct ky_component *c)
{
	return c->kind == KY_PART_SPAN && c->parent == KY_ROOT && 2 * c->n_given > c->n_stages;
}

/*
 * Time of an asynchronous instance outside of its stages: nobody works on it until some thread
 * wakes and takes it. A place is no reason for that.
 */
static bool is_between_stages(const struct ky_difference *d, const struct ky_finding *f)
{
	const struct ky_component *c = ky_component_of(d->x, f->component);

	if (!d->x->is_async || c->number == KY_ROOT)
		return false;
	while (c->kind != KY_PART_SPAN)
		c = ky_component_of(d->x, c->parent);
	return c->number == KY_ROOT || is_pickup(d, c) || is_queue(c);
}

/*
 * Whether all instances wait there and nobody is known to end that, or those who do are in no span:
 * it is a place in which time passes, as a sleep is, and slow ones may have been chosen by it. So
 * is the condition by which a thread is given an asynchronous instance.
 */
static int find_unended(struct ky_difference *d, struct ky_finding *f)
{
	enum ky_component_kind part = ky_finding_part(d->x, f);
	bool is_given = (d->x->is_async && part == KY_PART_CONDITION) ||
			(do_change_threads(d) && is_between_stages(d, f));
	struct ky_culprits c = {0};
	int64_t known = 0;
	int r;

	if (part != KY_PART_WAIT && part != KY_PART_CONDITION)
		return 0;
	r = ky_culprits_find(&c, d->x, f);
	for (size_t i = 0; i < c.v.n; i++)
		known += does_something(d, &c.v.v[i]) ? c.v.v[i].ns : 0;
	f->is_unended = is_usual(d, f) ? 2 * known <= c.ns : is_given && !c.ns;
	ky_culprits_deinit(&c);
	return r;
}

static bool has_odds(double share, double exposure)
{
	return share >= 1 ||
	       (exposure < 1 && share / (1 - share) >= MIN_ODDS * exposure / (1 - exposure));
}

/* The part of the waits in which those who are waited for are in the span. */
static double part_in(const struct ky_culprits *c, uint32_t span)
{
	double ns = 0;

	for (size_t i = 0; i < c->v.n; i++)
		ns += c->v.v[i].span == span ? (double)c->v.v[i].ns : 0;
	return c->ns ? ns / (double)c->ns : 0;
}

/* Whether slow instances wait for other work than typical ones do. Returns 1, 0, or -ENOMEM. */
static int waits_for_other_work(const struct ky_difference *d, const struct ky_finding *f)
{
	struct ky_finding usual = *f;
	struct ky_culprits slow = {0}, typical = {0};
	int r = ky_culprits_find(&slow, d->x, f);

	usual.affected.v = d->group->typical;
	usual.affected.n = d->group->n_typical;
	if (!r)
		r = ky_culprits_find(&typical, d->x, &usual);
	if (!r && slow.v.n && slow.v.v[0].span) {
		const char *name = ky_texts_get(&d->x->names, slow.v.v[0].span);
		double part = part_in(&slow, slow.v.v[0].span);

		/* That it could run and did not is the load of the machine. */
		r = !ky_texts_end_in(name, " and ready to run", NULL) && part >= .5 &&
		    part_in(&typical, slow.v.v[0].span) < .5 * part;
	}
	ky_culprits_deinit(&slow);
	ky_culprits_deinit(&typical);
	return r;
}

/*
 * Whether slow instances wait more than long ones wait anyway. If typical ones wait there, too, the
 * wait is a part of the work, and slow ones may have been chosen by it, or by a stall that hits the
 * thread that is waited for: as of a place, the wait must have far more than its part, unless that
 * thread does something else meanwhile.
 */
static bool is_more_wait(const struct ky_difference *d, const struct ky_finding *f)
{
	if (is_usual(d, f) && f->typical_share >= KY_MIN_SHARE && waits_for_other_work(d, f) != 1)
		return has_odds(f->share, f->typical_share);
	/* Typical instances may wait all the time, too; slow ones then wait far longer. */
	return f->share > 1.2 * f->typical_share ||
	       (d->group->is_remarkable && f->amount > 2 * f->typical_ns);
}

static const struct ky_component *queue_around(
	const struct ky_difference *d, const struct ky_component *c)
{
	while (c->parent && !is_queue(c))
		c = ky_component_of(d->x, c->parent);
	return c->parent ? c : NULL;
}

/* Whether most typical instances have the component. */
static bool is_of_most(const struct ky_difference *d, uint32_t component)
{
	size_t n = 0;

	for (size_t i = 0; i < d->group->n_typical; i++)
		n += ky_instance_part(d->group->typical[i], component) != NULL;
	return 2 * n > d->group->n_typical;
}

/*
 * Whether it comes more often in a queue because the queue is longer: the thread that takes
 * instances does meanwhile, for others, what it does for each.
 */
static bool comes_in_queue(const struct ky_difference *d, const struct ky_finding *f)
{
	const struct ky_component *c = ky_component_of(d->x, f->component);
	bool is_own = false;

	if ((f->kind != KY_FINDING_COUNT && f->kind != KY_FINDING_NEW) || !queue_around(d, c))
		return false;
	for (uint32_t k = 1; k <= d->x->components.all.n && !is_own; k++) {
		const struct ky_component *o = ky_component_of(d->x, k);

		is_own = o->kind == c->kind && o->a == c->a && o->b == c->b &&
			 !queue_around(d, o) && is_of_most(d, k);
	}
	return is_own;
}

/* A longer asynchronous instance also has more of all that its threads do anyway. */
static bool comes_by(const struct ky_difference *d, const struct ky_finding *f)
{
	return d->x->is_async && (f->share < COMES_BY * f->typical_share || comes_in_queue(d, f));
}

/* Counts and waits are not what slow instances were chosen by: they can be compared. */
static int test_independent(struct ky_difference *d, struct ky_finding *f, double n_tests)
{
	int r = is_candidate(d, f) ? find_unended(d, f) : 0;

	if (r || !is_candidate(d, f) || ky_finding_is_place(d->x, f) ||
		(f->is_unended && is_between_stages(d, f)))
		return r;
	f->p = compare_groups(d, f, f->kind != KY_FINDING_LONGER);
	if (f->p < 0)
		return -ENOMEM;
	if (f->kind == KY_FINDING_LONGER && f->share >= MIN_MOST)
		f->p = KY_MIN(f->p, compare_affected(d, f));
	f->p = KY_MIN(1, f->p * n_tests);
	f->is_valid = f->p < KY_ALPHA && !comes_by(d, f) &&
		      (f->kind != KY_FINDING_LONGER || is_more_wait(d, f));
	return 0;
}

/* The sums that are left when valid findings are taken out. */
struct rest {
	double n, share, exposure, noise, n_tests;
};

static void take_out(struct rest *rest, const struct ky_finding *f)
{
	rest->n -= (double)f->blamed;
	rest->share -= f->share;
	rest->exposure -= f->exposure;
	rest->noise -= f->noise;
}

/* Delays of nearly the same length are hardly the machine's: less evidence is enough. */
static bool is_surprising(double p, double share, double exposure, bool is_tight)
{
	return p < (is_tight ? 8 * KY_ALPHA : KY_ALPHA / 3) && has_odds(share, exposure);
}

/* Blame: what hits anywhere hits in proportion to time. */
static double test_blame(const struct rest *rest, const struct ky_finding *sum)
{
	double k = KY_MIN((double)sum->blamed, rest->n);
	double by_time = rest->exposure > 0 ? sum->exposure / rest->exposure : 1;
	double by_noise = sum->noise / KY_MAX(KY_MAX(rest->noise, sum->noise), .01);
	double q = KY_MIN(1, KY_MAX(KY_MAX(by_time, by_noise), .01));

	if (rest->n < 1 || k < 1)
		return 1;
	return KY_MIN(1, rest->n_tests * ky_stats_binomial((size_t)rest->n, (size_t)k, q));
}

static bool is_long(
	const struct ky_difference *d, const struct ky_finding *f, const struct rest *rest)
{
	return ky_finding_is_place(d->x, f) && !f->is_valid &&
	       f->share >= KY_MAX(.15 * rest->share, KY_MIN_SHARE) &&
	       f->exposure < rest->exposure && is_candidate(d, f) && !f->is_in_tail &&
	       (!f->is_unended || f->is_tight || f->typical_share < .5) && !is_between_stages(d, f);
}

/*
 * Of places that are surprising together, those that have more than their part are named. If none
 * has, those are with delays of nearly the same length.
 */
static void set_valid(struct ky_finding **v, size_t n, const struct rest *rest, double p)
{
	size_t n_valid = 0;

	for (size_t i = 0; i < n; i++) {
		v[i]->p = p;
		v[i]->is_valid = has_odds(
			v[i]->share / rest->share, v[i]->exposure / rest->exposure);
		n_valid += v[i]->is_valid;
	}
	for (size_t i = 0; i < n && !n_valid; i++)
		v[i]->is_valid = v[i]->is_tight;
}

/*
 * The largest alone, then the largest two and three together: half of the slow ones may be slow for
 * another reason.
 */
static void test_together(struct ky_finding **v, size_t n, struct rest *rest)
{
	struct ky_finding sum = {0};

	for (size_t m = 1; m <= KY_MIN(n, (size_t)3); m++) {
		const struct ky_finding *f = v[m - 1];
		double p;

		sum.blamed += f->blamed;
		sum.exposure += f->exposure;
		sum.noise += f->noise;
		sum.share += f->share;
		p = test_blame(rest, &sum);
		if (!is_surprising(p, sum.share / rest->share, sum.exposure / rest->exposure,
			    v[0]->is_tight))
			continue;
		set_valid(v, m, rest, p);
		for (size_t i = 0; i < m; i++) {
			if (v[i]->is_valid)
				take_out(rest, v[i]);
		}
		return;
	}
}

static void test_alone(struct ky_finding *f, struct rest *rest)
{
	double p = rest->exposure > f->exposure ? test_blame(rest, f) : 1;

	if (!is_surprising(p, f->share / rest->share, f->exposure / rest->exposure, f->is_tight))
		return;
	f->p = p;
	f->is_valid = true;
	take_out(rest, f);
}

/*
 * Typical instances may pass nearly all of their time in a span inside, too: where a stall hits
 * says nothing then. But stalls are not all of nearly the same length.
 */
static bool is_nearly_all(const struct ky_difference *d, const struct ky_finding *f)
{
	return f->kind == KY_FINDING_LONGER && f->is_tight && !f->is_in_tail &&
	       ky_component_of(d->x, f->component)->parent > KY_ROOT && !is_between_stages(d, f) &&
	       f->share >= KY_MAX(NEARLY_ALL, f->typical_share) && f->affected.n >= MIN_NEARLY &&
	       (double)f->affected.n >= NEARLY_ALL * (double)d->n_slow;
}

static int test_long(struct ky_difference *d, double n_tests)
{
	struct rest rest = {(double)d->n_blaming, 1, 1, 1, n_tests};
	KY_VEC(struct ky_finding *) v = {0};
	int r = 0;

	for (size_t i = 0; i < d->findings.n && !r; i++) {
		if (is_candidate(d, d->findings.v[i]))
			r = find_tail(d, d->findings.v[i]);
		if (!r)
			r = drop_noise(d, d->findings.v[i]);
		if (d->findings.v[i]->is_valid)
			take_out(&rest, d->findings.v[i]);
	}
	for (size_t i = 0; i < d->findings.n && !r; i++) {
		if (is_long(d, d->findings.v[i], &rest))
			r = ky_vec_add(&v, d->findings.v[i]);
	}
	if (!r && d->group->is_remarkable) {
		test_together(v.v, v.n, &rest);
		for (size_t i = 0; i < v.n; i++) {
			if (!v.v[i]->is_valid)
				test_alone(v.v[i], &rest);
		}
	}
	for (size_t i = 0; i < d->findings.n && d->group->is_remarkable; i++)
		d->findings.v[i]->is_valid |= is_nearly_all(d, d->findings.v[i]);
	ky_vec_deinit(&v);
	return r;
}

int ky_validity_test(struct ky_difference *d)
{
	size_t n_tests = 0;
	int r = 0;

	for (size_t i = 0; i < d->findings.n && !r; i++) {
		r = set_typical(d, d->findings.v[i]);
		if (!r)
			r = find_affected(d, d->findings.v[i]);
		n_tests += d->findings.v[i]->share >= KY_MIN_SHARE;
	}
	if (!r)
		r = count_blames(d);
	for (size_t i = 0; i < d->findings.n && !r; i++)
		r = test_independent(d, d->findings.v[i], (double)KY_MAX(n_tests, (size_t)1));
	return r ? r : test_long(d, (double)KY_MAX(n_tests, (size_t)1));
}
