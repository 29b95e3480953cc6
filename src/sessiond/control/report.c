/* SPDX-License-Identifier: MIT */
#include "sessiond/control/report.h"

#include <inttypes.h>

#include "sessiond/control/explain.h"
#include "sessiond/control/json.h"
#include "sessiond/control/kernel.h"
#include "sessiond/model/describe.h"
#include "sessiond/model/option.h"
#include "sessiond/peers/app.h"
#include "sessiond/peers/backlog.h"
#include "sessiond/peers/collector.h"
#include "sessiond/peers/peers.h"
#include "sessiond/peers/recording.h"

#define LISTED_MAX (8u << 20)  /* bytes of one user's events in an answer, roughly, */
#define LISTED_ALL (16u << 20) /* and of all users' that are not the daemon's own */

static void add_string(struct json_object *o, const char *name, const char *value)
{
	json_add(o, name, json_object_new_string(value));
}

static void add_number(struct json_object *o, const char *name, uint64_t value)
{
	json_add(o, name, json_object_new_uint64(value));
}

static void add_bool(struct json_object *o, const char *name, bool value)
{
	json_add(o, name, json_object_new_boolean(value));
}

static const char *abi_name(uint32_t abi_bits)
{
	return abi_bits == 32 ? "32-bit" : "64-bit";
}

struct json_object *report_rule(const struct channel *c, struct rule *r)
{
	static const char *const types[] = {
		[KY_LEVEL_ALL] = "all", [KY_LEVEL_AT_LEAST] = "at-least", [KY_LEVEL_ONLY] = "only"};
	struct json_object *o = json_object_new_object(), *exclude = json_object_new_array();

	for (uint32_t i = 0; i < r->n_exclusions; i++)
		json_append(exclude, json_object_new_string(r->exclusions[i]));
	add_string(o, "pattern", r->pattern);
	add_string(o, "kind", rule_kind_name(r));
	if (r->place)
		add_string(o, "place", r->place);
	json_add(o, "exclude", exclude);
	add_string(o, "loglevel_type", types[r->level_type]);
	if (r->level_type != KY_LEVEL_ALL)
		json_add(o, "loglevel", json_object_new_int(r->level));
	add_string(o, "filter", r->filter ? r->filter->text : "");
	add_bool(o, "enabled", r->enabled);
	add_number(o, "matched", channel_count_matches(c, r, false));
	return o;
}

static void add_ring_counts(struct json_object *o, const struct ring_counts *n)
{
	add_number(o, "recorded", n->recorded);
	add_number(o, "discarded", n->lost);
	add_number(o, "used", n->used);
}

/* Adds the counts to *sum, too. */
static struct json_object *report_process(const struct ring_set *set, struct ring_counts *sum)
{
	struct json_object *o = json_object_new_object();
	struct ring_counts n;

	ring_memory_count(&set->memory, &set->geometry, &n);
	add_number(o, "set", set->number);
	json_add(o, "pid", json_object_new_int(set->pid));
	add_ring_counts(o, &n);
	sum->recorded += n.recorded;
	sum->lost += n.lost;
	sum->used += n.used;
	return o;
}

/* Each process that has buffers of its own, and the sum over all. */
static void add_processes(struct json_object *o, const struct ring_set *kind)
{
	struct json_object *list = json_object_new_array();
	struct ring_counts counts = {0};
	const struct ring_set *set;
	uint64_t n = 0, size = 0, burst_size = 0, memory = 0;

	ky_list_foreach (set, &kind->channel->sets, node) {
		if (set->kind != kind || !ring_set_is_made(set))
			continue;
		n++;
		size = KY_MAX(size, set->geometry.n_rings * ky_geometry_home_size(&set->geometry));
		burst_size = KY_MAX(burst_size, set->geometry.n_rings * set->geometry.data_stride);
		memory += ring_memory_in_use(&set->memory);
		json_append(list, report_process(set, &counts));
	}
	add_string(o, "kind", "process");
	add_number(o, "count", n);
	add_number(o, "size", size);
	add_number(o, "burst_size", burst_size);
	add_number(o, "memory", memory);
	add_ring_counts(o, &counts);
	json_add(o, "processes", list);
}

