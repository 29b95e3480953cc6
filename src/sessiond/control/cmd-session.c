/* SPDX-License-Identifier: MIT */
/* create, destroy, start, stop, pause, resume, list, set-session. */
#include <time.h>

#include "sessiond/control/commands.h"
#include "sessiond/control/report.h"
#include "sessiond/model/lost.h"
#include "sessiond/model/option.h"
#include "sessiond/model/seconds.h"
#include "sessiond/peers/backlog.h"
#include "sessiond/peers/collector.h"
#include "sessiond/peers/peers.h"
#include "sessiond/peers/steps.h"

static void step_ended(struct request_op *o, int status, const char *message)
{
	struct request *r = o->request;
	struct session *s = o->session;

	if (status) {
		request_fail(r, status, s->name, message);
		return;
	}
	reply_add_to(r, "sessions", report_session(s));
	if (*message)
		reply_note(r, "session '%s': %s", s->name, message);
}

/* why: "", to be filled in, or to be left so. */
static const char *why_no_step(const struct session *s, int error, struct ky_buf *why)
{
	switch (error) {
	case -EBUSY:
		if (s->step != SESSION_QUITTING)
			return "another command is still in progress for it: try again";
		ky_buf_puts(why, "it is being destroyed: ");
		consumer_put_unfinished(&recording_of(s)->consumer, why);
		return why->data ? why->data : "it is being destroyed";
	case -ENOTCONN:
		return "it is stopped, and only a session that records can be paused or resumed: 'kymo start' starts it";
	default:
		return strerror(-error);
	}
}

/*
 * Returns whether the step failed harmlessly: the session already is as requested, or the command
 * is for all sessions and does not concern this one.
 */
static bool is_fine(const struct request *r, int ret)
{
	return ret == -EALREADY || (ret == -ENOTCONN && !r->session);
}

/*
 * Begins a step of the session. With no_wait, the request does not wait for the step, and reports
 * the session as it is now.
 */
static void begin_step(
	struct request *r, struct session *s, int (*begin)(struct session *s, struct op *op))
{
	bool no_wait = request_bool(r, "no_wait");
	struct request_op *o = no_wait ? NULL : request_op_new(r, s, step_ended);
	int ret = o || no_wait ? begin(s, o ? &o->op : NULL) : -ENOMEM;
	struct ky_buf why = {0};

	if (!ret && o)
		return;
	request_op_free(o);
	if (!ret || is_fine(r, ret))
		reply_add_to(r, "sessions", report_session(s));
	else
		request_fail(r, ret, s->name, why_no_step(s, ret, &why));
	ky_buf_deinit(&why);
}

/* One session, or all of the caller's. */
static enum outcome begin_steps(struct request *r, int (*begin)(struct session *s, struct op *op))
{
	struct session *s, *tmp;

	reply_add(r, "sessions", json_object_new_array());
	if (r->session)
		begin_step(r, r->session, begin);
	else
		ky_list_foreach_safe (s, tmp, &r->env->sessions, node)
			if (r->peer.uid == s->uid)
				begin_step(r, s, begin);
	return request_await(r, request_outcome);
}

/* It starts all the same: rules may follow while it records. */
static void note_no_rule(struct request *r)
{
	struct session *s;

	ky_list_foreach (s, &r->env->sessions, node)
		if ((r->session ? s == r->session : r->peer.uid == s->uid) &&
			!session_has_enabled_rule(s))
			reply_note(r,
				"session '%s' records nothing yet, because it has no event rule: 'kymo enable-event PATTERN' adds one",
				s->name);
}

enum outcome run_start(struct request *r)
{
	note_no_rule(r);
	return begin_steps(r, session_start);
}

enum outcome run_stop(struct request *r)
{
	return begin_steps(r, session_stop);
}

enum outcome run_pause(struct request *r)
{
	return begin_steps(r, session_pause);
}

enum outcome run_resume(struct request *r)
{
	return begin_steps(r, session_resume);
}

