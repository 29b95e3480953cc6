/* SPDX-License-Identifier: MIT */
#include "consumerd/connection.h"

#include <libgen.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "consumerd/kept.h"
#include "consumerd/kernel-sets.h"
#include "consumerd/report.h"
#include "consumerd/requests.h"
#include "consumerd/retirement.h"
#include "consumerd/round.h"
#include "svc/log.h"

#define MAX_QUEUED (1u << 20)

#define FIRST_CALL_NS (10 * KY_NS_PER_MS) /* the dying daemon's own socket may still be there */
#define CALL_NS	      (50 * KY_NS_PER_MS)
#define HAND_OVER_NS  (5 * KY_NS_PER_MS) /* until the next try, if not recognised yet */

static void on_message(
	struct ky_msg_conn *conn, const void *buf, size_t len, int *fds, size_t n_fds)
{
	struct consumerd *c = ky_container_of(conn, struct consumerd, conn);
	struct ky_reader r;
	int ret;

	if (c->quitting || c->exit_status)
		return;
	ret = requests_follow(c, buf, len, fds, n_fds);
	if (ret == 0)
		return;
	ky_error("cannot carry out request %d of the session daemon: %s; the consumer ends",
		ky_msg_open(&r, buf, len), strerror(-ret));
	c->exit_status = 1;
	ky_loop_stop(&c->loop);
}

void connection_finish(struct consumerd *c, const char *why)
{
	if (!c->quitting && !c->exit_status) {
		ky_info("%s: finishing the trace", why);
		round_finish(c);
	}
	ky_loop_stop(&c->loop);
}

/*
 * Connects to the successor. Returns -ECONNREFUSED or -ENOENT while there is none, -ESTALE if there
 * can be none.
 */
static int call_successor(const struct consumerd *c)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);
	char dir[PATH_MAX];
	int fd, ret = 0;

	snprintf(dir, sizeof(dir), "%s", c->rendezvous);
	if (access(dirname(dir), F_OK) < 0 && errno == ENOENT)
		return -ESTALE;
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", c->rendezvous);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0 ||
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		ret = -errno;
	else if (cred.uid != 0 && cred.uid != geteuid())
		ret = -EPERM; /* not our successor */
	if (!ret)
		return fd;
	ky_close(fd);
	return ret;
}

/*
 * Passes the descriptors; later, if the successor has not recognised us yet. The queue has room for
 * as many as there are: without all of them, the session would be lost.
 */
static void hand_over(struct consumerd *c)
{
	c->conn.max_queued_bytes = SIZE_MAX;
	c->conn.offers_fds = kept_send_all(c) == -EPERM;
	c->conn.max_queued_bytes = c->conn.n_queued_bytes + MAX_QUEUED;
	if (c->conn.offers_fds)
		ky_timer_set(&c->loop, &c->caller, HAND_OVER_NS);
}

static void call_due(struct ky_timer *t)
{
	struct consumerd *c = ky_container_of(t, struct consumerd, caller);
	int fd;

	if (!c->session->orphaned_ns) {
		hand_over(c);
		return;
	}
	fd = call_successor(c);
	if (fd == -ESTALE) {
		connection_finish(c, "the session daemon's directory was removed");
	} else if (fd < 0 || connection_open(c, fd) < 0) {
		ky_timer_set(&c->loop, &c->caller, CALL_NS);
	} else {
		ky_info("another session daemon has connected");
		c->session->unattended_ns += ky_loop_now_ns() - c->session->orphaned_ns;
		c->session->orphaned_ns = 0;
		/* The orders that waited in the dead daemon's queue do not come any more. */
		c->session->n_sets = c->n_sets;
		retirement_repeat(c);
		report_damage_again(c);
		report_stats(c, 0);
		c->conn.offers_fds = true;
		hand_over(c);
	}
}

/*
 * Starts to reconnect, from time to time, after the session daemon died. Returns false if there can
 * be no successor.
 */
static bool begin_calling(struct consumerd *c)
{
	if (!*c->rendezvous || c->snapshot)
		return false;
	if (!c->session->orphaned_ns)
		c->session->orphaned_ns = ky_loop_now_ns();
	ky_warning("the session daemon exited: recording continues, and waits for its successor");
	ky_timer_set(&c->loop, &c->caller, FIRST_CALL_NS);
	return true;
}

static void on_closed(struct ky_msg_conn *conn, int error)
{
	struct consumerd *c = ky_container_of(conn, struct consumerd, conn);

	ky_msg_conn_deinit(conn);
	c->connected = false;
	if (c->quitting || c->exit_status || !begin_calling(c))
		connection_finish(c, "the session daemon exited");
}

int connection_open(struct consumerd *c, int fd)
{
	static const struct ky_msg_conn_ops ops = {.message = on_message, .closed = on_closed};
	int ret = ky_msg_conn_init(&c->conn, &c->loop, fd, &ops, MAX_QUEUED, N_KERNEL_FDS);

	c->connected = !ret;
	return ret;
}

void connection_init(struct consumerd *c)
{
	ky_timer_init(&c->caller, call_due);
}

void connection_deinit(struct consumerd *c)
{
	ky_timer_cancel(&c->caller);
	if (c->connected)
		ky_msg_conn_deinit(&c->conn);
}