static void add_slots(struct json_object *o, const struct ring_set *set)
{
	struct slot_counts n;

	if (set->mode != KY_SET_PER_THREAD ||
		ring_memory_count_slots(&set->memory, &set->geometry, &n) < 0)
		return;
	add_number(o, "pool_size", set->pool_size);
	add_number(o, "claimed", n.claimed);
	add_number(o, "in_use", n.in_use);
	add_number(o, "unprepared", n.unprepared);
}

static void add_rings(struct json_object *o, const struct ring_set *set)
{
	struct ring_counts n;

	ring_memory_count(&set->memory, &set->geometry, &n);
	add_ring_counts(o, &n);
	add_string(o, "kind", set->mode == KY_SET_PER_CPU ? "cpu" : "thread");
	add_number(o, "count", set->geometry.n_rings);
	add_number(o, "size", ky_geometry_home_size(&set->geometry));
	add_number(o, "burst_size", set->geometry.data_stride);
	add_number(o, "memory", ring_memory_in_use(&set->memory));
	add_slots(o, set);
}

/* The buffers that the daemon has made: for each user, ABI and kind of ring. */
static struct json_object *report_buffers(const struct channel *c)
{
	struct json_object *list = json_object_new_array(), *o;
	const struct ring_set *set;

	ky_list_foreach (set, &c->sets, node) {
		if (!set->described || set->written || ring_set_is_own(set))
			continue;
		o = json_object_new_object();
		add_number(o, "set", set->number);
		add_number(o, "uid", set->uid);
		add_string(o, "abi", abi_name(set->abi_bits));
		add_bool(o, "replaced", set->replaced);
		if (ring_set_is_made(set))
			add_rings(o, set);
		else
			add_processes(o, set);
		json_append(list, o);
	}
	return list;
}

static struct json_object *report_value(const struct channel *c, const struct option *o)
{
	uint64_t v = option_get(c, o);

	if (o->kind == OPTION_WORD)
		return json_object_new_string(o->words[v]);
	return o->infinite && v == UINT64_MAX ? json_object_new_string("inf")
					      : json_object_new_uint64(v);
}

static uint64_t age_of(const struct session *s, uint64_t ts)
{
	uint64_t now = ky_clock_read(s->clock.clock);

	return (uint64_t)((double)(now - KY_MIN(now, ts)) * 1e9 / (double)s->clock.freq);
}

/* How far back a snapshot would reach: in the buffer with the shortest past, and the longest. */
static void add_reach(struct json_object *o, const struct channel *c)
{
	struct ring_reach reach = {0};
	const struct ring_set *set;

	ky_list_foreach (set, &c->sets, node)
		if (ring_set_is_made(set) && set->geometry.overwrite)
			ring_memory_reach(&set->memory, &set->geometry, &reach);
	if (!reach.n)
		return;
	add_number(o, "reach_shortest_ns", age_of(c->session, reach.latest));
	add_number(o, "reach_longest_ns", age_of(c->session, reach.earliest));
}

struct json_object *report_channel(const struct channel *c)
{
	struct json_object *o = json_object_new_object(), *rules = json_object_new_array();
	struct json_object *contexts = json_object_new_array();
	char param[OPTION_PARAM_MAX];
	struct rule *r;

	add_string(o, "name", c->name);
	add_string(o, "domain", c->domain == DOMAIN_KERNEL ? "kernel" : "user");
	add_bool(o, "enabled", c->enabled);
	add_bool(o, "grows", c->domain == DOMAIN_USER && ring_sets_grow(c));
	for (const struct option *option = channel_options; option->key; option++)
		json_add(o, option_param(option, param), report_value(c, option));
	ky_list_foreach (r, &c->rules, node)
		json_append(rules, report_rule(c, r));
	json_add(o, "rules", rules);
	for (uint32_t i = 0; i < c->n_contexts; i++)
		json_append(contexts, json_object_new_string(c->contexts[i].spec));
	json_add(o, "contexts", contexts);
	json_add(o, "ring_sets", report_buffers(c));
	add_reach(o, c);
	return o;
}

static struct json_object *report_option(const struct channel *c, const struct option *option)
{
	struct json_object *o = json_object_new_object();
	struct ky_buf allowed = {0};

