/* SPDX-License-Identifier: MIT */
#include "svc/loop.h"

#include <linux/time_types.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>

#include "base/clock.h"

#define NS_PER_S (1000 * KY_NS_PER_MS)

int ky_loop_init(struct ky_loop *loop)
{
	memset(loop, 0, sizeof(*loop));
	ky_list_init(&loop->timers);
	ky_list_init(&loop->jobs);
	ky_list_init(&loop->next_jobs);
	loop->signals.fd = -1;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return loop->epoll_fd < 0 ? -errno : 0;
}

void ky_loop_deinit(struct ky_loop *loop)
{
	ky_watch_remove(&loop->signals);
	loop->signals.fd = ky_close(loop->signals.fd);
	loop->epoll_fd = ky_close(loop->epoll_fd);
}

uint64_t ky_loop_now_ns(void)
{
	return ky_clock_ns(CLOCK_MONOTONIC);
}

uint64_t ky_loop_time_ns(const struct ky_loop *loop)
{
	return loop->clock ? loop->clock->now_ns(loop->clock) : ky_loop_now_ns();
}

void ky_loop_stop(struct ky_loop *loop)
{
	loop->stopped = true;
}

/* Nanoseconds until something is due; UINT64_MAX: nothing is. */
static uint64_t next_timeout(const struct ky_loop *loop, uint64_t now)
{
	const struct ky_timer *first;

	if (!ky_list_empty(&loop->jobs) || !ky_list_empty(&loop->next_jobs))
		return 0;
	if (ky_list_empty(&loop->timers))
		return UINT64_MAX;
	first = ky_list_entry(loop->timers.next, struct ky_timer, node);
	return first->due_ns > now ? first->due_ns - now : 0;
}

/*
 * Waits with epoll_wait() if the kernel (before 5.11) or a filter of system calls has no
 * epoll_pwait2(). Then the unit is milliseconds, rounded up.
 */
static int epoll_for(struct ky_loop *loop, uint64_t ns)
{
	struct __kernel_timespec ts = {
		.tv_sec = (int64_t)(ns / NS_PER_S), .tv_nsec = (int64_t)(ns % NS_PER_S)};
	uint64_t ms = KY_MIN(ns / KY_NS_PER_MS + (ns % KY_NS_PER_MS != 0), (uint64_t)INT32_MAX);
	int n = (int)syscall(SYS_epoll_pwait2, loop->epoll_fd, loop->batch, KY_LOOP_BATCH,
		ns == UINT64_MAX ? NULL : &ts, NULL, 0);

	if (n >= 0 || errno == EINTR)
		return n;
	return epoll_wait(
		loop->epoll_fd, loop->batch, KY_LOOP_BATCH, ns == UINT64_MAX ? -1 : (int)ms);
}

static int wait_for_events(struct ky_loop *loop, uint64_t ns)
{
	int n = epoll_for(loop, loop->clock ? 0 : ns);

	if (loop->clock && !n && ns)
		loop->clock->pass(loop->clock, ns);
	return n;
}

/* Moves *now to the end of the wait, if nothing came until then. */
static int call_watches(struct ky_loop *loop, uint64_t *now)
{
	uint64_t timeout_ns = next_timeout(loop, *now);
	int n = wait_for_events(loop, timeout_ns);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	*now += n ? 0 : timeout_ns;
	loop->n_batch = n;
	for (loop->next = 0; loop->next < loop->n_batch;) {
		struct epoll_event *e = &loop->batch[loop->next++];
		struct ky_watch *w = e->data.ptr;

		if (w)
			w->fn(w, e->events);
	}
	loop->n_batch = 0;
	return n;
}

/*
 * Only timers that were due when the turn began, before the descriptors were examined, or at the
 * end of a wait in which nothing came. So one that sets itself again starves nobody, and a time
 * limit does not end before that is handled which arrived in time, however long the process had no
 * CPU.
 */
static int call_timers(struct ky_loop *loop, uint64_t now)
{
	int n = 0;

	while (!ky_list_empty(&loop->timers)) {
		struct ky_timer *t = ky_list_entry(loop->timers.next, struct ky_timer, node);

		if (t->due_ns > now)
			break;
		ky_list_remove(&t->node);
		t->fn(t);
		n++;
	}
	return n;
}

