/* SPDX-License-Identifier: MIT */
#include "sessiond/recover.h"

#include <sys/socket.h>

#include "sessiond/journal.h"
#include "sessiond/peers/recording.h"
#include "sessiond/peers/steps.h"
#include "svc/log.h"

#define WAIT_NS (2000 * KY_NS_PER_MS) /* consumers call every 50 ms */

static unsigned count_awaited(const struct daemon *d)
{
	const struct session *s;
	unsigned n = 0;

	ky_list_foreach (s, &d->env.sessions, node)
		n += recording_of(s)->consumer.awaited != 0;
	return n;
}

void recover_settled(struct daemon *d)
{
	struct op *op = d->recovered;

	if (count_awaited(d))
		return;
	ky_timer_cancel(&d->recover_timer);
	d->recovered = NULL;
	op_done(op, 0, "");
}

static void timed_out(struct ky_timer *t)
{
	struct daemon *d = ky_container_of(t, struct daemon, recover_timer);
	struct session *s, *tmp;

	ky_list_foreach_safe (s, tmp, &d->env.sessions, node)
		if (recording_of(s)->consumer.awaited)
			session_lose(s);
	recover_settled(d);
}

/* Its session is not known, or known to be another's: it is to write out what it has, and end. */
static void send_away(int fd)
{
	uint8_t buf[64];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	int len = ky_cons_quit_encode(&w, &(struct ky_cons_quit){.cookie = 1});

	if (len > 0 && send(fd, buf, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		ky_warning("a consumer of a predecessor's could not be told to end");
	ky_close(fd);
}

/* The kernel says who calls: of another process, a journal would name another number. */
static void called(struct ky_listener *l, int fd, const struct ky_peer *peer)
{
	struct daemon *d = ky_container_of(l, struct daemon, drain_listener);
	struct session *s;

	ky_list_foreach (s, &d->env.sessions, node) {
		if (!peer->pid || recording_of(s)->consumer.awaited != peer->pid ||
			s->uid != peer->uid)
			continue;
		consumer_adopt(&recording_of(s)->consumer, fd);
		return;
	}
	send_away(fd);
}

void recover_init(struct daemon *d)
{
	ky_timer_init(&d->recover_timer, timed_out);
}

/* A bound daemon's consumers end with it: it finds none. */
static int await_consumers(struct daemon *d)
{
	const char *path = rundir_path(&d->run, KY_RUN_DRAIN);
	int ret = ky_listener_init(&d->drain_listener, &d->env.loop, path, SOCK_SEQPACKET,
		d->run.global ? 0666 : 0600, (gid_t)-1, called);

	if (ret < 0) {
		ky_error("cannot listen on %s: %s", path, strerror(-ret));
		return ret;
	}
	return journal_replay(&d->env) > 0;
}

int recover_begin(struct daemon *d, struct op *op)
{
	int ret = d->env.bound ? 0 : await_consumers(d);

	if (ret < 0)
		return ret;
	d->recovered = op;
	ky_timer_set(&d->env.loop, &d->recover_timer, ret ? WAIT_NS : 0);
	return 0;
}

void recover_deinit(struct daemon *d)
{
	ky_timer_cancel(&d->recover_timer);
	ky_listener_deinit(&d->drain_listener);
}
