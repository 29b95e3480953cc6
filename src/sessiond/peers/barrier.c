/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/barrier.h"

#include "svc/check.h"

/* After this silence, peers that have not replied are looked up in /proc. */
#define SILENCE_NS (10 * KY_NS_PER_MS)
/* The unit in which waiting is charged: a reply within the first one costs nothing. */
#define CHARGE_NS (10 * KY_NS_PER_MS)
/*
 * Files of /proc that one examination may open: there may be many applications, with any number of
 * threads.
 */
#define LOOKS_MAX 512
/* Files of /proc that show whether a process is held. */
#define LOOKS_FOR_HELD 3

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

static void detach_ticket(struct ticket *t)
{
	t->barrier = NULL;
	ky_list_remove(&t->waiting);
}

static void detach_tickets(struct barrier *b)
{
	struct ticket *t, *tmp;

	ky_list_foreach_safe (t, tmp, &b->tickets, waiting)
		detach_ticket(t);
}

static void drop_ticket(struct barrier *b, struct ticket *t)
{
	detach_ticket(t);
	t->late = true;
	b->timed_out = true;
}

/* The peer has had all its time: its user's other peers are not waited for as long. */
static void give_up(struct barrier *b, struct ticket *t)
{
	if (t->user)
		user_end_patience(t->user);
	drop_ticket(b, t);
}

/*
 * Records how long libkymo's threads of each silent peer have run, to see later whether they have
 * had a CPU. Drops the peers that cannot run. users: looks at the peers of users that are charged,
 * or at the others.
 */
static void examine_peers(struct barrier *b, bool users, unsigned *n_left)
{
	struct ticket *t, *tmp;
	pid_t held = 0;

	ky_list_foreach_safe (t, tmp, &b->tickets, waiting) {
		if (!t->pid || (t->user != NULL) != users || *n_left < LOOKS_FOR_HELD)
			continue;
		if (t->pid != held) {
			*n_left -= LOOKS_FOR_HELD;
			held = proc_is_held(t->pid) ? t->pid : 0;
		}
		if (held)
			drop_ticket(b, t);
		else
			proc_run_find(t->silent, t->pid, n_left);
	}
}

static void examine_silent(struct barrier *b)
{
	unsigned n_left = LOOKS_MAX;

	examine_peers(b, false, &n_left);
	examine_peers(b, true, &n_left);
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
		if (!t->trusted)
			give_up(b, t);
	}
}

static bool extends_for_starved(const struct barrier *b)
{
	uint64_t elapsed_ns = ky_loop_time_ns(b->loop) - b->examined_ns;
	struct ticket *t;

	ky_list_foreach (t, &b->tickets, waiting)
		if (t->pid && proc_run_was_starved(t->silent, t->pid, elapsed_ns))
			return true;
	return false;
}

static bool is_behind(const struct ticket *t)
{
	return ky_list_entry(t->peer->next, struct ticket, node)->late;
}

/*
 * Charges users for a part of the waiting. Drops their peers that are behind, and all peers of
 * users who have no patience left.
 */
static void run_charge(struct ky_timer *timer)
{
	struct barrier *b = ky_container_of(timer, struct barrier, charge);
	uint64_t now = ky_loop_time_ns(b->loop);
	struct ticket *t, *tmp;

	ky_list_foreach_safe (t, tmp, &b->tickets, waiting)
		if (t->user && (is_behind(t) || !user_take_patience(t->user, now, CHARGE_NS)))
			drop_ticket(b, t);
	ky_timer_set(b->loop, timer, CHARGE_NS);
	check_passed(b);
}

void barrier_deinit(struct barrier *b)
{
	if (!b->loop)
		return;
	b->armed = false;
	detach_tickets(b);
	ky_timer_cancel(&b->timer);
	ky_timer_cancel(&b->charge);
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
	while (!ky_list_empty(&b->tickets))
		give_up(b, ky_list_entry(b->tickets.next, struct ticket, waiting));
	barrier_complete(b);
}

void barrier_init(struct barrier *b, struct ky_loop *loop, struct op *op)
{
	memset(b, 0, sizeof(*b));
	ky_list_init(&b->tickets);
	ky_timer_init(&b->timer, run_timer);
	ky_timer_init(&b->charge, run_charge);
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
	ky_timer_set(b->loop, &b->charge, CHARGE_NS);
	restart_timeout(b);
	check_passed(b);
	check_armed(b);
}

struct ticket *ticket_new(
	struct ky_list *peer, enum ticket_kind kind, uint32_t key, struct barrier *barrier)
{
	struct ticket *t = calloc(1, sizeof(*t));

	if (!t) {
		if (barrier)
			barrier->timed_out = true;
		return NULL;
	}
	t->peer = peer;
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

struct ticket *ticket_find_last(const struct ky_list *peer, enum ticket_kind kind, uint32_t key)
{
	for (struct ky_list *n = peer->prev; n != peer; n = n->prev) {
		struct ticket *t = ky_list_entry(n, struct ticket, node);

		if (t->kind == kind && t->key == key)
			return t;
	}
	return NULL;
}

void ticket_done(struct ticket *t)
{
	struct barrier *b;

	if (!t)
		return;
	b = t->barrier;
	ky_list_remove(&t->node);
	ky_list_remove(&t->waiting);
	free(t);
	if (!b)
		return;
	if (b->armed)
		restart_timeout(b);
	check_passed(b);
	check_armed(b);
}

void ticket_give_up(struct ticket *t)
{
	struct barrier *b = t->barrier;

	if (!b)
		return;
	drop_ticket(b, t);
	check_passed(b);
}

void ticket_done_all(struct ky_list *peer)
{
	struct ticket *t, *tmp;

	ky_list_foreach_safe (t, tmp, peer, node)
		ticket_done(t);
}