static int call_jobs(struct ky_loop *loop)
{
	struct ky_job *next, *tmp;
	int n = 0;

	/* A job that adds itself again waits for another turn. */
	ky_list_foreach_safe (next, tmp, &loop->next_jobs, node)
		ky_job_add(loop, next);
	while (!ky_list_empty(&loop->jobs)) {
		struct ky_job *j = ky_list_entry(loop->jobs.next, struct ky_job, node);

		ky_list_remove(&j->node);
		j->fn(j);
		n++;
	}
	return n;
}

int ky_loop_run(struct ky_loop *loop)
{
	while (!loop->stopped) {
		uint64_t now = ky_loop_time_ns(loop);
		int n;

		loop->n_turns++;
		n = call_watches(loop, &now);

		if (n < 0)
			return n;
		n += call_timers(loop, now);
		n += call_jobs(loop);
		if (n && loop->on_turn)
			loop->on_turn(loop);
	}
	return 0;
}

int ky_watch_add(struct ky_loop *loop, struct ky_watch *w, int fd, uint32_t events,
	void (*fn)(struct ky_watch *w, uint32_t events))
{
	struct epoll_event e = {.events = events, .data.ptr = w};

	w->fd = fd;
	w->fn = fn;
	w->loop = NULL;
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0)
		return -errno;
	w->loop = loop;
	return 0;
}

int ky_watch_modify(struct ky_watch *w, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.ptr = w};

	return epoll_ctl(w->loop->epoll_fd, EPOLL_CTL_MOD, w->fd, &e) < 0 ? -errno : 0;
}

void ky_watch_remove(struct ky_watch *w)
{
	struct ky_loop *loop = w->loop;

	if (!loop)
		return;
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
	for (int i = loop->next; i < loop->n_batch; i++)
		if (loop->batch[i].data.ptr == w)
			loop->batch[i].data.ptr = NULL;
	w->loop = NULL;
}

static void signals_readable(struct ky_watch *w, uint32_t events)
{
	struct ky_loop *loop = ky_container_of(w, struct ky_loop, signals);
	struct signalfd_siginfo info;

	while (read(w->fd, &info, sizeof(info)) == sizeof(info))
		loop->on_signal(loop, (int)info.ssi_signo);
}

int ky_loop_signals(
	struct ky_loop *loop, const sigset_t *set, void (*fn)(struct ky_loop *loop, int signo))
{
	int fd;

	if (sigprocmask(SIG_BLOCK, set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	loop->on_signal = fn;
	return ky_watch_add(loop, &loop->signals, fd, EPOLLIN, signals_readable);
}

void ky_signals_reset(void)
{
	sigset_t none;

	sigemptyset(&none);
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

void ky_timer_init(struct ky_timer *t, void (*fn)(struct ky_timer *t))
{
	ky_list_init(&t->node);
	t->fn = fn;
}

static uint64_t due_of(const struct ky_list *node)
{
	return ky_list_entry(node, struct ky_timer, node)->due_ns;
}

/*
 * Searches from both ends: most timers are set with one and the same delay, so their place is at
 * the end; the others are few, and shorter.
 */
void ky_timer_set(struct ky_loop *loop, struct ky_timer *t, uint64_t delay_ns)
{
	struct ky_list *next, *end = &loop->timers, *last;

	ky_list_remove(&t->node);
	t->due_ns = ky_loop_time_ns(loop) + delay_ns;
	next = loop->timers.next;
	last = loop->timers.prev;
	while (next != end && due_of(next) <= t->due_ns) {
		if (due_of(last) <= t->due_ns) {
			next = last->next;
			break;
		}
		next = next->next;
		last = last->prev;
	}
	ky_list_append(next, &t->node); /* before `next` */
}

void ky_timer_cancel(struct ky_timer *t)
{
	ky_list_remove(&t->node);
}

void ky_job_init(struct ky_job *j, void (*fn)(struct ky_job *j))
{
	ky_list_init(&j->node);
	j->fn = fn;
}

void ky_job_add(struct ky_loop *loop, struct ky_job *j)
{
	ky_list_remove(&j->node);
	ky_list_append(&loop->jobs, &j->node);
}

void ky_job_add_next(struct ky_loop *loop, struct ky_job *j)
{
	ky_list_remove(&j->node);
	ky_list_append(&loop->next_jobs, &j->node);
}

void ky_job_cancel(struct ky_job *j)
{
	ky_list_remove(&j->node);
}
