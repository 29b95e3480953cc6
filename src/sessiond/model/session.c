/* SPDX-License-Identifier: MIT */
#include "sessiond/model/session.h"

#include <limits.h>
#include <stdarg.h>

#include "sessiond/peers/app.h"
#include "sessiond/model/context.h"
#include "sessiond/control/client.h"
#include "sessiond/daemon.h"
#include "sessiond/peers/health.h"
#include "sessiond/journal.h"
#include "sessiond/peers/orders.h"
#include "sessiond/peers/snapshot.h"
#include "svc/log.h"
#include "svc/shm-dir.h"

static void step_passed(struct op *op, int status, const char *message);
static void run_ending(struct ky_job *j);

struct session *session_find(struct daemon *d, const char *name)
{
	struct session *s;

	ky_list_foreach (s, &d->sessions, node)
		if (!strcmp(s->name, name))
			return s;
	return NULL;
}

bool session_wants_uid(const struct session *s, uid_t uid)
{
	return s->all_uids || s->uid == uid;
}

void session_track(struct session *s, struct tracker trackers[N_TRACKERS])
{
	for (int i = 0; i < N_TRACKERS; i++) {
		struct tracker old = s->trackers[i];

		s->trackers[i] = trackers[i];
		trackers[i] = old;
	}
}

bool session_is_active(const struct session *s)
{
	struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		if (s->started && channel_is_active(c))
			return true;
	return false;
}

const char *session_state(const struct session *s)
{
	return s->started ? "started" : s->paused ? "paused" : "stopped";
}

void session_set_error(struct session *s, const char *message)
{
	if (!message || !*message) {
		if (s->error)
			ky_info("session '%s': all is well again", s->name);
		free(s->error);
		s->error = NULL;
		return;
	}
	if (s->error && !strcmp(s->error, message))
		return;
	ky_error("session '%s': %s", s->name, message);
	free(s->error);
	s->error = strdup(message);
}

static bool has_notice(const struct session *s, const char *text)
{
	struct notice *n;

	ky_list_foreach (n, &s->notices, node)
		if (!strcmp(n->text, text))
			return true;
	return false;
}

static struct notice *notice_free(struct notice *n)
{
	if (n)
		free(n->text);
	free(n);
	return NULL;
}

void session_notice(struct session *s, const char *fmt, ...)
{
	struct notice *n;
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (has_notice(s, text))
		return;
	if (s->n_notices >= NOTICES_MAX) {
		s->n_notices_lost++;
		return;
	}
	ky_warning("session '%s': %s", s->name, text);
	n = calloc(1, sizeof(*n));
	if (!n || !(n->text = strdup(text))) {
		notice_free(n);
		s->n_notices_lost++;
		return;
	}
	ky_list_append(&s->notices, &n->node);
	s->n_notices++;
}

static struct session *session_free(struct session *s)
{
	struct channel *c, *c_tmp;
	struct registry *r, *r_tmp;
	struct notice *n, *n_tmp;
	struct snapshot *sn, *sn_tmp;

	ky_list_foreach_safe (sn, sn_tmp, &s->snapshots, node)
		snapshot_cancel(sn);
	op_done(s->op, -ECANCELED, "the session daemon ended");
	requests_forget_session(s->daemon, s);
	consumer_deinit(&s->consumer);
	rotation_deinit(s);
	barrier_deinit(&s->barrier);
	ky_job_cancel(&s->ending);
	ky_list_foreach_safe (c, c_tmp, &s->channels, node)
		channel_free(c);
	for (int i = 0; i < N_TRACKERS; i++)
		tracker_deinit(&s->trackers[i]);
	ky_list_foreach_safe (r, r_tmp, &s->registries, node)
		registry_free(r);
	ky_list_foreach_safe (n, n_tmp, &s->notices, node)
		notice_free(n);
	if (s->node.next)
		ky_list_remove(&s->node);
	journal_close(s);
	ky_close(s->shm_fd);
	free(s->shm_path);
	unrecorded_deinit(&s->unrecorded);
	free(s->error);
	free(s->output);
	free(s->name);
	free(s);
	return NULL;
}