	option_describe(&allowed, option);
	add_string(o, "key", option->key);
	json_add(o, "value", report_value(c, option));
	if (option->kind == OPTION_TIME)
		add_string(o, "unit", "us");
	add_string(o, "help", option->help);
	add_string(o, "allowed", allowed.data ? allowed.data : "");
	add_string(o, "changes", option_effect(option));
	ky_buf_deinit(&allowed);
	return o;
}

struct json_object *report_options(const struct channel *c)
{
	struct json_object *list = json_object_new_array();

	for (const struct option *option = channel_options; option->key; option++)
		json_append(list, report_option(c, option));
	return list;
}

/* The sources of a session's events: without channels, programs. */
static const char *domains_of(const struct session *s)
{
	bool user = ky_list_empty(&s->channels), kernel = false;
	const struct channel *c;

	ky_list_foreach (c, &s->channels, node) {
		user = user || c->domain == DOMAIN_USER;
		kernel = kernel || c->domain == DOMAIN_KERNEL;
	}
	return !kernel ? "user" : !user ? "kernel" : "user and kernel";
}

struct json_object *report_session_brief(const struct session *s)
{
	struct json_object *o = json_object_new_object();

	add_string(o, "name", s->name);
	add_number(o, "owner", s->uid);
	add_string(o, "domain", domains_of(s));
	add_string(o, "state", session_state_name(s));
	add_string(o, "output", s->output);
	add_string(o, "error", s->error ? s->error : "");
	add_number(o, "silent_ms", consumer_silence_ns(&recording_of(s)->consumer) / 1000000);
	if (s->shm_path)
		add_string(o, "shm_path", s->shm_path);
	return o;
}

static struct json_object *report_programs(const struct session *s)
{
	struct json_object *list = json_object_new_array(), *o;
	const struct app *a;
	unsigned n;

	ky_list_foreach (a, &s->env->peers->apps, node) {
		n = app_count_mapped(a, s);
		if (!n)
			continue;
		o = json_object_new_object();
		json_add(o, "pid", json_object_new_int(a->pid));
		add_string(o, "name", a->name);
		add_number(o, "uid", a->user->uid);
		add_string(o, "abi", abi_name(a->abi_bits));
		add_number(o, "events", n);
		json_append(list, o);
	}
	return list;
}

struct json_object *report_tracked(const struct session *s)
{
	struct json_object *o = json_object_new_object(), *list;
	char digits[16];

	for (int i = 0; i < N_TRACKERS; i++) {
		const struct tracker *t = &s->trackers[i];

		list = json_object_new_array();
		if (!t->narrowed)
			json_append(list, json_object_new_string("all"));
		for (uint32_t k = 0; k < t->n; k++) {
			snprintf(digits, sizeof(digits), "%" PRIu32, t->values[k]);
			json_append(list, json_object_new_string(digits));
		}
		json_add(o, tracker_names[i], list);
	}
	return o;
}

static void add_counts(struct json_object *o, const struct event_counts *counts)
{
	add_number(o, "recorded", counts->recorded);
	add_number(o, "discarded", counts->discarded);
	add_number(o, "bytes", counts->bytes);
	add_number(o, "discarded_too_big", counts->discarded_too_big);
	add_number(o, "discarded_refused", counts->discarded_refused);
	add_number(o, "discarded_no_slot", counts->discarded_no_slot);
	add_number(o, "discarded_interrupted", counts->discarded_interrupted);
	add_number(o, "unwritten", counts->unwritten);
	add_number(o, "removed", counts->removed);
	add_number(o, "cleared", counts->cleared);
	add_number(o, "damaged", counts->damaged);
	add_number(o, "given_up", counts->n_quarantined);
}

/* A consumer that is not at work reports nothing: then the buffers say what has been lost. */
static void add_session_counts(struct json_object *o, const struct session *s)
{
	const struct consumer *c = &recording_of(s)->consumer;
	struct event_counts counts = c->counts;
	struct backlog b;

	consumer_backlog(c, &b);
	if (consumer_silence_ns(c))
		counts.discarded += b.discarded;
	add_counts(o, &counts);
	add_number(o, "in_buffers", b.recorded);
	add_number(o, "fill", b.fill);
}

