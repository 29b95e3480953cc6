/* SPDX-License-Identifier: MIT */
/*
 * The application's functions that report its state, and the thread in which they run.
 *
 * Each function has the set of ring sets to which it still has to report (`pending`). A STATEDUMP
 * adds to these, and its cookie is answered when no function has any left. So one run serves
 * sessions that request at the same time, and no queue grows without bound. While a function runs,
 * all events of the process take the way that checks tracer_only. At other times an event's way
 * does not know of state dumps.
 */
#include "tracer/statedump.h"

#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "base/sys.h"
#include "ring/wait.h"
#include "tracer/dispatch.h"

#define OWED_MAX 256u

/* A registered function. Never freed: it is used again. */
struct dumper {
	struct dumper *next;
	const struct kymo_statedump *dump; /* NULL: free */
	const struct kymo_object *object;
	struct tracer_mask pending;
};

/* An answer for which a daemon waits. */
struct owed {
	uint32_t conn; /* index in tracer.conns */
	uint32_t cookie;
};

static struct {
	struct dumper *dumpers;
	struct dumper *running; /* its function is being called, for the sets in `target` */
	struct tracer_mask target;
	bool has_thread;
	pid_t thread_id;
	bool ending;	     /* the thread is to end */
	uint32_t generation; /* of forks */
	uint32_t work;	     /* futex: changes when there may be work */
	uint32_t n_owed;
} state KY_WRITTEN_EARLY;
static struct owed owed[OWED_MAX]; /* of these, state.n_owed are valid; most programs touch none */

static void add_set(struct tracer_mask *m, const struct tracer_set *s)
{
	size_t i = (size_t)(s - tracer_sets);

	m->bits[i / 64] |= UINT64_C(1) << (i % 64);
}

static void remove_set(struct tracer_mask *m, const struct tracer_set *s)
{
	size_t i = (size_t)(s - tracer_sets);

	__atomic_fetch_and(&m->bits[i / 64], ~(UINT64_C(1) << (i % 64)), __ATOMIC_RELAXED);
}

static bool is_empty(const struct tracer_mask *m)
{
	uint64_t any = 0;

	for (size_t i = 0; i < KY_ARRAY_SIZE(m->bits); i++)
		any |= m->bits[i];
	return !any;
}

/* --- the thread --- */

static struct dumper *next_pending(void)
{
	struct dumper *d;

	for (d = state.dumpers; d; d = d->next)
		if (d->dump && !is_empty(&d->pending))
			return d;
	return NULL;
}

