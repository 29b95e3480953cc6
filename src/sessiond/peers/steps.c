/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/steps.h"

#include <inttypes.h>
#include <limits.h>

#include "base/buf.h"
#include "sessiond/kernel/kernel.h"
#include "sessiond/model/context.h"
#include "sessiond/model/lost.h"
#include "sessiond/peers/app.h"
#include "sessiond/peers/backlog.h"
#include "sessiond/peers/firing.h"
#include "sessiond/peers/orders.h"
#include "sessiond/peers/proc-state.h"
#include "sessiond/peers/process.h"
#include "sessiond/peers/recording.h"
#include "sessiond/peers/snapshot.h"
#include "sessiond/peers/triggers.h"
#include "svc/check.h"
#include "svc/log.h"
#include "svc/shm-dir.h"

static void step_passed(struct op *op, int status, const char *message);

static struct recording *recording_free(struct recording *r)
{
	struct session *s = &r->session;
	struct snapshot *sn, *sn_tmp;

	session_unlist(s);
	ky_list_foreach_safe (sn, sn_tmp, &r->snapshots, node)
		snapshot_cancel(sn);
	op_done(r->op, -ECANCELED, "the session daemon ended");
	triggers_deinit(&r->triggers);
	OBSERVE(s->env, session_freed, s);
	consumer_deinit(&r->consumer);
	rotation_deinit(&r->rotation);
	barrier_deinit(&r->barrier);
	ky_job_cancel(&r->ending);
	session_clear(s);
	session_deinit(s);
	free(r);
	return NULL;
}

void session_abandon(struct session *s)
{
	struct recording *r = recording_of(s);
	struct snapshot *sn, *tmp;

	ky_list_foreach_safe (sn, tmp, &r->snapshots, node)
		snapshot_abandon(sn);
	r->consumer.pid = 0; /* not to be killed */
	if (!s->env->handing_over) {
		consumer_quit(&r->consumer);
		OBSERVE(s->env, session_ended, s);
	}
	recording_free(r);
}

/* Stores the directory of the buffers as a shell reads it; cut if it is longer than the result. */
static void quote_shm_path(const struct session *s, char *result, size_t size)
{
	struct ky_buf word = {0};

	ky_buf_put_word(&word, s->shm_path);
	snprintf(result, size, "%s", word.error ? s->shm_path : word.data);
	ky_buf_deinit(&word);
}

void session_lose(struct session *s)
{
	pid_t consumer = recording_of(s)->consumer.awaited;
	char dir[PATH_MAX];

	if (s->shm_path) {
		quote_shm_path(s, dir, sizeof(dir));
		lost_add(s->env, s->uid, s->name,
			"session '%s' was killed: 'kymo recover %s' writes out what its buffers hold",
			s->name, dir);
	} else if (s->state == SESSION_ENDING) {
		ky_info("session '%s' has ended", s->name);
	} else if (proc_is_held(consumer) || proc_state_is(consumer, ") D")) {
		lost_add(s->env, s->uid, s->name,
			"session '%s' is lost: its consumer (pid %d) is stopped or waits for a disk; if it goes on, it writes what the buffers hold, and ends (%s)",
			s->name, (int)consumer, s->output);
	} else {
		lost_add(s->env, s->uid, s->name,
			"session '%s' is lost: its consumer has ended too; its trace ends where that had written to (%s)",
			s->name, s->output);
	}
	OBSERVE(s->env, session_ended, s);
	recording_free(recording_of(s));
}

static void run_ending(struct ky_job *j)
{
	recording_free(ky_container_of(j, struct recording, ending));
}

/* Ends the step. Destroys the session if the daemon ends, or the session's client has ended. */
static void finish_step(struct session *s, int error, const char *message)
{
	struct recording *r = recording_of(s);
	struct op *op = r->op;

	s->step = SESSION_IDLE;
	r->op = NULL;
	op_done(op, error, message);
	if ((s->env->stopping || s->abandoned) && s->step == SESSION_IDLE)
		session_destroy(s, NULL);
}

/*
 * Keeps the ring sets of the registry that can be used, and frees the others. Returns how many the
 * consumer should have had: it keeps each until the journal says that it was written.
 */
