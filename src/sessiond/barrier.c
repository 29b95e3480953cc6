/* SPDX-License-Identifier: MIT */
#include "sessiond/barrier.h"

static void check_passed(struct barrier *b)
{
	if (b->armed && ky_list_empty(&b->tickets))
		ky_job_add(b->loop, &b->passed);
}

/* One of those that it waits for has answered. */
static void answered(struct barrier *b)
{
	uint64_t now = ky_loop_now_ns();

	if (b->armed && now < b->deadline_ns)
		ky_timer_set(b->loop, &b->timer, KY_MIN(b->timeout_ns, b->deadline_ns - now));
	check_passed(b);
}

static void detach_tickets(struct barrier *b)
{
	struct ticket *t, *tmp;

	ky_list_foreach_safe (t, tmp, &b->tickets, waiting) {
		t->barrier = NULL;
		ky_list_remove(&t->waiting);
	}
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

static void run_passed(struct ky_job *j)
{
	struct barrier *b = ky_container_of(j, struct barrier, passed);

	barrier_deinit(b);
	b->done(b);
}

static void run_timer(struct ky_timer *t)
{
	struct barrier *b = ky_container_of(t, struct barrier, timer);

	b->timed_out = true;
	barrier_deinit(b);
	b->done(b);
}

void barrier_init(struct barrier *b, struct ky_loop *loop, void (*done)(struct barrier *b))
{
	memset(b, 0, sizeof(*b));
	ky_list_init(&b->tickets);
	ky_timer_init(&b->timer, run_timer);
	ky_job_init(&b->passed, run_passed);
	b->loop = loop;
	b->done = done;
}

void barrier_arm(struct barrier *b, uint64_t timeout_ns)
{
	b->armed = true;
	b->timeout_ns = timeout_ns;
	b->deadline_ns = ky_loop_now_ns() + BARRIER_PATIENCE * timeout_ns;
	ky_timer_set(b->loop, &b->timer, timeout_ns);
	check_passed(b);
}

struct ticket *ticket_new(
	struct ky_list *peer, enum ticket_kind kind, uint32_t key, struct barrier *barrier)
{
	struct ticket *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->kind = kind;
	t->key = key;
	t->barrier = barrier;
	ky_list_append(peer, &t->node);
	ky_list_init(&t->waiting);
	if (barrier)
		ky_list_append(&barrier->tickets, &t->waiting);
	return t;
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
	if (b)
		answered(b);
}

void ticket_done_all(struct ky_list *peer)
{
	struct ticket *t, *tmp;

	ky_list_foreach_safe (t, tmp, peer, node)
		ticket_done(t);
}