enum outcome run_destroy(struct request *r)
{
	return begin_steps(r, session_destroy);
}

static const char *default_name(char *buf, size_t size)
{
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(buf, size, "auto-%Y%m%d-%H%M%S", &tm);
	return buf;
}

struct session *output_find(const struct env *e, const char *output)
{
	struct session *s;

	ky_list_foreach (s, &e->sessions, node)
		if (*output && !strcmp(s->output, output))
			return s;
	return NULL;
}

static bool may_have_more(const struct request *r)
{
	const struct session *s;
	unsigned n = 0;

	ky_list_foreach (s, &r->env->sessions, node)
		n += s->uid == r->peer.uid;
	return n < USER_SESSIONS_MAX || r->peer.uid == r->env->uid;
}

static enum outcome check_create(struct request *r, const char *name, const char *output)
{
	const struct session *other = output_find(r->env, output);

	if (!ky_name_valid(name))
		return request_refuse(r, "usage",
			"'%s' cannot name a session: use up to 128 letters, digits, '.', '_' and '-', and no '.' first",
			name);
	if (*output && *output != '/')
		return request_refuse(r, "usage", "output '%s' is not an absolute path", output);
	if (session_find(r->env, name))
		return request_refuse(r, "exists",
			"session '%s' exists already: choose another name or 'kymo destroy %s'",
			name, name);
	if (other)
		return request_refuse(r, "exists",
			"session '%s' writes to '%s' already: choose another output directory",
			other->name, output);
	if (r->env->n_sessions >= SESSIONS_MAX)
		return request_refuse(
			r, "failed", "there are %u sessions already: destroy some", SESSIONS_MAX);
	if (!may_have_more(r))
		return request_refuse(r, "failed",
			"you have %u sessions already, and no user may have more: destroy some",
			USER_SESSIONS_MAX);
	return DONE;
}

/*
 * Refuses buffers in files to all but the daemon's own user. An application that has the file of
 * another user's rings open could truncate it, and so kill the other applications.
 */
static enum outcome check_shm(struct request *r, const char *path, uid_t uid)
{
	if (*path && *path != '/')
		return request_refuse(r, "usage", "shm_path '%s' is not an absolute path", path);
	if (*path && uid != r->env->uid)
		return request_refuse(r, "permission",
			"buffers in files are for the session daemon's own user: leave out --shm-path, or use a session daemon of your own (KYMO_RUNDIR)");
	return DONE;
}

static const char *why_no_shm(int error)
{
	switch (error) {
	case -ENOTEMPTY:
		return "it is not empty (if a session was killed, 'kymo recover' writes out what it left there): choose another directory";
	case -EPERM:
		return "it belongs to another user, or all users may write to it: choose another directory";
	case -EOPNOTSUPP:
		return "its file system cannot reserve disk space permanently: choose a tmpfs, as below /dev/shm, ext4 or xfs";
	default:
		return strerror(-error);
	}
}

static enum outcome refuse_create(
	struct request *r, const char *name, const char *shm_path, int error)
{
	if (error == -EINVAL && request_has(r, "clock"))
		return request_refuse(
			r, "usage", "'clock' is not the clock of a session of this machine");
	if (*shm_path)
		return request_refuse(r, "failed",
			"cannot keep the buffers of session '%s' in '%s': %s", name, shm_path,
			why_no_shm(error));
	return request_refuse(r, "failed", "cannot start a consumer for session '%s': %s", name,
		error == -ENOENT ? "kymo-consumerd was not found: is kymo installed completely?"
				 : strerror(-error));
}

static void reply_created(struct request_op *o, int status, const char *message)
{
	if (status) {
		request_fail(o->request, status, o->session->name, message);
		return;
	}
	reply_add(o->request, "session", report_session(o->session));
	if (!request_bool(o->request, "bound"))
		request_select(o->request, o->session);
}

static enum outcome create_session(struct request *r, const struct session_spec *spec)
{
	struct request_op *o = request_op_new(r, NULL, reply_created);
	int ret = o ? session_new(r->env, spec, &o->op, &o->session) : -ENOMEM;

