/* SPDX-License-Identifier: MIT */
/* create, destroy, start, stop, pause, resume, list, set-session. */
#include <sys/stat.h>
#include <time.h>

#include "sessiond/commands.h"
#include "sessiond/health.h"
#include "sessiond/journal.h"
#include "sessiond/report.h"

static void step_done(struct session_waiter *w, struct session *s, int error, const char *message)
{
	struct request_step *step = ky_container_of(w, struct request_step, waiter);
	struct request *r = step->request;

	ky_list_remove(&step->node);
	free(step);
	if (error)
		reply_failure(r, error, s->name, message);
	else if (r->command->scope == SCOPE_NONE)
		reply_add(r, "session", report_session(s));
	else
		reply_add_to(r, "sessions", report_session(s));
	if (!error && *message)
		reply_note(r, "session '%s': %s", s->name, message);
	if (!error && r->command->scope == SCOPE_NONE)
		request_select(r, s);
	if (ky_list_empty(&r->steps))
		request_finish(r);
}

static struct request_step *step_new(struct request *r)
{
	struct request_step *step = calloc(1, sizeof(*step));

	if (!step)
		return NULL;
	step->waiter.done = step_done;
	step->request = r;
	ky_list_append(&r->steps, &step->node);
	return step;
}

static void step_free(struct request_step *step)
{
	ky_list_remove(&step->node);
	free(step);
}

/* why: "", to be filled in, or to be left so. */
static const char *why_no_step(const struct session *s, int error, struct ky_buf *why)
{
	switch (error) {
	case -EBUSY:
		if (s->step != SESSION_QUITTING)
			return "another command is still at work on it: try again";
		ky_buf_puts(why, "it is being destroyed: ");
		session_put_unfinished(s, why);
		return why->data ? why->data : "it is being destroyed";
	case -ENOTCONN:
		return "it is stopped, and only a recording can be paused or resumed: 'kymo start' begins to record";
	default:
		return strerror(-error);
	}
}

/* As it should be, then; or not concerned, when all are meant. */
static bool is_fine(const struct request *r, int ret)
{
	return ret == -EALREADY || (ret == -ENOTCONN && !r->session);
}

/* no_wait: nobody is told of the step's end, and the session is reported as it is now. */
static void begin_step(struct request *r, struct session *s,
	int (*begin)(struct session *s, struct session_waiter *waiter))
{
	bool no_wait = request_bool(r, "no_wait");
	struct request_step *step = no_wait ? NULL : step_new(r);
	struct ky_buf why = {0};
	int ret;

	if (step)
		step->session = s;
	ret = step || no_wait ? begin(s, step ? &step->waiter : NULL) : -ENOMEM;
	if (!ret && step)
		return;
	if (step)
		step_free(step);
	if (!ret || is_fine(r, ret))
		reply_add_to(r, "sessions", report_session(s));
	else
		reply_failure(r, ret, s->name, why_no_step(s, ret, &why));
	ky_buf_deinit(&why);
}

/* One session, or all of the caller's; answered when each has finished its step. */
static void begin_steps(
	struct request *r, int (*begin)(struct session *s, struct session_waiter *waiter))
{
	struct session *s, *tmp;

	reply_add(r, "sessions", json_object_new_array());
	if (r->session)
		begin_step(r, r->session, begin);
	else
		ky_list_foreach_safe (s, tmp, &r->daemon->sessions, node)
			if (r->peer.uid == s->uid)
				begin_step(r, s, begin);
	if (ky_list_empty(&r->steps))
		request_finish(r);
}

void run_start(struct request *r)
{
	begin_steps(r, session_start);
}

void run_stop(struct request *r)
{
	begin_steps(r, session_stop);
}

void run_pause(struct request *r)
{
	begin_steps(r, session_pause);
}

void run_resume(struct request *r)
{
	begin_steps(r, session_resume);
}

void run_destroy(struct request *r)
{
	begin_steps(r, session_destroy);
}

static const char *default_name(char *buf, size_t size)
{
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(buf, size, "auto-%Y%m%d-%H%M%S", &tm);
	return buf;
}

struct session *output_find(struct daemon *d, const char *output)
{
	struct stat mine, theirs;
	bool exists = *output && stat(output, &mine) == 0;
	struct session *s;

	ky_list_foreach (s, &d->sessions, node)
		if (*output && (!strcmp(s->output, output) ||
				       (exists && *s->output && stat(s->output, &theirs) == 0 &&
					       mine.st_dev == theirs.st_dev &&
					       mine.st_ino == theirs.st_ino)))
			return s;
	return NULL;
}

static bool may_have_more(const struct request *r)
{
	const struct session *s;
	unsigned n = 0;

	ky_list_foreach (s, &r->daemon->sessions, node)
		n += s->uid == r->peer.uid;
	return n < USER_SESSIONS_MAX || r->peer.uid == r->daemon->uid;
}