void session_abandon(struct session *s)
{
	struct snapshot *sn, *tmp;

	ky_list_foreach_safe (sn, tmp, &s->snapshots, node)
		snapshot_abandon(sn);
	s->consumer.pid = 0; /* not to be killed */
	if (!s->daemon->handing_over) {
		consumer_quit(&s->consumer);
		journal_end(s);
	}
	session_free(s);
}

void session_lose(struct session *s)
{
	if (s->doomed)
		ky_info("session '%s' has ended", s->name);
	else if (s->shm_path)
		ky_error(
			"session '%s' was killed: 'kymo recover %s' writes out what its buffers hold",
			s->name, s->shm_path);
	else
		ky_error(
			"session '%s' is lost: its consumer is gone as well; its trace ends where that had written to (%s)",
			s->name, s->output);
	s->daemon->n_sessions--;
	journal_end(s);
	session_free(s);
}

static void run_ending(struct ky_job *j)
{
	struct session *s = ky_container_of(j, struct session, ending);
	struct daemon *d = s->daemon;

	session_free(s);
	daemon_publish(d);
	daemon_session_ended(d);
}

/* Ends the step. A daemon that ends goes on with destroying. */
static void finish(struct session *s, int error, const char *message)
{
	struct op *op = s->op;

	s->step = SESSION_IDLE;
	s->op = NULL;
	op_done(op, error, message);
	if (s->daemon->stopping && s->step == SESSION_IDLE)
		session_destroy(s, NULL);
}

/* Keeps what can be used. */
static void settle_registry(struct session *s, struct registry *r)
{
	struct ring_set *set, *tmp;
	struct channel *c;

	if (r->log_fd >= 0 && registry_mend(r) < 0)
		ky_error("session '%s': its metadata may be incomplete", s->name);
	r->last_set = NULL;
	ky_list_foreach (c, &s->channels, node)
		ky_list_foreach_safe (set, tmp, &c->sets, node)
			if (set->registry == r && set->memory.rings_fd < 0 &&
				(set->made || r->log_fd < 0)) {
				ring_memory_remove(s->shm_fd, set->number);
				ring_set_free(set);
			}
	if (r->log_fd < 0)
		registry_free(r);
}

/* Buffers of processes that have ended meanwhile. */
static void settle_processes(struct session *s)
{
	struct ring_set *set, *tmp;
	struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		ky_list_foreach_safe (set, tmp, &c->sets, node)
			if (ring_set_is_own(set) && !process_restore(s->daemon, set))
				ring_set_end(set);
}

void session_adopt(struct session *s)
{
	struct registry *r, *tmp;

	ky_list_foreach_safe (r, tmp, &s->registries, node)
		settle_registry(s, r);
	settle_processes(s);
	finish(s, 0, "");
	if (s->doomed)
		session_destroy(s, NULL);
	else
		session_notice(s, "the session daemon was started again: the session goes on");
}

/* As finish, and s goes. Its name is free at once. */
static void finish_for_good(struct session *s, int error, const char *message)
{
	struct op *op = s->op;

	s->op = NULL;
	if (s->shm_fd >= 0)
		ky_shm_dir_remove(s->shm_path, s->shm_fd);
	op_done(op, error, message);
	journal_end(s);
	ky_list_remove(&s->node);
	s->daemon->n_sessions--;
	ky_job_add(&s->daemon->loop, &s->ending);
}

void session_put_gaps(const struct session *s, struct ky_buf *to)
{
	unrecorded_describe(to, &s->unrecorded);
	if (s->unattended_ns && s->was_started)
		ky_buf_printf(to,
			"%sno session daemon ran for %.3f s: programs that started and ended meanwhile are not in the trace",
			to->len ? "; " : "", (double)s->unattended_ns / 1e9);
}

/* Ends the step; the client learns of programs that ran unrecorded. */
static void finish_recording(
	struct session *s, void (*finish_step)(struct session *, int, const char *))
{
	struct ky_buf text = {0};

	session_put_gaps(s, &text);
	finish_step(s, 0, text.data ? text.data : "");
	ky_buf_deinit(&text);
}