static unsigned settle_registry(struct session *s, struct registry *r)
{
	struct ring_set *set, *tmp;
	struct channel *c;
	unsigned n_missing = 0;

	if (r->log_fd >= 0 && ring_set_mend(r) < 0)
		ky_error("session '%s': cannot repair its metadata, which may be incomplete",
			s->name);
	registry_set_last(r, NULL, NULL);
	ky_list_foreach (c, &s->channels, node)
		ky_list_foreach_safe (set, tmp, &c->sets, node)
			if (set->registry == r && set->memory.rings_fd < 0 &&
				(set->state >= SET_MADE || set->replaced || r->log_fd < 0)) {
				n_missing += ring_set_is_made(set);
				ring_memory_remove(s->shm_fd, set->number);
				ring_set_set_apart(set); /* the journal says so, if it goes on */
				(r->log_fd < 0 ? ring_set_free : ring_set_forget)(set);
			}
	if (r->log_fd < 0)
		registry_free(r);
	return n_missing;
}

/* Buffers of processes that have ended meanwhile. The list has the newest one first. */
static void settle_processes(struct session *s)
{
	struct ky_list *n, *next;
	struct ring_set *set;
	struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		for (n = c->sets.prev; n != &c->sets; n = next) {
			next = n->prev;
			set = ky_list_entry(n, struct ring_set, node);
			if (ring_set_is_own(set) && !process_restore(s->env, set))
				ring_set_end(set);
		}
}

/* Retires the sets that the predecessor had withdrawn. */
static void settle_withdrawn(struct session *s)
{
	struct ring_set *set, *tmp;
	struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		ky_list_foreach_safe (set, tmp, &c->sets, node)
			if (set->withdrawn && set->state == SET_MADE)
				ring_set_withdraw(set);
}

static bool has_refused(const struct channel *c)
{
	const struct ring_set *set;

	ky_list_foreach (set, &c->kinds, group)
		if (set->n_refused)
			return true;
	return false;
}

/* Changes of channels that the predecessor journaled, and had not applied yet when it died. */
static void settle_changes(struct session *s)
{
	struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		if (channel_count_older(c) || (c->separate_conflicts && has_refused(c)))
			apps_renew_channel(c, NULL);
}

static void flush_consumer(struct session *s)
{
	s->step = SESSION_FLUSHING;
	barrier_init(&recording_of(s)->barrier, &s->env->loop, &recording_of(s)->passed);
	consumer_flush(&recording_of(s)->consumer, &recording_of(s)->barrier);
	barrier_arm(&recording_of(s)->barrier, CONSUMER_ANSWER_NS);
}

/* Returns whether a predecessor stopped the session, and died before the rest was written out. */
static bool is_to_be_flushed(const struct session *s)
{
	struct backlog b;

	consumer_backlog(&recording_of(s)->consumer, &b);
	return s->state == SESSION_STOPPED && b.recorded;
}

/* Continues a predecessor's session, which has got all descriptors that its consumer has. */
static void adopt_session(struct session *s)
{
	struct registry *r, *tmp;
	unsigned n_missing = 0;

	s->abandoned |= s->state == SESSION_ENDING;
	ky_list_foreach_safe (r, tmp, &s->registries, node)
		n_missing += settle_registry(s, r);
	if (n_missing)
		session_notice(s,
			"%u sets of buffers had not reached the consumer when the session daemon ended: events in them are lost, and not counted",
			n_missing);
	settle_processes(s);
	settle_withdrawn(s);
	kernel_settle(s);
	ky_list_foreach (r, &s->registries, node)
		registry_add_unattended(r);
	settle_changes(s);
	if (is_to_be_flushed(s))
		flush_consumer(s);
	else
		finish_step(s, 0, "");
	firing_adopt(s);
	triggers_session_state(s); /* the journal may name them before the state */
	if (!s->abandoned)
		session_notice(s, "the session daemon was started again: the session goes on");
}

/* Ends the step and the session. The session's name is free at once. */
static void finish_for_good(struct session *s, int error, const char *message)
{
	struct recording *r = recording_of(s);
	struct op *op = r->op;

	r->op = NULL;
	kernel_end(s);
	if (s->shm_fd >= 0)
		ky_shm_dir_remove(s->shm_path, s->shm_fd);
	/* A daemon that is killed after the reply must not come back for this session. */
	OBSERVE(s->env, session_ended, s);
	op_done(op, error, message);
	session_unlist(s);
	ky_job_add(&s->env->loop, &r->ending);
}

/* Ends the step; the client learns of programs that ran unrecorded. */
static void finish_recording(
	struct session *s, void (*end_step)(struct session *, int, const char *))
{
	struct ky_buf text = {0};