static bool may_create(struct request *r, const char *name, const char *output)
{
	if (!name_valid(name))
		request_refuse(r, "usage",
			"'%s' cannot name a session: use up to 128 letters, digits, '.', '_' and '-', and no '.' first",
			name);
	else if (*output && *output != '/')
		request_refuse(r, "usage", "output '%s' is not an absolute path", output);
	else if (output_find(r->daemon, output))
		request_refuse(r, "exists",
			"session '%s' writes to '%s' already: choose another output directory",
			output_find(r->daemon, output)->name, output);
	else if (session_find(r->daemon, name))
		request_refuse(r, "exists",
			"session '%s' exists already: choose another name or 'kymo destroy %s'",
			name, name);
	else if (r->daemon->n_sessions >= SESSIONS_MAX)
		request_refuse(
			r, "failed", "there are %u sessions already: destroy some", SESSIONS_MAX);
	else if (!may_have_more(r))
		request_refuse(r, "failed",
			"you have %u sessions already, and no user may have more: destroy some",
			USER_SESSIONS_MAX);
	else
		return true;
	return false;
}

/*
 * A program that had the file of another user's rings could make it shorter, and so end the others: only who has all of the
 * daemon's rights chooses where it lies.
 */
static bool may_use_shm(struct request *r, const char *path, uid_t uid)
{
	if (*path && *path != '/')
		request_refuse(r, "usage", "shm_path '%s' is not an absolute path", path);
	else if (*path && uid != r->daemon->uid)
		request_refuse(r, "permission",
			"buffers in files are for the session daemon's own user: leave --shm-path away, or use a session daemon of your own (KYMO_RUNDIR)");
	else
		return true;
	return false;
}

static const char *why_no_shm(int error)
{
	switch (error) {
	case -ENOTEMPTY:
		return "it is not empty (if a session was killed, 'kymo recover' writes out what it left there): choose another directory";
	case -EPERM:
		return "it is another user's, or all may write to it: choose another directory";
	case -EOPNOTSUPP:
		return "its file system cannot reserve room for good: choose a tmpfs, as below /dev/shm, ext4 or xfs";
	default:
		return strerror(-error);
	}
}

static void refuse_create(struct request *r, const char *name, const char *shm_path, int error)
{
	if (*shm_path)
		request_refuse(r, "failed", "cannot keep the buffers of session '%s' in '%s': %s",
			name, shm_path, why_no_shm(error));
	else
		request_refuse(r, "failed", "cannot start a consumer for session '%s': %s", name,
			error == -ENOENT
				? "kymo-consumerd was not found: is kymo installed completely?"
				: strerror(-error));
}

static void create(struct request *r)
{
	struct daemon *d = r->daemon;
	const char *name = request_string(r, "session"), *output = request_string(r, "output");
	/* Only root's daemon can run consumers as somebody else. */
	uid_t uid = d->uid == 0 ? r->peer.uid : d->uid;
	const char *shm_path = request_string(r, "shm_path");
	struct request_step *step;
	char buf[64];
	int ret;

	shm_path = shm_path ? shm_path : "";
	name = name ? name : default_name(buf, sizeof(buf));
	output = output ? output : "";
	if (!may_create(r, name, output) || !may_use_shm(r, shm_path, uid))
		return;
	if (*d->collector.trouble)
		reply_note(r,
			"the collector of system state %s: the session does without it until it is back (the daemon's log has more)",
			d->collector.trouble);
	step = d->replaying ? NULL : step_new(r);
	ret = step || d->replaying
		      ? session_new(d, name, output, shm_path, request_bool(r, "snapshot"), uid,
				r->peer.gid, step ? &step->waiter : NULL)
		      : -ENOMEM;
	if (!ret && d->replaying) {
		request_finish(r);
		return;
	}
	if (!ret) {
		step->session = session_find(d, name);
		journal_begin(step->session, r->params);
		return;
	}
	if (step)
		step_free(step);
	refuse_create(r, name, shm_path, ret);
}

/* The collector is ready, or has failed. */
static void create_held(struct barrier *b)
{
	struct request *r = ky_container_of(b, struct request, barrier);

	if (b->timed_out)
		reply_note(r,
			"the collector of system state does not answer: the session does without it");
	create(r);
}

void run_create(struct request *r)
{
	struct collector *c = &r->daemon->collector;

	barrier_init(&r->barrier, &r->daemon->loop, create_held);
	if (!r->daemon->replaying && collector_await(c, &r->barrier))
		barrier_arm(&r->barrier, COLLECTOR_ANSWER_NS);
	else
		create(r);
}

void run_set_session(struct request *r)
{
	if (!request_string(r, "session")) {
		request_refuse(r, "usage", "'set-session' needs the parameter 'session'");
		return;
	}
	request_select(r, r->session);
	reply_add(r, "session", report_session(r->session));
	request_finish(r);
}

void run_list(struct request *r)
{
	const struct session *s;

	reply_add(r, "sessions", json_object_new_array());
	ky_list_foreach (s, &r->daemon->sessions, node)
		if (request_may_touch(r, s))
			reply_add_to(r, "sessions", report_session_brief(s));
	request_finish(r);
}
