/* SPDX-License-Identifier: MIT */
/* Messages of a consumer: its reports, and what a predecessor's consumer hands over. */
#include "sessiond/peers/consumer.h"

#include "sessiond/model/surplus.h"
#include "sessiond/peers/kernel-orders.h"
#include "sessiond/peers/orders.h"
#include "svc/log.h"

#define N_SET_FDS 3 /* rings, consumed, metadata log */

KY_CONS_MESSAGES(KY_MSG_SENDER)

/* Events that will not be in the trace although nobody asked for that. */
static uint64_t count_lost(const struct event_counts *n)
{
	return n->discarded + n->unwritten;
}

static void take_counts(struct consumer *c, const struct ky_cons_stats *m)
{
	uint64_t lost;

#define COUNT(name) .name = m->name,
	c->counts = (struct event_counts){EVENT_COUNTS(COUNT)};
	event_counts_add(&c->counts, &c->retired);
	lost = count_lost(&c->counts);
	if (c->counted && lost > c->n_lost)
		c->lost_ns = ky_loop_time_ns(&c->session->env->loop);
	c->n_lost = KY_MAX(c->n_lost, lost);
	c->counted = true;
	c->fullest = KY_MAX(c->fullest, m->fullest);
	c->expired_chunks = m->expired_chunks;
	c->expired_events = m->expired_events;
	c->expired_bytes = m->expired_bytes;
	c->disk_bytes = m->disk_bytes;
}

static void handle_stats(struct consumer *c, const struct ky_cons_stats *m)
{
	/* A consumer that was started again answers INIT before it has any set. */
	if (c->answered || !c->ready)
		take_counts(c, m);
	c->answered = true;
	ticket_done(ticket_find(&c->tickets, TICKET_FLUSH, m->cookie));
	ticket_done(ticket_find(&c->tickets, TICKET_ASK, m->cookie));
	if (m->cookie && m->cookie == c->quit_cookie)
		c->quit_answered = true;
	consumer_note_answer(c);
	if (c->ready) {
		c->ops->trouble(c, m->status < 0 ? m->message : "");
		return;
	}
	c->ready = m->status >= 0;
	c->ops->ready(c, m->status, m->message);
}

static void handle_rotated(struct consumer *c, const struct ky_cons_rotated *m)
{
	if (!c->rotate_cookie || m->cookie != c->rotate_cookie)
		return;
	c->rotate_cookie = 0;
	op_done(c->rotated, KY_MIN(m->status, 0), m->message);
	ticket_done(ticket_find(&c->tickets, TICKET_ROTATE, m->cookie));
	consumer_note_answer(c);
}

/* A killed consumer may have sent it already: RETIRED counts once for each set that exists. */
static void handle_retired(struct consumer *c, const struct ky_cons_retired *m)
{
	struct ring_set *set = ring_set_find(c->session, m->set);
	struct event_counts counts = {SET_COUNTS(COUNT)};

	if (set && (ring_set_is_own(set) || set->replaced) && !set->written) {
		struct ring_counts n = {0};

		if (set->geometry.overwrite)
			ring_memory_count(&set->memory, &set->geometry, &n);
		counts.overwritten = n.recorded;
		OBSERVE(c->session->env, set_written, set, &counts, m->chunk, m->kept);
		consumer_add_retired(c, &counts, m->chunk, m->kept);
		ring_memory_remove(c->session->shm_fd, set->number);
		ring_set_forget(set);
	}
	ky_cons_forget_send(&c->conn, &(struct ky_cons_forget){m->set}, NULL, 0);
}
#undef COUNT

static void handle_damaged(const struct consumer *c, uint32_t number)
{
	struct ring_set *set = ring_set_find(c->session, number);

	if (set && !c->snapshot)
		ring_set_replace(set);
}

static void handle_grown(const struct consumer *c, uint32_t number)
{
	struct ring_set *set = ring_set_find(c->session, number);

	if (set)
		surplus_examine(set);
}

static int adopt_log(struct registry *r, int fd)
{
	if (r->log_fd < 0)
		r->log_fd = log_memory_adopt(r->session->shm_fd, fd, r->log_file);
	return KY_MIN(r->log_fd, 0);
}

/* Takes the metadata log of a trace, which may have no set at present. */
static void adopt_trace(const struct session *s, const struct ky_cons_adopt_log *m, int fd)
{
	struct registry *r;
	uint64_t uuid[2];
	int ret = 0;

	ky_list_foreach (r, &s->registries, node) {
		registry_uuid(r, uuid);
		if (uuid[0] == m->uuid_hi && uuid[1] == m->uuid_lo)
			ret = adopt_log(r, fd);
	}
	if (ret < 0)
		ky_error("session '%s': cannot take over the metadata of a trace: %s", s->name,
			strerror(-ret));
}

