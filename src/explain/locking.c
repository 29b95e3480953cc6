/* SPDX-License-Identifier: MIT */
/* Mutexes requested, acquired, released; and conditions, which show in who acquires them. */
#include "explain/accounting.h"

#define SHORT_WAIT_NS 20000 /* an owner that waited less did not wait for the one before */
#define WAKE_NS	      2000  /* an acquisition so long before the next event is no race */

/* --- conditions --- */

static bool is_open_hold(const struct ky_mutex *m, uint32_t thread, int64_t from)
{
	for (size_t i = 0; i < m->open.n; i++) {
		if (m->open.v[i].thread == thread && m->open.v[i].from == from)
			return true;
	}
	return false;
}

/*
 * pthread_cond_wait() is not recorded, but it gives the mutex back: another thread acquires it
 * while this one holds it. The next owner proves nothing: its acquisition may be recorded just
 * before our release.
 */
const struct ky_wake *ky_locking_find_wake(
	const struct ky_timeline *t, const struct ky_source_event *e)
{
	bool early = t->wake.is_set && t->wake.ns < e->ns - WAKE_NS / 4;
	bool late = t->late_wake.is_set && t->late_wake.ns < e->ns - WAKE_NS &&
		    !is_open_hold(t->late_wake.mutex, t->late_wake.thread, t->late_wake.ns);

	if (early && late && t->wake.is_peer && !t->late_wake.is_peer)
		return &t->late_wake;
	if (early)
		return &t->wake;
	return late && e->kind != KY_EVENT_UNLOCK ? &t->late_wake : NULL;
}

/*
 * The waker signals while it holds the mutex, or just after it. The rest is the time until the
 * woken thread runs: the waker has no part in it.
 */
int64_t ky_locking_met_ns(const struct ky_wake *wake, int64_t ns)
{
	return ky_mutex_end_of_hold(wake->mutex, wake->thread, wake->ns, ns);
}

/* Threads that run the same span wait for the same thing more often than they signal it. */
static bool is_peer(const struct ky_timeline *a, const struct ky_timeline *b)
{
	return a->stack.n && b && b->stack.n && a->stack.v[0].name == b->stack.v[0].name;
}

/* The newest counts, but a peer only if there is no other. */
static void notice_owner(
	struct ky_account *a, struct ky_timeline *t, struct ky_wake by, int64_t waited)
{
	struct ky_wake *wake = waited < SHORT_WAIT_NS ? &t->wake : &t->late_wake;

	by.is_peer = is_peer(t, ky_machine_timeline(&a->machine, by.thread));
	if (!wake->is_set || wake->is_peer || !by.is_peer)
		*wake = by;
}

static void notice_owners(
	struct ky_account *a, struct ky_mutex *m, uint32_t thread, int64_t ns, int64_t waited)
{
	for (size_t i = 0; i < m->open.n; i++) {
		const struct ky_hold *h = &m->open.v[i];
		struct ky_timeline *t;

		if (h->thread == thread)
			continue;
		t = ky_machine_timeline(&a->machine, h->thread);
		if (t)
			notice_owner(a, t, (struct ky_wake){true, false, ns, thread, m}, waited);
	}
}

/* --- mutexes --- */

static struct ky_mutex *mutex_of(
	struct ky_account *a, const struct ky_timeline *t, const struct ky_source_event *e)
{
	const struct ky_explain_thread *thread = a->x->threads.v[t->thread];
	/* Without process numbers, all threads count as one process. */
	uint64_t process = thread->pid < 0 ? UINT64_MAX : thread->process;
	struct ky_mutex *m = ky_locks_get(
		&a->machine.locks, process, (uint64_t)ky_source_number(e, KY_FIELD_MUTEX, 0));

	ky_account_check(a, m ? 0 : -ENOMEM);
	return m;
}

