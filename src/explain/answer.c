/* SPDX-License-Identifier: MIT */
#include "explain/answer.h"

#include <math.h>

#include "explain/culprits.h"
#include "explain/outliers.h"
#include "explain/sentence.h"
#include "explain/times.h"
#include "explain/words.h"

#define MAX_PASSED .1  /* part of typical time, in a place that is a cause */
#define MIN_PLACE  .33 /* part of the extra time, in a mere place that is a cause in part */
#define ALWAYS	   .6  /* of the excess: explained by it, it is said to come always */
#define MIN_ALL	   .8  /* of the affected instances, that a condition is said to be of */
#define MIN_TIMES  8   /* slow instances that may come at certain times */

double ky_answer_share(const struct ky_difference *d)
{
	double share = 0;

	for (size_t i = 0; i < d->findings.n; i++)
		share += d->findings.v[i]->is_shown ? d->findings.v[i]->share : 0;
	return share;
}

bool ky_answer_is_queue(const struct ky_explain *x, const struct ky_finding *f)
{
	struct ky_culprits c = {0};
	int64_t ns = 0;

	if (ky_finding_part(x, f) == KY_PART_READY && !ky_culprits_find(&c, x, f)) {
		for (size_t i = 0; i < c.v.n; i++)
			ns += x->threads.v[c.v.v[i].thread]->n_instances ? c.v.v[i].ns : 0;
	}
	ky_culprits_deinit(&c);
	return 2 * ns > c.ns;
}

static double largest(const struct ky_difference *d, bool of_queues)
{
	for (size_t i = 0; i < d->findings.n; i++) {
		const struct ky_finding *f = d->findings.v[i];

		if (f->is_shown && ky_answer_is_queue(d->x, f) == of_queues)
			return f->share;
	}
	return 0;
}

/* To queue with peers is a consequence of whatever makes them work: it comes after causes. */
static bool do_queues_come_last(const struct ky_difference *d)
{
	return largest(d, false) >= .5 * largest(d, true);
}

size_t ky_answer_find_top(
	const struct ky_difference *d, const struct ky_finding *top[KY_MAX_CLAUSES])
{
	bool queues_last = do_queues_come_last(d);
	size_t n = 0;
	double most = 0;

	for (size_t pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < d->findings.n && n < KY_MAX_CLAUSES; i++) {
			const struct ky_finding *f = d->findings.v[i];

			if (!f->is_shown || (queues_last && ky_answer_is_queue(d->x, f)) != pass ||
				f->share < KY_MAX(.15, n ? .25 * most : 0))
				continue;
			top[n++] = f;
			most = KY_MAX(most, f->share);
		}
	}
	return n;
}

bool ky_answer_has_causes(const struct ky_comparison *c)
{
	const struct ky_finding *top[KY_MAX_CLAUSES];

	return ky_answer_find_top(c->chosen, top) && c->part >= .5 &&
	       (ky_answer_share(c->chosen) >= .5 || c->chosen->findings.v[0]->is_shown);
}

double ky_answer_extra_load(const struct ky_difference *d)
{
	return ky_explanation_load(d, false) - ky_explanation_load(d, true);
}

bool ky_explanation_is_net(const struct ky_explanation *e)
{
	return e->c == &e->comparisons[1];
}

static double mean_load(struct ky_instance *const *v, size_t n)
{
	double ns = 0;

	for (size_t i = 0; i < n; i++)
		ns += (double)ky_instance_load(v[i]);
	return n ? ns / (double)n : 0;
}

double ky_explanation_load(const struct ky_difference *d, bool of_typical)
{
	return of_typical ? mean_load(d->group->typical, d->group->n_typical)
			  : mean_load(d->slow, d->n_slow);
}

/* --- sentences --- */

static void put_brief(struct ky_buf *b, const struct ky_condition *c, const char *before)
{
	ky_buf_printf(b, "%s%.*s", before, (int)c->n_brief, c->text);
}

