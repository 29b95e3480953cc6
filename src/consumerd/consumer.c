/* SPDX-License-Identifier: MIT */
#include "consumerd/consumer.h"

#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "consumerd/confine.h"
#include "consumerd/retirement.h"
#include "consumerd/sink/files.h"
#include "consumerd/sink/trace-dir.h"
#include "consumerd/source/rings.h"
#include "consumerd/stream/stream-set.h"
#include "consumerd/succession.h"
#include "svc/log.h"

#define MAX_QUEUED (1u << 20)

/* ---- reports to the daemon ---- */

static void post(struct consumer *c, const void *buf, int len)
{
	if (c->connected)
		ky_msg_conn_send(&c->conn, buf, len, NULL, 0);
}

static void send_error(struct consumer *c)
{
	struct ky_cons_error m = {.status = c->status, .message = c->message};
	uint8_t buf[KY_MSG_MAX];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};

	post(c, buf, ky_cons_error_encode(&w, &m));
}

static void send_stats(struct consumer *c, uint32_t cookie)
{
	struct ky_cons_stats m = {.cookie = cookie, .status = c->status, .message = c->message};
	uint8_t buf[KY_MSG_MAX];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	const struct stream_set *set;

	ky_list_foreach (set, &c->sets, node)
		stream_set_add_stats(set, &m);
	post(c, buf, ky_cons_stats_encode(&w, &m));
}

KY_PRINTF(3, 4) static void set_status(struct consumer *c, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	c->status = status;
	vsnprintf(c->message, sizeof(c->message), fmt, ap);
	va_end(ap);
}

static const char *advice(int error)
{
	switch (error) {
	case -ENOSPC:
		return "free some space";
	case -EDQUOT:
		return "free some space, the user's quota is used up";
	case -EMFILE:
		return "raise the limit of open files (ulimit -n)";
	default:
		return "writing is tried again and again";
	}
}

/* Finds the first present failure, and reports it to the daemon if it changed. */
static void tell_faults(struct consumer *c)
{
	char path[CONSUMER_MESSAGE_MAX / 2] = "";
	const struct trace *t;
	const struct stream_set *set;
	int error = 0;

	ky_list_foreach (t, &c->traces, node) {
		if (error || !t->fault.error)
			continue;
		error = t->fault.error;
		snprintf(path, sizeof(path), "%s/%s/metadata", c->output, t->dir);
	}
	ky_list_foreach (set, &c->sets, node) {
		if (error || !set->error)
			continue;
		error = set->error;
		snprintf(path, sizeof(path), "%s/%s/%s_%u", c->output, set->trace->dir, set->name,
			set->failed);
	}
	if (error == c->status)
		return;
	if (error)
		set_status(c, error, "cannot write %s: %s%s; %s", path, strerror(-error),
			c->snapshot ? "" : ": events wait in the ring buffers until these are full",
			advice(error));
	else
		set_status(c, 0, "%s", "");
	if (error)
		ky_warning("%s", c->message);
	else
		ky_info("writing goes on");
	send_error(c);
}

static void report_damage(struct consumer *c, struct stream_set *set)
{
	struct ky_cons_damaged m = {.set = set->id};
	uint8_t buf[64];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};

	if (set->damage_reported || !c->connected || !stream_set_is_spoiled(set))
		return;
	set->damage_reported = true;
	post(c, buf, ky_cons_damaged_encode(&w, &m));
}

void consumer_repeat_damage(struct consumer *c)
{
	struct stream_set *set;

	ky_list_foreach (set, &c->sets, node)
		set->damage_reported = false;
}

/* ---- draining ---- */

/*
 * Drains all ring sets that are due, in one round. Fetches the heads first, then copies the
 * metadata, then writes packets up to those heads.
 */
static void drain(struct consumer *c, bool flush, uint64_t now)
{
	/* While there is a failure, the metadata may need another try, too. */
	bool any = flush || c->status;
	struct stream_set *set;
	struct trace *t;

	ky_list_foreach (set, &c->sets, node) {
		any |= stream_set_look(set, flush, now);
		report_damage(c, set);
	}
	if (!any)
		return;
	ky_list_foreach (t, &c->traces, node)
		trace_update(t, flush, now);
	ky_list_foreach (set, &c->sets, node)
		if (!set->trace->fault.error)
			stream_set_write(set, now, &c->session->alive_ns);
	tell_faults(c);
}