	if (!ret)
		return request_await(r, request_outcome);
	request_op_free(o);
	return refuse_create(r, spec->name, spec->shm_path, ret);
}

static const char *string_or(const struct request *r, const char *name, const char *otherwise)
{
	const char *s = request_string(r, name);

	return s ? s : otherwise;
}

static enum outcome create_requested(struct request *r)
{
	struct env *e = r->env;
	char buf[64];
	struct ky_clock_info like;
	const struct session_spec spec = {
		.name = string_or(r, "session", default_name(buf, sizeof(buf))),
		.output = string_or(r, "output", ""),
		.shm_path = string_or(r, "shm_path", ""),
		.snapshot = request_bool(r, "snapshot"),
		.seconds = request_bytes(r, "seconds"),
		.switch_us = request_bytes(r, "switch_timer"),
		.absolute_clock = request_bool(r, "absolute_clock"),
		.clock = request_string(r, "clock"),
		.bound = request_bool(r, "bound") ? r->client : NULL,
		/* Only root's daemon can run consumers as somebody else. */
		.uid = e->uid == 0 ? r->peer.uid : e->uid,
		.gid = r->peer.gid,
	};

	ky_clock_measure(e->clock, &like);
	if (check_create(r, spec.name, spec.output) == REFUSED ||
		check_shm(r, spec.shm_path, spec.uid) == REFUSED)
		return REFUSED;
	if (spec.seconds && !spec.snapshot)
		return request_refuse(r, "usage",
			"'seconds' is for sessions that keep events for snapshots: --snapshot");
	if (spec.seconds && *spec.shm_path)
		return request_refuse(
			r, "usage", "buffers in files do not grow: give their size, not 'seconds'");
	if (spec.seconds > SECONDS_MAX)
		return request_refuse(r, "usage",
			"a flight recorder can hold %u seconds at most, which is a week",
			SECONDS_MAX);
	if (spec.switch_us &&
		(spec.switch_us < OPTION_TIME_MIN || spec.switch_us > OPTION_TIME_MAX))
		return request_refuse(
			r, "usage", "the switch timer can be from 100us to an hour (1h)");
	if (spec.clock && session_clock_take(&like, spec.clock) < 0)
		return request_refuse(r, "usage",
			"'%s' is not the clock of a session of this daemon", spec.clock);
	if (request_bool(r, "bound") && !r->client)
		return request_refuse(r, "failed", "the client has disconnected");
	lost_forget(e, spec.name);
	if (r->timed_out)
		reply_note(r,
			"the collector of system state does not answer: the session continues without it");
	if (*e->peers->collector->trouble && e->peers->collector->state != COLLECTOR_NONE)
		reply_note(r,
			"the collector of system state %s: the session continues without it until it works again (the daemon's log has more)",
			e->peers->collector->trouble);
	return create_session(r, &spec);
}

/* A session does not begin before the collector is ready, or has failed. */
enum outcome run_create(struct request *r)
{
	collector_await(r->env->peers->collector, request_barrier(r));
	return request_await_peers(r, COLLECTOR_ANSWER_NS, create_requested);
}

enum outcome run_set_session(struct request *r)
{
	if (!request_string(r, "session"))
		return request_refuse(r, "usage", "'set-session' needs the parameter 'session'");
	request_select(r, r->session);
	reply_add(r, "session", report_session(r->session));
	return DONE;
}

enum outcome run_list(struct request *r)
{
	const struct session *s;
	const struct lost *l;

	reply_add(r, "sessions", json_object_new_array());
	ky_list_foreach (s, &r->env->sessions, node)
		if (request_may_touch(r, s))
			reply_add_to(r, "sessions", report_session_brief(s));
	ky_list_foreach (l, &r->env->lost, node)
		if (lost_is_known_to(l, r->peer.uid))
			reply_note(r, "%s ('kymo destroy %s' forgets it)", l->why, l->name);
	return DONE;
}
