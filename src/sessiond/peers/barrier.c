/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/barrier.h"

#include "svc/check.h"

/* After this silence, peers that have not replied are looked up in /proc. */
#define SILENCE_NS (10 * KY_NS_PER_MS)
/*
 * Files of /proc that one examination may open: there may be many applications, with any number of
 * threads.
 */
#define LOOKS_MAX 512
/*
 * A thread with less than this part of the time had practically none: a reply takes microseconds.
 */
#define STARVED_PART 16

/* An armed barrier completes: its timer is set, or it has passed. */
static void check_armed(const struct barrier *b)
{
	KY_CHECK(!b->armed || ky_timer_is_set(&b->timer) || ky_job_is_added(&b->passed));
}

static void check_passed(struct barrier *b)
{
	if (b->armed && ky_list_empty(&b->tickets))
		ky_job_add(b->loop, &b->passed);
}

/*
 * Gives all peers timeout_ns from now on. Sets the timer in any case, at once if the deadline has
 * passed: the caller may be that timer, and the clock advances between the caller's check and this
 * one.
 */
static void restart_timeout(struct barrier *b)
{
	uint64_t now = ky_loop_time_ns(b->loop);

	b->give_up_ns = KY_MIN(now + b->timeout_ns, b->deadline_ns);
	b->checked_silent = false;
	ky_timer_set(b->loop, &b->timer,
		b->give_up_ns > now ? KY_MIN(SILENCE_NS, b->give_up_ns - now) : 0);
}

static void detach(struct ticket *t)
{
	t->barrier = NULL;
	ky_list_remove(&t->waiting);
}

static void detach_tickets(struct barrier *b)
{
	struct ticket *t, *tmp;

	ky_list_foreach_safe (t, tmp, &b->tickets, waiting)
		detach(t);
}

/*
 * Records how long the listener's thread of each silent peer has run, to see later whether it has
 * had a CPU. Drops the peers that cannot run.
 */
static void examine_silent(struct barrier *b)
{
	struct ticket *t, *tmp;
	unsigned n_left = LOOKS_MAX;

	ky_list_foreach_safe (t, tmp, &b->tickets, waiting) {
		if (!t->pid)
			continue;
		if (!proc_is_held(t->pid)) {
			proc_run_find(&t->silent, t->pid, &n_left);
			continue;
		}
		detach(t);
		b->timed_out = true;
	}
	b->examined_ns = ky_loop_time_ns(b->loop);
}

static bool has_trusted(const struct barrier *b)
{
	struct ticket *t;

	ky_list_foreach (t, &b->tickets, waiting)
		if (t->trusted)
			return true;
	return false;
}

static void drop_others(struct barrier *b)
{
	struct ticket *t, *tmp;

	ky_list_foreach_safe (t, tmp, &b->tickets, waiting) {
		if (t->trusted)
			continue;
		detach(t);
		b->timed_out = true;
	}
}

/* Would the listener thread of libkymo reply if it got a CPU? */
static bool is_starved(const struct ticket *t, uint64_t elapsed_ns)
{
	struct proc_run now = t->silent;

	return now.tid && proc_run_read(&now, t->pid) && now.runnable &&
	       now.run_ns - t->silent.run_ns <= elapsed_ns / STARVED_PART;
}

static bool may_extend(const struct barrier *b, struct user *u, uint64_t ns)
{
	return !u || user_take_patience(u, ky_loop_time_ns(b->loop), ns);
}

static bool extends_for_starved(const struct barrier *b)
{
	uint64_t elapsed_ns = ky_loop_time_ns(b->loop) - b->examined_ns;
	struct ticket *t;

	ky_list_foreach (t, &b->tickets, waiting)
		if (t->pid && is_starved(t, elapsed_ns) && may_extend(b, t->user, b->timeout_ns))
			return true;
	return false;
}

void barrier_deinit(struct barrier *b)
{
	if (!b->loop)
		return;
	b->armed = false;
	detach_tickets(b);
	ky_timer_cancel(&b->timer);
	ky_job_cancel(&b->passed);
}

static void barrier_complete(struct barrier *b)
{
	barrier_deinit(b);
	op_done(b->op, b->timed_out ? -ETIMEDOUT : 0, "");
}