/* Sets the timer to the next round. */
static void set_timer(struct consumer *c)
{
	uint64_t next = UINT64_MAX, now;
	struct stream_set *set;

	ky_list_foreach (set, &c->sets, node)
		next = KY_MIN(next, stream_set_next_look(set));
	now = ky_loop_now_ns();
	if (!ky_list_empty(&c->sets))
		ky_timer_set(&c->loop, &c->timer, next - KY_MIN(next, now));
	__atomic_store_n(&c->session->due_ns, ky_list_empty(&c->sets) ? 0 : next, __ATOMIC_RELAXED);
}

static void timer_due(struct ky_timer *timer)
{
	struct consumer *c = ky_container_of(timer, struct consumer, timer);
	uint64_t now = ky_loop_now_ns();

	drain(c, false, now);
	if (retirement_proceed(c))
		send_stats(c, 0);
	set_timer(c);
}

static uint64_t size_after(const struct consumer *c, uint64_t ts)
{
	const struct stream_set *set;
	uint64_t sum = 0;

	ky_list_foreach (set, &c->sets, node)
		sum += stream_set_size_after(set, ts);
	return sum;
}

static void look_at_all(struct consumer *c)
{
	struct stream_set *set;

	ky_list_foreach (set, &c->sets, node)
		stream_set_look(set, true, ky_loop_now_ns());
}

/*
 * Leaves out the oldest packets if a snapshot would become too large: finds the earliest time at
 * which it can begin.
 */
static void limit_snapshot(struct consumer *c)
{
	uint64_t from = 0, to = UINT64_MAX, middle;
	struct stream_set *set;

	look_at_all(c);
	while (from < to) {
		middle = from + (to - from) / 2;
		if (size_after(c, middle) > c->snapshot_max)
			from = middle + 1;
		else
			to = middle;
	}
	ky_list_foreach (set, &c->sets, node)
		stream_set_leave_out(set, to);
}

/* Writes all that can be written, and counts the rest. Nothing is drained afterwards. */
static void finish(struct consumer *c)
{
	struct ky_cons_stats stats = {0};
	struct stream_set *set;
	int ret;

	ky_timer_cancel(&c->timer);
	if (c->snapshot_max)
		limit_snapshot(c);
	drain(c, true, ky_loop_now_ns());
	ky_list_foreach (set, &c->sets, node) {
		stream_set_give_up(set);
		stream_set_add_stats(set, &stats);
	}
	if (!stats.unwritten)
		return;
	ret = c->status ? c->status : -EIO;
	set_status(c, ret, "%llu event%s could not be written below %s: %s",
		(unsigned long long)stats.unwritten, stats.unwritten == 1 ? "" : "s", c->output,
		strerror(-ret));
	ky_error("%s", c->message);
}

/* ---- chunks ---- */

static bool has_packets(const struct consumer *c)
{
	const struct stream_set *set;

	ky_list_foreach (set, &c->sets, node)
		if (stream_set_has_packets(set))
			return true;
	return false;
}

/* Writes all records until now, and no later ones, into the present chunk. Returns 0 or -errno. */
static int complete_chunk(struct consumer *c)
{
	drain(c, true, ky_loop_now_ns());
	if (!c->sink->ops->keeps)
		return -EBADMSG;
	if (c->status)
		return c->status;
	return has_packets(c) || c->session->retired_in == c->session->chunk + 1 ? 0 : -ENODATA;
}

/* Moves the chunk to its archive: the point of no return. */
static int move_chunk(struct consumer *c, const char *archive)
{
	int ret = c->sink->ops->archive(c->sink, archive);

	return !*archive && ret == -ENOENT ? 0 : ret;
}

static void enter_chunk(struct consumer *c, uint64_t chunk)
{
	struct stream_set *set;
	struct trace *t;

	__atomic_store_n(&c->session->chunk, chunk, __ATOMIC_RELEASE);
	__atomic_store_n(&c->session->prepared, 0, __ATOMIC_RELEASE);
	ky_list_foreach (t, &c->traces, node)
		trace_enter(t, chunk);
	ky_list_foreach (set, &c->sets, node)
		stream_set_enter(set);
}

static void discard(struct consumer *c)
{
	int ret = c->sink->ops->discard(c->sink);

	if (ret < 0)
		ky_error(
			"%s: cannot remove all of what was cleared: %s", c->output, strerror(-ret));
}

/*
 * Ends the chunk and begins the next. archive "": discards the chunk. On an error, the present
 * chunk continues.
 */
