/* SPDX-License-Identifier: MIT */
#include "consumerd/succession.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "consumerd/retirement.h"
#include "svc/log.h"

#define FIRST_CALL_NS (10 * KY_NS_PER_MS) /* the dying daemon's own socket may still be there */
#define CALL_NS	      (50 * KY_NS_PER_MS)
#define HAND_OVER_NS  (5 * KY_NS_PER_MS) /* until the next try, if not recognised yet */

/* A trace's metadata log, shared by its sets; kept to the end, as the trace. */
struct kept_log {
	struct ky_list node; /* in consumer->kept_logs */
	uint64_t uuid_hi, uuid_lo;
	int fd;
};

struct kept {
	struct ky_list node; /* in consumer->kept */
	uint32_t set;
	int rings_fd, consumed_fd;
	const struct kept_log *log;
};

static struct kept *kept_free(struct kept *k)
{
	if (!k)
		return NULL;
	ky_close(k->rings_fd);
	ky_close(k->consumed_fd);
	ky_list_remove(&k->node);
	free(k);
	return NULL;
}

static struct kept_log *log_free(struct kept_log *l)
{
	ky_close(l->fd);
	ky_list_remove(&l->node);
	free(l);
	return NULL;
}

static int copy_fd(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

/* Returns NULL if there is no memory or no descriptor. */
static struct kept_log *keep_log(struct consumer *c, const struct ky_cons_ring_set *m, int fd)
{
	struct kept_log *l;

	ky_list_foreach (l, &c->kept_logs, node)
		if (l->uuid_hi == m->uuid_hi && l->uuid_lo == m->uuid_lo)
			return l;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	ky_list_append(&c->kept_logs, &l->node);
	l->uuid_hi = m->uuid_hi;
	l->uuid_lo = m->uuid_lo;
	l->fd = copy_fd(fd);
	return l->fd < 0 ? log_free(l) : l;
}

int succession_keep(struct consumer *c, const struct ky_cons_ring_set *m, const int fds[N_SET_FDS])
{
	struct kept *k;

	if (!*c->rendezvous)
		return 0;
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	ky_list_append(&c->kept, &k->node);
	k->set = m->set;
	k->rings_fd = copy_fd(fds[0]);
	k->consumed_fd = copy_fd(fds[1]);
	k->log = keep_log(c, m, fds[2]);
	if (k->rings_fd >= 0 && k->consumed_fd >= 0 && k->log)
		return 0;
	kept_free(k);
	return -EMFILE;
}

void succession_release(struct consumer *c, uint32_t set)
{
	struct kept *k, *tmp;

	ky_list_foreach_safe (k, tmp, &c->kept, node)
		if (k->set == set)
			kept_free(k);
}

/*
 * Connects to the successor. Returns -ECONNREFUSED or -ENOENT while there is none, -ESTALE if there
 * can be none.
 */
static int call(const struct consumer *c)
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

static int send_adopt(struct consumer *c, const struct kept *k)
{
	const int fds[N_SET_FDS] = {k->rings_fd, k->consumed_fd, k->log->fd};
	uint8_t buf[64];
	int len = ky_cons_adopt_encode(&(struct ky_writer){.buf = buf, .cap = sizeof(buf)},
		&(struct ky_cons_adopt){.set = k->set});

	return ky_msg_conn_send(&c->conn, buf, len, fds, N_SET_FDS);
}

static int send_adopted(struct consumer *c, uint32_t n_sets)
{
	uint8_t buf[64];
	int len = ky_cons_adopted_encode(&(struct ky_writer){.buf = buf, .cap = sizeof(buf)},
		&(struct ky_cons_adopted){.n_sets = n_sets});

	return ky_msg_conn_send(&c->conn, buf, len, &c->session_fd, 1);
}

/* Passes all descriptors, or none: -EPERM while the successor has not recognised us. */
static int send_all(struct consumer *c)
{
	uint32_t n_sets = 0;
	struct kept *k;

	ky_list_foreach (k, &c->kept, node) {
		if (send_adopt(c, k) == -EPERM)
			return -EPERM;
		n_sets++;
	}
	return send_adopted(c, n_sets);
}

static void hand_over(struct consumer *c)
{
	c->conn.offers_fds = send_all(c) == -EPERM;
	if (c->conn.offers_fds)
		ky_timer_set(&c->loop, &c->caller, HAND_OVER_NS);
}

static void call_due(struct ky_timer *t)
{
	struct consumer *c = ky_container_of(t, struct consumer, caller);
	int fd;

	if (!c->session->orphaned_ns) {
		hand_over(c);
		return;
	}
	fd = call(c);
	if (fd == -ESTALE) {
		consumer_end(c, "the session daemon's directory is gone");
	} else if (fd < 0 || consumer_connect(c, fd) < 0) {
		ky_timer_set(&c->loop, &c->caller, CALL_NS);
	} else {
		ky_info("another session daemon has taken over");
		c->session->unattended_ns += ky_loop_now_ns() - c->session->orphaned_ns;
		c->session->orphaned_ns = 0;
		retirement_repeat(c);
		consumer_repeat_damage(c);
		c->conn.offers_fds = true;
		hand_over(c);
	}
}

bool succession_begin(struct consumer *c)
{
	if (!*c->rendezvous || c->snapshot)
		return false;
	if (!c->session->orphaned_ns)
		c->session->orphaned_ns = ky_loop_now_ns();
	ky_warning("the session daemon is gone: recording goes on, and waits for its successor");
	ky_timer_set(&c->loop, &c->caller, FIRST_CALL_NS);
	return true;
}

void succession_init(struct consumer *c)
{
	ky_list_init(&c->kept);
	ky_list_init(&c->kept_logs);
	ky_timer_init(&c->caller, call_due);
}

void succession_deinit(struct consumer *c)
{
	struct kept_log *l, *next;
	struct kept *k, *tmp;

	ky_timer_cancel(&c->caller);
	ky_list_foreach_safe (k, tmp, &c->kept, node)
		kept_free(k);
	ky_list_foreach_safe (l, next, &c->kept_logs, node)
		log_free(l);
}
