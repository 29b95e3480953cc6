/* SPDX-License-Identifier: MIT */
#include "consumerd/kept.h"

#include <fcntl.h>

#include "consumerd/kernel-sets.h"

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
static struct kept_log *keep_log(struct consumerd *c, uint64_t uuid_hi, uint64_t uuid_lo, int fd)
{
	struct kept_log *l;

	ky_list_foreach (l, &c->kept_logs, node)
		if (l->uuid_hi == uuid_hi && l->uuid_lo == uuid_lo)
			return l;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	ky_list_append(&c->kept_logs, &l->node);
	l->uuid_hi = uuid_hi;
	l->uuid_lo = uuid_lo;
	l->fd = copy_fd(fd);
	return l->fd < 0 ? log_free(l) : l;
}

int kept_add_log(struct consumerd *c, const struct ky_cons_adopt_log *m, int fd)
{
	return !*c->rendezvous || keep_log(c, m->uuid_hi, m->uuid_lo, fd) ? 0 : -EMFILE;
}

int kept_add(struct consumerd *c, const struct ky_cons_ring_set *m, const int fds[N_SET_FDS])
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
	k->log = keep_log(c, m->uuid_hi, m->uuid_lo, fds[2]);
	if (k->rings_fd >= 0 && k->consumed_fd >= 0 && k->log)
		return 0;
	kept_free(k);
	return -EMFILE;
}

void kept_release(struct consumerd *c, uint32_t set)
{
	struct kept *k, *tmp;

	kernel_sets_release(c, set);
	ky_list_foreach_safe (k, tmp, &c->kept, node)
		if (k->set == set)
			kept_free(k);
}

static int send_log(struct consumerd *c, const struct kept_log *l)
{
	uint8_t buf[64];
	int len = ky_cons_adopt_log_encode(&(struct ky_writer){.buf = buf, .cap = sizeof(buf)},
		&(struct ky_cons_adopt_log){.uuid_hi = l->uuid_hi, .uuid_lo = l->uuid_lo});

	return ky_msg_conn_send(&c->conn, buf, len, &l->fd, 1);
}

static int send_adopt(struct consumerd *c, const struct kept *k)
{
	const int fds[N_SET_FDS] = {k->rings_fd, k->consumed_fd, k->log->fd};
	uint8_t buf[64];
	int len = ky_cons_adopt_encode(&(struct ky_writer){.buf = buf, .cap = sizeof(buf)},
		&(struct ky_cons_adopt){.set = k->set});

	return ky_msg_conn_send(&c->conn, buf, len, fds, N_SET_FDS);
}

static int send_adopted(struct consumerd *c, uint32_t n_sets)
{
	uint8_t buf[64];
	int len = ky_cons_adopted_encode(&(struct ky_writer){.buf = buf, .cap = sizeof(buf)},
		&(struct ky_cons_adopted){.n_sets = n_sets});

	return ky_msg_conn_send(&c->conn, buf, len, &c->session_fd, 1);
}

int kept_send_all(struct consumerd *c)
{
	const struct kept_log *l;
	uint32_t n_sets = 0;
	struct kept *k;

	ky_list_foreach (l, &c->kept_logs, node)
		if (send_log(c, l) == -EPERM)
			return -EPERM;
	ky_list_foreach (k, &c->kept, node) {
		if (send_adopt(c, k) == -EPERM)
			return -EPERM;
		n_sets++;
	}
	if (kernel_sets_send_all(c, &n_sets) < 0)
		return -EPERM;
	return send_adopted(c, n_sets);
}

void kept_init(struct consumerd *c)
{
	ky_list_init(&c->kept);
	ky_list_init(&c->kept_logs);
}

void kept_deinit(struct consumerd *c)
{
	struct kept_log *l, *next;
	struct kept *k, *tmp;

	ky_list_foreach_safe (k, tmp, &c->kept, node)
		kept_free(k);
	ky_list_foreach_safe (l, next, &c->kept_logs, node)
		log_free(l);
}
