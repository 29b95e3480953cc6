/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/firing.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/glob.h"
#include "base/hash.h"
#include "sessiond/model/memory.h"
#include "sessiond/peers/app.h"
#include "sessiond/peers/peers.h"
#include "sessiond/peers/snapshot.h"
#include "sessiond/peers/trigger-actions.h"

/* An event that fires is recorded within microseconds, unless its thread gets no processor. */
#define RECORD_NS (1000 * KY_NS_PER_MS)
/* More than events can meet a condition between two looks, and in all of them. */
#define COUNT_MAX     (UINT64_C(1) << 40)
#define COUNT_SUM_MAX (UINT64_C(1) << 60)

/* --- what an event may fire --- */

static uint64_t span_number(const struct session *s, const struct event_desc *d)
{
	const char *ending = strrchr(d->name, '_');
	uint64_t hash = ky_hash64_add(KY_HASH64_BASIS, d->name, (size_t)(ending - d->name));

	return ky_hash64_add(hash, s->name, strlen(s->name));
}

/* Returns whether the event meets the condition, or ends a span that may, or begins one. */
static bool concerns(
	const struct condition *c, const struct event_desc *d, struct event_triggers *t)
{
	struct rule *r = c->rule;
	enum ky_span_role role;
	uint32_t id_size;

	if (c->kind == WHEN_EVENT)
		return rule_wants(r, d);
	role = condition_span_role(c, d, &id_size);
	if (role == KY_SPAN_NONE)
		return false;
	t->role = role;
	t->id_size = id_size;
	return role == KY_SPAN_END && (!r->filter || filter_match(r->filter, d) == FILTER_MATCHES);
}

void firing_find(const struct session *s, const struct event_desc *d, struct event_triggers *ret)
{
	const struct trigger *t;

	ret->role = KY_SPAN_NONE;
	ret->id_size = ret->n = 0;
	ret->span = 0;
	ky_list_foreach (t, &recording_of(s)->triggers.list, node) {
		const struct condition *c = &t->spec.condition;

		if (!condition_is_theirs(c) || ret->n == KY_SET_TRIGGERS || !concerns(c, d, ret))
			continue;
		ret->timed[ret->n] = c->kind == WHEN_SPAN;
		ret->list[ret->n++] = t;
	}
	if (ret->role != KY_SPAN_NONE)
		ret->span = span_number(s, d);
}

static uint64_t bit_of(const struct trigger *t)
{
	return UINT64_C(1) << t->spec.number;
}

void firing_note(struct ring_set *set, const struct event_triggers *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		set->kind->fires |= bit_of(t->list[i]);
}

/* Notes the event for users whose condition nothing meets. Spans have the names of two events. */
static void note_unmatched(const struct condition *c, const struct event_desc *d)
{
	char span[RULE_PATTERN_MAX + 1];

	if (c->kind == WHEN_EVENT) {
		rule_note_mismatch(c->rule, d);
		if (!ky_glob_match_event(c->rule->pattern, d->name))
			rule_note_similar(c->rule, d->name);
	} else if (ky_glob_match("*_end", d->name) && strlen(d->name) < sizeof(span)) {
		snprintf(span, sizeof(span), "%.*s", (int)(strrchr(d->name, '_') - d->name),
			d->name);
		rule_note_similar(c->rule, span);
	}
}

/* Returns whether an event of the set, `mapped`: that an application maps, may fire the trigger. */
static bool has_event_that_fires(struct ring_set *set, const struct trigger *t, bool mapped)
{
	struct ky_hnode *n, *tmp;
	size_t i;

	ky_htab_foreach(&set->events, i, n, tmp)
	{
		struct set_event *e = ky_container_of(n, struct set_event, node);
		struct event_triggers found;

		if ((!e->n_apps && mapped) || e->id == KY_MAP_REFUSED)
			continue;
		if (concerns(&t->spec.condition, e->desc, &found))
			return true;
		note_unmatched(&t->spec.condition, e->desc);
	}
	return false;
}

bool firing_is_possible(const struct trigger *t, bool running)
{
	const struct channel *channel;
	struct ring_set *set;

	ky_list_foreach (channel, &t->session->channels, node)
		ky_list_foreach (set, &channel->sets, node)
			if (has_event_that_fires(set, t, running))
				return true;
	return false;
}

/*
 * Returns whether the set's programs may fire the trigger. Those of a predecessor's set may have
 * ended: so the events that it has are examined once. Later ones are noted when they are mapped.
 */
