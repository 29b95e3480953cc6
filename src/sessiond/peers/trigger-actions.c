/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/trigger-actions.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "sessiond/peers/peers.h"
#include "sessiond/peers/rundir.h"
#include "sessiond/peers/snapshot.h"
#include "sessiond/peers/trigger-messages.h"
#include "svc/become.h"

static void action_failed(const struct trigger *t, enum action_kind kind, const char *why)
{
	static const char *const names[] = {[DO_SNAPSHOT] = "take a snapshot",
		[DO_START] = "start the session",
		[DO_STOP] = "stop the session",
		[DO_ROTATE] = "rotate",
		[DO_RUN] = "run the command"};
	struct message_source from = message_source_of(t);

	message_add(&from, MESSAGE_FAILED, "", "cannot %s: %s", names[kind], why);
}

struct triggered_snapshot {
	struct op op, copied;
	char *output; /* owned; while older ones are removed */
	uint64_t n_events;
	struct snapshot *snapshot;
	struct message_source from; /* texts owned */
	char *reason;		    /* owned */
	bool copying;		    /* the sets stay frozen for it */
	bool repeated;		    /* its first consumer died */
};

static void end_copy(struct triggered_snapshot *ts)
{
	if (ts->copying)
		OBSERVE(ts->from.session->env, copy_ended, ts->from.session);
	ts->copying = false;
}

static void snapshot_copied(struct op *op, int status, const char *message)
{
	struct triggered_snapshot *ts = ky_container_of(op, struct triggered_snapshot, copied);

	/* It is done, too, when the consumer dies. */
	if (!status && ts->snapshot->consumer.connected)
		end_copy(ts);
}

static struct triggered_snapshot *triggered_snapshot_free(struct triggered_snapshot *ts)
{
	end_copy(ts);
	free((char *)ts->from.trigger);
	free((char *)ts->from.when);
	free(ts->reason);
	free(ts->output);
	free(ts);
	return NULL;
}

/* Begins the snapshot. Returns 0 or -errno. */
static int begin_snapshot(struct triggered_snapshot *ts)
{
	char output[2 * PATH_MAX];

	snapshot_place(ts->from.session, ts->from.trigger, output, sizeof(output));
	return snapshot_new(
		ts->from.session, output, 0, ts->reason, &ts->op, &ts->copied, &ts->snapshot);
}

/* A process of a trigger that runs: a command, or the removal of snapshots. */
struct command_process {
	struct ky_list node; /* in peers->commands */
	pid_t pid;
	struct triggered_snapshot *written; /* older ones are removed for it; NULL: a command */
	uint64_t n_removed;		    /* before that; several may be at work */
};

/* Frees it. */
static void report_written(struct triggered_snapshot *ts, const char *trouble)
{
	message_add(&ts->from, MESSAGE_SNAPSHOT, ts->output,
		"snapshot with %" PRIu64 " event%s in %s%s", ts->n_events,
		ts->n_events == 1 ? "" : "s", ts->output, trouble);
	triggered_snapshot_free(ts);
}

int trigger_keep(struct trigger *t, const char *output)
{
	int ret = kept_add(&t->kept, output);

	if (!ret)
		OBSERVE(t->session->env, snapshot_kept, t->session, t->spec.name, output, 0);
	return ret;
}

void trigger_forget_kept(struct trigger *t, uint64_t n_before, uint64_t n)
{
	n = kept_forget(&t->kept, n_before, n);
	if (n)
		OBSERVE(t->session->env, snapshot_kept, t->session, t->spec.name, "", n);
}

/*
 * If the trigger keeps the newest snapshots only, begins to remove older ones, and returns true:
 * this one is reported when they are removed.
 */
static bool keep_newest(struct triggered_snapshot *ts)
{
	struct trigger *t = recording_find_trigger(ts->from.session, ts->from.trigger);
	struct command_process *c;

	if (!t || !*t->spec.keep || trigger_keep(t, ts->output) < 0)
		return false;
	c = calloc(1, sizeof(*c));
	if (c)
		c->pid = kept_limit(&t->kept, &t->spec, t->session);
	if (!c || c->pid < 0) {
		free(c);
		return false;
	}
	c->written = ts;
	c->n_removed = t->kept.n_removed;
	ky_list_append(&t->session->env->peers->commands, &c->node);
	return true;
}

static void end_removal(const struct command_process *c, int status)
{
	const struct message_source *from = &c->written->from;
	struct trigger *t = recording_find_trigger(from->session, from->trigger);
	int n = WIFEXITED(status) ? WEXITSTATUS(status) : KEPT_FAILED;

	if (t && n != KEPT_FAILED)
		trigger_forget_kept(t, c->n_removed, (uint64_t)n);
	report_written(c->written, n == KEPT_FAILED ? "; older ones cannot be removed" : "");
}

void trigger_actions_abandon(const struct session *s)
{
	struct command_process *c;

	ky_list_foreach (c, &s->env->peers->commands, node)
		if (c->written && c->written->from.session == s) {
			report_written(c->written, "");
			c->written = NULL;
		}
}

static void snapshot_done(struct op *op, int status, const char *message)
{
	struct triggered_snapshot *ts = ky_container_of(op, struct triggered_snapshot, op);
	const struct snapshot *sn = ts->snapshot;

	/* The records that it was to copy are still there. */
	if (status == -ECHILD && ts->copying && !ts->repeated) {
		ts->repeated = true;
		if (!begin_snapshot(ts))
			return;
	}
	ts->n_events = sn->consumer.counts.recorded;
	ts->output = strdup(sn->output);
	if (!status && ts->output) {
		end_copy(ts);
		if (!keep_newest(ts))
			report_written(ts, "");
		return;
	}
	message_add(&ts->from, MESSAGE_FAILED, "", "no snapshot was written: %s",
		status ? message : strerror(ENOMEM));
	triggered_snapshot_free(ts);
}

