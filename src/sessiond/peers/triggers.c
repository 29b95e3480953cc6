/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/triggers.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/glob.h"
#include "sessiond/kernel/events.h"
#include "sessiond/kernel/kernel.h"
#include "sessiond/peers/backlog.h"
#include "sessiond/peers/firing.h"
#include "sessiond/peers/peers.h"
#include "sessiond/peers/program.h"
#include "sessiond/peers/rundir.h"
#include "sessiond/peers/snapshot.h"
#include "sessiond/peers/steps.h"
#include "svc/log.h"

#define NS_PER_S	  UINT64_C(1000000000)
#define DISCARDED_UNKNOWN UINT64_MAX /* the consumer of a predecessor has not reported yet */

/* --- messages --- */

static struct message *message_free(struct message *m)
{
	ky_list_remove(&m->node);
	free(m->session);
	free(m->trigger);
	free(m->when);
	free(m->text);
	free(m->output);
	free(m);
	return NULL;
}

void messages_free(struct env *e)
{
	struct message *m, *tmp;

	ky_list_foreach_safe (m, tmp, &e->peers->messages, node)
		message_free(m);
}

/* Drops the user's oldest messages. */
static void limit_messages(struct peers *p, uid_t uid)
{
	struct message *m, *tmp;
	unsigned n = 0;

	ky_list_foreach (m, &p->messages, node)
		n += m->uid == uid;
	ky_list_foreach_safe (m, tmp, &p->messages, node)
		if (n > USER_MESSAGES_MAX && m->uid == uid) {
			message_free(m);
			n--;
		}
}

/* The texts of a message that outlives its trigger. */
struct source {
	struct session *session;
	const char *trigger, *when;
	uint64_t n_fired, n_left_out;
};

static void KY_PRINTF(4, 5) add_message(
	const struct source *from, enum message_kind kind, const char *output, const char *fmt, ...)
{
	struct env *e = from->session->env;
	struct message *m = calloc(1, sizeof(*m));
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ky_info("session '%s': trigger '%s': %s", from->session->name, from->trigger, text);
	if (!m)
		return;
	*m = (struct message){.number = ++e->peers->last_message,
		.kind = kind,
		.uid = from->session->uid,
		.ns = ky_clock_ns(CLOCK_REALTIME),
		.session = strdup(from->session->name),
		.trigger = strdup(from->trigger),
		.when = strdup(from->when),
		.text = strdup(text),
		.output = strdup(output),
		.n_fired = from->n_fired,
		.n_left_out = from->n_left_out};
	ky_list_append(&e->peers->messages, &m->node);
	limit_messages(e->peers, m->uid);
	OBSERVE(e, message_added, e);
}

static struct source source_of(const struct trigger *t)
{
	return (struct source){.session = t->session,
		.trigger = t->spec.name,
		.when = t->spec.when,
		.n_fired = t->n_fired,
		.n_left_out = t->n_left_out};
}

static void action_failed(const struct trigger *t, enum action_kind kind, const char *why)
{
	static const char *const names[] = {[DO_SNAPSHOT] = "take a snapshot",
		[DO_START] = "start the session",
		[DO_STOP] = "stop the session",
		[DO_ROTATE] = "rotate",
		[DO_RUN] = "run the command"};
	struct source from = source_of(t);

	add_message(&from, MESSAGE_FAILED, "", "cannot %s: %s", names[kind], why);
}

/* --- actions --- */

struct triggered_snapshot {
	struct op op, copied;
	char *output; /* owned; while older ones are removed */
	uint64_t n_events;
	struct snapshot *snapshot;
	struct source from; /* texts owned */
	char *reason;	    /* owned */
	bool copying;	    /* the sets stay frozen for it */
	bool repeated;	    /* its first consumer died */
};