static bool may_fire(const struct ring_set *set, const struct trigger *t)
{
	struct ring_set *kind = set->kind;
	uint64_t bit = bit_of(t);

	if (!((kind->fires | kind->examined) & bit) && has_event_that_fires(kind, t, false))
		kind->fires |= bit;
	kind->examined |= bit;
	return kind->fires & bit;
}

uint64_t firing_hash(const struct event_triggers *t, uint64_t hash)
{
	if (!t->n && t->role == KY_SPAN_NONE)
		return hash;
	hash = ky_hash64_add(hash ? hash : KY_HASH64_BASIS, &t->role, sizeof(t->role));
	for (uint32_t i = 0; i < t->n; i++) {
		const struct trigger_spec *spec = &t->list[i]->spec;
		const struct filter *f = spec->condition.rule->filter;

		hash = ky_hash64_add(hash, &spec->number, sizeof(spec->number));
		hash = ky_hash64_add(hash, spec->when, strlen(spec->when) + 1);
		hash = ky_hash64_add(hash, spec->action, strlen(spec->action) + 1);
		if (f)
			hash = ky_hash64_add(hash, &f->number, sizeof(f->number));
	}
	return hash;
}

/* --- the words in the sets' first pages --- */

/* Calls change(freeze, arg) for each set of the session that has memory. */
static void for_each_set(const struct session *s,
	void (*change)(struct ky_set_freeze *f, const struct ring_set *set, void *arg), void *arg)
{
	const struct ring_set *set;
	const struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		ky_list_foreach (set, &c->sets, node) {
			struct ky_set_freeze *f = NULL;

			if (ring_set_is_made(set) && set->memory.rings_fd >= 0)
				f = ring_memory_map_freeze(&set->memory);
			if (!f)
				continue;
			change(f, set, arg);
			ring_memory_unmap_freeze(f);
		}
}

static bool is_theirs(const struct trigger *t)
{
	return condition_is_theirs(&t->spec.condition);
}

static bool is_watched(const struct triggers *all)
{
	const struct trigger *t;

	if (all->session->state != SESSION_STARTED)
		return false;
	if (all->may_freeze)
		return true;
	ky_list_foreach (t, &all->list, node)
		if (is_theirs(t))
			return true;
	return false;
}

/* Returns whether a snapshot can begin: others have copied the rings, and are not too many. */
static bool may_copy(const struct triggers *all)
{
	const struct ky_list *snapshots = &recording_of(all->session)->snapshots;
	const struct snapshot *sn;
	unsigned n = 0;

	ky_list_foreach (sn, snapshots, node)
		n++;
	return !all->n_copying && n < SNAPSHOTS_MAX;
}

static bool may_arm(const struct triggers *all, const struct trigger *t)
{
	return is_theirs(t) && trigger_may_fire(t) &&
	       (may_copy(all) || !trigger_has_action(&t->spec, DO_SNAPSHOT));
}