static void take_snapshot(const struct trigger *t, const char *reason)
{
	struct triggered_snapshot *ts = calloc(1, sizeof(*ts));
	int ret = -ENOMEM;

	if (!ts) {
		action_failed(t, DO_SNAPSHOT, "the session daemon has no memory left");
		return;
	}
	ts->op.done = snapshot_done;
	ts->copied.done = snapshot_copied;
	ts->from = message_source_of(t);
	ts->from.trigger = strdup(t->spec.name);
	ts->from.when = strdup(t->spec.when);
	if (asprintf(&ts->reason, "trigger: %s (%s): %s", t->spec.name, t->spec.when, reason) < 0)
		ts->reason = NULL;
	if (condition_is_theirs(&t->spec.condition)) {
		OBSERVE(t->session->env, copy_begun, t->session);
		ts->copying = true;
	}
	if (ts->from.trigger && ts->from.when && ts->reason)
		ret = begin_snapshot(ts);
	if (!ret)
		return;
	action_failed(t, DO_SNAPSHOT,
		ret == -EBUSY ? "other snapshots are still being written" : strerror(-ret));
	triggered_snapshot_free(ts);
}

/* In the child: becomes the session's owner, with nothing of the daemon's. Never returns. */
static void __attribute__((noreturn)) run_child(const struct trigger *t, const char *reason)
{
	char *const argv[] = {(char *)"sh", (char *)"-c", t->spec.command, NULL};
	int null = open("/dev/null", O_RDWR);

	ky_signals_reset();
	setsid();
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
		_exit(126);
	syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
	if (ky_become(t->session->uid, t->session->gid) < 0 || chdir("/") < 0)
		_exit(126);
	clearenv();
	setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1);
	setenv("KYMO_RUNDIR", t->session->env->run->path, 1);
	setenv("KYMO_SESSION", t->session->name, 1);
	setenv("KYMO_TRIGGER", t->spec.name, 1);
	setenv("KYMO_TRIGGER_TEXT", reason, 1);
	execv("/bin/sh", argv);
	_exit(127);
}

static void run_command(const struct trigger *t, const char *reason)
{
	struct peers *p = t->session->env->peers;
	struct command_process *c, *other;
	unsigned n = 0;

	ky_list_foreach (other, &p->commands, node)
		n += !other->written;
	if (n >= COMMANDS_MAX) {
		action_failed(t, DO_RUN, "too many commands of triggers run already");
		return;
	}
	c = calloc(1, sizeof(*c));
	if (c)
		c->pid = fork();
	if (c && !c->pid)
		run_child(t, reason);
	if (!c || c->pid < 0) {
		action_failed(t, DO_RUN, strerror(errno));
		free(c);
		return;
	}
	ky_list_append(&p->commands, &c->node);
}

void triggers_reap(struct env *e)
{
	struct command_process *c, *tmp;
	int status;

	ky_list_foreach_safe (c, tmp, &e->peers->commands, node)
		if (waitpid(c->pid, &status, WNOHANG) == c->pid) {
			if (c->written)
				end_removal(c, status);
			ky_list_remove(&c->node);
			free(c);
		}
}

/* Begins the action. Snapshots and commands report their failures themselves. */
static int begin_action(struct trigger *t, enum action_kind kind, const char *reason)
{
	struct session *s = t->session;
	struct recording *r = recording_of(s);

	switch (kind) {
	case DO_NOTIFY: /* every trigger that fires sends its message */
		return 0;
	case DO_SNAPSHOT:
		take_snapshot(t, reason);
		return 0;
	case DO_START:
		return s->state == SESSION_STARTED ? 0 : r->triggers.ops->start(s, NULL);
	case DO_STOP:
		return s->state == SESSION_STOPPED ? 0 : r->triggers.ops->stop(s, NULL);
	case DO_ROTATE:
		return rotation_begin(&r->rotation, false, NULL);
	case DO_RUN:
		run_command(t, reason);
		return 0;
	}
	return -EINVAL;
}

static void run_action(struct trigger *t, enum action_kind kind, const char *reason)
{
	int ret = begin_action(t, kind, reason);

	if (ret < 0)
		action_failed(t, kind,
			ret == -EBUSY ? "another command of the session is in progress"
				      : strerror(-ret));
}

bool trigger_may_fire(const struct trigger *t)
{
	uint64_t now = ky_loop_time_ns(&t->session->env->loop);

	return t->n_in_window < t->spec.rate_n || now - t->window_ns >= t->spec.rate_ns;
}

/* Counts a firing. Returns false if the rate does not allow it. */
static bool take_rate(struct trigger *t)
{
	uint64_t now = ky_loop_time_ns(&t->session->env->loop);

	if (!t->window_ns || now - t->window_ns >= t->spec.rate_ns) {
		t->window_ns = now;
		t->n_in_window = 0;
	}
	if (t->n_in_window >= t->spec.rate_n)
		return false;
	t->n_in_window++;
	return true;
}

void trigger_fire(struct trigger *t, const char *fmt, ...)
{
	char reason[256];
	struct message_source from;
	va_list ap;

	if (!take_rate(t)) {
		t->n_left_out++;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	t->n_fired++;
	from = message_source_of(t);
	message_add(&from, MESSAGE_FIRED, "", "%s", reason);
	for (unsigned i = 0; i < t->spec.n_actions; i++)
		run_action(t, t->spec.actions[i], reason);
}
