/* SPDX-License-Identifier: MIT */
#include "svc/msg-conn.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "svc/unix.h"

/* A message that waits for room in the socket. */
struct out {
	struct ky_list node;
	size_t len, n_fds;
	int fds[KY_MSG_CONN_MAX_FDS]; /* owned */
	uint8_t data[];
};

static void close_all(int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fds[i] = ky_close(fds[i]);
}

static struct out *out_free(struct out *o)
{
	close_all(o->fds, o->n_fds);
	free(o);
	return NULL;
}

static struct out *out_new(const void *buf, size_t len, const int *fds, size_t n_fds)
{
	struct out *o = calloc(1, sizeof(*o) + len);

	if (!o)
		return NULL;
	ky_list_init(&o->node);
	memcpy(o->data, buf, len);
	o->len = len;
	for (; o->n_fds < n_fds; o->n_fds++) {
		o->fds[o->n_fds] = fcntl(fds[o->n_fds], F_DUPFD_CLOEXEC, 0);
		if (o->fds[o->n_fds] < 0)
			return out_free(o);
	}
	return o;
}

/*
 * Returns the cost of a queued message, of which the peer's limit bounds the sum. A descriptor
 * costs more than its four bytes.
 */
static size_t out_cost(size_t len, size_t n_fds)
{
	return sizeof(struct out) + len + n_fds * 1024;
}

static void charge_bytes(struct ky_msg_conn *c, size_t bytes)
{
	c->n_queued_bytes += bytes;
	if (c->account)
		c->account->n_bytes += bytes;
}

static void discharge(struct ky_msg_conn *c, size_t bytes)
{
	c->n_queued_bytes -= bytes;
	if (c->account)
		c->account->n_bytes -= bytes;
}

static bool has_room(const struct ky_msg_conn *c, size_t bytes)
{
	return bytes <= c->max_queued_bytes - c->n_queued_bytes &&
	       (!c->account || bytes <= c->account->max_bytes - c->account->n_bytes);
}

static void drop_queue(struct ky_msg_conn *c)
{
	struct out *o, *tmp;

	ky_list_foreach_safe (o, tmp, &c->queue, node) {
		ky_list_remove(&o->node);
		out_free(o);
	}
	discharge(c, c->n_queued_bytes);
}

static uint32_t wanted_events(const struct ky_msg_conn *c)
{
	return ky_list_empty(&c->queue) ? EPOLLIN : EPOLLIN | EPOLLOUT;
}

static int set_events(struct ky_msg_conn *c)
{
	return c->parked ? 0 : ky_watch_modify(&c->watch, wanted_events(c));
}

void ky_msg_account_init(struct ky_msg_account *a, size_t max_bytes, struct ky_shares *shares)
{
	memset(a, 0, sizeof(*a));
	a->max_bytes = max_bytes;
	ky_share_init(&a->share, shares);
}

void ky_msg_account_deinit(struct ky_msg_account *a)
{
	ky_share_deinit(&a->share);
}

static struct ky_share *share_of(const struct ky_msg_conn *c)
{
	return c->account ? &c->account->share : NULL;
}

bool ky_msg_conn_is_over(const struct ky_msg_conn *c)
{
	return ky_share_is_over(share_of(c));
}

static void conn_ready(struct ky_watch *w, uint32_t events);

/* Watches a connection that was not watched while its message waited. */
static void watch_again(struct ky_msg_conn *c)
{
	int ret;

	if (!c->parked)
		return;
	c->parked = false;
	ret = ky_watch_add(c->loop, &c->watch, c->fd, wanted_events(c), conn_ready);
	if (ret < 0)
		ky_msg_conn_fail(c, ret);
}

/* Returns true for the errors by which a closed connection shows. */
static bool is_end(int error)
{
	return error == -EPIPE || error == -ECONNRESET;
}

static void stop_watching(struct ky_msg_conn *c)
{
	ky_watch_remove(&c->watch);
	c->parked = false;
	drop_queue(c);
}

void ky_msg_conn_fail(struct ky_msg_conn *c, int error)
{
	if (c->failed)
		return;
	c->failed = true;
	c->error = is_end(error) ? 0 : error;
	stop_watching(c);
	ky_share_add_first(share_of(c), c->loop, &c->work);
}

/*
 * After a failed send: if the peer has closed the connection, the messages that it sent before that
 * are handled first, by the job (run_work).
 */
