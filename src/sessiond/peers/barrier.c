/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/barrier.h"

#include <dirent.h>

#include "sessiond/peers/proc-state.h"
#include "svc/check.h"

/* After this silence, peers that have not replied are looked up in /proc. */
#define SILENCE_NS (10 * KY_NS_PER_MS)
/* Threads of a process that are looked at: it may have any number of them. */
#define TASKS_MAX 64

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
 * Gives all peers timeout_ns from now on. The timer is set in any case, at once if the deadline has passed: the caller may be
 * that timer, and the clock goes on between the caller's look at it and this one.
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

/* Would the listener thread of libkymo reply if it got a CPU? It is among the first threads of most processes. */
static bool is_starved(pid_t pid)
{
	char path[64];
	const struct dirent *e;
	bool starved = false;
	int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && !starved && n++ < TASKS_MAX && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%.10s/stat", (int)pid, e->d_name);
		starved = proc_file_state_is(path, "(kymo-listener) R");
	}
	if (dir)
		closedir(dir);
	return starved;
}

static void drop_stopped(struct barrier *b)
{
	struct ticket *t, *tmp;

	ky_list_foreach_safe (t, tmp, &b->tickets, waiting) {
		if (!t->pid || !proc_state_is(t->pid, ") T"))
			continue;
		detach(t);
		b->timed_out = true;
	}
}

static bool has_trusted(const struct barrier *b)
{
	struct ticket *t;

	ky_list_foreach (t, &b->tickets, waiting)
		if (t->trusted)
			return true;
	return false;
}

static bool has_starved(const struct barrier *b)
{
	struct ticket *t;

	ky_list_foreach (t, &b->tickets, waiting)
		if (t->pid && is_starved(t->pid))
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

/* The silent peers have had their time, or a part of it. Returns whether the barrier waits for them any longer. */
static bool go_on_waiting(struct barrier *b)
{
	uint64_t now = ky_loop_time_ns(b->loop);

	if (!b->checked_silent && now < b->give_up_ns) {
		b->checked_silent = true;
		drop_stopped(b);
		ky_timer_set(b->loop, &b->timer, b->give_up_ns - now);
		check_passed(b);
		return true;
	}
	if (now < b->deadline_ns && has_trusted(b)) {
		ky_timer_set(b->loop, &b->timer, b->deadline_ns - now);
		return true;
	}
	if (now < b->deadline_ns && has_starved(b)) {
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