	session_put_gaps(s, &text);
	end_step(s, 0, text.data ? text.data : "");
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
		finish_step(s, 0, "");
}

static void consumer_trouble(struct consumer *c, const char *message)
{
	session_set_error(c->session, message);
}

static void give_up(struct session *s)
{
	char why[PATH_MAX + 160], n[32] = "", dir[PATH_MAX];
	struct backlog b;

	consumer_backlog(&recording_of(s)->consumer, &b);
	if (b.recorded + b.discarded)
		snprintf(n, sizeof(n), "%" PRIu64 " ", b.recorded + b.discarded);
	if (s->shm_path) {
		quote_shm_path(s, dir, sizeof(dir));
		snprintf(why, sizeof(why),
			"its consumer process died repeatedly: 'kymo recover %s' may write out the %sevents that it has not written",
			dir, n);
	} else {
		snprintf(why, sizeof(why),
			"its consumer process died repeatedly: %sevents that were not written out are lost",
			n);
	}
	s->shm_fd = ky_close(s->shm_fd); /* the files stay */
	finish_for_good(s, -ECHILD, why);
}

/* Completes the op: the step is not done, and goes on. */
static void give_up_waiting(struct session *s, const char *what)
{
	struct recording *r = recording_of(s);
	struct op *op = r->op;
	struct ky_buf why = {0};

	r->op = NULL;
	ky_buf_puts(&why, what);
	consumer_put_unfinished(&r->consumer, &why);
	op_done(op, -ETIMEDOUT, why.data ? why.data : what);
	ky_buf_deinit(&why);
}

/* A predecessor's consumer has handed over all that it has. */
static void consumer_adopted(struct consumer *c, const struct ky_resume_session *memory)
{
	struct session *s = c->session;

	s->unattended_ns = memory->unattended_ns;
	adopt_session(s);
	/* Triggers may begin steps of the session. */
	rotation_adopt(&recording_of(s)->rotation, memory->chunk);
	OBSERVE(s->env, session_settled, s);
}

static void consumer_stuck(struct consumer *c)
{
	give_up_waiting(c->session,
		"it records no more, and ends when its trace is complete, which it is not yet: ");
}

static void consumer_ended(struct consumer *c, bool giving_up)
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

static const struct consumer_ops consumer_ops = {.ready = consumer_ready,
	.trouble = consumer_trouble,
	.adopted = consumer_adopted,
	.stuck = consumer_stuck,
	.ended = consumer_ended};

static const struct trigger_ops trigger_ops = {.start = session_start, .stop = session_stop};

static int recording_new(
	struct env *e, const struct session_spec *spec, struct recording **ret_recording)
{
	struct recording *r = calloc(1, sizeof(*r));
	int ret;

	if (!r)
		return -ENOMEM;
	ky_list_init(&r->snapshots);
	ky_job_init(&r->ending, run_ending);
	r->passed.done = step_passed;
	barrier_init(&r->barrier, &e->loop, &r->passed);
	ret = session_init(&r->session, e, spec);
	consumer_init(&r->consumer, &r->session, r->session.output, &consumer_ops);
	rotation_init(&r->rotation, &r->session, &r->consumer);
	triggers_init(&r->triggers, &r->session, &trigger_ops);
	r->session.step = SESSION_CREATING;
	*ret_recording = ret < 0 ? recording_free(r) : r;
	return ret;
}

static int make_shm(struct session *s)
{
	int ret = s->shm_path ? ky_shm_dir_make(s->shm_path, &s->shm_fd) : 0;

	return ret < 0 ? ret : orders_begin(s);
}

int session_new(
	struct env *e, const struct session_spec *spec, struct op *op, struct session **ret_session)
{
	struct recording *r;
	int ret = recording_new(e, spec, &r);

	if (ret < 0)
		return ret;
	ret = make_shm(&r->session);
	if (!ret)
		ret = consumer_spawn(&r->consumer);
	if (ret < 0) {
		if (r->session.shm_fd >= 0)
			ky_shm_dir_remove(r->session.shm_path, r->session.shm_fd);
		recording_free(r);
		return ret;
	}
	r->op = op;
	session_list(&r->session);
	OBSERVE(e, session_made, &r->session);
	*ret_session = &r->session;
	return 0;
}

int session_restore(struct env *e, const struct session_spec *spec, struct session **ret_session)
{
	struct recording *r;
	int ret = recording_new(e, spec, &r);

	if (!ret && r->session.shm_path) {
		ret = ky_shm_dir_open(r->session.shm_path, &r->session.shm_fd);
		if (ret < 0)
			recording_free(r);
	}
	if (ret < 0)
		return ret;
	session_list(&r->session);
	*ret_session = &r->session;
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
				order(as, &recording_of(s)->barrier);
}