/* The state of the consumer, for monitoring systems. */
static void add_health(struct json_object *o, const struct session *s)
{
	const struct consumer *c = &recording_of(s)->consumer;
	uint64_t now = ky_loop_time_ns(&s->env->loop);

	if (c->lost_ns)
		add_number(o, "lost_ms_ago", (now - c->lost_ns) / 1000000);
	if (s->journal_fd < 0 && !s->env->bound)
		json_add(o, "no_journal", json_object_new_boolean(true));
	add_number(o, "fullest", c->fullest);
}

static struct json_object *report_rotation(const struct session *s)
{
	const struct rotation *r = &recording_of(s)->rotation;
	struct json_object *o = json_object_new_object();

	add_bool(o, "ongoing", r->ongoing);
	add_number(o, "chunks", r->n_archived);
	add_string(o, "last", r->path ? r->path : "");
	add_number(o, "timer", r->schedule.timer_us);
	add_number(o, "size", r->schedule.size);
	add_number(o, "max_disk", r->schedule.max_disk);
	add_number(o, "keep_free", r->schedule.keep_free);
	add_number(o, "keep_chunks", r->schedule.keep_chunks);
	add_number(o, "keep_bytes", r->schedule.keep_bytes);
	add_number(o, "keep_s", r->schedule.keep_s);
	add_number(o, "expired_chunks", r->consumer->expired_chunks);
	add_number(o, "expired_events", r->consumer->expired_events);
	add_number(o, "expired_bytes", r->consumer->expired_bytes);
	add_number(o, "disk_bytes", r->consumer->disk_bytes);
	return o;
}

struct json_object *report_snapshot(const struct snapshot *sn)
{
	struct json_object *o = json_object_new_object();

	add_string(o, "session", sn->session->name);
	add_string(o, "output", sn->output);
	add_counts(o, &sn->consumer.counts);
	add_number(o, "overwritten", sn->consumer.counts.overwritten);
	add_number(o, "left_out", sn->consumer.counts.left_out);
	return o;
}

/* The last programs that a signal ended, the newest last. */
static struct json_object *report_deaths(const struct deaths *deaths)
{
	struct json_object *list = json_object_new_array(), *o;

	for (uint64_t i = deaths->n - KY_MIN(deaths->n, (uint64_t)DEATHS_MAX); i < deaths->n; i++) {
		const struct death *d = &deaths->last[i % DEATHS_MAX];

		o = json_object_new_object();
		json_add(o, "pid", json_object_new_int(d->pid));
		add_number(o, "vpid", d->vpid);
		add_string(o, "name", d->name);
		json_add(o, "signal", json_object_new_int(d->signal));
		add_bool(o, "dumped_core", d->dumped);
		add_number(o, "time_ns", d->ns);
		json_append(list, o);
	}
	return list;
}

static struct json_object *report_refused(const struct session *s)
{
	struct json_object *list = json_object_new_array();

	conflicts_report(s, CONFLICTS_REFUSED, json_append_text, list);
	return list;
}

struct json_object *report_session(const struct session *s)
{
	struct json_object *o = report_session_brief(s), *channels = json_object_new_array();
	const struct channel *c;
	char clock[SESSION_CLOCK_MAX];

	add_session_counts(o, s);
	add_health(o, s);
	add_number(o, "unrecorded_applications", s->unrecorded.n);
	add_number(o, "unattended_ms", (s->unattended_ns + 999999) / 1000000);
	json_add(o, "rotation", report_rotation(s));
	add_bool(o, "snapshot", s->snapshot);
	add_number(o, "seconds", s->seconds);
	add_bool(o, "absolute_clock", s->absolute_clock);
	session_clock_put(&s->clock, clock);
	add_string(o, "clock", clock);
	add_number(o, "snapshots", recording_of(s)->n_snapshots);
	json_add(o, "refused", report_refused(s));
	ky_list_foreach (c, &s->channels, node)
		json_append(channels, report_channel(c));
	json_add(o, "channels", channels);
	add_number(o, "died", recording_of(s)->deaths.n);
	json_add(o, "deaths", report_deaths(&recording_of(s)->deaths));
	json_add(o, "tracked", report_tracked(s));
	json_add(o, "applications", report_programs(s));
	return o;
}

