/* SPDX-License-Identifier: MIT */
/* list-loggers. */
#include "base/utf8.h"
#include "sessiond/control/commands.h"
#include "sessiond/control/json.h"
#include "sessiond/peers/agents.h"
#include "sessiond/peers/app.h"
#include "sessiond/peers/peers.h"

/* The agent's native library has registered as an application. NULL: it has another number here. */
static const struct app *app_of(const struct env *e, const struct agent_loggers *l)
{
	const struct app *a;

	ky_list_foreach (a, &e->peers->apps, node)
		if (a->registered && a->user->uid == l->uid && (uint32_t)a->pid == l->pid)
			return a;
	return NULL;
}

/* Programs choose the names of their loggers: '?' replaces what is no UTF-8. */
static struct json_object *name_of(const char *name, size_t n)
{
	struct json_object *o;
	struct ky_buf text = {0};
	uint32_t code;
	bool harmless;

	for (size_t i = 0, len; i < n; i += len) {
		len = ky_utf8_length(name + i, n - i, &code, &harmless);
		ky_buf_append(&text, len ? name + i : "?", len ? len : 1);
		len = len ? len : 1;
	}
	o = text.error ? NULL
		       : json_object_new_string_len(text.data ? text.data : "", (int)text.len);
	ky_buf_deinit(&text);
	return o;
}

static void add_loggers(struct json_object *list, const struct agent_reply *reply)
{
	size_t len;

	for (size_t i = 0; i < reply->n; i += len + 1) {
		len = strnlen(reply->names + i, reply->n - i);
		json_append(list, name_of(reply->names + i, len));
	}
}

static struct json_object *report_agent(const struct env *e, const struct agent_loggers *l)
{
	struct json_object *o = json_object_new_object();
	const struct app *a = app_of(e, l);

	json_add(o, "domain", json_object_new_string(agents_domain_name(l->domain)));
	json_add(o, "pid", json_object_new_int64(l->pid));
	json_add(o, "uid", json_object_new_int64(l->uid));
	if (a)
		json_add(o, "name", json_object_new_string(a->name));
	json_add(o, "answered", json_object_new_boolean(l->answer != AGENT_SILENT));
	json_add(o, "complete", json_object_new_boolean(l->answer == AGENT_ANSWERED));
	return o;
}

static bool is_continued(const struct agent_reply *r, const struct agent_reply *before)
{
	return before && before->head.pid == r->head.pid && before->head.uid == r->head.uid &&
	       before->head.domain == r->head.domain;
}

static enum outcome answer_loggers(struct request *r)
{
	const struct agents *a = r->env->peers->agents;
	const struct agent_reply *reply, *before = NULL;
	struct json_object *agents = json_object_new_array(), *names = NULL, *o;

	ky_list_foreach (reply, &a->replies, node) {
		if (!agents_domain_name(reply->head.domain))
			continue;
		if (!is_continued(reply, before)) {
			o = report_agent(r->env, &reply->head);
			json_object_put(names);
			names = json_object_new_array();
			json_add(o, "loggers", json_object_get(names));
			json_append(agents, o);
		}
		add_loggers(names, reply);
		before = reply;
	}
	json_object_put(names);
	reply_add(r, "agents", agents);
	if (r->timed_out)
		reply_note(
			r, "the agents have not been listed in time: this is what they had before");
	if (*a->trouble)
		reply_note(r, "agents of Python and Java programs cannot connect: %s", a->trouble);
	else if (!a->n_wants)
		reply_note(r,
			"agents connect only while a session has a rule for loggers: 'kymo enable-event --python --all', for example");
	return DONE;
}

enum outcome run_list_loggers(struct request *r)
{
	agents_ask(r->env->peers->agents, request_barrier(r));
	return request_await_peers(r, APP_ANSWER_NS, answer_loggers);
}