/* Takes the descriptors that the consumer has kept of a set. */
static void adopt_set(struct consumer *c, uint32_t number, const int *fds)
{
	struct ring_set *set = ring_set_find(c->session, number);
	struct registry *r = set ? set->registry : NULL;
	int ret = r ? 0 : -ENOENT, dir = c->session->shm_fd;

	if (set && set->written)
		return; /* it was written; the consumer does not know that we know */
	if (!ret)
		ret = adopt_log(r, fds[2]);
	if (ret >= 0 && set->memory.rings_fd < 0)
		ret = ring_memory_adopt(&set->memory, dir, fds,
			(const uint64_t[]){set->rings_file, set->consumed_file});
	if (ret < 0)
		ky_error("session '%s': cannot take over ring set %u: %s", c->session->name, number,
			strerror(-ret));
}

static int handle_adoption(
	struct consumer *c, int type, struct ky_reader *r, int *fds, size_t n_fds)
{
	struct ky_resume_session memory;
	struct ky_cons_adopt_log log;
	struct ky_cons_adopt set;
	int ret;

	if (!c->awaited)
		return -EPROTO;
	if (type == KY_CONS_ADOPT_LOG) {
		if (ky_cons_adopt_log_decode(r, &log) < 0 || n_fds != 1)
			return -EBADMSG;
		adopt_trace(c->session, &log, fds[0]);
		return 0;
	}
	if (type == KY_CONS_ADOPT) {
		if (ky_cons_adopt_decode(r, &set) < 0 || n_fds != N_SET_FDS)
			return -EBADMSG;
		adopt_set(c, set.set, fds);
		return 0;
	}
	if (type != KY_CONS_ADOPTED) {
		ret = kernel_adopt(c->session, type, r, fds, n_fds);
		if (ret < 0)
			ky_error("session '%s': cannot take over the kernel's buffers: %s",
				c->session->name, strerror(-ret));
		return 0;
	}
	if (n_fds != 1)
		return -EBADMSG;
	ret = session_memory_adopt(
		c->session->shm_fd, fds[0], c->memory_file, &c->memory_fd, &memory);
	if (!ret)
		ret = consumer_watch_adopted(c);
	if (ret < 0) {
		c->memory_fd = ky_close(c->memory_fd); /* it will call again */
		return ret;
	}
	c->awaited = 0;
	c->n_sets = memory.n_sets;
	ky_cons_bounds_send(&c->conn, &c->bounds, NULL, 0);
	c->ops->adopted(c, &memory);
	return 0;
}

int consumer_handle(struct consumer *c, const void *buf, size_t len, int *fds, size_t n_fds)
{
	struct ky_cons_rotated rotated;
	struct ky_cons_retired retired;
	struct ky_cons_damaged damaged;
	struct ky_cons_grown grown;
	struct ky_cons_kernel_clock clock;
	struct ky_cons_stats stats;
	struct ky_cons_error error;
	struct ky_reader r;
	int type = ky_msg_open(&r, buf, len);

	switch (type) {
	case KY_CONS_ADOPT_LOG:
	case KY_CONS_ADOPT:
	case KY_CONS_ADOPTED:
	case KY_CONS_KERNEL_ADOPT:
	case KY_CONS_KERNEL_ADOPT_CPU:
		return handle_adoption(c, type, &r, fds, n_fds);
	case KY_CONS_STATS:
		if (ky_cons_stats_decode(&r, &stats) < 0)
			return -EBADMSG;
		handle_stats(c, &stats);
		return 0;
	case KY_CONS_ROTATED:
		if (ky_cons_rotated_decode(&r, &rotated) < 0)
			return -EBADMSG;
		handle_rotated(c, &rotated);
		return 0;
	case KY_CONS_RETIRED:
		if (ky_cons_retired_decode(&r, &retired) < 0 || c->snapshot)
			return -EBADMSG;
		handle_retired(c, &retired);
		return 0;
	case KY_CONS_DAMAGED:
		if (ky_cons_damaged_decode(&r, &damaged) < 0)
			return -EBADMSG;
		handle_damaged(c, damaged.set);
		return 0;
	case KY_CONS_GROWN:
		if (ky_cons_grown_decode(&r, &grown) < 0)
			return -EBADMSG;
		handle_grown(c, grown.set);
		return 0;
	case KY_CONS_KERNEL_CLOCK:
		if (ky_cons_kernel_clock_decode(&r, &clock) < 0)
			return -EBADMSG;
		kernel_marker_found(c->session, clock.set,
			&(struct ky_kmarker){clock.before, clock.at, clock.after});
		return 0;
	case KY_CONS_ERROR:
		if (ky_cons_error_decode(&r, &error) < 0)
			return -EBADMSG;
		c->ops->trouble(c, error.status < 0 ? error.message : "");
		return 0;
	default:
		return KY_MIN(type, 0);
	}
}