static void request_lock(struct ky_account *a, struct ky_timeline *t,
	const struct ky_source_event *e, struct ky_mutex *m)
{
	struct ky_frame f = {.is_lock = true, .begin_ns = e->ns, .mutex = m, .n_outer = t->outer.n};

	if (ky_timeline_is_locking(t))
		ky_windows_pop(a, t, t->stack.n - 1, e->ns);
	ky_locks_expect(&a->machine.locks, m, e->ns);
	ky_windows_push(a, t, &f);
}

static void hold_lock(struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e,
	struct ky_mutex *m, int64_t waited)
{
	const struct ky_hold hold = {.from = e->ns,
		.to = INT64_MAX,
		.thread = t->thread,
		.span = ky_timeline_span(t),
		.caller = (uint64_t)ky_source_number(e, KY_FIELD_CALLER, 0)};

	notice_owners(a, m, t->thread, e->ns, waited);
	ky_account_check(a, ky_mutex_acquire(m, &hold));
}

/* The thread waited for the holders of the mutex. */
static void wait_for_holders(struct ky_account *a, const struct ky_timeline *t,
	const struct ky_mutex *m, int64_t from, int64_t to)
{
	for (size_t i = 0; i < m->open.n; i++) {
		const struct ky_hold *h = &m->open.v[i];

		if (!h->is_lent)
			ky_company_wait(a, t, h->thread, KY_MAX(from, h->from), to);
	}
	for (size_t i = m->closed.n; i-- > 0 && m->closed.v[i].to > from;) {
		const struct ky_hold *h = &m->closed.v[i];

		ky_company_wait(a, t, h->thread, KY_MAX(from, h->from), KY_MIN(to, h->to));
	}
}

static void acquire_lock(struct ky_account *a, struct ky_timeline *t,
	const struct ky_source_event *e, struct ky_mutex *m)
{
	const struct ky_mutex *alias = NULL;
	int64_t waited = 0;

	if (ky_timeline_is_locking(t)) {
		int64_t from = t->stack.v[t->stack.n - 1].begin_ns;

		waited = e->ns - from;
		if (waited >= SHORT_WAIT_NS && !ky_mutex_was_held(m, t->thread, from, e->ns))
			alias = ky_locks_find_alias(&a->machine.locks, m, from, e->ns);
		ky_account_charge_lock(a, t, m, alias ? alias : m, from, e->ns);
		wait_for_holders(a, t, alias ? alias : m, from, e->ns);
		ky_windows_pop(a, t, t->stack.n - 1, e->ns);
	}
	if (!ky_source_number(e, KY_FIELD_STATUS, 0))
		hold_lock(a, t, e, m, waited);
}

/* Failed trylocks are a wait from the first of them to the last. */
static void try_lock(struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e,
	struct ky_mutex *m)
{
	bool failed = ky_source_number(e, KY_FIELD_STATUS, 0);

	if (failed && m->open.n)
		m->is_contended = true;
	if (t->tried == m) {
		ky_account_charge_lock(a, t, m, m, t->try_ns, e->ns);
		t->try_ns = e->ns;
	}
	if (failed && t->tried != m) {
		t->tried = m;
		t->try_ns = e->ns;
	}
	if (!failed) {
		t->tried = NULL;
		hold_lock(a, t, e, m, 0);
	}
}

struct ky_mutex *ky_locking_lend(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	struct ky_mutex *m = mutex_of(a, t, e);

	if (m)
		ky_account_check(a, ky_mutex_lend(m, t->thread, e->ns));
	return m;
}

void ky_locking_add_event(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	struct ky_mutex *m = mutex_of(a, t, e);

	if (!m)
		return;
	if (e->kind == KY_EVENT_LOCK_REQ)
		request_lock(a, t, e, m);
	else if (e->kind == KY_EVENT_LOCK_ACQ)
		acquire_lock(a, t, e, m);
	else if (e->kind == KY_EVENT_TRYLOCK)
		try_lock(a, t, e, m);
	else if (!ky_source_number(e, KY_FIELD_STATUS, 0))
		ky_account_check(a, ky_mutex_release(m, t->thread, e->ns));
}
