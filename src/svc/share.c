/* SPDX-License-Identifier: MIT */
#include "svc/share.h"

#include <sys/resource.h>

#include "base/clock.h"

#define WANTED_NS (1000 * KY_NS_PER_MS)

static uint64_t cpu_time_ns(void)
{
	return ky_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Returns the share whose turn it is, or NULL if no job waits. Forgets shares without jobs. */
static struct ky_share *find_next(struct ky_shares *s)
{
	struct ky_share *share, *tmp, *next = NULL;

	ky_list_foreach_safe (share, tmp, &s->waiting, node) {
		if (ky_list_empty(&share->jobs))
			ky_list_remove(&share->node);
		else if (!next || share->had_ns < next->had_ns)
			next = share;
	}
	return next;
}

/* Returns the CPU time after the job, which may free the share. begin_ns: that before it. */
static uint64_t run_first_job(struct ky_share *share, uint64_t begin_ns)
{
	struct ky_job *j = ky_list_entry(share->jobs.next, struct ky_job, node);
	struct ky_shares *s = share->of;
	uint64_t end_ns;

	s->running = share;
	s->floor_ns = share->had_ns;
	ky_list_remove(&j->node);
	j->fn(j);
	end_ns = cpu_time_ns();
	if (s->running)
		s->running->had_ns += end_ns - begin_ns;
	s->running = NULL;
	return end_ns;
}

static bool is_over(const struct ky_shares *s, uint64_t now_ns)
{
	return !s->loop->clock && now_ns >= s->end_ns;
}

/* Returns whether the kernel has lately taken the CPU from this thread, because others need it. */
static bool is_cpu_wanted(struct ky_shares *s)
{
	uint64_t now = ky_loop_now_ns();
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	if (usage.ru_nivcsw != s->n_preempted)
		s->wanted_until_ns = now + WANTED_NS;
	s->n_preempted = usage.ru_nivcsw;
	return now < s->wanted_until_ns;
}

static void rested(struct ky_timer *t)
{
	struct ky_shares *s = ky_container_of(t, struct ky_shares, rest);

	ky_job_add(s->loop, &s->work);
}

static void run_shares(struct ky_job *j)
{
	struct ky_shares *s = ky_container_of(j, struct ky_shares, work);
	struct ky_share *next;
	uint64_t now_ns = cpu_time_ns();

	s->end_ns = now_ns + KY_SHARE_SLICE_NS;
	while ((next = find_next(s))) {
		if (is_over(s, now_ns)) {
			if (s->rests && is_cpu_wanted(s))
				ky_timer_set(s->loop, &s->rest, KY_SHARE_REST_NS);
			else
				ky_job_add_next(s->loop, j);
			return;
		}
		now_ns = run_first_job(next, now_ns);
	}
}

void ky_shares_init(struct ky_shares *s, struct ky_loop *loop)
{
	memset(s, 0, sizeof(*s));
	s->loop = loop;
	ky_list_init(&s->waiting);
	ky_job_init(&s->work, run_shares);
	ky_timer_init(&s->rest, rested);
}

void ky_share_init(struct ky_share *s, struct ky_shares *of)
{
	memset(s, 0, sizeof(*s));
	s->of = of;
	ky_list_init(&s->node);
	ky_list_init(&s->jobs);
}

void ky_share_deinit(struct ky_share *s)
{
	if (s->of->running == s)
		s->of->running = NULL;
	ky_list_remove(&s->node);
}

/* A share that has had no work for a while does not make up for it. */
static void await_turn(struct ky_share *s)
{
	if (ky_list_empty(&s->node)) {
		s->had_ns = KY_MAX(s->had_ns, s->of->floor_ns);
		ky_list_append(&s->of->waiting, &s->node);
	}
	if (!ky_job_is_added(&s->of->work) && !ky_timer_is_set(&s->of->rest))
		ky_job_add(s->of->loop, &s->of->work);
}

void ky_share_add(struct ky_share *s, struct ky_loop *loop, struct ky_job *j)
{
	if (!s) {
		ky_job_add(loop, j);
		return;
	}
	ky_list_remove(&j->node);
	ky_list_append(&s->jobs, &j->node);
	await_turn(s);
}

void ky_share_add_first(struct ky_share *s, struct ky_loop *loop, struct ky_job *j)
{
	ky_share_add(s, loop, j);
	if (s) {
		ky_list_remove(&j->node);
		ky_list_append(s->jobs.next, &j->node); /* before the first */
	}
}

bool ky_share_is_over(const struct ky_share *s)
{
	return s && is_over(s->of, cpu_time_ns());
}
