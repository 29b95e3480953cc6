/* SPDX-License-Identifier: MIT */
/* Which events applications are asked for, and for which ring sets. */
#include <sys/stat.h>

#include "base/glob.h"
#include "sessiond/peers/app.h"
#include "sessiond/peers/collector.h"
#include "sessiond/peers/message-list.h"
#include "sessiond/peers/peers.h"
#include "sessiond/peers/process.h"
#include "sessiond/peers/recording.h"

KY_APP_MESSAGES(KY_MSG_SENDER)

struct ticket *app_owe(struct app *a, enum ticket_kind kind, uint32_t key, struct barrier *b)
{
	struct ticket *t;

	if (a->n_owed >= APP_PENDING_MAX || user_charge(a->user, sizeof(*t)) < 0) {
		ky_msg_conn_fail(&a->conn, -EDQUOT);
		return NULL;
	}
	t = ticket_new(&a->tickets, kind, key, b);
	if (!t) {
		user_discharge(a->user, sizeof(*t));
		ky_msg_conn_fail(&a->conn, -ENOMEM);
		return NULL;
	}
	a->n_owed++;
	t->pid = a->pid;
	t->user = a->user->uid == a->env->uid ? NULL : a->user;
	return t;
}

static void post_query(struct app *a, uint32_t number, const struct list *rules, struct barrier *b)
{
	struct ky_app_query m = {.query = number, .n = rules->n, .rules = list_bytes(rules)};

	if (!app_owe(a, TICKET_QUERY, number, b))
		return;
	a->n_queries++;
	ky_app_query_send(&a->conn, &m, NULL, 0);
}

/* The rules of a channel, in as many messages as they need; none when no rule is enabled. */
static void query_rules(struct app *a, uint32_t number, const struct channel *c, struct barrier *b)
{
	struct list rules;
	struct rule *r;
	size_t len;

	list_clear(&rules);
	ky_list_foreach (r, &c->rules, node) {
		if (!r->enabled)
			continue;
		len = rules.w.len;
		rule_encode(&rules.w, r);
		if (rules.w.error) {
			rules.w.len = len;
			post_query(a, number, &rules, b);
			list_clear(&rules);
			rule_encode(&rules.w, r);
		}
		rules.n++;
	}
	if (rules.n)
		post_query(a, number, &rules, b);
}

bool app_is_tracked(const struct app *a, const struct session *s)
{
	return tracker_has(&s->trackers[TRACK_VPID], a->vpid) &&
	       tracker_has(&s->trackers[TRACK_VUID], a->user->uid) &&
	       tracker_has(&s->trackers[TRACK_VGID], a->gid);
}

/*
 * Returns true if the application is in another time namespace than this daemon. A process whose
 * namespace is hidden from this daemon counts as one in the same.
 */
static bool has_own_time(const struct app *a)
{
	struct stat own, other;
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/ns/time", (int)a->pid);
	return stat("/proc/self/ns/time", &own) == 0 && stat(path, &other) == 0 &&
	       (own.st_ino != other.st_ino || own.st_dev != other.st_dev);
}

bool app_can_be_recorded(const struct app *a, struct session *s)
{
	if (!a->registered || !session_wants_uid(s, a->user->uid) || !app_is_tracked(a, s))
		return false;
	if (s->clock.clock == KY_CLOCK_MONOTONIC && has_own_time(a)) {
		session_notice(s,
			"application %s (pid %d) is left out: its time namespace has another clock, and its events would give those of other applications false times",
			a->name, (int)a->pid);
		return false;
	}
	if (s->clock.clock == KY_CLOCK_MONOTONIC || (a->caps & KY_CAP_TSC))
		return true;
	session_notice(s,
		"application %s (pid %d) is left out: it cannot read the machine's counter; start the session daemon with KYMO_CLOCK=monotonic",
		a->name, (int)a->pid);
	return false;
}

bool app_watch_process(struct app *a)
{
	struct process *p = a->process;

	if (!p) {
		p = a->process = process_get(a->env, a->user, a->pid, a->number, a->conn.fd);
		if (!p)
			return false;
		p->vpid = a->vpid;
		p->gid = a->gid;
		memcpy(p->name, a->name, sizeof(p->name));
	}
	return p->number;
}

/*
 * Root's programs trust each other less than others' do: one may have given up most of its rights,
 * or run in a container. A program whose end cannot be seen shares the others' buffers.
 */
static bool has_own_buffers(struct app *a, const struct channel *c)
{
	return c->buffers == BUFFERS_PROCESS ||
	       (c->buffers == BUFFERS_AUTO && a->user->uid == 0 && app_watch_process(a));
}

/* Returns the damaged set that the application has from this channel and keeps, or NULL. */
static struct ring_set *replaced_set(const struct app *a, const struct channel *c)
{
	const struct app_set *as;

	ky_list_foreach (as, &a->sets, app_node)
		if (as->set->channel == c && as->set->replaced)
			return as->set;
	return NULL;
}

/* Returns the same as long as the application has a set, though the channel may change. */
static enum ring_room room_of(const struct app *a, const struct channel *c)
{
	const struct app_set *as;

	ky_list_foreach (as, &a->sets, app_node)
		if (as->set->channel == c)
			return as->set->room;
	if (!(a->caps & KY_CAP_FIXED) || !ring_sets_grow(c))
		return ROOM_TO_GROW;
	return a->caps & KY_CAP_ROOMY ? ROOM_MUCH : ROOM_LITTLE;
}

