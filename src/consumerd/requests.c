/* SPDX-License-Identifier: MIT */
#include "consumerd/requests.h"

#include "consumerd/bounds.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "consumerd/chunk.h"
#include "consumerd/confine.h"
#include "consumerd/kept.h"
#include "consumerd/kernel.h"
#include "consumerd/report.h"
#include "consumerd/retirement.h"
#include "consumerd/round.h"
#include "consumerd/sink/files.h"
#include "consumerd/sink/trace-dir.h"
#include "consumerd/source/rings.h"
#include "consumerd/stream/stream-set.h"
#include "consumerd/traces.h"
#include "consumerd/watermark.h"
#include "svc/log.h"

static int map_session(struct consumerd *c, int fd)
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

/* A directory that cannot be used is reported to the daemon, and is no error here. */
static int open_output(struct consumerd *c, const struct ky_cons_init *m)
{
	int ret = *m->output ? trace_dir_make(m->output, m->resume, &c->root_fd) : 0;

	/* A predecessor that hangs may still have it. */
	if (c->root_fd >= 0 && !m->place && !trace_dir_claim(c->root_fd) && !m->resume) {
		ret = -EEXIST;
		c->root_fd = ky_close(c->root_fd);
	}
	if (ret == -EEXIST)
		report_set_status(c, ret,
			"another session writes into %s: choose another output directory",
			m->output);
	else if (ret == -ENOTEMPTY)
		report_set_status(c, ret,
			"%s exists and is not empty: choose another output directory", m->output);
	else if (ret == -EXDEV)
		report_set_status(c, ret,
			"%s belongs to another user: choose another output directory", m->output);
	else if (ret < 0)
		report_set_status(c, ret,
			"cannot make the trace directory %s: %s: choose another one", m->output,
			strerror(-ret));
	if (c->root_fd >= 0)
		c->sink = files_sink_new(c->root_fd);
	return c->sink ? 0 : -ENOMEM;
}

static int on_init(struct consumerd *c, struct ky_reader *r, int *fds)
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
		chunk_resume(c);
	if (c->root_fd >= 0)
		round_note_room(c, ky_loop_now_ns());
	confine((const int[]){c->root_fd, c->source_fd}, 2);
	report_stats(c, 0);
	return 0;
}

static int on_bounds(struct consumerd *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_bounds m;

	if (ky_cons_bounds_decode(r, &m) < 0 || !c->output)
		return -EBADMSG;
	c->bounds = m;
	bounds_enforce(c, 0);
	return 0;
}

static int on_snapshot(struct consumerd *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_snapshot m;

	if (ky_cons_snapshot_decode(r, &m) < 0 || !c->output || !ky_list_empty(&c->sets))
		return -EBADMSG;
	c->snapshot = true;
	c->snapshot_max = m.max_size;
	c->reason = strdup(m.reason);
	return c->reason ? 0 : -ENOMEM;
}

/* Opens the rings of a set, or a copy of them, and makes its streams. */
static int open_set(struct consumerd *c, const struct ky_cons_ring_set *m, int *fds,
	struct stream_set **ret_set)
{
	bool copy = c->snapshot || m->overwrite;
	struct source_set *sources;
	struct trace *t;
	int ret;

	if (!trace_dir_name_valid(m->name) || (m->file_size && m->file_size < m->block_size))
		return -EBADMSG;
	t = traces_get(c, m, &fds[2]);
	if (!t)
		return -ENOMEM;
	ret = copy ? rings_copy(m, fds[0], &sources) : rings_map(m, fds[0], fds[1], &sources);
	if (ret < 0)
		return ret;
	sources->latest = c->latest_clock;
	return stream_set_new(m, t, sources, ret_set);
}

static int on_ring_set(struct consumerd *c, struct ky_reader *r, int *fds)
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
	c->n_sets++;
	ret = c->snapshot ? 0 : kept_add(c, &m, fds);
	if (ret < 0)
		return ret;
	if (m.overwrite == 1 && !c->snapshot && !c->recovers)
		return 0;
	ret = open_set(c, &m, fds, &set);
	if (ret < 0)
		return ret;
	ky_list_append(&c->sets, &set->node);
	watermark_add_set(c, set);
	trace_update(set->trace, false, ky_loop_now_ns());
	report_faults(c);
	if (!c->snapshot)
		round_soon(c);
	return 0;
}

static int on_timers(struct consumerd *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_timers m;
	struct stream_set *set;

	if (ky_cons_timers_decode(r, &m) < 0 || c->snapshot)
		return -EBADMSG;
	ky_list_foreach (set, &c->sets, node) {
		if (set->id != m.set)
			continue;
		stream_set_time(set, m.switch_us, m.read_us);
		round_soon(c);
	}
	return 0; /* also for a set that is kept only for a successor */
}