static void end_copy(struct triggered_snapshot *ts)
{
	if (ts->copying)
		firing_end_copy(&recording_of(ts->from.session)->triggers);
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
	add_message(&ts->from, MESSAGE_SNAPSHOT, ts->output,
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
	struct trigger *t = trigger_find(ts->from.session, ts->from.trigger);
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
	const struct source *from = &c->written->from;
	struct trigger *t = trigger_find(from->session, from->trigger);
	int n = WIFEXITED(status) ? WEXITSTATUS(status) : KEPT_FAILED;

	if (t && n != KEPT_FAILED)
		trigger_forget_kept(t, c->n_removed, (uint64_t)n);
	report_written(c->written, n == KEPT_FAILED ? "; older ones cannot be removed" : "");
}

/* The session is freed next. */
static void end_removals(const struct session *s)
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
	add_message(&ts->from, MESSAGE_FAILED, "", "no snapshot was written: %s",
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
	ts->from = source_of(t);
	ts->from.trigger = strdup(t->spec.name);
	ts->from.when = strdup(t->spec.when);
	if (asprintf(&ts->reason, "trigger: %s (%s): %s", t->spec.name, t->spec.when, reason) < 0)
		ts->reason = NULL;
	if (condition_is_theirs(&t->spec.condition)) {
		firing_begin_copy(&recording_of(t->session)->triggers);
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

static int run_step(struct trigger *t, enum action_kind kind)
{
	struct session *s = t->session;

	switch (kind) {
	case DO_START:
		return s->state == SESSION_STARTED ? 0 : session_start(s, NULL);
	case DO_STOP:
		return s->state == SESSION_STOPPED ? 0 : session_stop(s, NULL);
	default:
		return rotation_begin(&recording_of(s)->rotation, false, NULL);
	}
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
	if (program_become(t->session->uid, t->session->gid) < 0 || chdir("/") < 0)
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

static void run_action(struct trigger *t, enum action_kind kind, const char *reason)
{
	int ret;

	if (kind == DO_SNAPSHOT) {
		take_snapshot(t, reason);
	} else if (kind == DO_RUN) {
		run_command(t, reason);
	} else if (kind != DO_NOTIFY) {
		ret = run_step(t, kind);
		if (ret < 0)
			action_failed(t, kind,
				ret == -EBUSY ? "another command of the session is in progress"
					      : strerror(-ret));
	}
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
	struct source from;
	va_list ap;

	if (!take_rate(t)) {
		t->n_left_out++;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	t->n_fired++;
	from = source_of(t);
	add_message(&from, MESSAGE_FIRED, "", "%s", reason);
	for (unsigned i = 0; i < t->spec.n_actions; i++)
		run_action(t, t->spec.actions[i], reason);
}

/* --- conditions that are reported --- */

void triggers_program_died(struct session *s, const struct death *d)
{
	struct trigger *t, *tmp;

	ky_list_foreach_safe (t, tmp, &recording_of(s)->triggers.list, node) {
		const struct condition *c = &t->spec.condition;

		if (c->kind == WHEN_DIED && (!c->subject || ky_glob_match(c->subject, d->name)))
			trigger_fire(t, "%s (pid %d) ended by signal %d%s", d->name, (int)d->pid,
				d->signal, d->dumped ? ", core dumped" : "");
	}
}

void triggers_rotated(struct session *s)
{
	_cleanup_free_ char *path = rotation_path(&recording_of(s)->rotation);
	struct trigger *t, *tmp;

	ky_list_foreach_safe (t, tmp, &recording_of(s)->triggers.list, node)
		if (t->spec.condition.kind == WHEN_ROTATED)
			trigger_fire(t, "rotated: %s", path ? path : "");
}

/* --- conditions that are compared --- */

struct amounts {
	uint64_t now_ns, elapsed_ns; /* elapsed_ns 0: no rates are known yet */
	uint64_t events, new_events, bytes, new_bytes, discarded;
	uint64_t fill; /* per cent */
	uint64_t disk_free, disk_size;
	const char *failing; /* why; NULL: the consumer works */
};

/* Adds what the consumer does not count: records of buffers in overwrite mode. */
static void add_overwritten(struct amounts *a, const struct session *s)
{
	const struct channel *c;
	const struct ring_set *set;
	struct ring_counts n;

	ky_list_foreach (c, &s->channels, node)
		ky_list_foreach (set, &c->sets, node)
			if (ring_set_is_made(set) && set->geometry.overwrite) {
				ring_memory_count(&set->memory, &set->geometry, &n);
				a->events += n.recorded;
				a->discarded += n.lost;
			}
}

static void measure_amounts(struct triggers *t, struct amounts *a)
{
	const struct session *s = t->session;
	const struct consumer *c = &recording_of(s)->consumer;
	struct ky_resume_session memory;
	struct backlog b;

	*a = (struct amounts){.now_ns = ky_loop_time_ns(&s->env->loop), .disk_free = UINT64_MAX};
	consumer_backlog(c, &b);
	a->events = c->counts.recorded + c->counts.unwritten + b.recorded;
	a->discarded = c->counts.discarded + b.discarded;
	a->fill = b.fill;
	a->bytes = c->counts.bytes;
	add_overwritten(a, s);
	if (consumer_read_memory(c, &memory) && memory.disk_size) {
		a->disk_free = memory.disk_free;
		a->disk_size = memory.disk_size;
	}
	a->failing = s->error		      ? s->error
		     : consumer_silence_ns(c) ? "it has not worked for some time"
					      : NULL;
	/* A set that was retired takes its counts along: they come back with the consumer's. */
	a->new_events = a->events - KY_MIN(a->events, t->events);
	a->new_bytes = a->bytes - KY_MIN(a->bytes, t->bytes);
	a->elapsed_ns = t->looked_ns ? a->now_ns - t->looked_ns : 0;
	t->looked_ns = a->now_ns;
	t->events = KY_MAX(a->events, t->events);
	t->bytes = KY_MAX(a->bytes, t->bytes);
}

static uint64_t per_second(uint64_t n, uint64_t ns)
{
	return ns ? (uint64_t)((double)n * (double)NS_PER_S / (double)ns) : 0;
}

/* Fires if the condition became true. */
static void compare(struct trigger *t, uint64_t value, const char *unit, const char *what)
{
	bool was_met = t->is_met;

	t->is_met = condition_is_met(&t->spec.condition, value);
	if (t->is_met && !was_met)
		trigger_fire(t, "%" PRIu64 "%s %s", value, unit, what);
}

static void look_at_discarded(struct trigger *t, uint64_t discarded)
{
	uint64_t more = discarded - KY_MIN(discarded, t->discarded);

	if (t->discarded == DISCARDED_UNKNOWN)
		t->discarded = discarded;
	else if (condition_is_met(&t->spec.condition, more)) {
		t->discarded = discarded;
		trigger_fire(
			t, "%" PRIu64 " event%s discarded", more, more == 1 ? " was" : "s were");
	}
}

static void look_at(struct trigger *t, const struct amounts *a)
{
	const struct condition *c = &t->spec.condition;

	switch (c->kind) {
	case WHEN_EVENTS_RATE:
		if (a->elapsed_ns)
			compare(t, per_second(a->new_events, a->elapsed_ns), "", "events a second");
		break;
	case WHEN_BYTES_RATE:
		if (a->elapsed_ns)
			compare(t, per_second(a->new_bytes, a->elapsed_ns), "", "bytes a second");
		break;
	case WHEN_DISCARDED:
		look_at_discarded(t, a->discarded);
		break;
	case WHEN_BUFFERS:
		compare(t, a->fill, "%", "of a buffer are in use");
		break;
	case WHEN_SIZE:
		compare(t, a->bytes, "", "bytes are written");
		break;
	case WHEN_DISK_FREE:
		if (a->disk_size && c->percent)
			compare(t, a->disk_free * 100 / a->disk_size, "%", "of the disk are free");
		else if (a->disk_size)
			compare(t, a->disk_free, "", "bytes of the disk are free");
		break;
	case WHEN_FAILING:
		if (a->failing && !t->is_met)
			trigger_fire(t, "the consumer fails: %s", a->failing);
		t->is_met = a->failing;
		break;
	case WHEN_ROTATED:
	case WHEN_DIED:
	case WHEN_EVENT:
	case WHEN_SPAN:
		break;
	}
}

static bool is_watched(const struct triggers *t)
{
	const struct trigger *one;

	if (t->session->state != SESSION_STARTED)
		return false;
	ky_list_foreach (one, &t->list, node)
		if (condition_is_polled(&one->spec.condition))
			return true;
	return false;
}

/* Begins or ends to look at amounts, as the triggers and the session's state require. */
static void watch_amounts(struct triggers *t)
{
	bool wanted = is_watched(t), runs = ky_timer_is_set(&t->timer) || t->answer.op;

	if (wanted && !runs) {
		t->looked_ns = 0;
		ky_timer_set(&t->session->env->loop, &t->timer, 0);
	} else if (!wanted && runs) {
		ky_timer_cancel(&t->timer);
		barrier_deinit(&t->answer);
		t->answer = (struct barrier){0};
	}
}

static void run_timer(struct ky_timer *timer)
{
	struct triggers *t = ky_container_of(timer, struct triggers, timer);

	t->asked = recording_of(t->session)->consumer.connected;
	barrier_init(&t->answer, &t->session->env->loop, &t->answered);
	consumer_ask(&recording_of(t->session)->consumer, &t->answer);
	barrier_arm(&t->answer, TRIGGER_LOOK_NS);
}

/* Also if the consumer has not answered in time: then its last counts are compared. */
static void consumer_answered(struct op *op, int status, const char *message)
{
	struct triggers *t = ky_container_of(op, struct triggers, answered);
	struct trigger *one, *tmp;
	struct amounts a;

	t->answer = (struct barrier){0};
	measure_amounts(t, &a);
	if (!t->asked)
		status = -ENOTCONN;
	if (status) /* the next look has nothing to compare with */
		t->looked_ns = a.elapsed_ns = 0;
	ky_list_foreach_safe (one, tmp, &t->list, node)
		if (!status || one->discarded != DISCARDED_UNKNOWN)
			look_at(one, &a);
	if (is_watched(t))
		ky_timer_set(&t->session->env->loop, &t->timer, TRIGGER_LOOK_NS);
}

/* --- the list --- */

void triggers_init(struct triggers *t, struct session *s)
{
	*t = (struct triggers){.session = s};
	ky_list_init(&t->list);
	ky_timer_init(&t->timer, run_timer);
	ky_timer_init(&t->firing, firing_timer);
	t->answered.done = consumer_answered;
}

static void trigger_free(struct trigger *t)
{
	ky_list_remove(&t->node);
	trigger_spec_deinit(&t->spec);
	kept_deinit(&t->kept);
	free(t);
}

void triggers_deinit(struct triggers *t)
{
	struct trigger *one, *tmp;

	end_removals(t->session);
	ky_timer_cancel(&t->timer);
	ky_timer_cancel(&t->firing);
	barrier_deinit(&t->answer);
	ky_list_foreach_safe (one, tmp, &t->list, node)
		trigger_free(one);
}

struct trigger *trigger_find(const struct session *s, const char *name)
{
	struct trigger *t;

	ky_list_foreach (t, &recording_of(s)->triggers.list, node)
		if (!strcmp(t->spec.name, name))
			return t;
	return NULL;
}

static unsigned count_of_user(const struct env *e, uid_t uid)
{
	const struct session *s;
	unsigned n = 0;

	ky_list_foreach (s, &e->sessions, node)
		n += s->uid == uid ? recording_of(s)->triggers.n : 0;
	return n;
}

int trigger_add(struct session *s, struct trigger_spec *spec)
{
	struct triggers *all = &recording_of(s)->triggers;
	struct amounts a;
	struct trigger *t;

	if (trigger_find(s, spec->name))
		return -EEXIST;
	if (all->n >= TRIGGERS_MAX ||
		(s->uid != s->env->uid && count_of_user(s->env, s->uid) >= USER_TRIGGERS_MAX))
		return -EDQUOT;
	if (firing_number(all, spec) < 0)
		return -EDQUOT;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->session = s;
	t->spec = *spec;
	*spec = (struct trigger_spec){0};
	/* Losses before it are not its business. */
	measure_amounts(all, &a);
	t->discarded = s->step == SESSION_CREATING ? DISCARDED_UNKNOWN : a.discarded;
	ky_list_append(&all->list, &t->node);
	all->n++;
	OBSERVE(s->env, trigger_changed, s, &t->spec, false);
	watch_amounts(all);
	firing_watch(all);
	return 0;
}

void trigger_remove(struct trigger *t)
{
	struct triggers *all = &recording_of(t->session)->triggers;

	OBSERVE(t->session->env, trigger_changed, t->session, &t->spec, true);
	firing_remove(t);
	trigger_free(t);
	all->n--;
	watch_amounts(all);
	firing_watch(all);
}

void triggers_session_state(struct session *s)
{
	watch_amounts(&recording_of(s)->triggers);
	firing_watch(&recording_of(s)->triggers);
}

/* Returns whether the condition names one event that only the kernel has. */
static bool is_of_kernel(const struct session *s, const struct condition *c)
{
	char why[KERNEL_WHY_MAX];

	if (c->kind != WHEN_EVENT || strchr(c->rule->pattern, '*'))
		return false;
	return !strchr(c->rule->pattern, ':') ||
	       (session_has_kernel(s) &&
		       kernel_count_matches(s->env->kernel, c->rule, NULL, why) > 0);
}

const char *trigger_refusal(const struct session *s, const struct trigger_spec *spec)
{
	enum condition_kind kind = spec->condition.kind;
	struct ky_resume_session memory;
	bool writes = !s->snapshot && *s->output;

	if (!writes && (kind == WHEN_BYTES_RATE || kind == WHEN_SIZE || kind == WHEN_BUFFERS ||
			       kind == WHEN_DISK_FREE || kind == WHEN_ROTATED))
		return "it writes no trace, so the condition would never be true";
	if (kind == WHEN_DISK_FREE && !spec->condition.percent &&
		consumer_read_memory(&recording_of(s)->consumer, &memory) && memory.disk_size &&
		spec->condition.limit > memory.disk_size)
		return "its disk is smaller than that, so the condition would always be true";
	if (!writes && trigger_has_action(spec, DO_ROTATE))
		return "it writes no trace, so there is nothing to rotate";
	if (!*s->output && trigger_has_action(spec, DO_SNAPSHOT))
		return "it writes no trace, so there is no place for a snapshot";
	if (is_of_kernel(s, &spec->condition))
		return "applications decide event(), and their events are called 'PROVIDER:NAME': events of the kernel do not meet it ('events/s > N' counts them)";
	if (trigger_has_action(spec, DO_RUN) && !s->env->peers->allows_commands)
		return "the session daemon runs no commands: start it with 'kymo-sessiond --allow-commands'";
	return NULL;
}