static int rotate(struct consumer *c, const char *archive)
{
	uint64_t next = c->session->chunk + 1;
	struct stream_set *set;
	int ret = 0;

	if (*archive)
		ret = complete_chunk(c);
	else
		look_at_all(c);
	if (ret < 0)
		return ret;
	ky_list_foreach (set, &c->sets, node)
		stream_set_prepare(set, next, !*archive);
	__atomic_store_n(&c->session->prepared, next, __ATOMIC_RELEASE);
	ret = move_chunk(c, archive);
	if (ret < 0) {
		__atomic_store_n(&c->session->prepared, 0, __ATOMIC_RELEASE);
		return ret;
	}
	enter_chunk(c, next);
	discard(c);
	return 0;
}

static int map_session(struct consumer *c, int fd)
{
	void *p = mmap(NULL, sizeof(*c->session), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct stat st;

	if (p == MAP_FAILED)
		return -errno;
	c->session = p;
	if (fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(*c->session))
		return -EBADMSG;
	return 0;
}

/* Reports which directory the trace is in. */
static void note_place(struct consumer *c)
{
	struct stat st;

	if (fstat(c->root_fd, &st) < 0)
		return;
	c->session->output_device = st.st_dev;
	c->session->output_file = st.st_ino;
}

/* Completes a rotation if the previous consumer died after it had moved the chunk. */
static void resume_chunk(struct consumer *c)
{
	struct ky_resume_session *s = c->session;

	if (s->prepared == s->chunk + 1 && !c->sink->ops->has_chunk(c->sink))
		s->chunk = s->prepared;
	s->prepared = 0;
	discard(c);
}

/* ---- requests ---- */

static void die(struct consumer *c, const char *why)
{
	ky_error("the session daemon sent %s: giving up", why);
	c->exit_status = 1;
	ky_loop_stop(&c->loop);
}

/* A directory that cannot be used is reported to the daemon, and is no error here. */
static int open_output(struct consumer *c, const struct ky_cons_init *m)
{
	int ret = *m->output ? trace_dir_make(m->output, m->resume, &c->root_fd) : 0;

	if (ret == -ENOTEMPTY)
		set_status(c, ret, "%s exists and is not empty: choose another output directory",
			m->output);
	else if (ret == -EXDEV)
		set_status(c, ret, "%s belongs to another user: choose another output directory",
			m->output);
	else if (ret < 0)
		set_status(c, ret, "cannot make the trace directory %s: %s: choose another one",
			m->output, strerror(-ret));
	if (c->root_fd >= 0)
		c->sink = files_sink_new(c->root_fd);
	return c->sink ? 0 : -ENOMEM;
}

static int on_init(struct consumer *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_init m;
	int ret;

	if (ky_cons_init_decode(r, &m) < 0 || c->output)
		return -EBADMSG;
	if (m.version < KY_PROTO_OLDEST)
		return -EPROTONOSUPPORT;
	c->output = strdup(m.output);
	if (!c->output)
		return -ENOMEM;
	ret = map_session(c, fds[0]);
	if (ret < 0)
		return ret;
	c->session_fd = fds[0];
	fds[0] = -1;
	if (strlen(m.rendezvous) < sizeof(c->rendezvous))
		strcpy(c->rendezvous, m.rendezvous);
	c->resume = m.resume;
	ret = open_output(c, &m);
	if (ret < 0)
		return ret;
	if (!c->status && m.resume)
		resume_chunk(c);
	if (c->root_fd >= 0)
		note_place(c);
	confine((const int[]){c->root_fd, c->source_fd}, 2);
	send_stats(c, 0);
	return 0;
}

static int on_snapshot(struct consumer *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_snapshot m;

	if (ky_cons_snapshot_decode(r, &m) < 0 || !c->output || !ky_list_empty(&c->sets))
		return -EBADMSG;
	c->snapshot = true;
	c->snapshot_max = m.max_size;
	return 0;
}

static struct trace *find_trace(struct consumer *c, const char *dir)
{
	struct trace *t;

	ky_list_foreach (t, &c->traces, node)
		if (!strcmp(t->dir, dir))
			return t;
	return NULL;
}

/*
 * Returns the trace of this directory. The first set of a trace brings the metadata log: then it
 * takes *log_fd.
 */
static struct trace *get_trace(struct consumer *c, const struct ky_cons_ring_set *m, int *log_fd)
{
	struct trace *t = find_trace(c, m->dir);

	if (t)
		return t;
	t = trace_new(m, c->sink, c->resume, c->session->chunk, *log_fd);
	*log_fd = -1;
	if (t)
		ky_list_append(&c->traces, &t->node);
	return t;
}

/* Opens the rings of a set, or a copy of them, and makes its streams. */
static int open_set(
	struct consumer *c, const struct ky_cons_ring_set *m, int *fds, struct stream_set **ret_set)
{
	bool copy = c->snapshot || m->overwrite;
	struct source_set *sources;
	struct trace *t;
	int ret;

	if (!trace_dir_name_valid(m->name) || (m->file_size && m->file_size < m->block_size))
		return -EBADMSG;
	t = get_trace(c, m, &fds[2]);
	if (!t)
		return -ENOMEM;
	ret = copy ? rings_copy(m, fds[0], &sources) : rings_map(m, fds[0], fds[1], &sources);
	return ret < 0 ? ret : stream_set_new(m, t, sources, ret_set);
}

static int on_ring_set(struct consumer *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_ring_set m;
	struct stream_set *set;
	int ret;

	/* Without its directory, a session can continue only if it writes no files. */
	if (ky_cons_ring_set_decode(r, &m) < 0 || !c->output || (*c->output && c->root_fd < 0) ||
		!trace_dir_in_chunk(m.dir))
		return -EBADMSG;
	ky_list_foreach (set, &c->sets, node)
		if (set->id == m.set)
			return -EEXIST;
	ret = c->snapshot ? 0 : succession_keep(c, &m, fds);
	if (ret < 0)
		return ret;
	if (m.overwrite == 1 && !c->snapshot && !c->recovers)
		return 0;
	ret = open_set(c, &m, fds, &set);
	if (ret < 0)
		return ret;
	ky_list_append(&c->sets, &set->node);
	trace_update(set->trace, false, ky_loop_now_ns());
	tell_faults(c);
	if (!c->snapshot)
		ky_timer_set(&c->loop, &c->timer, 0);
	return 0;
}

static int on_timers(struct consumer *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_timers m;
	struct stream_set *set;

	if (ky_cons_timers_decode(r, &m) < 0 || c->snapshot)
		return -EBADMSG;
	ky_list_foreach (set, &c->sets, node) {
		if (set->id != m.set)
			continue;
		stream_set_time(set, m.switch_us, m.read_us);
		ky_timer_set(&c->loop, &c->timer, 0);
	}
	return 0; /* also for a set that is kept only for a successor */
}

static int on_flush(struct consumer *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_flush m;

	if (ky_cons_flush_decode(r, &m) < 0)
		return -EBADMSG;
	drain(c, true, ky_loop_now_ns());
	send_stats(c, m.cookie);
	return 0;
}

static int on_ask(struct consumer *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_ask m;

	if (ky_cons_ask_decode(r, &m) < 0)
		return -EBADMSG;
	send_stats(c, m.cookie);
	return 0;
}

static const char *why_not_rotated(struct consumer *c, int error, char *buf, size_t size)
{
	if (!error || error == -ENODATA)
		return "";
	if (c->status)
		return c->message;
	snprintf(buf, size, "cannot move what is below %s: %s", c->output, strerror(-error));
	return buf;
}

static void send_rotated(struct consumer *c, uint32_t cookie, int status)
{
	char why[CONSUMER_MESSAGE_MAX];
	struct ky_cons_rotated m = {.cookie = cookie,
		.status = status,
		.message = why_not_rotated(c, status, why, sizeof(why))};
	uint8_t buf[KY_MSG_MAX];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};

	ky_msg_conn_send(&c->conn, buf, ky_cons_rotated_encode(&w, &m), NULL, 0);
}

