/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/app.h"

#include <signal.h>
#include <stdarg.h>

#include "sessiond/model/context.h"
#include "sessiond/peers/collector.h"
#include "sessiond/peers/peers.h"
#include "sessiond/peers/process.h"
#include "sessiond/peers/recording.h"
#include "svc/check.h"
#include "svc/log.h"

KY_APP_MESSAGES(KY_MSG_SENDER)

static const struct ky_msg_conn_ops conn_ops;

struct app *app_free(struct app *a)
{
	struct app_set *as, *tmp;

	if (!a)
		return NULL;
	ky_msg_conn_deinit(&a->conn);
	ky_timer_cancel(&a->deadline);
	ticket_done_all(&a->tickets);
	barrier_deinit(&a->flush);
	ky_list_foreach_safe (as, tmp, &a->sets, app_node)
		app_set_release(as);
	for (uint32_t i = 0; i < a->n_events; i++)
		event_desc_unref(a->events[i]);
	free(a->events);
	app_free_left_out(a);
	user_discharge(
		a->user, a->n_events * sizeof(*a->events) + a->n_owed * sizeof(struct ticket));
	ky_list_remove(&a->node);
	KY_CHECK(a->user->n_apps > 0);
	a->user->n_apps--;
	a->env->users.n_apps -= a->user->uid != a->env->uid;
	process_hung_up(a->process);
	user_unref(a->user);
	free(a);
	return NULL;
}

void app_complain(struct app *a, const char *fmt, ...)
{
	struct session *s;
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!a->complained)
		ky_warning("application %s (pid %d): %s", a->name, (int)a->pid, text);
	ky_list_foreach (s, &a->env->sessions, node)
		if (s->number >= a->complained && session_wants_uid(s, a->user->uid))
			session_notice(
				s, "application %s (pid %d): %s", a->name, (int)a->pid, text);
	a->complained = (uint64_t)a->env->last_cookie + 1;
}

/*
 * Notes whether all queries are answered and the application has confirmed that it records into all
 * started sets.
 */
static void note_answered(struct app *a)
{
	struct app_set *as;
	bool all = !a->n_queries;

	ky_list_foreach (as, &a->sets, app_node)
		all &= !as->started || as->recording;
	a->answered |= all;
}

static void query_events(struct app *a)
{
	a->asks_again = false;
	app_query_everything(a);
	if (a->listed)
		app_note_similar(a);
	else
		app_query_similar(a);
	a->listed = false;
}

static void done_if_due(struct app *a)
{
	struct ky_app_done m = {0};
	struct app_set *as;
	struct session *s;

	if (!a->n_queries && a->asks_again)
		query_events(a);
	if (a->n_queries)
		return;
	ky_list_foreach (s, &a->env->sessions, node)
		app_dump_state(a, s, false, NULL);
	ky_list_foreach (as, &a->sets, app_node)
		m.n_sets += as->sent;
	for (; a->n_dones; a->n_dones--)
		ky_app_done_send(&a->conn, &m, NULL, 0);
	note_answered(a);
}

/*
 * Asks the application about its events again: it has events that it was not asked about. If
 * queries are in flight, waits for the answers first, so that an application that asks very often
 * has one query for each set. DONE follows when everything about the events was sent.
 */
static int ask_again(struct app *a)
{
	if (a->n_dones >= APP_PENDING_MAX)
		return -EDQUOT;
	a->n_dones++;
	a->known = a->listed;
	a->answered = false;
	a->asks_again = true;
	done_if_due(a);
	return 0;
}

/* The application has answered. t: NULL if nobody expected the answer. */
static void end_owing(struct app *a, struct ticket *t)
{
	if (!t)
		return;
	KY_CHECK(a->n_owed > 0);
	a->n_owed--;
	user_discharge(a->user, sizeof(*t));
	ticket_done(t);
}

