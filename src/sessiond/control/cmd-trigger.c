/* SPDX-License-Identifier: MIT */
/* add-trigger, list-triggers, remove-trigger, watch. */
#include "sessiond/control/client.h"
#include "sessiond/control/commands.h"
#include "sessiond/control/json.h"
#include "sessiond/peers/app.h"
#include "sessiond/peers/firing.h"
#include "sessiond/peers/peers.h"
#include "sessiond/peers/trigger-messages.h"
#include "sessiond/peers/triggers.h"

/* Appends why no event of an application, `running`: of one that runs, can meet the condition. */
static void put_obstacle(const struct trigger *t, bool running, struct ky_buf *to)
{
	const struct condition *c = &t->spec.condition;
	const bool is_span = c->kind == WHEN_SPAN;

	if (!condition_is_theirs(c) || t->n_fired || firing_is_possible(t, running))
		return;
	if (!is_span && c->rule->mismatch) {
		ky_buf_printf(to, "no event meets its condition: %s", c->rule->mismatch);
		return;
	}
	ky_buf_printf(to, "no %s such %s into this session",
		running ? "running application records" : "application has recorded",
		is_span ? "a span" : "an event");
	for (unsigned i = 0; i < c->rule->n_similar; i++)
		ky_buf_printf(to, "%s'%s'", i ? ", " : ": did you mean ", c->rule->similar[i]);
	if (c->rule->n_similar)
		ky_buf_puts(to, "?");
	else if (is_span)
		ky_buf_puts(to,
			": a span has the name of its events without _begin and _end, and a rule has to record both");
	else if (running)
		ky_buf_puts(to, ": 'kymo status' shows its rules, and 'kymo list -u' the events");
}

static struct json_object *report_trigger(const struct trigger *t)
{
	const struct triggers *all = &recording_of(t->session)->triggers;
	struct json_object *o = json_object_new_object();
	struct ky_buf why = {0};

	json_add(o, "session", json_object_new_string(t->session->name));
	json_add(o, "name", json_object_new_string(t->spec.name));
	json_add(o, "when", json_object_new_string(t->spec.when));
	json_add(o, "do", json_object_new_string(t->spec.action));
	json_add(o, "rate", json_object_new_string(t->spec.rate));
	json_add(o, "rate_n", json_object_new_uint64(t->spec.rate_n));
	json_add(o, "rate_us", json_object_new_uint64(t->spec.rate_ns / 1000));
	json_add(o, "keep", json_object_new_string(t->spec.keep));
	if (*t->spec.keep) {
		json_add(o, "kept", json_object_new_uint64(t->kept.n));
		json_add(o, "removed", json_object_new_uint64(t->kept.n_removed));
	}
	json_add(o, "fired", json_object_new_uint64(t->n_fired));
	json_add(o, "left_out", json_object_new_uint64(t->n_left_out));
	put_obstacle(t, false, &why);
	if (why.data)
		json_add(o, "obstacle", json_object_new_string(why.data));
	ky_buf_deinit(&why);
	if (t->spec.condition.kind == WHEN_SPAN)
		json_add(o, "missed_spans", json_object_new_uint64(all->n_missed_spans));
	return o;
}

/* Makes a name that no trigger of the session has. */
static void choose_name(const struct session *s, char *name, size_t size)
{
	unsigned i = 0;

	do {
		snprintf(name, size, "trigger%u", i++);
	} while (recording_find_trigger(s, name));
}

static enum outcome refuse_trigger(struct request *r, int error, const char *name)
{
	if (error == -EEXIST)
		return request_refuse(r, "exists",
			"session '%s' has a trigger '%s' already: choose another name or 'kymo remove-trigger %s'",
			r->session->name, name, name);
	if (error == -EDQUOT)
		return request_refuse(r, "failed",
			"too many triggers: a session may have %u, %u of them about events and spans, and a user %u",
			TRIGGERS_MAX, (unsigned)KY_SET_TRIGGERS, USER_TRIGGERS_MAX);
	return request_no_memory(r);
}

static enum outcome finish_removing(struct request *r)
{
	return DONE;
}

/* A condition about events that nothing has will never be met; its writer should know that. */
static enum outcome finish_adding(struct request *r)
{
	struct json_object *trigger, *name_of = NULL;
	const struct trigger *t;
	const char *name;
	struct ky_buf why = {0};

	json_object_object_get_ex(r->reply, "trigger", &trigger);
	json_object_object_get_ex(trigger, "name", &name_of);
	name = json_object_get_string(name_of);
	t = r->session && name ? recording_find_trigger(r->session, name) : NULL;
	if (t)
		put_obstacle(t, true, &why);
	if (why.data)
		reply_note(r, "trigger '%s': %s", name, why.data);
	ky_buf_deinit(&why);
	return DONE;
}

/* Continues when applications examine their events as the session's triggers require now. */
static enum outcome await_applications(struct request *r, enum outcome (*then)(struct request *r))
{
	apps_update_triggers(r->session, request_barrier(r));
	return request_await_peers(r, APP_ANSWER_NS, then);
}

enum outcome run_add_trigger(struct request *r)
{
	bool theirs;
	const char *name = request_string(r, "trigger"), *refusal;
	char why[TRIGGER_ERROR_MAX], chosen[32];
	struct trigger_spec spec;
	int ret;