/* Whether a part of the affected instances lacks the condition, and nothing is known of these. */
static bool is_of_some(const struct ky_finding *f)
{
	const struct ky_condition *c = f->conditions.v;

	return c->part > 0 && c->part < MIN_ALL && !f->other.text && !strncmp(c->text, "when ", 5);
}

/* With the best condition; and company, which is more of a reason than a position. */
static void put_clause(struct ky_buf *b, const struct ky_explanation *e, const struct ky_finding *f)
{
	const struct ky_condition *best = f->conditions.n ? f->conditions.v : NULL;
	/* Of two traces, instances with the property were shorter in the other one. */
	bool is_limit = best && !e->sources[1] && best->explained < ALWAYS &&
			ky_condition_is_limit(best);
	bool says_only = best && !strncmp(best->text, "only ", 5);

	ky_buf_puts(b, f->clause);
	if (!best || best->is_evidence)
		return;
	for (size_t i = 1; i < f->conditions.n && best->about == KY_ABOUT_TIME; i++) {
		const struct ky_condition *c = &f->conditions.v[i];

		if (c->about == KY_ABOUT_COMPANY && c->explained >= .5) {
			put_brief(b, c, " — ");
			put_brief(b, best, ", ");
			return;
		}
	}
	put_brief(b, best,
		is_of_some(f)		 ? " — mostly "
		: is_limit && !says_only ? " — only "
					 : " — ");
	if (f->other.text)
		put_brief(b, &f->other, ", or ");
	ky_buf_puts(b, is_limit ? ", not always" : "");
}

static double share_percent(double share)
{
	return round(100 * KY_MIN(1, share));
}

static bool is_of_peers(const struct ky_difference *d)
{
	double peers = 0;

	for (size_t i = 0; i < d->n_slow; i++)
		peers += (double)ky_instance_peers(d->slow[i]);
	return peers > .5 * mean_load(d->slow, d->n_slow) * (double)d->n_slow;
}

/* The load is beside the extra time, which is measured without it. */
static void put_load(struct ky_buf *b, const struct ky_explanation *e)
{
	if (!ky_explanation_is_net(e))
		return;
	ky_buf_printf(b, "; besides, %s run on its processor instead, for ",
		is_of_peers(e->c->chosen) ? "threads with the same span" : "other programs");
	ky_words_put_duration(b, ky_explanation_load(e->c->chosen, false));
	ky_buf_puts(b, " instead of ");
	ky_words_put_duration(b, ky_explanation_load(e->c->chosen, true));
}

/* "slow", "slower", or of which ones it is said. */
static void put_is_slow(struct ky_buf *b, const struct ky_explanation *e)
{
	double percent = e->c->chosen->group->percent;

	ky_buf_printf(b, "%s is %s", e->question.span, e->sources[1] ? "slower" : "slow");
	if (percent > 0)
		ky_buf_printf(b, " in its slowest %.0f %%", percent);
}

static void put_causes(struct ky_buf *b, const struct ky_explanation *e,
	const struct ky_finding *const *top, size_t n)
{
	const struct ky_finding *slowest[KY_MAX_CLAUSES];

	put_is_slow(b, e);
	ky_buf_puts(b, " because ");
	put_clause(b, e, top[0]);
	ky_buf_printf(b, " (%.0f %% of the extra time)", share_percent(e->c->part * top[0]->share));
	for (size_t i = 1; i < n; i++) {
		ky_buf_puts(b, ", and because ");
		put_clause(b, e, top[i]);
		ky_buf_printf(b, " (%.0f %%)", share_percent(e->c->part * top[i]->share));
	}
	if (e->c->slowest) {
		n = ky_answer_find_top(e->c->slowest, slowest);
		ky_buf_printf(b, "; the slowest %.0f, because ", e->c->slowest->group->n_all_slow);
		put_clause(b, e, slowest[0]);
	}
	if (ky_answer_extra_load(e->c->chosen) >= KY_MIN_NET_LOAD * e->c->chosen->extra_ns)
		put_load(b, e);
}