static void consumer_ready(struct consumer *c, int status, const char *message)
{
	struct session *s = c->session;

	if (s->step != SESSION_CREATING)
		return;
	if (status < 0)
		finish_for_good(s, status, *message ? message : strerror(-status));
	else
		finish(s, 0, "");
}

static void consumer_trouble(struct consumer *c, const char *message)
{
	session_set_error(c->session, message);
}

static void give_up(struct session *s)
{
	char why[PATH_MAX + 128];

	snprintf(why, sizeof(why), "its consumer process died again and again: %s%s%s",
		s->shm_path ? "'kymo recover " : "events that were not written out are lost",
		s->shm_path ? s->shm_path : "", s->shm_path ? "' may write out the rest" : "");
	s->shm_fd = ky_close(s->shm_fd); /* the files stay */
	finish_for_good(s, -ECHILD, why);
}

/* Completes the op: the step is not done, and goes on. */
static void give_up_waiting(struct session *s, const char *what)
{
	struct op *op = s->op;
	struct ky_buf why = {0};

	s->op = NULL;
	ky_buf_puts(&why, what);
	session_put_unfinished(s, &why);
	op_done(op, -ETIMEDOUT, why.data ? why.data : what);
	ky_buf_deinit(&why);
}

static void consumer_stuck(struct consumer *c)
{
	give_up_waiting(c->session,
		"it records no more, and ends when its trace is complete, which it is not yet: ");
}

static void consumer_gone(struct consumer *c, bool giving_up)
{
	struct session *s = c->session;

	if (s->step == SESSION_CREATING)
		finish_for_good(
			s, -ECHILD, "its consumer process ended at once (see the daemon's log)");
	else if (giving_up)
		give_up(s);
	else
		finish_recording(s, finish_for_good);
}

/* Of a session that a predecessor left, its directory is there. */
static int init_shm(struct session *s, const char *path)
{
	int ret;

	if (!*path)
		return 0;
	ret = s->daemon->replaying ? ky_shm_dir_open(path, &s->shm_fd)
				   : ky_shm_dir_make(path, &s->shm_fd);
	if (ret < 0)
		return ret;
	s->shm_path = strdup(path);
	if (!s->shm_path)
		return -ENOMEM;
	return s->daemon->replaying ? 0 : orders_begin(s);
}

static int init_places(
	struct session *s, const char *name, const char *output, const char *shm_path)
{
	s->name = strdup(name);
	s->output = strdup(output);
	return s->name && s->output ? init_shm(s, shm_path) : -ENOMEM;
}

int session_new(struct daemon *d, const char *name, const char *output, const char *shm_path,
	bool snapshot, uid_t uid, gid_t gid, struct op *op)
{
	static const struct consumer_ops ops = {.ready = consumer_ready,
		.trouble = consumer_trouble,
		.stuck = consumer_stuck,
		.gone = consumer_gone};
	struct session *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return -ENOMEM;
	s->daemon = d;
	s->snapshot = snapshot;
	s->uid = uid;
	s->gid = gid;
	s->journal_fd = s->shm_fd = -1;
	s->all_uids = d->uid == 0;
	ky_list_init(&s->node);
	ky_list_init(&s->channels);
	ky_list_init(&s->registries);
	ky_list_init(&s->notices);
	ky_list_init(&s->snapshots);
	ky_job_init(&s->ending, run_ending);
	s->passed.done = step_passed;
	barrier_init(&s->barrier, &d->loop, &s->passed);
	ky_clock_measure(d->clock, &s->clock);
	ret = init_places(s, name, output, shm_path);
	consumer_init(&s->consumer, s, s->output, &ops);
	rotation_init(s);
	if (!ret && !d->replaying)
		ret = consumer_spawn(&s->consumer);
	if (ret < 0) {
		if (s->shm_path && !d->replaying)
			ky_shm_dir_remove(s->shm_path, s->shm_fd);
		session_free(s);
		return ret;
	}
	s->step = SESSION_CREATING;
	s->op = op;
	ky_list_append(&d->sessions, &s->node);
	d->n_sessions++;
	return 0;
}