static void freeze_set(struct ky_set_freeze *f, const struct ring_set *set, void *unused)
{
	uint64_t none = 0;

	if (set->geometry.overwrite)
		__atomic_compare_exchange_n(&f->word, &none, KY_FROZEN_BY(0, 0), false,
			__ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* Disarms all triggers of the set. Those that have fired and were not handled stay enabled. */
static void disarm_all(struct ky_set_freeze *f)
{
	uint64_t armed = __atomic_exchange_n(&f->armed, 0, __ATOMIC_SEQ_CST);

	__atomic_store_n(&f->enabled, f->enabled & ~armed, __ATOMIC_RELEASE);
}

/* While the rings are copied, no trigger is armed that would freeze them for its own copy. */
static void begin_copy(struct ky_set_freeze *f, const struct ring_set *set, void *unused)
{
	disarm_all(f);
	freeze_set(f, set, NULL);
}

/*
 * Thaws the set, unless a trigger has fired that is still to be handled. None can fire meanwhile,
 * because none is armed: so its freeze is never undone.
 */
static void thaw_set(struct ky_set_freeze *f, const struct ring_set *set, void *unused)
{
	if (!f->word)
		return;
	disarm_all(f);
	if (!f->enabled)
		__atomic_store_n(&f->word, 0, __ATOMIC_SEQ_CST);
}

/* Takes back what allowed the trigger to fire: once it was handled, or before it is freed. */
static void disarm_set(struct ky_set_freeze *f, const struct ring_set *set, void *trigger)
{
	uint64_t bit = bit_of(trigger);

	__atomic_fetch_and(&f->armed, ~bit, __ATOMIC_SEQ_CST);
	__atomic_store_n(&f->enabled, f->enabled & ~bit, __ATOMIC_RELEASE);
}

static void arm_set(struct ky_set_freeze *f, const struct ring_set *set, void *trigger)
{
	uint64_t bit = bit_of(trigger);

	if (f->enabled & bit)
		return;
	__atomic_fetch_and(&f->recorded, ~bit, __ATOMIC_RELAXED);
	__atomic_store_n(&f->enabled, f->enabled | bit, __ATOMIC_RELEASE);
	/* Release: a thread that finds it armed is seen to fire it. */
	__atomic_fetch_or(&f->armed, bit, __ATOMIC_RELEASE);
}

void firing_arm_set(struct ring_set *set)
{
	struct triggers *all = &recording_of(set->channel->session)->triggers;
	struct ky_set_freeze *f = NULL;
	struct trigger *t;

	if (is_watched(all))
		f = ring_memory_map_freeze(&set->memory);
	if (!f)
		return;
	ky_list_foreach (t, &all->list, node)
		if (may_arm(all, t))
			arm_set(f, set, t);
	ring_memory_unmap_freeze(f);
}

static bool lives(const struct env *e, uint64_t process)
{
	const struct app *a;

	ky_list_foreach (a, &e->peers->apps, node)
		if (a->number == process)
			return true;
	return false;
}

/* The words of all sets about one trigger. */
struct look {
	struct trigger *t;
	const struct ring_set *fired; /* the last one that says so; NULL: none */
	bool unrecorded;
	uint64_t who, ns;
};

/* Takes a count of a set. Programs may have written anything there: it counts if it is possible. */
static void take_count(uint64_t *sum, uint64_t *count)
{
	uint64_t n = __atomic_exchange_n(count, 0, __ATOMIC_RELAXED);

	if (n <= COUNT_MAX)
		*sum = KY_MIN(*sum + n, COUNT_SUM_MAX);
}

static void look_at_set(struct ky_set_freeze *f, const struct ring_set *set, void *arg)
{
	struct look *l = arg;
	struct triggers *all = &recording_of(l->t->session)->triggers;
	uint64_t bit = bit_of(l->t);
	bool possible = may_fire(set, l->t);

	take_count(&all->n_missed_spans, &f->n_missed);
	if (possible)
		take_count(&l->t->n_left_out, &f->n_met[l->t->spec.number]);
	if (!(f->enabled & bit) || __atomic_load_n(&f->armed, __ATOMIC_ACQUIRE) & bit)
		return;
	if (!possible) {
		disarm_set(f, set, l->t);
		return;
	}
	l->fired = set;
	/* Acquire: pairs with ky_freeze_note_recorded. */
	if (!(__atomic_load_n(&f->recorded, __ATOMIC_ACQUIRE) & bit))
		l->unrecorded |= lives(l->t->session->env, f->word >> 32);
	l->who = f->who;
	l->ns = f->ns;
}

/* --- looking --- */

/* Returns the set's program with this number, or NULL: it has exited, or wrote another number. */
static const struct app *find_user(const struct ring_set *set, uint32_t vpid)
{
	const struct app_set *as;

	ky_list_foreach (as, &set->users, set_node)
		if (as->app->vpid == vpid)
			return as->app;
	return NULL;
}

static void fire_for_thread(struct trigger *t, const struct look *l)
{
	uint32_t pid = (uint32_t)(l->who >> 32), tid = (uint32_t)l->who;
	const struct app *a = find_user(l->fired, pid);
	char who[128], took[64] = "";

	t->n_left_out -= t->n_left_out > 0; /* it was counted as met */
	if (a)
		snprintf(who, sizeof(who), "%s (pid %" PRIu32 ", thread %" PRIu32 ")", a->name, pid,
			tid);
	else
		snprintf(who, sizeof(who),
			"a program of user %u (by its own account pid %" PRIu32 ", thread %" PRIu32
			")",
			(unsigned)l->fired->uid, pid, tid);
	if (t->spec.condition.kind == WHEN_SPAN) /* no span is older than the machine's start */
		snprintf(took, sizeof(took), ": %.3f ms",
			(double)KY_MIN(l->ns, ky_clock_ns(CLOCK_BOOTTIME)) / 1e6);
	trigger_fire(t, "%s%s", who, took);
}

/* Returns whether the event that fired the trigger will still be recorded, in a moment. */
static bool wait_for_record(struct trigger *t, const struct look *l)
{
	uint64_t now = ky_loop_time_ns(&t->session->env->loop);

	if (!l->unrecorded)
		return false;
	if (!t->unrecorded_ns)
		t->unrecorded_ns = now;
	return now - t->unrecorded_ns < RECORD_NS;
}

static void look_at_trigger(struct trigger *t)
{
	struct look l = {.t = t};

	for_each_set(t->session, look_at_set, &l);
	if (!l.fired || wait_for_record(t, &l))
		return;
	t->unrecorded_ns = 0;
	for_each_set(t->session, disarm_set, t);
	fire_for_thread(t, &l);
}

/* Arms what may fire. */
static void arm_triggers(struct triggers *all)
{
	struct trigger *t;

	ky_list_foreach (t, &all->list, node)
		if (may_arm(all, t))
			for_each_set(all->session, arm_set, t);
}

void firing_settle(struct session *s)
{
	struct triggers *all = &recording_of(s)->triggers;
	struct trigger *t, *tmp;

	ky_list_foreach_safe (t, tmp, &all->list, node)
		if (is_theirs(t))
			look_at_trigger(t);
	/* A thread that was late to freeze the set leaves that behind. */
	if (!all->n_copying)
		for_each_set(s, thaw_set, NULL);
}

/* Examines the session's sets: fires what applications have fired, arms what may fire again. */
static void look_at_session(struct session *s)
{
	struct triggers *all = &recording_of(s)->triggers;

	if (!is_watched(all) || s->step == SESSION_CREATING)
		return;
	all->firing_ns = ky_loop_time_ns(&s->env->loop);
	firing_settle(s);
	arm_triggers(all);
}

void firing_adopt(struct session *s)
{
	if (!s->abandoned && !is_watched(&recording_of(s)->triggers))
		firing_settle(s);
}

void firing_look_all(struct env *e)
{
	struct session *s;

	ky_list_foreach (s, &e->sessions, node)
		look_at_session(s);
}

void firing_reported(struct session *s, bool at_once)
{
	struct triggers *all = &recording_of(s)->triggers;
	uint64_t since = ky_loop_time_ns(&s->env->loop) - all->firing_ns;

	if (at_once)
		look_at_session(s);
	else if (is_watched(all))
		ky_timer_set(&s->env->loop, &all->firing,
			FIRING_PAUSE_NS - KY_MIN(since, FIRING_PAUSE_NS));
}

void firing_watch(struct triggers *all)
{
	ky_timer_cancel(&all->firing);
	if (is_watched(all))
		ky_timer_set(&all->session->env->loop, &all->firing, 0);
}

void firing_timer(struct ky_timer *timer)
{
	struct triggers *all = ky_container_of(timer, struct triggers, firing);

	look_at_session(all->session);
	if (is_watched(all) && !ky_timer_is_set(timer))
		ky_timer_set(&all->session->env->loop, timer, TRIGGER_LOOK_NS);
}

void firing_begin_copy(struct session *s)
{
	if (!recording_of(s)->triggers.n_copying++)
		for_each_set(s, begin_copy, NULL);
}

void firing_end_copy(struct session *s)
{
	struct triggers *all = &recording_of(s)->triggers;

	if (--all->n_copying)
		return;
	for_each_set(s, thaw_set, NULL);
	firing_watch(all);
}

/* --- the list --- */

int firing_number(const struct triggers *all, struct trigger_spec *spec)
{
	const struct trigger *t;
	uint64_t used = 0;

	if (!condition_is_theirs(&spec->condition))
		return 0;
	ky_list_foreach (t, &all->list, node)
		if (is_theirs(t))
			used |= bit_of(t);
	if (spec->number < KY_SET_TRIGGERS && !(used >> spec->number & 1))
		return 0; /* as a predecessor gave it */
	for (spec->number = 0; spec->number < KY_SET_TRIGGERS; spec->number++)
		if (!(used >> spec->number & 1))
			return 0;
	return -EDQUOT;
}

static void forget_set(struct ky_set_freeze *f, const struct ring_set *set, void *trigger)
{
	const struct trigger *t = trigger;

	disarm_set(f, set, trigger);
	__atomic_store_n(&f->n_met[t->spec.number], 0, __ATOMIC_RELAXED);
}

void firing_remove(struct trigger *t)
{
	struct channel *c;
	struct ring_set *set;

	if (!is_theirs(t))
		return;
	recording_of(t->session)->triggers.may_freeze = true;
	for_each_set(t->session, forget_set, t);
	ky_list_foreach (c, &t->session->channels, node)
		ky_list_foreach (set, &c->sets, node) {
			set->fires &= ~bit_of(t);
			set->examined &= ~bit_of(t);
		}
}