/* Slow ones with nothing else in common may come at certain times: the machine's, or a peer's. */
static bool put_times(struct ky_buf *b, const struct ky_explanation *e)
{
	const struct ky_difference *d = e->c->part < 1 ? e->c->whole : e->c->chosen;
	uint32_t root = KY_ROOT;
	struct ky_finding f = {.kind = KY_FINDING_LONGER,
		.component = KY_ROOT,
		.mean_ns = {d->slow_ns, d->typical_ns},
		.typical_ns = d->typical_ns};
	struct ky_times times = {0};
	bool found = false;

	if (e->sources[1] || d->n_slow < MIN_TIMES)
		return false;
	f.components.v = &root;
	f.components.n = 1;
	f.affected.v = d->slow;
	f.affected.n = d->n_slow;
	/* Without the sample of all, no trend is looked for. */
	if (ky_times_find(&times, d, &f, NULL, 0) < 0)
		return false;
	for (size_t i = 0; i < times.n && !found; i++) {
		found = times.v[i].rank < 4 && times.v[i].explained >= .6;
		if (found)
			put_brief(b, &times.v[i], "; they come ");
	}
	for (size_t i = 0; i < times.n; i++)
		free(times.v[i].text);
	return found;
}

/*
 * Those that say why. A mere place does if it has much of the extra time, if typical ones hardly
 * pass time there, and if slow ones do not come at certain times: stalls at these would hit some
 * place, too.
 */
static size_t find_partial(const struct ky_difference *d, const struct ky_finding *const *top,
	size_t n, bool have_times, const struct ky_finding *partial[KY_MAX_CLAUSES])
{
	size_t n_partial = 0;

	for (size_t i = 0; i < n; i++) {
		if (!ky_finding_is_place(d->x, top[i]) || top[i]->conditions.n ||
			(top[i]->typical_share < MAX_PASSED && !have_times &&
				top[i]->share >= MIN_PLACE))
			partial[n_partial++] = top[i];
	}
	return n_partial;
}

/* The causes that are known come first; that they are not all follows. */
static void put_partial(struct ky_buf *b, const struct ky_explanation *e,
	const struct ky_finding *const *v, size_t n)
{
	put_is_slow(b, e);
	ky_buf_puts(b, " in part because ");
	for (size_t i = 0; i < n; i++) {
		ky_buf_puts(b, i ? ", and because " : "");
		put_clause(b, e, v[i]);
		ky_buf_printf(b, " (%.0f %%%s)", share_percent(e->c->part * v[i]->share),
			i ? "" : " of the extra time");
	}
	ky_buf_puts(b, "; nothing recorded tells why for the rest");
}

/* The means of the middle halves of two traces; with --slowest, of those that are compared. */
static void find_middles(const struct ky_explanation *e, double ret[2])
{
	const struct ky_difference *d = e->c->chosen;
	bool is_known = d->group->middle_ns[0] > 0;

	ret[0] = is_known ? d->group->middle_ns[0] : d->slow_ns;
	ret[1] = is_known ? d->group->middle_ns[1] : d->typical_ns;
}

static void put_not_slower(struct ky_buf *b, const struct ky_explanation *e)
{
	char slow[32], typical[32];
	double ns[2];
	bool is_faster;

	find_middles(e, ns);
	is_faster = ns[0] * KY_MIN_SLOWER < ns[1];
	ky_buf_printf(b, "%s is %s than in %s: %s against %s%s", e->question.span,
		is_faster ? "faster" : "not slower", e->question.against,
		ky_words_duration(slow, sizeof(slow), ns[0]),
		ky_words_duration(typical, sizeof(typical), ns[1]),
		is_faster ? "" : "; two runs differ by that anyway");
}

/* Neither the middle half nor the slowest percent of the first of two traces. */
static bool is_not_slower(const struct ky_explanation *e)
{
	double ns[2];

	find_middles(e, ns);
	return e->sources[1] && !(e->c->chosen->group->percent > 0) &&
	       ns[0] < KY_MIN_SLOWER * ns[1];
}

