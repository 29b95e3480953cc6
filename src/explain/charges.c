/* SPDX-License-Identifier: MIT */
/* Charges waits of instances to what others did. */
#include "explain/accounting.h"

#define MIN_WAIT_NS   1000 /* waits that are charged to somebody */
#define CHARGE_BUDGET 4096

struct charge_target {
	struct ky_account *account;
	struct ky_instance *instance;
	uint32_t component;
	int64_t charged;
};

static void add_blame(void *arg, const struct ky_blame *blame)
{
	struct charge_target *target = arg;
	struct ky_instance *i = target->instance;
	struct ky_blame new = *blame, *least = NULL;

	target->charged += blame->ns;
	for (size_t k = 0; k < i->blames.n; k++) {
		struct ky_blame *b = &i->blames.v[k];

		if (b->component == target->component && b->thread == blame->thread &&
			b->span == blame->span && b->via == blame->via &&
			b->caller == blame->caller && b->ready == blame->ready &&
			b->ready_span == blame->ready_span) {
			b->ns += blame->ns;
			return;
		}
		least = !least || b->ns < least->ns ? b : least;
	}
	new.component = target->component;
	if (i->blames.n < KY_MAX_BLAMES)
		ky_account_check(target->account, ky_vec_add(&i->blames, new));
	else if (least->ns < new.ns)
		*least = new;
}

static void add_wait(struct ky_account *a, struct ky_instance *i, const struct ky_wait *wait)
{
	for (size_t k = 0; k < i->waits.n; k++) {
		struct ky_wait *w = &i->waits.v[k];

		if (w->component == wait->component && w->mutex == wait->mutex) {
			w->n++;
			w->n_holders += wait->n_holders;
			w->ns += wait->ns;
			w->charged += wait->charged;
			return;
		}
	}
	if (i->waits.n < KY_MAX_BLAMES)
		ky_account_check(a, ky_vec_add(&i->waits, *wait));
}

static void add_load(struct ky_account *a, struct ky_instance *i, uint32_t component, int64_t ns,
	int64_t peers_ns)
{
	for (size_t k = 0; k < i->loads.n; k++) {
		if (i->loads.v[k].component == component) {
			i->loads.v[k].ns += ns;
			i->loads.v[k].peers_ns += peers_ns;
			return;
		}
	}
	ky_account_check(a, ky_vec_add(&i->loads, (struct ky_load){component, ns, peers_ns}));
}

/* The three kinds of waits: for a mutex, for a thread, for a processor. */
struct wait_for {
	const struct ky_mutex *mutex;
	uint64_t address; /* of the mutex, as the waiter knows it */
	uint32_t thread, processor;
};

static void charge_window(struct ky_account *a, const struct ky_timeline *t, struct ky_window *w,
	uint32_t component, const struct wait_for *wait, int64_t from, int64_t to)
{
	struct charge_target target = {a, w->instance, component, 0};
	struct ky_charge c = {.add = add_blame, .arg = &target, .budget = CHARGE_BUDGET};

	from = KY_MAX(from, w->from);
	to = KY_MIN(to, w->to);
	if (to - from < MIN_WAIT_NS)
		return;
	if (wait->mutex)
		ky_charge_mutex(&a->machine, &c, wait->mutex, t->thread, from, to);
	else if (wait->thread != UINT32_MAX)
		ky_charge_thread(&a->machine, &c, wait->thread, from, to);
	else
		ky_charge_processor(&a->machine, &c, wait->processor, t->thread, from, to);
	if (c.load_ns)
		add_load(a, w->instance, component, KY_MIN(c.load_ns, to - from),
			KY_MIN(c.peers_ns, to - from));
	add_wait(a, w->instance,
		&(struct ky_wait){.component = component,
			.n = 1,
			.n_holders = c.n_holders,
			.mutex = wait->address,
			.ns = to - from,
			.charged = target.charged});
}

void ky_account_charge_condition(
	struct ky_account *a, struct ky_timeline *t, const struct ky_wake *wake, int64_t ns)
{
	const struct wait_for wait = {.thread = wake->thread};
	struct ky_history *last = t->history.n ? &t->history.v[t->history.n - 1] : NULL;

	ky_company_wait(a, t, wake->thread, t->last_ns, ns);
	for (size_t i = 0; i < t->active.n; i++) {
		if (ky_window_is_given(a, t->active.v[i], wake->thread))
			continue;
		charge_window(a, t, t->active.v[i],
			ky_window_child(a, ky_window_top(t->active.v[i]), KY_PART_CONDITION, 0, 0),
			&wait, t->last_ns, ns);
	}
	/* Others that wait for this thread pass their wait on. */
	if (last && last->state == KY_STATE_RUNNING) {
		last->state = KY_STATE_CONDITION;
		last->thread = wake->thread;
	}
}

void ky_account_charge_off(struct ky_account *a, struct ky_timeline *t, int64_t from)
{
	for (size_t k = ky_timeline_first_off(t); k < t->off.n && !ky_timeline_is_locking(t); k++) {
		const struct ky_off *off = &t->off.v[k];
		const struct wait_for wait = {
			.thread = off->kind == KY_PART_WAIT ? off->thread : UINT32_MAX,
			.processor = off->kind == KY_PART_READY ? off->thread : UINT32_MAX};

		if (wait.thread != UINT32_MAX)
			ky_company_wait(a, t, wait.thread, KY_MAX(off->from, from), off->to);
		for (size_t i = 0; i < t->active.n && off->kind != KY_PART_SPAN; i++)
			charge_window(a, t, t->active.v[i], ky_window_off(a, t->active.v[i], off),
				&wait, KY_MAX(off->from, from), off->to);
	}
}

void ky_account_charge_lock(struct ky_account *a, const struct ky_timeline *t,
	const struct ky_mutex *mutex, const struct ky_mutex *held, int64_t from, int64_t to)
{
	const struct wait_for wait = {
		.mutex = held, .address = mutex->address, .thread = UINT32_MAX};

	for (size_t i = 0; i < t->active.n; i++)
		charge_window(a, t, t->active.v[i], ky_window_top(t->active.v[i]), &wait, from, to);
}