/* Returns whether the application may record into the channel. If not, a notice says why. */
static bool can_have_buffers(struct app *a, const struct channel *c)
{
	if (!has_own_buffers(a, c) || app_watch_process(a))
		return true;
	session_notice(c->session,
		"channel '%s': application %s (pid %d) is left out: it cannot have buffers of its own, as its end could not be seen",
		c->name, a->name, (int)a->pid);
	return false;
}

/* Returns the set for the application's events; NULL if there is no memory left. */
static struct ring_set *set_for(struct app *a, struct channel *c)
{
	bool per_cpu = c->buffers != BUFFERS_THREAD && a->caps & KY_CAP_RSEQ;
	uint32_t mode = per_cpu ? KY_SET_PER_CPU : KY_SET_PER_THREAD;
	struct ring_set *set = replaced_set(a, c);

	if (!set)
		set = ring_set_get(
			c, a->user->uid, a->abi_bits, mode, per_cpu ? room_of(a, c) : ROOM_TO_GROW);
	return set && has_own_buffers(a, c)
		       ? ring_set_of_process(set, a->pid, a->number, a->process->image)
		       : set;
}

static void query_channel(struct app *a, struct channel *c, struct barrier *b)
{
	struct ring_set *set;
	struct app_set *as;

	if (c->domain != DOMAIN_USER || !channel_is_active(c) ||
		!app_can_be_recorded(a, c->session))
		return;
	app_note_left_out(a, c);
	if (!can_have_buffers(a, c))
		return;
	set = set_for(a, c);
	as = set ? app_set_get(a, set) : NULL;
	if (!as) {
		ky_msg_conn_fail(&a->conn, -ENOMEM);
	} else if (a->listed) {
		app_map_known(as);
		app_set_follow(as, b);
	} else {
		query_rules(a, set->number, c, b);
	}
}

/*
 * Returns the barrier of a start that the application has not acknowledged, or NULL. The start also
 * waits until the events that the application reports meanwhile are in effect.
 */
static struct barrier *pending_start(const struct app *a, struct session *s)
{
	const struct ticket *t;

	if (s->step == SESSION_STARTING)
		ky_list_foreach (t, &a->tickets, node)
			if (t->barrier == &recording_of(s)->barrier)
				return t->barrier;
	return NULL;
}

void app_query_everything(struct app *a)
{
	struct session *s;
	struct channel *c;

	ky_list_foreach (s, &a->env->sessions, node)
		if (s->step < SESSION_DROPPING)
			ky_list_foreach (c, &s->channels, node)
				query_channel(a, c, pending_start(a, s));
}

void apps_await_queries(const struct session *s, struct barrier *b)
{
	struct app_set *as;
	struct ticket *t;
	struct app *a;

	ky_list_foreach (a, &s->env->peers->apps, node)
		ky_list_foreach (as, &a->sets, app_node) {
			if (as->set->channel->session != s)
				continue;
			t = ticket_find_last(&a->tickets, TICKET_QUERY, as->set->number);
			if (t)
				ticket_await(t, b);
		}
}

void apps_query_channel(struct channel *c, struct barrier *b)
{
	struct app *a;

	ky_list_foreach (a, &c->session->env->peers->apps, node)
		query_channel(a, c, b);
}

static char *tracers[] = {(char *)"kymo_statedump:*", (char *)"kymo_lib:*"};

bool app_event_is_tracers(const struct event_desc *d)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(tracers); i++)
		if (ky_glob_match(tracers[i], d->name))
			return true;
	return false;
}

static void query_all(struct app *a, struct barrier *b)
{
	struct list rules;
	/* '*' does not match the collector's events. The tracer's are not worth a list. */
	static const struct rule all[] = {
		{.pattern = (char *)"*", .level_type = KY_LEVEL_ALL},
		{.pattern = (char *)"kymo_*",
			.exclusions = tracers,
			.n_exclusions = KY_ARRAY_SIZE(tracers),
			.level_type = KY_LEVEL_ALL},
	};

	list_clear(&rules);
	for (size_t i = 0; i < KY_ARRAY_SIZE(all); i++)
		rule_encode(&rules.w, &all[i]);
	rules.n = KY_ARRAY_SIZE(all);
	post_query(a, QUERY_ALL, &rules, b);
}

void apps_query_all(const struct env *e, struct barrier *b)
{
	struct app *a;

	ky_list_foreach (a, &e->peers->apps, node)
		if (a->registered && !a->known)
			query_all(a, b);
}

/* Calls `each` for the rules that match nothing so far. Returns true if there are any. */
static bool for_unmatched(struct app *a, void (*each)(struct app *a, struct rule *r))
{
	struct session *s;
	struct channel *c;
	struct rule *r;
	bool any = false;

	ky_list_foreach (s, &a->env->sessions, node)
		ky_list_foreach (c, &s->channels, node)
			ky_list_foreach (r, &c->rules, node) {
				if (c->domain != DOMAIN_USER || !r->enabled ||
					!strcmp(r->pattern, "*") ||
					channel_count_matches(c, r, false))
					continue;
				any = true;
				if (each)
					each(a, r);
			}
	return any;
}

static void note_similar(struct app *a, struct rule *r)
{
	for (uint32_t i = 0; i < a->n_events; i++)
		if (a->events[i])
			rule_note_similar(r, a->events[i]->name);
}

void app_query_similar(struct app *a)
{
	if (a->env->bound && for_unmatched(a, NULL))
		query_all(a, NULL);
}

void app_note_similar(struct app *a)
{
	if (a->env->bound)
		for_unmatched(a, note_similar);
}