struct json_object *report_fields(struct ky_bytes desc)
{
	struct json_object *list = json_object_new_array(), *o;
	struct ky_desc d;
	struct ky_desc_field f;

	ky_desc_open(&d, desc);
	while (ky_desc_next_field(&d, &f)) {
		struct ky_buf type = {0};

		describe_type(&type, &f);
		o = json_object_new_object();
		add_string(o, "name", f.name);
		add_string(o, "type", type.data ? type.data : "");
		json_append(list, o);
		ky_buf_deinit(&type);
	}
	return list;
}

static struct json_object *report_event(const struct event_desc *e, bool brief)
{
	struct json_object *o = json_object_new_object();

	add_string(o, "name", e->name);
	json_add(o, "loglevel", json_object_new_int(e->loglevel));
	if (!brief)
		json_add(o, "fields", report_fields(event_desc_bytes(e)));
	return o;
}

/*
 * Charges an event of the answer to the application's user. Returns whether the user may have it in
 * the answer: its applications can have any number of events, many times.
 */
static bool may_be_listed(
	const struct app *a, const struct event_desc *d, bool brief, size_t max_listed)
{
	struct user *u = a->user;

	if (u->n_listed > max_listed && u->uid != u->of->own)
		return false;
	u->n_listed += 100 + (brief ? strlen(d->name) : 4 * (size_t)d->len);
	return true;
}

/*
 * Reports an application's events. reported has the objects of earlier applications, by
 * description: many applications have the same events, and a JSON object is large. It is NULL if
 * there was no memory for it.
 */
static struct json_object *report_events(const struct app *a, bool brief, size_t max_listed,
	struct lh_table *reported, unsigned *n_left_out)
{
	struct json_object *list = json_object_new_array();
	void *o;

	for (uint32_t i = 0; i < a->n_events; i++) {
		if (!a->events[i] || app_event_is_tracers(a->events[i]))
			continue;
		if (!may_be_listed(a, a->events[i], brief, max_listed)) {
			++*n_left_out;
			continue;
		}
		if (reported && lh_table_lookup_ex(reported, a->events[i], &o)) {
			json_append(list, json_object_get(o));
			continue;
		}
		o = report_event(a->events[i], brief);
		if (reported && !lh_table_insert(reported, a->events[i], o))
			json_object_get(o);
		json_append(list, o);
	}
	return list;
}

static void put_reported(struct lh_entry *e)
{
	json_object_put((struct json_object *)lh_entry_v(e));
}

static struct json_object *report_with_events(
	const struct app *a, bool brief, size_t max_listed, struct lh_table *reported)
{
	struct json_object *o = json_object_new_object();
	unsigned n_left_out = 0;

	json_add(o, "pid", json_object_new_int(a->pid));
	add_string(o, "name", a->name);
	add_number(o, "uid", a->user->uid);
	add_string(o, "abi", abi_name(a->abi_bits));
	json_add(o, "events", report_events(a, brief, max_listed, reported, &n_left_out));
	if (n_left_out)
		add_number(o, "events_left_out", n_left_out);
	return o;
}

struct json_object *report_applications(const struct env *e, uid_t uid, bool brief)
{
	struct lh_table *reported = lh_kptr_table_new(256, put_reported);
	struct json_object *list = json_object_new_array(), *collectors = json_object_new_array();
	size_t max_listed, n_users = 0;
	const struct app *a;
	struct user *u;

	ky_list_foreach (u, &e->users.list, node) {
		u->n_listed = 0;
		n_users += u->n_apps && u->uid != e->uid;
	}
	max_listed = KY_MIN((size_t)LISTED_MAX, LISTED_ALL / KY_MAX(n_users, (size_t)1));
	ky_list_foreach (a, &e->peers->apps, node) {
		if (!a->registered || (uid && a->user->uid != uid))
			continue;
		json_append(collector_is(e->peers->collector, a->pid) ? collectors : list,
			report_with_events(a, brief, max_listed, reported));
	}
	for (size_t i = 0; collectors && i < json_object_array_length(collectors); i++)
		json_append(list, json_object_get(json_object_array_get_idx(collectors, i)));
	json_object_put(collectors);
	if (reported)
		lh_table_free(reported);
	return list;
}