static int on_rotate(struct consumer *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_rotate m;
	int ret = 0;

	if (ky_cons_rotate_decode(r, &m) < 0 || !c->output || c->snapshot ||
		m.chunk > c->session->chunk + 1 || (*m.archive && !trace_dir_name_valid(m.archive)))
		return -EBADMSG;
	if (m.chunk > c->session->chunk)
		ret = rotate(c, m.archive);
	send_stats(c, 0);
	send_rotated(c, m.cookie, ret);
	return 0;
}

static int on_retire(struct consumer *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_retire m;

	if (ky_cons_retire_decode(r, &m) < 0 || !c->output || c->snapshot)
		return -EBADMSG;
	return retirement_begin(c, m.set);
}

static int on_forget(struct consumer *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_forget m;

	if (ky_cons_forget_decode(r, &m) < 0)
		return -EBADMSG;
	retirement_forget(c, m.set);
	return 0;
}

static int on_quit(struct consumer *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_quit m;

	if (ky_cons_quit_decode(r, &m) < 0)
		return -EBADMSG;
	finish(c);
	send_stats(c, m.cookie);
	c->quitting = true;
	return 0;
}

static const struct order {
	int (*fn)(struct consumer *c, struct ky_reader *r, int *fds);
	size_t n_fds;
} orders[] = {
	[KY_CONS_INIT] = {on_init, 1},
	[KY_CONS_RING_SET] = {on_ring_set, N_SET_FDS},
	[KY_CONS_FLUSH] = {on_flush, 0},
	[KY_CONS_QUIT] = {on_quit, 0},
	[KY_CONS_ASK] = {on_ask, 0},
	[KY_CONS_SNAPSHOT] = {on_snapshot, 0},
	[KY_CONS_TIMERS] = {on_timers, 0},
	[KY_CONS_ROTATE] = {on_rotate, 0},
	[KY_CONS_RETIRE] = {on_retire, 0},
	[KY_CONS_FORGET] = {on_forget, 0},
};