static void run_passed(struct ky_job *j)
{
	struct barrier *b = ky_container_of(j, struct barrier, passed);

	barrier_complete(b);
}

/*
 * Decides when the silent peers have had their time, or a part of it. Returns whether the barrier
 * continues to wait for them.
 */
static bool go_on_waiting(struct barrier *b)
{
	uint64_t now = ky_loop_time_ns(b->loop);

	/* Even if the time is over: then it was we who had no CPU. */
	if (!b->checked_silent && now < b->deadline_ns) {
		b->checked_silent = true;
		examine_silent(b);
		ky_timer_set(
			b->loop, &b->timer, b->give_up_ns > now ? b->give_up_ns - now : SILENCE_NS);
		check_passed(b);
		return true;
	}
	if (now < b->deadline_ns && has_trusted(b)) {
		drop_others(b);
		ky_timer_set(b->loop, &b->timer, b->deadline_ns - now);
		return true;
	}
	if (now < b->deadline_ns && extends_for_starved(b)) {
		restart_timeout(b);
		return true;
	}
	return false;
}

static void run_timer(struct ky_timer *t)
{
	struct barrier *b = ky_container_of(t, struct barrier, timer);

	if (go_on_waiting(b)) {
		check_armed(b);
		return;
	}
	b->timed_out = true;
	barrier_complete(b);
}

void barrier_init(struct barrier *b, struct ky_loop *loop, struct op *op)
{
	memset(b, 0, sizeof(*b));
	ky_list_init(&b->tickets);
	ky_timer_init(&b->timer, run_timer);
	ky_job_init(&b->passed, run_passed);
	b->loop = loop;
	b->op = op;
}

void barrier_arm(struct barrier *b, uint64_t timeout_ns)
{
	KY_CHECK(!b->armed);
	b->armed = true;
	b->timeout_ns = timeout_ns;
	b->deadline_ns = ky_loop_time_ns(b->loop) + BARRIER_MAX_EXTENSIONS * timeout_ns;
	restart_timeout(b);
	check_passed(b);
	check_armed(b);
}

struct ticket *ticket_new(
	struct ky_list *peer, enum ticket_kind kind, uint32_t key, struct barrier *barrier)
{
	struct ticket *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->kind = kind;
	t->key = key;
	ky_list_append(peer, &t->node);
	ky_list_init(&t->waiting);
	if (barrier)
		ticket_await(t, barrier);
	return t;
}

void ticket_await(struct ticket *t, struct barrier *barrier)
{
	if (t->barrier)
		return;
	t->barrier = barrier;
	ky_list_append(&barrier->tickets, &t->waiting);
}

struct ticket *ticket_find(const struct ky_list *peer, enum ticket_kind kind, uint32_t key)
{
	struct ticket *t;

	ky_list_foreach (t, peer, node)
		if (t->kind == kind && t->key == key)
			return t;
	return NULL;
}

/* The time that peers gain by a reply is what has passed since the last one. */
static bool extends_by_reply(const struct barrier *b, struct user *u)
{
	uint64_t since_ns = b->give_up_ns - KY_MIN(b->timeout_ns, b->give_up_ns);
	uint64_t now_ns = ky_loop_time_ns(b->loop);

	return may_extend(b, u, now_ns - KY_MIN(since_ns, now_ns));
}

void ticket_done(struct ticket *t)
{
	struct barrier *b;
	struct user *u;

	if (!t)
		return;
	b = t->barrier;
	u = t->user;
	ky_list_remove(&t->node);
	ky_list_remove(&t->waiting);
	free(t);
	if (!b)
		return;
	if (b->armed && extends_by_reply(b, u))
		restart_timeout(b);
	check_passed(b);
	check_armed(b);
}

void ticket_give_up(struct ticket *t)
{
	struct barrier *b = t->barrier;

	if (!b)
		return;
	detach(t);
	b->timed_out = true;
	check_passed(b);
}

void ticket_done_all(struct ky_list *peer)
{
	struct ticket *t, *tmp;

	ky_list_foreach_safe (t, tmp, peer, node)
		ticket_done(t);
}
