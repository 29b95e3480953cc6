/* SPDX-License-Identifier: MIT */
#include "svc/line-conn.h"

#include <sys/socket.h>

#include "svc/unix.h"

#define READ_BYTES 16384

static void fail_line_conn(struct ky_line_conn *c, int error)
{
	if (c->failed)
		return;
	c->failed = true;
	c->error = error;
	ky_watch_remove(&c->watch);
	ky_share_add(c->share, c->loop, &c->work);
}

static bool has_line(const struct ky_line_conn *c)
{
	return c->in.len && memchr(c->in.data, '\n', c->in.len);
}

static bool idle(const struct ky_line_conn *c)
{
	return !c->waiting && !c->out.len;
}

/* After any change: go on with the next line, end, or wait for the right thing. */
static void line_conn_go_on(struct ky_line_conn *c)
{
	uint32_t events = 0;
	int ret;

	if (c->failed)
		return;
	if (idle(c) && has_line(c))
		ky_share_add(c->share, c->loop, &c->work);
	else if (idle(c) && c->ended)
		fail_line_conn(c, 0);
	else if (idle(c))
		events = EPOLLIN;
	if (c->failed)
		return;
	if (c->out.len)
		events |= EPOLLOUT;
	ret = ky_watch_modify(&c->watch, events);
	if (ret < 0)
		fail_line_conn(c, ret);
}

static void take_line(struct ky_line_conn *c)
{
	char *end = memchr(c->in.data, '\n', c->in.len);
	size_t len = (size_t)(end - c->in.data);

	*end = '\0';
	c->waiting = true;
	c->ops->line(c, c->in.data, len);
	ky_buf_consume(&c->in, len + 1);
	line_conn_go_on(c);
}

static void handle_line_job(struct ky_job *j)
{
	struct ky_line_conn *c = ky_container_of(j, struct ky_line_conn, work);

	if (c->failed)
		c->ops->closed(c, c->error);
	else if (idle(c) && has_line(c))
		take_line(c);
}

static int receive_bytes(struct ky_line_conn *c)
{
	char *to = ky_buf_reserve(&c->in, READ_BYTES);
	int fds[KY_UNIX_MAX_FDS], flags;
	size_t n_fds;
	ssize_t n;

	if (!to)
		return c->in.error;
	n = ky_unix_receive(c->fd, to, READ_BYTES, fds, &n_fds, &flags);
	for (size_t i = 0; i < n_fds; i++)
		ky_close_foreign(fds[i]);
	if (n < 0)
		return n == -EAGAIN ? 0 : (int)n;
	if (!n)
		c->ended = true;
	c->in.len += (size_t)n;
	return c->in.len > KY_LINE_MAX && !has_line(c) ? -EMSGSIZE : 0;
}

static int flush_out(struct ky_line_conn *c)
{
	ssize_t n = send(c->fd, c->out.data, c->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	ky_buf_consume(&c->out, (size_t)n);
	if (!c->out.len)
		ky_buf_deinit(&c->out);
	return 0;
}

static void conn_ready(struct ky_watch *w, uint32_t events)
{
	struct ky_line_conn *c = ky_container_of(w, struct ky_line_conn, watch);
	int ret = 0;

	if (events & EPOLLOUT)
		ret = flush_out(c);
	if (!ret && (events & EPOLLIN) && idle(c))
		ret = receive_bytes(c);
	else if (!ret && (events & (EPOLLHUP | EPOLLERR)))
		ret = -EPIPE;
	if (ret < 0)
		fail_line_conn(c, ret == -EPIPE || ret == -ECONNRESET ? 0 : ret);
	else
		line_conn_go_on(c);
}

void ky_line_conn_answer(struct ky_line_conn *c, const char *text)
{
	int ret;

	c->waiting = false;
	if (c->failed)
		return;
	ky_buf_puts(&c->out, text);
	ky_buf_puts(&c->out, "\n");
	ret = c->out.error ? c->out.error : flush_out(c);
	if (ret < 0)
		fail_line_conn(c, ret);
	else
		line_conn_go_on(c);
}

int ky_line_conn_init(
	struct ky_line_conn *c, struct ky_loop *loop, int fd, const struct ky_line_conn_ops *ops)
{
	int ret;

	memset(c, 0, sizeof(*c));
	c->fd = fd;
	c->loop = loop;
	c->ops = ops;
	c->in.max = KY_LINE_MAX + READ_BYTES;
	ky_job_init(&c->work, handle_line_job);
	ret = ky_watch_add(loop, &c->watch, fd, EPOLLIN, conn_ready);
	if (ret < 0)
		c->fd = ky_close_foreign(fd);
	return ret;
}

void ky_line_conn_deinit(struct ky_line_conn *c)
{
	if (!c->ops)
		return;
	ky_watch_remove(&c->watch);
	ky_job_cancel(&c->work);
	ky_buf_deinit(&c->in);
	ky_buf_deinit(&c->out);
	c->failed = true;
	c->fd = ky_close_foreign(c->fd);
}