static void wake_thread(void)
{
	__atomic_fetch_add(&state.work, 1, __ATOMIC_RELEASE);
	ky_call(SYS_futex, &state.work, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Switches it on or off: while it is on, events check tracer_only. */
static void set_dumping(bool on)
{
	if (tracer.dumping == on)
		return;
	tracer.dumping = on;
	for (uint32_t i = 0; i < tracer.n_events; i++)
		if (tracer.events[i].hooks)
			tracer_event_update(&tracer.events[i]);
}

static void run_dumper(struct dumper *d)
{
	const struct kymo_statedump *dump = d->dump;

	state.running = d;
	state.target = d->pending;
	memset(&d->pending, 0, sizeof(d->pending));
	set_dumping(true);
	tracer_give_lock();
	tracer_only = &state.target;
	dump->dump(dump->data);
	tracer_only = NULL;
	tracer_take_lock();
	state.running = NULL;
	tracer_wake_waiters();
}

/* Answers all requests, because no function has sets left, and sleeps. */
static void await_work(void)
{
	uint32_t seen = __atomic_load_n(&state.work, __ATOMIC_ACQUIRE);

	set_dumping(false);
	if (state.n_owed)
		tracer_listener_wake();
	tracer_give_lock();
	ky_call(SYS_futex, &state.work, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
	tracer_take_lock();
}

static void *run_dumpers(void *arg)
{
	uint32_t mine = state.generation;
	struct dumper *d;

	(void)arg;
	__atomic_fetch_sub(&tracer.n_starting, 1, __ATOMIC_RELEASE);
	ky_sys_prctl(PR_SET_NAME, "kymo-statedump");
	tracer_follow_main();
	tracer_take_lock();
	state.thread_id = ky_thread_number();
	/* In a child that a function has forked, the generation is another one. */
	while (state.generation == mine && !__atomic_load_n(&state.ending, __ATOMIC_ACQUIRE)) {
		d = next_pending();
		if (d)
			run_dumper(d);
		else
			await_work();
	}
	tracer_give_lock();
	return NULL;
}

bool tracer_statedump_starts(void)
{
	return state.has_thread && !state.thread_id;
}

bool tracer_statedump_runs(void)
{
	return state.running != NULL;
}

void tracer_statedump_start_again(void)
{
	state.generation++;
	state.has_thread = state.ending = false;
	state.thread_id = 0;
	tracer_statedump_ensure_thread();
}

bool tracer_statedump_is(pid_t thread)
{
	return thread == state.thread_id;
}

void tracer_statedump_end(void)
{
	__atomic_store_n(&state.ending, true, __ATOMIC_RELEASE);
	wake_thread();
}

int tracer_statedump_ensure_thread(void)
{
	struct dumper *d;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	for (d = state.dumpers; d && !d->dump; d = d->next)
		;
	if (!d || state.has_thread || !tracer.started || tracer.off)
		return 0;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	__atomic_fetch_add(&tracer.n_starting, 1, __ATOMIC_RELAXED);
	r = pthread_create(&thread, &attr, run_dumpers, NULL);
	if (r)
		__atomic_fetch_sub(&tracer.n_starting, 1, __ATOMIC_RELAXED);
	pthread_attr_destroy(&attr);
	state.has_thread = !r;
	return -r;
}

/* --- requests of daemons --- */

/* Finds the sets that the daemon named, if they record. */
static void find_sets(const struct tracer_conn *conn, const struct ky_app_statedump *msg,
	struct tracer_mask *ret_mask)
{
	struct ky_reader r = {.buf = msg->sets.data, .len = msg->sets.len};

	memset(ret_mask, 0, sizeof(*ret_mask));
	for (uint32_t i = 0; i < msg->n && !r.error; i++) {
		uint32_t id = ky_read_u32(&r);

		for (uint32_t k = 0; k < tracer.n_sets && !r.error; k++) {
			struct tracer_set *s = &tracer_sets[k];

			if (s->conn != conn || s->set.id != id || !s->set.started)
				continue;
			s->dumped = true;
			add_set(ret_mask, s);
		}
	}
}

static uint32_t number_of(const struct tracer_conn *conn)
{
	return (uint32_t)(conn - tracer.conns);
}

bool tracer_statedump(struct tracer_conn *conn, const struct ky_app_statedump *msg)
{
	struct tracer_mask mask;
	struct dumper *d;

	find_sets(conn, msg, &mask);
	for (d = state.dumpers; d; d = d->next)
		for (size_t i = 0; i < KY_ARRAY_SIZE(mask.bits); i++)
			d->pending.bits[i] |= mask.bits[i];
	if (state.has_thread && next_pending())
		wake_thread();
	tracer_self_dump(&mask);
	if (state.n_owed >= OWED_MAX)
		return true;
	owed[state.n_owed++] = (struct owed){number_of(conn), msg->cookie};
	return false;
}

bool tracer_statedump_take_done(struct tracer_conn *conn, uint32_t *ret_cookie)
{
	if (state.has_thread && (state.running || next_pending()))
		return false;
	for (uint32_t i = 0; i < state.n_owed; i++) {
		if (owed[i].conn != number_of(conn))
			continue;
		*ret_cookie = owed[i].cookie;
		owed[i] = owed[--state.n_owed];
		return true;
	}
	return false;
}

void tracer_statedump_forget_conn(const struct tracer_conn *conn)
{
	for (uint32_t i = 0; i < state.n_owed;)
		if (owed[i].conn == number_of(conn))
			owed[i] = owed[--state.n_owed];
		else
			i++;
}

void tracer_statedump_forget_set(struct tracer_set *set)
{
	set->dumped = false;
	remove_set(&state.target, set);
	for (struct dumper *d = state.dumpers; d; d = d->next)
		remove_set(&d->pending, set);
}

void tracer_statedump_reset(void)
{
	tracer_only = NULL;
	state.running = NULL;
	state.has_thread = false;
	state.thread_id = 0;
	state.ending = false;
	state.generation++;
	tracer.dumping = false;
	state.n_owed = 0;
	for (struct dumper *d = state.dumpers; d; d = d->next)
		memset(&d->pending, 0, sizeof(d->pending));
}

/* --- functions for applications --- */

/*
 * Waits until the function does not run, nor (if requested) is about to. Called without the lock.
 */
static void wait_for(const struct dumper *d, bool pending, int timeout_ms)
{
	uint64_t now = ky_clock_ns(CLOCK_MONOTONIC),
		 end = now + (uint64_t)KY_MAX(timeout_ms, 0) * 1000000;
	bool busy = true;

	for (; busy && (timeout_ms < 0 || now < end); now = ky_clock_ns(CLOCK_MONOTONIC)) {
		uint64_t left = timeout_ms < 0 ? 1000000000 : end - now;
		struct timespec ts = {(time_t)(left / 1000000000), (long)(left % 1000000000)};
		/* Acquire: loaded before the state that it announces. */
		uint32_t turn = __atomic_load_n(&tracer.turn, __ATOMIC_ACQUIRE);

		tracer_take_lock();
		busy = state.running == d || (pending && !is_empty(&d->pending));
		tracer_give_lock();
		if (busy)
			ky_call(SYS_futex, &tracer.turn, FUTEX_WAIT_PRIVATE, turn, &ts, NULL, 0);
	}
}

static struct dumper *find_dumper(const struct kymo_statedump *dump)
{
	struct dumper *d;

	for (d = state.dumpers; d && d->dump != dump; d = d->next)
		;
	return d;
}

/* Returns one that is not used, or a new one. */
static struct dumper *make_dumper(void)
{
	struct dumper *d;

	for (d = state.dumpers; d; d = d->next)
		if (!d->dump && state.running != d)
			return d;
	d = tracer_alloc(sizeof(*d), false);
	if (d) {
		d->next = state.dumpers;
		state.dumpers = d;
	}
	return d;
}

static int enlist(
	const struct kymo_statedump *dump, struct kymo_object *object, struct dumper **ret)
{
	struct dumper *d = make_dumper();
	int r;

	if (!d)
		return -ENOMEM;
	memset(&d->pending, 0, sizeof(d->pending));
	d->dump = dump;
	d->object = object;
	r = tracer_statedump_ensure_thread();
	if (r < 0) {
		d->dump = NULL;
		return r;
	}
	*ret = d;
	return 0;
}

int tracer_statedump_add_own(const struct kymo_statedump *dump)
{
	struct dumper *d;

	return enlist(dump, NULL, &d);
}

static int add_dumper(
	const struct kymo_statedump *dump, struct kymo_object *object, struct dumper **ret)
{
	int r = find_dumper(dump) ? -EEXIST : enlist(dump, object, ret);

	for (uint32_t i = 0; !r && i < tracer.n_sets; i++)
		if (tracer_sets[i].conn && tracer_sets[i].dumped)
			add_set(&(*ret)->pending, &tracer_sets[i]);
	return r;
}

/* Returns true in the thread that dumps, for the tracer's own functions. */
static bool is_dumping_here(void)
{
	return tracer_only == &state.target;
}

__attribute__((visibility("default"))) int kymo_app_statedump_add(
	struct kymo_statedump *dump, struct kymo_object *object)
{
	int saved = errno, r;
	struct dumper *d;
	sigset_t old;

	if (dump->size < sizeof(*dump) || !dump->dump || is_dumping_here())
		return -EINVAL;
	if (tracer.off || tracer_is_raw_child())
		return 0;
	tracer_object_look(object);
	tracer_lock(&old);
	r = add_dumper(dump, object, &d);
	tracer_give_lock();
	ky_wait_allow();
	if (!r && state.has_thread) {
		wake_thread();
		wait_for(d, true, tracer.timeout_ms);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = saved;
	return r;
}

/*
 * Removes the function. Called with the lock, which it releases until the function is no longer in
 * use.
 */
static void forget_dumper(struct dumper *d)
{
	d->dump = NULL;
	memset(&d->pending, 0, sizeof(d->pending));
	if (state.running != d || is_dumping_here())
		return;
	tracer_give_lock();
	wait_for(d, false, -1);
	tracer_take_lock();
}

__attribute__((visibility("default"))) void kymo_app_statedump_remove(struct kymo_statedump *dump)
{
	int saved = errno;
	struct dumper *d;
	sigset_t old;

	if (tracer.off || tracer_is_raw_child())
		return;
	tracer_lock(&old);
	d = find_dumper(dump);
	if (d)
		forget_dumper(d);
	tracer_unlock(&old);
	errno = saved;
}

void tracer_statedump_forget_object(const struct kymo_object *object)
{
	for (struct dumper *d = state.dumpers; d; d = d->next)
		if (d->dump && d->object == object)
			forget_dumper(d);
}