static void put_slower(struct ky_buf *b, const struct ky_explanation *e)
{
	const struct ky_group *g = e->c->chosen->group;
	char slow[32], typical[32];

	if (g->percent > 0) {
		put_not_slower(b, e);
		ky_buf_printf(b,
			"; but nothing recorded tells why its slowest %.0f %% take %s instead of %s",
			g->percent, ky_words_duration(slow, sizeof(slow), g->tail_ns[0]),
			ky_words_duration(typical, sizeof(typical), g->tail_ns[1]));
		return;
	}
	ky_buf_printf(b, "%s: nothing recorded tells why it takes %s instead of %s",
		e->question.span, ky_words_duration(slow, sizeof(slow), e->c->chosen->slow_ns),
		ky_words_duration(typical, sizeof(typical), e->c->chosen->typical_ns));
}

/* If nothing says why, names the place with most of the extra time. */
static void put_not_recorded(struct ky_buf *b, const struct ky_explanation *e,
	const struct ky_finding *const *top, size_t n)
{
	const struct ky_difference *d = e->c->chosen;
	const struct ky_finding *f = d->findings.n ? d->findings.v[0] : NULL;
	const struct ky_finding *partial[KY_MAX_CLAUSES];
	struct ky_buf times = {0};
	bool have_times = put_times(&times, e);
	size_t n_partial = find_partial(d, top, n, have_times, partial);

	if (n_partial) {
		put_partial(b, e, partial, n_partial);
		ky_buf_deinit(&times);
		return;
	}
	if (e->sources[1])
		put_slower(b, e);
	else
		ky_buf_printf(b, "%s: nothing recorded tells why %sthe slow ones are slow",
			e->question.span, e->c->part < 1 ? "most of " : "");
	if (e->c->part >= 1 && f && f->is_tracer) {
		ky_buf_printf(b, ", but for %.0f %% of the extra time ", share_percent(f->share));
		ky_buf_puts(b, f->clause);
	} else if (e->c->part >= 1 && f && f->share >= .6 && f->share >= f->typical_share + .05 &&
		   (double)f->affected.n >= KY_MAX(3, .6 * (double)d->n_slow)) {
		ky_buf_printf(b,
			", but %.0f %% of the extra time (%.0f %% of the typical) passes in ",
			share_percent(f->share), share_percent(f->typical_share));
		ky_sentence_place(b, d->x, f);
	}
	if (e->c->part >= 1 && f && f->executed && f->share >= .6)
		ky_buf_puts(b, f->executed);
	if (times.data)
		ky_buf_puts(b, times.data);
	ky_buf_deinit(&times);
	for (size_t i = 0; i < n; i++) {
		ky_buf_printf(
			b, "; for %.0f %% of it: ", share_percent(e->c->part * top[i]->share));
		put_clause(b, e, top[i]);
	}
}

void ky_answer_put(struct ky_buf *b, struct ky_explanation *e)
{
	const struct ky_difference *d = e->c->chosen;
	const struct ky_finding *top[KY_MAX_CLAUSES];
	size_t n = ky_answer_find_top(d, top);

	e->verdict = KY_VERDICT_NOTHING;
	if (is_not_slower(e)) {
		put_not_slower(b, e);
	} else if (ky_answer_has_causes(e->c)) {
		e->verdict = KY_VERDICT_CAUSES;
		put_causes(b, e, top, n);
	} else if (d->group->is_remarkable || n) {
		e->verdict = KY_VERDICT_NOT_RECORDED;
		put_not_recorded(b, e, top, n);
	} else {
		ky_buf_printf(b,
			"%s: nothing stands out: the slow ones are the tail of one distribution, and nothing else differs",
			e->question.span);
	}
	if (!e->sources[1] && !b->error)
		ky_outliers_put(b, e);
}
