/* SPDX-License-Identifier: MIT */
#include "explain/unknown.h"

#include "explain/answer.h"
#include "explain/culprits.h"

#define MANY_THREADLESS 0.05 /* part of the events */

static int add_unknown(struct ky_explanation *e, const char *what, const char *option)
{
	struct ky_unknown u = {strdup(what), strdup(option)};

	if (!u.what || !u.option || ky_vec_add(&e->unknown, u) < 0) {
		free(u.what);
		free(u.option);
		return -ENOMEM;
	}
	return 0;
}

/* Findings that end at time without events; also if there is none. */
static bool is_open_question(const struct ky_difference *d)
{
	bool any = false;

	for (size_t i = 0; i < d->findings.n; i++) {
		const struct ky_finding *f = d->findings.v[i];

		any = any || f->is_shown;
		if (f->is_shown && f->kind == KY_FINDING_LONGER &&
			ky_finding_part(d->x, f) == KY_PART_WAY)
			return true;
	}
	return !any;
}

static bool waits_for_nobody(const struct ky_explanation *e)
{
	for (size_t i = 0; i < e->c->chosen->findings.n; i++) {
		const struct ky_finding *f = e->c->chosen->findings.v[i];
		struct ky_culprits c = {0};
		bool found;

		if (!f->is_shown || ky_finding_part(&e->x, f) != KY_PART_LOCK)
			continue;
		found = ky_culprits_find(&c, &e->x, f) < 0 || c.ns;
		ky_culprits_deinit(&c);
		if (!found)
			return true;
	}
	return false;
}

/* A thread that others wait for has no name. */
static bool has_nameless(const struct ky_explanation *e)
{
	bool found = false;

	for (size_t i = 0; i < e->c->chosen->findings.n && !found; i++) {
		const struct ky_finding *f = e->c->chosen->findings.v[i];
		struct ky_culprits c = {0};

		if (f->is_shown && ky_finding_is_wait(&e->x, f) && !ky_culprits_find(&c, &e->x, f))
			found = c.v.n && !e->x.threads.v[c.v.v[0].thread]->name;
		ky_culprits_deinit(&c);
	}
	return found;
}

static bool waits_for_mutex(const struct ky_explanation *e)
{
	for (size_t i = 0; i < e->c->chosen->findings.n; i++) {
		const struct ky_finding *f = e->c->chosen->findings.v[i];

		if (f->is_shown && ky_finding_part(&e->x, f) == KY_PART_LOCK)
			return true;
	}
	return false;
}

/* It could run and does not: who runs instead is not recorded, or nobody does. */
static int add_ready_unknown(struct ky_explanation *e)
{
	int r = 0;

	for (size_t i = 0; i < e->c->chosen->findings.n; i++) {
		const struct ky_finding *f = e->c->chosen->findings.v[i];
		struct ky_culprits c = {0};
		bool has_others = e->x.has_others && !ky_explanation_is_net(e), is_known;

		if (!f->is_shown || ky_finding_part(&e->x, f) != KY_PART_READY)
			continue;
		is_known = ky_culprits_find(&c, &e->x, f) < 0 || (c.ns && !has_others);
		ky_culprits_deinit(&c);
		if (has_others)
			r = add_unknown(
				e, "which other programs ran", "as root, record -k --whole-system");
		return r || is_known
			       ? r
			       : add_unknown(e,
					 "whether a limit of its control group's processor time stopped it",
					 "nr_throttled in the group's cpu.stat, before and after");
	}
	return 0;
}

static bool has_provider(const struct ky_explanation *e, const char *name)
{
	char lttng[64];

	snprintf(lttng, sizeof(lttng), "lttng_ust_%s", name);
	return ky_source_has_provider(e->sources[0], name) ||
	       ky_source_has_provider(e->sources[0], lttng);
}

int ky_unknown_find(struct ky_explanation *e)
{
	const struct ky_instances *v = &e->instances[0];
	struct ky_totals totals;
	char text[160];
	int r = 0;

	ky_source_totals(e->sources[0], &totals);

	if (e->c->chosen &&
		(e->verdict == KY_VERDICT_NOT_RECORDED || is_open_question(e->c->chosen))) {
		if (!ky_source_has_kind(e->sources[0], KY_EVENT_SWITCH))
			r = add_unknown(e,
				"whether the thread ran, waited or was preempted while no event came",
				"as root, record -k '" KY_EXPLAIN_KERNEL "' --syscall='*'");
		if (!r && !has_provider(e, "pthread"))
			r = add_unknown(
				e, "locks waited for, and who held them", "record --with=pthread");
		if (!r && !has_provider(e, "libc"))
			r = add_unknown(e, "allocations", "record --with=libc");
	}
	if (!r && e->c->chosen && has_nameless(e))
		r = add_unknown(e, "the names of threads", "record -t vpid,vtid,procname");
	if (!r && e->c->chosen && waits_for_nobody(e))
		r = v->n_threadless
			    ? add_unknown(e, "who held the mutex", "record -t vtid,vpid,procname")
			    : add_unknown(e, "which other process held the mutex",
				      "kymo stat --locks lists the holds of each");
	if (!r && e->c->chosen && waits_for_mutex(e) && !has_provider(e, "kymo_statedump") &&
		!has_provider(e, "statedump"))
		r = add_unknown(e, "the name of the mutex in the program",
			"record -t vtid,vpid,procname,ip");
	if (!r && e->c->chosen)
		r = add_ready_unknown(e);
	if (!r && (double)v->n_threadless > MANY_THREADLESS * (double)totals.n_events) {
		snprintf(text, sizeof(text), "whose %llu of %llu events are: they have no thread",
			(unsigned long long)v->n_threadless, (unsigned long long)totals.n_events);
		r = add_unknown(e, text, "record -t vtid,vpid,procname");
	}
	for (size_t i = 0; i < 2 && !r && e->sources[i]; i++) {
		ky_source_totals(e->sources[i], &totals);
		if (!totals.n_discarded)
			continue;
		snprintf(text, sizeof(text), "what happened in %llu events that were discarded",
			(unsigned long long)totals.n_discarded);
		r = add_unknown(e, text, "record --subbuf-size=SIZE, larger");
	}
	return r;
}