	choose_name(r->session, chosen, sizeof(chosen));
	name = name ? name : chosen;
	ret = trigger_spec_init(&spec, name, request_string(r, "when"), request_string(r, "do"),
		request_string(r, "rate"), request_string(r, "keep"), why);
	refusal = ret ? NULL : trigger_refusal(r->session, &spec);
	if (ret == -EINVAL)
		request_refuse(r, "usage", "%s", why);
	else if (refusal)
		request_refuse(r, "unsupported", "session '%s': %s", r->session->name, refusal);
	else if (!ret)
		ret = trigger_add(r->session, &spec);
	if (ret < 0 && !r->refusal.code)
		refuse_trigger(r, ret, name);
	trigger_spec_deinit(&spec);
	if (r->refusal.code)
		return REFUSED;
	reply_add(r, "trigger", report_trigger(recording_find_trigger(r->session, name)));
	theirs = condition_is_theirs(&recording_find_trigger(r->session, name)->spec.condition);
	return theirs ? await_applications(r, finish_adding) : DONE;
}

enum outcome run_list_triggers(struct request *r)
{
	enum outcome found = request_find_named(r);
	const struct trigger *t;
	struct session *s;

	if (found != DONE)
		return found;
	firing_look_all(r->env); /* the counts are those of now */
	reply_add(r, "triggers", json_object_new_array());
	ky_list_foreach (s, &r->env->sessions, node)
		ky_list_foreach (t, &recording_of(s)->triggers.list, node)
			if (request_may_touch(r, s) && (!r->session || r->session == s))
				reply_add_to(r, "triggers", report_trigger(t));
	return DONE;
}

enum outcome run_remove_trigger(struct request *r)
{
	const char *name = request_string(r, "trigger");
	struct trigger *t = recording_find_trigger(r->session, name);
	bool theirs;

	if (!t)
		return request_refuse(r, "not-found",
			"session '%s' has no trigger '%s': 'kymo list-triggers' shows them",
			r->session->name, name);
	reply_add(r, "trigger", report_trigger(t));
	theirs = condition_is_theirs(&t->spec.condition);
	trigger_remove(t);
	return theirs ? await_applications(r, finish_removing) : DONE;
}

static bool is_wanted(const struct request *r, const struct message *m)
{
	const char *name = request_string(r, "session");

	return m->number > request_bytes(r, "after") && (!name || !strcmp(name, m->session)) &&
	       (r->peer.uid == 0 || r->peer.uid == m->uid);
}

static struct json_object *report_message(const struct message *m)
{
	static const char *const kinds[] = {[MESSAGE_FIRED] = "fired",
		[MESSAGE_SNAPSHOT] = "snapshot",
		[MESSAGE_FAILED] = "failed"};
	struct json_object *o = json_object_new_object();

	json_add(o, "number", json_object_new_uint64(m->number));
	json_add(o, "kind", json_object_new_string(kinds[m->kind]));
	json_add(o, "time_ns", json_object_new_uint64(m->ns));
	json_add(o, "session", json_object_new_string(m->session));
	json_add(o, "trigger", json_object_new_string(m->trigger));
	json_add(o, "when", json_object_new_string(m->when));
	json_add(o, "text", json_object_new_string(m->text));
	json_add(o, "output", json_object_new_string(m->output));
	json_add(o, "fired", json_object_new_uint64(m->n_fired));
	json_add(o, "left_out", json_object_new_uint64(m->n_left_out));
	return o;
}

static enum outcome answer_messages(struct request *r)
{
	const struct message *m;

	reply_add(r, "messages", json_object_new_array());
	ky_list_foreach (m, &r->env->peers->messages, node)
		if (is_wanted(r, m))
			reply_add_to(r, "messages", report_message(m));
	reply_add(r, "last", json_object_new_uint64(r->env->peers->last_message));
	if (r->env->stopping)
		reply_add(r, "ended", json_object_new_boolean(true));
	return DONE;
}

static bool has_messages(const struct request *r)
{
	const struct message *m;

	ky_list_foreach (m, &r->env->peers->messages, node)
		if (is_wanted(r, m))
			return true;
	return false;
}

/* Answers when there are messages after that number. A client without one gets the number only. */
enum outcome run_watch(struct request *r)
{
	enum outcome found = request_find_named(r);

	if (found != DONE)
		return found;
	if (!request_has(r, "after")) {
		reply_add(r, "messages", json_object_new_array());
		reply_add(r, "last", json_object_new_uint64(r->env->peers->last_message));
		return DONE;
	}
	if (has_messages(r))
		return answer_messages(r);
	r->watches = request_op_new(r, r->session, NULL);
	return r->watches ? request_await(r, answer_messages) : request_no_memory(r);
}

/* Lets the request end. */
static void watch_end(struct request *r)
{
	struct request_op *o = r->watches;

	r->watches = NULL;
	if (o)
		op_done(&o->op, 0, "");
}

void watches_answer(struct control *k, bool all)
{
	struct request *r, *tmp;

	ky_list_foreach_safe (r, tmp, &k->requests, node)
		if (r->watches && (all || r->session_lost || !r->client || has_messages(r)))
			watch_end(r);
}