static int handle_events(struct app *a, struct ky_reader *r)
{
	struct ky_app_events m;
	struct ticket *t;
	struct app_set *as;
	int ret = ky_app_events_decode(r, &m);

	if (ret < 0)
		return ret;
	t = ticket_find(&a->tickets, TICKET_QUERY, m.query);
	if (!t)
		return -EPROTO;
	as = m.query == QUERY_ALL ? NULL : app_set_find(a, m.query);
	if (as && as->set->channel->session->step >= SESSION_DROPPING)
		as = NULL;
	ret = app_take_events(a, &m, as);
	if (ret < 0 || m.more)
		return ret;
	if (as)
		app_set_follow(as, t->barrier);
	a->known |= m.query == QUERY_ALL;
	if (m.query == QUERY_ALL)
		app_note_similar(a);
	KY_CHECK(a->n_queries > 0);
	a->n_queries--;
	end_owing(a, t);
	done_if_due(a);
	return 0;
}

/*
 * Keeps the name that the application gives itself, for people to read: replaces all but plain
 * characters.
 */
static void keep_name(struct app *a, const char *name)
{
	size_t n;

	for (n = 0; name[n] && n < sizeof(a->name) - 1; n++)
		a->name[n] = name[n] > ' ' && name[n] < 0x7f ? name[n] : '?';
	a->name[n] = '\0';
	if (!n)
		strcpy(a->name, "?");
}

static int refuse_version(struct app *a, uint32_t version)
{
	app_complain(a,
		"it is left out: its libkymo speaks version %u of the protocol, this daemon %u and later: update libkymo",
		version, KY_PROTO_OLDEST);
	return -EPROTONOSUPPORT;
}

static int handle_hello(struct app *a, struct ky_reader *r)
{
	struct ky_app_hello m;
	int ret = ky_app_hello_decode(r, &m);

	/* One that is too old has fewer fields. */
	if (ret < 0 && m.version >= KY_PROTO_OLDEST)
		return ret;
	if (a->registered || (m.abi_bits != 32 && m.abi_bits != 64))
		return -EPROTO;
	keep_name(a, m.procname);
	if (m.version < KY_PROTO_OLDEST)
		return refuse_version(a, m.version);
	ky_timer_cancel(&a->deadline);
	a->registered = true;
	a->vpid = m.pid;
	a->number = m.process;
	a->abi_bits = m.abi_bits;
	a->caps = m.caps;
	ky_debug("application %s (pid %d, uid %u) registered", a->name, (int)a->pid,
		(unsigned)a->user->uid);
	collector_registered(a->env->peers->collector, a->pid);
	ret = app_take_list(a, &m);
	if (ret < 0)
		return ret;
	a->listed = m.n_listed;
	ret = ask_again(a);
	app_watch_process(a); /* takes a while: the program is at work now */
	return ret;
}

static int handle_new_events(struct app *a, struct ky_reader *r)
{
	struct ky_app_new_events m;
	int ret = ky_app_new_events_decode(r, &m);

	return ret < 0 ? ret : ask_again(a);
}

static const char *reason(const struct ring_set *set, int error)
{
	if (error == EBADMSG)
		return "its libkymo is of another version than this daemon";
	if (error == ENOSPC)
		return "it has the buffers of as many channels as a program can have: destroy other sessions, and start the program again";
	if (error == ENOMEM && set && ky_geometry_spreads(&set->geometry))
		return "Cannot allocate memory: if its address space is limited (ulimit -v), channels with --burst-size=0 take less of it";
	return strerror(error);
}

/*
 * Reports why an application could not follow START: another layout of the rings, or rings that are
 * too large.
 */
static void report_refusal(const struct app *a, uint32_t cookie, int error)
{
	const struct app_set *as;

	ky_list_foreach (as, &a->sets, app_node)
		if (as->start_cookie == cookie) {
			session_notice(as->set->channel->session,
				"channel '%s': application %s (pid %d) is not recorded: %s",
				as->set->channel->name, a->name, (int)a->pid,
				reason(as->set, error));
			return;
		}
	ky_warning("application %s (pid %d) could not carry out a request: %s", a->name,
		(int)a->pid, reason(NULL, error));
}