int consumer_follow(struct consumer *c, const void *buf, size_t len, int *fds, size_t n_fds)
{
	struct ky_reader r;
	int type = ky_msg_open(&r, buf, len);

	if (type < 0)
		return type;
	if ((size_t)type >= KY_ARRAY_SIZE(orders) || !orders[type].fn)
		return 0; /* an unknown message, of a newer daemon */
	return n_fds == orders[type].n_fds ? orders[type].fn(c, &r, fds) : -EBADMSG;
}

static void on_message(
	struct ky_msg_conn *conn, const void *buf, size_t len, int *fds, size_t n_fds)
{
	struct consumer *c = ky_container_of(conn, struct consumer, conn);
	struct ky_reader r;
	int ret;

	if (c->quitting || c->exit_status)
		return;
	ret = consumer_follow(c, buf, len, fds, n_fds);
	if (ret < 0) {
		ky_error("order %d: %s", ky_msg_open(&r, buf, len), strerror(-ret));
		die(c, "an order that cannot be followed");
	}
}

void consumer_write(struct consumer *c)
{
	drain(c, true, ky_loop_now_ns());
}

void consumer_end(struct consumer *c, const char *why)
{
	if (!c->quitting && !c->exit_status) {
		ky_info("%s: finishing the trace", why);
		finish(c);
	}
	ky_loop_stop(&c->loop);
}

static void on_closed(struct ky_msg_conn *conn, int error)
{
	struct consumer *c = ky_container_of(conn, struct consumer, conn);

	ky_msg_conn_deinit(conn);
	c->connected = false;
	if (c->quitting || c->exit_status || !succession_begin(c))
		consumer_end(c, "the session daemon is gone");
}

/* Ends the loop once the last reply was sent. */
static void on_turn(struct ky_loop *loop)
{
	struct consumer *c = ky_container_of(loop, struct consumer, loop);

	if (c->session)
		__atomic_store_n(&c->session->alive_ns, ky_loop_now_ns(), __ATOMIC_RELAXED);
	if (c->quitting && (!c->connected || ky_list_empty(&c->conn.queue)))
		ky_loop_stop(loop);
}

int consumer_connect(struct consumer *c, int fd)
{
	static const struct ky_msg_conn_ops ops = {.message = on_message, .closed = on_closed};
	int ret = ky_msg_conn_init(&c->conn, &c->loop, fd, &ops, MAX_QUEUED, N_SET_FDS);

	c->connected = !ret;
	return ret;
}

int consumer_init(struct consumer *c)
{
	int ret;

	*c = (struct consumer){
		.root_fd = -1, .session_fd = -1, .source_fd = -1, .sink = &null_sink};
	ky_list_init(&c->traces);
	ky_list_init(&c->sets);
	succession_init(c);
	retirement_init(c);
	ky_timer_init(&c->timer, timer_due);
	ret = ky_loop_init(&c->loop);
	c->loop.on_turn = on_turn;
	return ret;
}

int consumer_run(struct consumer *c)
{
	int ret = ky_loop_run(&c->loop);

	if (ret < 0)
		ky_error("cannot wait for events: %s", strerror(-ret));
	return ret < 0 ? 1 : c->exit_status;
}

void consumer_deinit(struct consumer *c)
{
	struct stream_set *set, *next_set;
	struct trace *t, *next_trace;

	ky_timer_cancel(&c->timer);
	succession_deinit(c);
	retirement_deinit(c);
	ky_list_foreach_safe (set, next_set, &c->sets, node)
		stream_set_free(set);
	ky_list_foreach_safe (t, next_trace, &c->traces, node)
		trace_free(t);
	if (c->connected)
		ky_msg_conn_deinit(&c->conn);
	ky_loop_deinit(&c->loop);
	if (c->session)
		munmap(c->session, sizeof(*c->session));
	if (c->sink)
		c->sink->ops->close(c->sink);
	ky_close(c->root_fd);
	ky_close(c->session_fd);
	free(c->output);
}
