/* SPDX-License-Identifier: MIT */
#include "sessiond/recover.h"

#include <sys/socket.h>

#include "sessiond/journal.h"
#include "sessiond/peers/proc-state.h"
#include "sessiond/peers/recording.h"
#include "sessiond/peers/rundir.h"
#include "sessiond/peers/steps.h"
#include "svc/log.h"

/*
 * Consumers call every 50 ms. One that is starved of CPU time may call later: it is waited for up
 * to the longer time, in which commands wait for the daemon, too.
 */
#define WAIT_NS	     (1000 * KY_NS_PER_MS)
#define WAIT_MORE_NS (100 * KY_NS_PER_MS)
#define WAIT_MAX_NS  (15000 * KY_NS_PER_MS)
#define LOOKS_HELD   10 /* in a row: a consumer at work waits for its disk for a moment, too */

static unsigned count_awaited(const struct recovery *r)
{
	const struct session *s;
	unsigned n = 0;

	ky_list_foreach (s, &r->env->sessions, node)
		n += recording_of(s)->consumer.awaited != 0;
	return n;
}

/* Completes if no consumer is awaited any more. */
static void recovery_settle(struct recovery *r)
{
	struct op *op = r->op;

	if (count_awaited(r))
		return;
	ky_timer_cancel(&r->timer);
	r->op = NULL;
	op_done(op, 0, "");
}

/*
 * Returns whether the consumer may still call: it runs, waits for a CPU, or sleeps between two
 * attempts. It does not while it is stopped, or waits for a disk.
 */
static bool may_call(const struct consumer *c)
{
	return c->awaited && (proc_state_is(c->awaited, ") R") || proc_state_is(c->awaited, ") S"));
}

static bool any_may_call(const struct recovery *r)
{
	const struct session *s;

	ky_list_foreach (s, &r->env->sessions, node)
		if (may_call(&recording_of(s)->consumer))
			return true;
	return false;
}

static void timed_out(struct ky_timer *t)
{
	struct recovery *r = ky_container_of(t, struct recovery, timer);
	struct session *s, *tmp;

	r->n_held = any_may_call(r) ? 0 : r->n_held + 1;
	if (count_awaited(r) && r->n_held < LOOKS_HELD &&
		ky_loop_time_ns(&r->env->loop) - r->begun_ns < WAIT_MAX_NS) {
		ky_timer_set(&r->env->loop, t, WAIT_MORE_NS);
		return;
	}
	ky_list_foreach_safe (s, tmp, &r->env->sessions, node)
		if (recording_of(s)->consumer.awaited)
			session_lose(s);
	recovery_settle(r);
}

/*
 * Sends QUIT to a consumer whose session the daemon does not know, or knows as another consumer's.
 * The consumer writes out what it has, and exits.
 */
static void send_away(int fd)
{
	uint8_t buf[64];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	int len = ky_cons_quit_encode(&w, &(struct ky_cons_quit){.cookie = 1});

	if (len > 0 && send(fd, buf, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		ky_warning("cannot order a consumer of the previous session daemon to end: %s",
			strerror(errno));
	ky_close_foreign(fd);
}

/* The kernel says who calls: of another process, a journal would name another number. */
static void consumer_called(struct ky_listener *l, int fd, const struct ky_peer *peer)
{
	struct recovery *r = ky_container_of(l, struct recovery, listener);
	struct session *s;

	ky_list_foreach (s, &r->env->sessions, node) {
		if (!peer->pid || recording_of(s)->consumer.awaited != peer->pid ||
			s->uid != peer->uid)
			continue;
		ky_unix_allow_fds(fd);
		consumer_adopt(&recording_of(s)->consumer, fd);
		return;
	}
	env_set_cause(r->env, peer->uid);
	send_away(fd);
	env_set_cause(r->env, r->env->uid);
}

/* That of this process. */
static struct recovery *recovery;

static void session_settled(struct session *s)
{
	recovery_settle(recovery);
}

void recover_init(struct recovery *r, struct env *e)
{
	recovery = r;
	r->env = e;
	r->op = NULL;
	ky_timer_init(&r->timer, timed_out);
	r->observer = (struct observer){.session_settled = session_settled};
	ky_list_append(&e->observers, &r->observer.node);
}

/* A bound daemon's consumers end with it: it finds none. */
static int await_consumers(struct recovery *r)
{
	const char *path = rundir_path(r->env->run, KY_RUN_DRAIN);
	int ret = ky_listener_init(&r->listener, &r->env->loop, path, SOCK_SEQPACKET,
		r->env->run->global ? 0666 : 0600, (gid_t)-1, consumer_called);

	if (ret < 0) {
		ky_error("cannot listen on %s: %s", path, strerror(-ret));
		return ret;
	}
	ret = journal_replay(r->env);
	/* A daemon that cannot take the sessions over leaves them to the next one. */
	r->env->handing_over = ret < 0;
	return KY_MIN(ret, 1);
}

int recover_begin(struct recovery *r, struct op *op)
{
	int ret = r->env->bound ? 0 : await_consumers(r);

	if (ret < 0)
		return ret;
	r->op = op;
	r->begun_ns = ky_loop_time_ns(&r->env->loop);
	ky_timer_set(&r->env->loop, &r->timer, ret ? WAIT_NS : 0);
	return 0;
}

void recover_deinit(struct recovery *r)
{
	ky_timer_cancel(&r->timer);
	ky_listener_deinit(&r->listener);
}