static int begin_step(struct session *s, enum session_step step, struct op *op)
{
	if (s->step != SESSION_IDLE)
		return -EBUSY;
	KY_CHECK(!recording_of(s)->op);
	s->step = step;
	recording_of(s)->op = op;
	barrier_init(&recording_of(s)->barrier, &s->env->loop, &recording_of(s)->passed);
	return 0;
}

/* The session is in that state; or will be, and must not be reported so before. */
static int already(const struct session *s)
{
	return s->step == SESSION_IDLE ? -EALREADY : -EBUSY;
}

int session_start(struct session *s, struct op *op)
{
	int ret = s->state == SESSION_STARTED ? already(s) : begin_step(s, SESSION_STARTING, op);
	struct channel *c;

	if (ret < 0)
		return ret;
	ky_list_foreach (c, &s->channels, node)
		if (c->renewed || channel_count_older(c))
			apps_renew_channel(c, NULL);
	session_set_state(s, SESSION_STARTED);
	order_apps(s, app_set_start);
	apps_await_queries(s, &recording_of(s)->barrier);
	apps_dump_state(s, false, &recording_of(s)->barrier);
	kernel_prepare(s);
	/* The consumer knows all kinds of kernel events before the kernel records them. */
	if (session_has_kernel(s))
		consumer_ask(&recording_of(s)->consumer, &recording_of(s)->barrier);
	barrier_arm(&recording_of(s)->barrier, APP_ANSWER_NS);
	return 0;
}

/* No program records any more, when the step has passed. */
static int end_recording(struct session *s, enum session_step step, struct op *op)
{
	int ret = begin_step(s, step, op);

	if (ret < 0)
		return ret;
	apps_report_ended(s->env);
	session_set_state(s, step == SESSION_PAUSING	? SESSION_PAUSED
			     : step == SESSION_DROPPING ? SESSION_ENDING
							: SESSION_STOPPED);
	kernel_stop(s);
	order_apps(s, step == SESSION_DROPPING ? app_set_drop : app_set_stop);
	barrier_arm(&recording_of(s)->barrier, APP_ANSWER_NS);
	return 0;
}

int session_stop(struct session *s, struct op *op)
{
	if (s->state != SESSION_STOPPED)
		return end_recording(s, SESSION_STOPPING, op);
	if (s->step != SESSION_FLUSHING || recording_of(s)->op)
		return already(s);
	recording_of(s)->op = op; /* nobody waits yet: a predecessor began it */
	return 0;
}

int session_pause(struct session *s, struct op *op)
{
	if (s->state == SESSION_STARTED)
		return end_recording(s, SESSION_PAUSING, op);
	return s->state == SESSION_PAUSED ? already(s) : -ENOTCONN;
}

int session_resume(struct session *s, struct op *op)
{
	return s->state == SESSION_STOPPED ? -ENOTCONN : session_start(s, op);
}

int session_destroy(struct session *s, struct op *op)
{
	return end_recording(s, SESSION_DROPPING, op);
}

/* No barrier: the end of the consumer is what is waited for, however long its disk takes. */
static void quit_consumer(struct session *s)
{
	s->step = SESSION_QUITTING;
	consumer_quit(&recording_of(s)->consumer);
}

static void step_passed(struct op *op, int status, const char *message)
{
	struct session *s = &ky_container_of(op, struct recording, passed)->session;

	switch (s->step) {
	case SESSION_STARTING:
		kernel_apply(s);
		s->recording_ns = ky_loop_now_ns();
		finish_step(s, 0,
			status ? "some applications have not answered yet: their events and their state may begin later"
			       : "");
		break;
	case SESSION_PAUSING:
		firing_settle(s);
		finish_recording(s, finish_step);
		break;
	case SESSION_STOPPING:
		firing_settle(s);
		flush_consumer(s);
		break;
	case SESSION_FLUSHING:
		if (status)
			give_up_waiting(
				s, "it records no more, but its trace is not complete yet: ");
		finish_recording(s, finish_step);
		break;
	case SESSION_DROPPING:
		quit_consumer(s);
		break;
	case SESSION_IDLE:
	case SESSION_CREATING:
	case SESSION_QUITTING:
		KY_CHECK(!"a step without a barrier has passed one");
		break;
	}
}