static int handle_ack(struct app *a, struct ky_reader *r)
{
	struct ky_app_ack m;
	struct app_set *as;
	int ret = ky_app_ack_decode(r, &m);

	if (ret < 0)
		return ret;
	if (m.status < 0)
		report_refusal(a, m.cookie, -KY_MAX(m.status, -4095));
	else
		ky_list_foreach (as, &a->sets, app_node)
			as->recording |= as->started && as->start_cookie == m.cookie;
	note_answered(a);
	end_owing(a, ticket_find(&a->tickets, TICKET_ACK, m.cookie));
	return 0;
}

/* Counts the application among those that the session missed, and notes it in the trace. */
static void report_unrecorded(const struct app *a, struct session *s, uint64_t ns)
{
	struct ky_buf text = {0};
	struct registry *r;

	unrecorded_add(&s->unrecorded, a->name, a->pid, ns);
	ky_buf_puts(&text, "application ");
	unrecorded_put(&text, a->name, a->pid, ns);
	ky_buf_puts(&text,
		" ran unrecorded for a time, because the session daemon did not answer in time, or because it became another user or could not map the buffers");
	if (!text.error && !registry_get(s, a->user->uid, a->abi_bits, &r))
		registry_add_gap(r, text.data);
	ky_buf_deinit(&text);
}

/* Returns whether the application has reported the same for another set of the session. */
static bool is_known_late(const struct app *a, const struct session *s)
{
	const struct app_set *as;

	ky_list_foreach (as, &a->sets, app_node)
		if (as->late && as->set->channel->session == s)
			return true;
	return false;
}

/*
 * Handles LATE: the application has run without recording into the set. Does not count the time
 * before the session recorded.
 */
static int handle_late(struct app *a, struct ky_reader *r)
{
	struct ky_app_late m;
	struct app_set *as;
	struct session *s;
	int ret = ky_app_late_decode(r, &m);

	if (ret < 0)
		return ret;
	as = app_set_find(a, m.set);
	s = as ? as->set->channel->session : NULL;
	if (s && s->state == SESSION_STARTED && s->step != SESSION_STARTING && !is_known_late(a, s))
		report_unrecorded(a, s, KY_MIN(m.ns, ky_loop_now_ns() - s->recording_ns));
	if (as)
		as->late = true;
	return 0;
}

/*
 * Returns whether the session records, while the application has not confirmed that it records into
 * the set.
 */
static bool is_awaited(const struct app_set *as)
{
	const struct session *s = as->set->channel->session;
	const struct ticket *t;

	if (s->state != SESSION_STARTED || s->step == SESSION_STARTING || as->recording)
		return false;
	ky_list_foreach (t, &as->app->tickets, node)
		if (t->kind == TICKET_QUERY && t->key == as->set->number)
			return true;
	return as->started;
}

static void report_conditions(const struct app *a, bool at_once)
{
	struct session *s;

	ky_list_foreach (s, &a->env->sessions, node)
		if (app_records_into(a, s))
			OBSERVE(a->env, conditions_met, s, at_once);
}

static bool is_awaited_by(const struct app *a, const struct session *s)
{
	const struct app_set *as;

	ky_list_foreach (as, &a->sets, app_node)
		if (as->set->channel->session == s && is_awaited(as))
			return true;
	return false;
}

/*
 * Reports, once, a program that has ended before sessions could record it. One that registers again
 * reports this time itself.
 */
static void report_unrecorded_end(struct app *a)
{
	struct session *s;

	if (!a->registered || a->answered || a->leaves || a->end_reported)
		return;
	a->end_reported = true;
	ky_list_foreach (s, &a->env->sessions, node)
		if (is_awaited_by(a, s))
			report_unrecorded(a, s, UNRECORDED_TO_ITS_END);
}

static bool has_exited(const struct app *a)
{
	return a->pid > 0 && kill(a->pid, 0) < 0 && errno == ESRCH;
}

/*
 * The process of the application has exited. Handles the last messages of a program of this user;
 * those of other users have their turn.
 */
static void hear_last(struct app *a)
{
	if (a->user->uid != a->env->uid)
		return;
	while (ky_msg_conn_receive(&a->conn))
		;
}

void apps_process_ended(const struct process *p)
{
	struct app *a;

	ky_list_foreach (a, &p->env->peers->apps, node)
		if (a->process == p && !a->leaves) {
			hear_last(a);
			report_unrecorded_end(a);
		}
}