static int on_flush(struct consumerd *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_flush m;

	if (ky_cons_flush_decode(r, &m) < 0)
		return -EBADMSG;
	round_flush(c);
	report_stats(c, m.cookie);
	return 0;
}

static int on_ask(struct consumerd *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_ask m;

	if (ky_cons_ask_decode(r, &m) < 0)
		return -EBADMSG;
	report_stats(c, m.cookie);
	return 0;
}

static const char *why_not_rotated(struct consumerd *c, int error, char *buf, size_t size)
{
	if (!error || error == -ENODATA)
		return "";
	if (c->status)
		return c->message;
	snprintf(buf, size, "cannot move what is below %s: %s", c->output, strerror(-error));
	return buf;
}

static void send_rotated(struct consumerd *c, uint32_t cookie, int status)
{
	char why[CONSUMER_MESSAGE_MAX];
	struct ky_cons_rotated m = {.cookie = cookie,
		.status = status,
		.message = why_not_rotated(c, status, why, sizeof(why))};
	uint8_t buf[KY_MSG_MAX];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};

	report_send(c, buf, ky_cons_rotated_encode(&w, &m));
}

static int on_rotate(struct consumerd *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_rotate m;
	int ret = 0;

	if (ky_cons_rotate_decode(r, &m) < 0 || !c->output || c->snapshot ||
		m.chunk > c->session->chunk + 1 || (*m.archive && !trace_dir_name_valid(m.archive)))
		return -EBADMSG;
	if (m.chunk > c->session->chunk)
		ret = chunk_rotate(c, m.archive);
	report_stats(c, 0);
	send_rotated(c, m.cookie, ret);
	return 0;
}

static int on_retire(struct consumerd *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_retire m;

	if (ky_cons_retire_decode(r, &m) < 0 || !c->output || c->snapshot)
		return -EBADMSG;
	return retirement_begin(c, m.set);
}

static int on_adopt_log(struct consumerd *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_adopt_log m;

	if (ky_cons_adopt_log_decode(r, &m) < 0 || !c->output || c->snapshot)
		return -EBADMSG;
	return kept_add_log(c, &m, fds[0]);
}

static int on_forget(struct consumerd *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_forget m;

	if (ky_cons_forget_decode(r, &m) < 0)
		return -EBADMSG;
	retirement_forget(c, m.set);
	return 0;
}

static int on_quit(struct consumerd *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_quit m;

	if (ky_cons_quit_decode(r, &m) < 0)
		return -EBADMSG;
	round_finish(c);
	report_stats(c, m.cookie);
	c->quitting = true;
	return 0;
}

static const struct request {
	int (*fn)(struct consumerd *c, struct ky_reader *r, int *fds);
	size_t n_fds;
} requests[] = {
	[KY_CONS_INIT] = {on_init, 1},
	[KY_CONS_RING_SET] = {on_ring_set, N_SET_FDS},
	[KY_CONS_FLUSH] = {on_flush, 0},
	[KY_CONS_QUIT] = {on_quit, 0},
	[KY_CONS_ASK] = {on_ask, 0},
	[KY_CONS_SNAPSHOT] = {on_snapshot, 0},
	[KY_CONS_TIMERS] = {on_timers, 0},
	[KY_CONS_BOUNDS] = {on_bounds, 0},
	[KY_CONS_ROTATE] = {on_rotate, 0},
	[KY_CONS_RETIRE] = {on_retire, 0},
	[KY_CONS_FORGET] = {on_forget, 0},
	[KY_CONS_ADOPT_LOG] = {on_adopt_log, 1},
	[KY_CONS_KERNEL_SET] = {kernel_on_set, N_KERNEL_FDS},
	[KY_CONS_KERNEL_CPU] = {kernel_on_cpu, N_CPU_FDS},
	[KY_CONS_KERNEL_EVENT] = {kernel_on_event, 0},
	[KY_CONS_KERNEL_TASKS] = {kernel_on_tasks, 0},
	[KY_CONS_KERNEL_THREADS] = {kernel_on_threads, 0},
	[KY_CONS_KERNEL_DUMP] = {kernel_on_dump, 0},
	[KY_CONS_KERNEL_SYMBOLS] = {kernel_on_symbols, 1},
	[KY_CONS_SAMPLES_SET] = {kernel_on_samples_set, N_SAMPLES_FDS},
	[KY_CONS_SAMPLES_CPU] = {kernel_on_samples_cpu, 1},
};

int requests_follow(struct consumerd *c, const void *buf, size_t len, int *fds, size_t n_fds)
{
	struct ky_reader r;
	int type = ky_msg_open(&r, buf, len);

	if (type < 0)
		return type;
	if ((size_t)type >= KY_ARRAY_SIZE(requests) || !requests[type].fn)
		return 0; /* an unknown message, of a newer daemon */
	return n_fds == requests[type].n_fds ? requests[type].fn(c, &r, fds) : -EBADMSG;
}