/* Sends an order for each program's ring set of the session; the step's barrier waits for the ACKs.
 */
static void order_apps(struct session *s, void (*order)(struct app_set *as, struct barrier *b))
{
	struct channel *c;
	struct ring_set *set;
	struct app_set *as, *tmp;

	ky_list_foreach (c, &s->channels, node)
		ky_list_foreach (set, &c->sets, node)
			ky_list_foreach_safe (as, tmp, &set->users, set_node)
				order(as, &s->barrier);
}

static int begin(struct session *s, enum session_step step, struct op *op)
{
	if (s->step != SESSION_IDLE)
		return -EBUSY;
	s->step = step;
	s->op = op;
	barrier_init(&s->barrier, &s->daemon->loop, &s->passed);
	return 0;
}

/* It is as it should be; or will be, and who was told so now would take it to be. */
static int already(const struct session *s)
{
	return s->step == SESSION_IDLE ? -EALREADY : -EBUSY;
}

int session_start(struct session *s, struct op *op)
{
	int ret = s->started ? already(s) : begin(s, SESSION_STARTING, op);
	struct channel *c;

	if (ret < 0)
		return ret;
	ky_list_foreach (c, &s->channels, node)
		if (c->renewed || channel_count_older(c))
			apps_renew_channel(c, NULL);
	s->started = s->was_started = true;
	s->paused = false;
	journal_state(s);
	daemon_publish(s->daemon);
	order_apps(s, app_set_start);
	apps_await_queries(s, &s->barrier);
	apps_dump_state(s, false, &s->barrier);
	barrier_arm(&s->barrier, APP_ANSWER_NS);
	return 0;
}

/* No program records any more, when the step has passed. */
static int end_recording(struct session *s, enum session_step step, struct op *op)
{
	int ret = begin(s, step, op);

	if (ret < 0)
		return ret;
	s->started = false;
	s->paused = step == SESSION_PAUSING;
	journal_state(s);
	daemon_publish(s->daemon);
	order_apps(s, step == SESSION_DROPPING ? app_set_drop : app_set_stop);
	barrier_arm(&s->barrier, APP_ANSWER_NS);
	return 0;
}

int session_stop(struct session *s, struct op *op)
{
	return s->started || s->paused ? end_recording(s, SESSION_STOPPING, op) : already(s);
}

int session_pause(struct session *s, struct op *op)
{
	if (s->started)
		return end_recording(s, SESSION_PAUSING, op);
	return s->paused ? already(s) : -ENOTCONN;
}

int session_resume(struct session *s, struct op *op)
{
	return s->started || s->paused ? session_start(s, op) : -ENOTCONN;
}

int session_destroy(struct session *s, struct op *op)
{
	return end_recording(s, SESSION_DROPPING, op);
}

static void flush(struct session *s)
{
	s->step = SESSION_FLUSHING;
	barrier_init(&s->barrier, &s->daemon->loop, &s->passed);
	consumer_flush(&s->consumer, &s->barrier);
	barrier_arm(&s->barrier, CONSUMER_ANSWER_NS);
}

/* No barrier: the end of the consumer is what is waited for, however long its disk takes. */
static void quit(struct session *s)
{
	s->step = SESSION_QUITTING;
	consumer_quit(&s->consumer);
}

static void step_passed(struct op *op, int status, const char *message)
{
	struct session *s = ky_container_of(op, struct session, passed);

	switch (s->step) {
	case SESSION_STARTING:
		s->recording_ns = ky_loop_now_ns();
		finish(s, 0,
			status ? "some programs have not answered yet: their events, and the state that they tell, may begin later"
			       : "");
		break;
	case SESSION_PAUSING:
		finish_recording(s, finish);
		break;
	case SESSION_STOPPING:
		flush(s);
		break;
	case SESSION_FLUSHING:
		if (status)
			give_up_waiting(
				s, "it records no more, but its trace is not complete yet: ");
		finish_recording(s, finish);
		break;
	case SESSION_DROPPING:
		quit(s);
		break;
	case SESSION_IDLE:
	case SESSION_CREATING:
	case SESSION_QUITTING:
		break;
	}
}