void apps_report_ended(struct env *e)
{
	struct app *a;

	if (e->peers->arrivals)
		ky_listener_accept_all(e->peers->arrivals, ACCEPT_ALL_NS);
	ky_list_foreach (a, &e->peers->apps, node)
		if (!a->answered && has_exited(a)) {
			hear_last(a);
			report_unrecorded_end(a);
		}
}

/* Once for each user: what keeps one of its programs from counting mostly keeps all. */
static void report_uncounted(const struct app_set *as, const struct ky_app_uncounted *m)
{
	const struct channel *c = as->set->channel;
	char why[256];

	static_assert(KY_CTX_MAX <= 8 * sizeof(as->set->uncounted), "a bit for each context");
	for (uint32_t i = 0; i < as->n_contexts; i++) {
		uint64_t bit = UINT64_C(1) << i;

		if (as->set->kind->uncounted & bit ||
			!context_is_counter(&c->contexts[i], m->type, m->config))
			continue;
		as->set->kind->uncounted |= bit;
		context_explain_uncounted(-KY_MAX(m->status, -4095), why, sizeof(why));
		session_notice(c->session,
			"channel '%s': '%s' is 0 in events of application %s (pid %d), and perhaps of others of user %u: %s",
			c->name, c->contexts[i].spec, as->app->name, (int)as->app->pid,
			(unsigned)as->app->user->uid, why);
	}
}

static int handle_uncounted(struct app *a, struct ky_reader *r)
{
	struct ky_app_uncounted m;
	struct app_set *as;
	int ret = ky_app_uncounted_decode(r, &m);

	if (ret < 0)
		return ret;
	ky_list_foreach (as, &a->sets, app_node)
		report_uncounted(as, &m);
	return 0;
}

static int handle_left_out(struct app *a, struct ky_reader *r)
{
	struct ky_app_left_out m;
	int ret = ky_app_left_out_decode(r, &m);

	return ret < 0 ? ret : app_add_left_out(a, m.event, m.why);
}

static void app_flushed(struct op *op, int status, const char *message)
{
	struct app *a = ky_container_of(op, struct app, flushed);
	struct ky_app_flushed m = {.cookie = a->flush_cookie};

	ky_app_flushed_send(&a->conn, &m, NULL, 0);
}

/* Only a companion's programs have the consumer write out what there is, which is their own. */
static int handle_flush(struct app *a, struct ky_reader *r)
{
	struct ky_app_flush m;
	int ret = ky_app_flush_decode(r, &m);

	if (ret < 0 || a->flush.loop)
		return ret < 0 ? ret : -EPROTO;
	a->flush_cookie = m.cookie;
	a->flushed.done = app_flushed;
	barrier_init(&a->flush, &a->env->loop, &a->flushed);
	if (a->env->peers->while_used)
		sessions_flush(a->env, &a->flush);
	barrier_arm(&a->flush, CONSUMER_ANSWER_NS);
	return 0;
}

static int handle_message(struct app *a, const void *buf, size_t len)
{
	struct ky_reader r;
	int type = ky_msg_open(&r, buf, len);

	if (type < 0)
		return type;
	if (type == KY_APP_HELLO)
		return handle_hello(a, &r);
	if (!a->registered)
		return -EPROTO;
	switch (type) {
	case KY_APP_EVENTS:
		return handle_events(a, &r);
	case KY_APP_NEW_EVENTS:
		return handle_new_events(a, &r);
	case KY_APP_ACK:
		return handle_ack(a, &r);
	case KY_APP_UNCOUNTED:
		return handle_uncounted(a, &r);
	case KY_APP_FLUSH:
		return handle_flush(a, &r);
	case KY_APP_LATE:
		return handle_late(a, &r);
	case KY_APP_LEFT_OUT:
		return handle_left_out(a, &r);
	case KY_APP_LEAVE:
		a->leaves = true;
		return 0;
	case KY_APP_FIRED:
		report_conditions(a, false);
		return 0;
	default:
		return 0;
	}
}

static void conn_message(
	struct ky_msg_conn *conn, const void *buf, size_t len, int *fds, size_t n_fds)
{
	struct app *a = ky_container_of(conn, struct app, conn);
	int ret;

