/* SPDX-License-Identifier: MIT */
/*
 * The one thread that libkymo adds to a program. It sleeps in poll() until a daemon has something
 * to say, or starts. While a session records, it also wakes now and then, less and less often, to
 * see whether the program has begun to use another CPU's ring, and makes that ring's memory present
 * before the writers get there.
 */
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "tracer/tracer.h"

#define POPULATE_MIN_MS 1
#define POPULATE_MAX_MS 1000
/* Without a sign of life in this time, a daemon is taken for hung, and programs start without it.
 */
#define ALIVE_MS   50
#define STACK_SIZE ((size_t)128 << 10)

static int populate_ms = -1; /* until the next look; -1: nothing records */

static void arm_populate(void)
{
	bool recording = false;

	for (uint32_t i = 0; i < TRACER_MAX_SETS; i++)
		recording |= tracer.sets[i].conn && tracer.sets[i].set.started;
	populate_ms = recording ? POPULATE_MIN_MS : -1;
}

static void populate(void)
{
	if (tracer_sets_populate())
		populate_ms = POPULATE_MIN_MS;
	else
		populate_ms = KY_MIN(populate_ms * 2, POPULATE_MAX_MS);
}

/* What to poll; the shorter of the time-outs. */
static int prepare(struct pollfd *p)
{
	int timeout = populate_ms;

	for (uint32_t i = 0; i < TRACER_N_CONNS; i++) {
		struct tracer_conn *c = &tracer.conns[i];

		p[i] = (struct pollfd){.fd = c->fd >= 0 ? c->fd : c->wake_fd, .events = POLLIN};
		if (c->retry_ms && (timeout < 0 || (uint32_t)timeout > c->retry_ms))
			timeout = (int)c->retry_ms;
	}
	return timeout;
}

static void serve(struct tracer_conn *c, short revents, bool timed_out)
{
	bool again = timed_out && c->retry_ms;

	if (revents) {
		tracer_conn_verify(c);
		if (c->fd >= 0) {
			tracer_conn_receive(c);
			arm_populate();
		}
		again = true; /* a daemon that restarted is there again, or will wake us */
	}
	if (again && c->fd < 0)
		tracer_conn_try(c);
}

static void *listen_loop(void *arg)
{
	struct pollfd p[TRACER_N_CONNS];

	(void)arg;
	prctl(PR_SET_NAME, "kymo-listener");
	pthread_mutex_lock(&tracer.lock);
	for (uint32_t i = 0; i < TRACER_N_CONNS; i++)
		tracer_conn_try(&tracer.conns[i]);
	for (;;) {
		int timeout = prepare(p), n;

		pthread_mutex_unlock(&tracer.lock);
		n = poll(p, TRACER_N_CONNS, timeout);
		pthread_mutex_lock(&tracer.lock);
		for (uint32_t i = 0; i < TRACER_N_CONNS; i++)
			serve(&tracer.conns[i], n > 0 ? p[i].revents : 0, n == 0);
		if (n == 0 && populate_ms > 0)
			populate();
	}
	return NULL;
}

int tracer_listener_start(void)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	populate_ms = -1;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&thread, &attr, listen_loop, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

void tracer_wake_waiters(void)
{
	__atomic_fetch_add(
		&tracer.turn, 1, __ATOMIC_RELEASE); /* pairs with tracer_wait_registered */
	syscall(SYS_futex, &tracer.turn, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static void wait_turn(uint32_t turn, uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	syscall(SYS_futex, &tracer.turn, FUTEX_WAIT_PRIVATE, turn, &t, NULL, 0);
}

/* Waits for one daemon until it has answered what it was asked so far. */
static void wait_conn(struct tracer_conn *c, uint64_t deadline, bool forever)
{
	struct ky_state before, now;
	uint64_t heard = c->heard, checked = ky_clock_ns(CLOCK_MONOTONIC);
	uint32_t asked = 0;

	if (!tracer_conn_state(c, &before) || !before.n_active)
		return;
	for (;;) {
		uint32_t turn = __atomic_load_n(&tracer.turn, __ATOMIC_ACQUIRE);
		uint64_t t = ky_clock_ns(CLOCK_MONOTONIC);
		bool answered;

		pthread_mutex_lock(&tracer.lock);
		asked = asked ? asked : c->asked;
		answered = c->tried && (c->fd < 0 || (int32_t)(c->answered - asked) >= 0);
		pthread_mutex_unlock(&tracer.lock);
		if (answered || (!forever && t >= deadline))
			return;
		if (!forever && t - checked >= ALIVE_MS * 1000000u) {
			if (!tracer_conn_state(c, &now))
				return;
			if (now.progress == before.progress && c->heard == heard)
				return;
			before = now;
			heard = c->heard;
			checked = t;
		}
		wait_turn(turn, forever ? 1000000000 : KY_MIN(deadline - t, (uint64_t)10000000));
	}
}

void tracer_wait_registered(void)
{
	uint64_t deadline = ky_clock_ns(CLOCK_MONOTONIC) +
			    (uint64_t)KY_MAX(tracer.timeout_ms, 0) * 1000000;

	if (tracer.timeout_ms)
		for (uint32_t i = 0; i < TRACER_N_CONNS; i++)
			wait_conn(&tracer.conns[i], deadline, tracer.timeout_ms < 0);
}
