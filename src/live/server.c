/* SPDX-License-Identifier: MIT */
#include "live/server.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"

#define CLIENTS_MAX   64u
#define QUIET_NS      10000000000ull /* a viewer asks again after 0.1 s, unless it is stopped */
#define SENT_AWAY_MAX 20	     /* lines of a period */
#define SENT_AWAY_NS  60000000000ull

struct client {
	int fd; /* owned */
	bool has_asked;
	uint64_t heard_ns; /* when it connected, or asked last */
	struct viewer viewer;
	uint8_t in[VIEWER_HEAD + VIEWER_REQUEST_MAX];
	size_t n_in;
	struct ky_buf out;
	size_t sent; /* of these */
};

struct serving {
	struct live_server *server;
	struct client *clients[CLIENTS_MAX]; /* owned */
	unsigned n;
	bool is_short; /* of descriptors: it accepts nobody for a moment */
};

/* Reports how many lines of a period were left out. */
static void end_period(struct live_server *s)
{
	char text[80];

	if (s->n_sent_away > SENT_AWAY_MAX) {
		snprintf(text, sizeof(text), "%u more viewers were disconnected",
			s->n_sent_away - SENT_AWAY_MAX);
		s->report(s, text);
	}
	s->n_sent_away = 0;
}

static void report_sent_away(struct live_server *s, const char *why)
{
	uint64_t now = ky_clock_ns(CLOCK_MONOTONIC);
	char text[160];

	if (now - s->sent_away_ns >= SENT_AWAY_NS) {
		end_period(s);
		s->sent_away_ns = now;
	}
	if (++s->n_sent_away > SENT_AWAY_MAX)
		return;
	snprintf(text, sizeof(text), "a viewer was disconnected: %s", why);
	s->report(s, text);
}

static void report_loss(struct live_server *s, const struct viewer_loss *lost)
{
	char text[160];

	snprintf(text, sizeof(text),
		"a viewer was not shown %" PRIu64
		" event%s that came too late to be in order: the trace has them",
		lost->n_late, lost->n_late == 1 ? "" : "s");
	if (lost->n_late)
		s->report(s, text);
	snprintf(text, sizeof(text),
		"a viewer was not shown the rest of %" PRIu64
		" damaged stream%s: 'kymo view' shows what can be read",
		lost->n_damaged, lost->n_damaged == 1 ? "" : "s");
	if (lost->n_damaged)
		s->report(s, text);
}

static void end_client(struct serving *v, unsigned i)
{
	struct client *c = v->clients[i];
	const struct viewer_loss lost = viewer_loss(&c->viewer);

	report_loss(v->server, &lost);
	viewer_deinit(&c->viewer);
	ky_buf_deinit(&c->out);
	close(c->fd);
	free(c);
	v->clients[i] = v->clients[--v->n];
}

static bool is_quieter(const struct client *a, const struct client *b)
{
	return a->has_asked != b->has_asked ? b->has_asked : a->heard_ns < b->heard_ns;
}

/*
 * Ends a connection that has not asked anything, or not for long. So connections that only wait
 * keep no viewer away.
 */
static void make_room(struct serving *v)
{
	unsigned quietest = 0;

	if (!v->n || (v->n < CLIENTS_MAX && !v->is_short))
		return;
	for (unsigned i = 1; i < v->n; i++)
		if (is_quieter(v->clients[i], v->clients[quietest]))
			quietest = i;
	if (!v->clients[quietest]->has_asked ||
		ky_clock_ns(CLOCK_MONOTONIC) - v->clients[quietest]->heard_ns > QUIET_NS) {
		end_client(v, quietest);
		v->is_short = false;
	}
}

static void accept_client(struct serving *v)
{
	int fd = accept4(v->server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	static const int on = 1;
	struct client *c;

	v->is_short = fd < 0 && (errno == EMFILE || errno == ENFILE);
	make_room(v);
	if (fd < 0)
		return;
	c = v->n < CLIENTS_MAX ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		report_sent_away(v->server, "there are 64 already");
		close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c->fd = fd;
	c->heard_ns = ky_clock_ns(CLOCK_MONOTONIC);
	viewer_init(&c->viewer, v->server->live);
	v->clients[v->n++] = c;
}

/* Sends what fits. Returns 0 or -errno. */
static int send_reply(struct client *c)
{
	while (c->sent < c->out.len) {
		ssize_t n = send(c->fd, c->out.data + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		c->sent += (size_t)n;
	}
	c->sent = c->out.len = 0;
	return 0;
}

/* Handles the requests that are there, until a reply has to wait. Returns 0 or -errno. */
static int handle_requests(struct client *c)
{
	while (!c->out.len) {
		const int64_t n = viewer_request_size(c->in, c->n_in);
		int ret;

		if (n <= 0 || (size_t)n > c->n_in)
			return n < 0 ? (int)n : 0;
		ret = viewer_handle(&c->viewer, c->in, (size_t)n, &c->out);
		c->has_asked = true;
		c->heard_ns = ky_clock_ns(CLOCK_MONOTONIC);
		c->n_in -= (size_t)n;
		memmove(c->in, c->in + n, c->n_in);
		if (!ret)
			ret = send_reply(c);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* Returns 0, -ECONNRESET at the end of the connection, or -errno. */
static int receive_from_client(struct client *c)
{
	ssize_t n = recv(c->fd, c->in + c->n_in, sizeof(c->in) - c->n_in, 0);

	if (n <= 0)
		return !n ? -ECONNRESET : errno == EAGAIN || errno == EINTR ? 0 : -errno;
	c->n_in += (size_t)n;
	return 0;
}

static int serve_client(struct client *c, short events)
{
	int ret = 0;

	if (events & POLLOUT)
		ret = send_reply(c);
	else if (events)
		ret = receive_from_client(c);
	return ret ? ret : handle_requests(c);
}

static void report_end(struct live_server *s, int error)
{
	if (error != -ECONNRESET && error != -EPIPE)
		report_sent_away(s, error == -EPROTO ? "it does not speak LTTng's live protocol"
						     : strerror(-error));
}

int live_serve(struct live_server *s, const volatile sig_atomic_t *stop, const sigset_t *mask)
{
	struct serving v = {.server = s};
	static const struct timespec moment = {.tv_nsec = 100000000};
	struct pollfd p[CLIENTS_MAX + 1];
	int ret = 0;

	while (!*stop && !ret) {
		unsigned n = v.n;

		p[n] = (struct pollfd){.fd = s->listener, .events = POLLIN};
		for (unsigned i = 0; i < n; i++)
			p[i] = (struct pollfd){.fd = v.clients[i]->fd,
				.events = v.clients[i]->out.len ? POLLOUT : POLLIN};
		/* A connection that cannot be accepted stays ready. */
		if (ppoll(p, n + !v.is_short, v.is_short ? &moment : NULL, mask) < 0) {
			ret = errno == EINTR ? 0 : -errno;
			continue;
		}
		/* From the last one: the end of one moves the last to its place. */
		for (unsigned i = n; i-- > 0;) {
			int error = serve_client(v.clients[i], p[i].revents);

			if (error < 0) {
				report_end(s, error);
				end_client(&v, i);
			}
		}
		v.is_short = false;
		if (p[n].revents)
			accept_client(&v);
	}
	while (v.n)
		end_client(&v, v.n - 1);
	end_period(s);
	return ret;
}