	env_set_cause(a->env, a->user->uid);
	ret = handle_message(a, buf, len);
	env_set_cause(a->env, a->env->uid);
	if (ret == -EAGAIN)
		ky_msg_conn_defer(conn);
	else if (ret < 0)
		ky_msg_conn_fail(conn, ret);
}

static void conn_closed(struct ky_msg_conn *conn, int error)
{
	struct app *a = ky_container_of(conn, struct app, conn);

	struct env *e = a->env;

	env_set_cause(e, a->user->uid);
	if (error)
		ky_warning("application %s (pid %d, uid %u) dropped: %s", a->name, (int)a->pid,
			(unsigned)a->user->uid, strerror(-error));
	report_unrecorded_end(a);
	env_set_cause(e, e->uid);
	report_conditions(a, true);  /* it may have fired a trigger, which names it */
	report_conditions(a, false); /* and will not record the event, if it has not */
	app_free(a);
}

static void hello_timed_out(struct ky_timer *t)
{
	struct app *a = ky_container_of(t, struct app, deadline);

	/* If the message waits, it is not the application that is late. */
	if (ky_msg_conn_waits(&a->conn) || ++a->n_looks < APP_HELLO_LOOKS)
		ky_timer_set(&a->env->loop, t, APP_HELLO_NS / APP_HELLO_LOOKS);
	else
		ky_msg_conn_fail(&a->conn, -ETIMEDOUT);
}

static const struct ky_msg_conn_ops conn_ops = {
	.message = conn_message,
	.closed = conn_closed,
};

/*
 * Returns how many applications the user may have. If it is not the daemon's own, it may have half
 * of what all other users leave: so there is always room for another one.
 */
static unsigned apps_limit(const struct env *e, const struct user *u)
{
	unsigned others = e->users.n_apps - u->n_apps;

	if (u->uid == e->uid)
		return e->peers->user_apps_max;
	return KY_MIN(e->peers->user_apps_max,
		(e->peers->users_apps_max - KY_MIN(others, e->peers->users_apps_max)) / 2);
}

/* Returns the reason to refuse another application of the user, or NULL. */
static const char *why_refused(const struct env *e, const struct user *u)
{
	if (!u)
		return "the session daemon has no memory left";
	/* A daemon that is not root's traces its own user's programs only. */
	if (e->uid && u->uid != e->uid)
		return "this daemon serves one user";
	if (u->n_apps >= apps_limit(e, u))
		return "its user has as many as the daemon serves (a limit of open files?)";
	return NULL;
}

static void refuse_app(struct env *e, const struct ky_peer *peer, const char *why)
{
	env_set_cause(e, peer->uid);
	ky_warning("application with pid %d of uid %u refused: %s", (int)peer->pid,
		(unsigned)peer->uid, why);
	env_set_cause(e, e->uid);
}

void app_accept(struct env *e, int fd, const struct ky_peer *peer)
{
	struct app *a = calloc(1, sizeof(*a));
	struct user *u = a ? user_get(&e->users, peer->uid) : NULL;
	const char *why = why_refused(e, u);

	if (why)
		ky_close_foreign(fd);
	else if (ky_msg_conn_init(&a->conn, &e->loop, fd, &conn_ops, APP_QUEUE_MAX, 0) < 0)
		why = "its connection cannot be watched";
	if (why) {
		refuse_app(e, peer, why);
		user_unref(u);
		free(a);
		return;
	}
	a->env = e;
	a->user = u;
	a->conn.account = &u->queued;
	a->pid = peer->pid;
	a->gid = peer->gid;
	strcpy(a->name, "?");
	u->n_apps++;
	e->users.n_apps += peer->uid != e->uid;
	ky_list_init(&a->sets);
	ky_list_init(&a->tickets);
	ky_list_init(&a->left_out);
	ky_list_append(&e->peers->apps, &a->node);
	ky_timer_init(&a->deadline, hello_timed_out);
	ky_timer_set(&e->loop, &a->deadline, APP_HELLO_NS / APP_HELLO_LOOKS);
	ky_msg_conn_look(&a->conn); /* programs send HELLO at once */
}