static void fail_to_send(struct ky_msg_conn *c, int error)
{
	if (!is_end(error)) {
		ky_msg_conn_fail(c, error);
	} else if (!c->peer_ended) {
		c->peer_ended = true;
		stop_watching(c);
		ky_share_add(share_of(c), c->loop, &c->work);
	}
}

static ssize_t send_now(int fd, const void *buf, size_t len, const int *fds, size_t n_fds)
{
	union {
		char buf[CMSG_SPACE(KY_MSG_CONN_MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *cmsg;
	ssize_t n;

	if (n_fds) {
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, n_fds * sizeof(int));
	}
	do {
		n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static bool is_full(ssize_t error)
{
	return error == -EAGAIN || error == -EWOULDBLOCK;
}

static int enqueue_message(
	struct ky_msg_conn *c, const void *buf, size_t len, const int *fds, size_t n_fds)
{
	size_t cost = out_cost(len, n_fds);
	bool first = ky_list_empty(&c->queue);
	struct out *o;

	if (!has_room(c, cost))
		return -ENOBUFS;
	o = out_new(buf, len, fds, n_fds);
	if (!o)
		return -ENOMEM;
	ky_list_append(&c->queue, &o->node);
	charge_bytes(c, cost);
	return first ? set_events(c) : 0;
}

static int send_or_queue(
	struct ky_msg_conn *c, const void *buf, size_t len, const int *fds, size_t n_fds)
{
	ssize_t n = -EAGAIN;

	if (!len || len > KY_MSG_CONN_MAX || n_fds > KY_MSG_CONN_MAX_FDS)
		return -EMSGSIZE;
	if (ky_list_empty(&c->queue))
		n = send_now(c->fd, buf, len, fds, n_fds);
	if (is_full(n))
		n = enqueue_message(c, buf, len, fds, n_fds);
	return (int)KY_MIN(n, 0);
}

int ky_msg_conn_send(struct ky_msg_conn *c, const void *buf, int len, const int *fds, size_t n_fds)
{
	int ret;

	if (c->failed || c->peer_ended)
		return -EPIPE;
	ret = len < 0 ? len : send_or_queue(c, buf, (size_t)len, fds, n_fds);
	if (ret < 0 && !(ret == -EPERM && c->offers_fds))
		fail_to_send(c, ret);
	return ret;
}

static int flush_queue(struct ky_msg_conn *c)
{
	struct out *o, *tmp;
	ssize_t n;

	ky_list_foreach_safe (o, tmp, &c->queue, node) {
		n = send_now(c->fd, o->data, o->len, o->fds, o->n_fds);
		if (is_full(n))
			return 0;
		if (n < 0)
			return (int)n;
		discharge(c, out_cost(o->len, o->n_fds));
		ky_list_remove(&o->node);
		out_free(o);
	}
	return set_events(c);
}

/* Receives one message. Returns its length, 0 at the peer's end, -EAGAIN, or another -errno. */
static ssize_t receive_message(
	struct ky_msg_conn *c, void *buf, int fds[KY_UNIX_MAX_FDS], size_t *ret_n_fds)
{
	int flags;
	ssize_t n;

	/* A peer that closes before it has read everything leaves an ECONNRESET first. */
	do {
		n = ky_unix_receive(c->fd, buf, KY_MSG_CONN_MAX, fds, ret_n_fds, &flags);
	} while (n == -ECONNRESET);
	if (n < 0)
		return n;
	if (flags & MSG_TRUNC)
		return -EMSGSIZE;
	if ((flags & MSG_CTRUNC) || *ret_n_fds > c->max_fds)
		return -EPROTO;
	return n;
}

void ky_msg_conn_defer(struct ky_msg_conn *c)
{
	c->deferred = true;
}

/* Returns a copy of the message if it is to be handled again, else NULL. */
static uint8_t *copy_deferred(struct ky_msg_conn *c, const void *buf, size_t len)
{
	uint8_t *copy = c->deferred && !c->failed ? malloc(len) : NULL;

	if (copy)
		memcpy(copy, buf, len);
	else if (c->deferred)
		ky_msg_conn_fail(c, -ENOMEM);
	return copy;
}

/* Handles the message that was deferred. Returns its length. */
static ssize_t serve_deferred(struct ky_msg_conn *c)
{
	uint8_t *buf = c->unfinished;

	c->deferred = false;
	c->unfinished = NULL;
	c->ops->message(c, buf, c->unfinished_len, NULL, 0);
	if (c->deferred && !c->failed)
		c->unfinished = buf;
	else
		free(buf);
	return (ssize_t)c->unfinished_len;
}

/* Receives and handles one message. Returns as receive_message() does. */
static ssize_t serve_message(struct ky_msg_conn *c)
{
	uint8_t buf[KY_MSG_CONN_MAX];
	int fds[KY_UNIX_MAX_FDS];
	size_t n_fds = 0;
	ssize_t n;

	if (c->unfinished)
		return serve_deferred(c);
	n = receive_message(c, buf, fds, &n_fds);
	c->deferred = false;
	if (n > 0) {
		c->ops->message(c, buf, (size_t)n, fds, n_fds);
		c->unfinished = copy_deferred(c, buf, (size_t)n);
		c->unfinished_len = (size_t)n;
	}
	for (size_t i = 0; i < n_fds; i++)
		ky_close_foreign(fds[i]);
	return n;
}

/* The peer has closed the connection, and n is the result for one of its last messages. */
static void await_end(struct ky_msg_conn *c, ssize_t n)
{
	if (n <= 0)
		ky_msg_conn_fail(c, 0);
	else if (c->account)
		ky_share_add(share_of(c), c->loop, &c->work);
	else
		ky_job_add_next(c->loop, &c->work);
}

/* Serves one message, and decides when the connection is served next. */
static void serve_conn(struct ky_msg_conn *c)
{
	ssize_t n = serve_message(c);

	if (c->failed)
		return;
	if (c->unfinished)
		ky_share_add_first(share_of(c), c->loop, &c->work);
	else if (c->peer_ended)
		await_end(c, n);
	else if (n <= 0 && n != -EAGAIN)
		ky_msg_conn_fail(c, (int)n);
	else
		watch_again(c);
}

bool ky_msg_conn_receive(struct ky_msg_conn *c)
{
	/* An error comes again in the connection's turn, or ends it then. */
	return !c->failed && serve_message(c) > 0 && !c->unfinished;
}

static void run_work(struct ky_job *j)
{
	struct ky_msg_conn *c = ky_container_of(j, struct ky_msg_conn, work);

	if (c->failed)
		c->ops->closed(c, c->error);
	else
		serve_conn(c);
}

/* Stops watching a connection whose message already waits for its turn. */
static void park_conn(struct ky_msg_conn *c)
{
	ky_watch_remove(&c->watch);
	c->parked = true;
}

static void conn_ready(struct ky_watch *w, uint32_t events)
{
	struct ky_msg_conn *c = ky_container_of(w, struct ky_msg_conn, watch);
	ssize_t n = 0;

	if (events & EPOLLOUT)
		n = flush_queue(c);
	if (n < 0)
		fail_to_send(c, (int)n);
	else if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	else if (!c->account)
		serve_conn(c);
	else if (ky_job_is_added(&c->work))
		park_conn(c);
	else
		ky_share_add(share_of(c), c->loop, &c->work);
}

void ky_msg_conn_look(struct ky_msg_conn *c)
{
	ky_share_add(share_of(c), c->loop, &c->work);
}

int ky_msg_conn_init(struct ky_msg_conn *c, struct ky_loop *loop, int fd,
	const struct ky_msg_conn_ops *ops, size_t max_queued_bytes, size_t max_fds)
{
	int ret;

	memset(c, 0, sizeof(*c));
	c->fd = fd;
	c->loop = loop;
	c->ops = ops;
	c->max_queued_bytes = max_queued_bytes;
	c->max_fds = KY_MIN(max_fds, (size_t)KY_MSG_CONN_MAX_FDS);
	ky_list_init(&c->queue);
	ky_job_init(&c->work, run_work);
	ret = ky_watch_add(loop, &c->watch, fd, EPOLLIN, conn_ready);
	if (ret < 0)
		c->fd = ky_close_foreign(fd);
	return ret;
}

void ky_msg_conn_deinit(struct ky_msg_conn *c)
{
	if (!c->ops)
		return;
	ky_watch_remove(&c->watch);
	ky_job_cancel(&c->work);
	drop_queue(c);
	free(c->unfinished);
	c->unfinished = NULL;
	c->failed = true;
	c->fd = ky_close_foreign(c->fd);
}
