/* SPDX-License-Identifier: MIT */
#include "sessiond/control/request.h"

#include <stdarg.h>

#include "sessiond/control/json.h"

struct request *request_new(struct control *k, const struct ky_peer *peer,
	struct json_object *params, const struct command *command)
{
	struct request *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->control = k;
	r->env = k->env;
	r->peer = *peer;
	r->params = params;
	r->command = command;
	r->reply = json_object_new_object();
	json_add(r->reply, "ok", json_object_new_boolean(true));
	ky_list_init(&r->ops);
	ky_list_append(&k->requests, &r->node);
	return r;
}

struct request *request_free(struct request *r)
{
	struct request_op *o, *tmp;

	if (!r)
		return NULL;
	barrier_deinit(&r->barrier);
	ky_list_foreach_safe (o, tmp, &r->ops, node) {
		ky_list_remove(&o->node);
		o->request = NULL;
		if (&o->op == r->barrier.op || o == r->watches)
			free(o); /* nobody will complete it */
	}
	ky_list_remove(&r->node);
	json_object_put(r->params);
	json_object_put(r->reply);
	free(r->definitions);
	free(r);
	return NULL;
}

enum outcome request_refuse(struct request *r, const char *code, const char *fmt, ...)
{
	char text[REQUEST_ERROR_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!r->refusal.code)
		refusal_set(&r->refusal, code, "%s", text);
	return REFUSED;
}

void request_fail(struct request *r, int error, const char *session, const char *message)
{
	const char *code = error == -EEXIST || error == -ENOTEMPTY ? "exists"
			   : error == -EACCES || error == -EPERM   ? "permission"
			   : error == -EBUSY			   ? "busy"
			   : error == -EOPNOTSUPP		   ? "unsupported"
								   : "failed";

	request_refuse(r, code, "session '%s': %s", session, message);
}

enum outcome request_outcome(struct request *r)
{
	return r->refusal.code ? REFUSED : DONE;
}

static enum outcome request_go_on(struct request *r)
{
	if (r->session_lost)
		return request_refuse(r, "not-found", "the session was destroyed meanwhile");
	return r->then(r);
}

static void request_op_done(struct op *op, int status, const char *message)
{
	struct request_op *o = ky_container_of(op, struct request_op, op);
	struct request *r = o->request;

	if (r && o->ended)
		o->ended(o, status, message);
	request_op_free(o);
	if (r && ky_list_empty(&r->ops))
		request_settle(r, request_go_on(r));
}

struct request_op *request_op_new(struct request *r, struct session *s,
	void (*ended)(struct request_op *o, int status, const char *message))
{
	struct request_op *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->op.done = request_op_done;
	o->request = r;
	o->session = s;
	o->ended = ended;
	ky_list_append(&r->ops, &o->node);
	return o;
}

void request_op_free(struct request_op *o)
{
	if (o)
		ky_list_remove(&o->node);
	free(o);
}

enum outcome request_await(struct request *r, enum outcome (*then)(struct request *r))
{
	r->then = then;
	return ky_list_empty(&r->ops) ? then(r) : LATER;
}

static void peers_ended(struct request_op *o, int status, const char *message)
{
	struct request *r = o->request;

	r->timed_out = status == -ETIMEDOUT;
	r->barrier = (struct barrier){0};
}

struct barrier *request_barrier(struct request *r)
{
	struct request_op *o;

	if (!r->barrier.loop) {
		o = request_op_new(r, r->session, peers_ended);
		if (!o)
			return NULL;
		barrier_init(&r->barrier, &r->env->loop, &o->op);
	}
	return &r->barrier;
}

enum outcome request_await_peers(
	struct request *r, uint64_t timeout_ns, enum outcome (*then)(struct request *r))
{
	if (r->barrier.loop)
		barrier_arm(&r->barrier, timeout_ns);
	return request_await(r, then);
}

const char *request_string(const struct request *r, const char *name)
{
	struct json_object *v;

	return json_object_object_get_ex(r->params, name, &v) ? json_object_get_string(v) : NULL;
}

bool request_number(const struct request *r, const char *name, uint32_t *ret_value)
{
	struct json_object *v;

	if (!json_object_object_get_ex(r->params, name, &v))
		return false;
	*ret_value = (uint32_t)json_object_get_int64(v);
	return true;
}

bool request_has(const struct request *r, const char *name)
{
	return json_object_object_get_ex(r->params, name, NULL);
}

uint64_t request_bytes(const struct request *r, const char *name)
{
	struct json_object *v;

	return json_object_object_get_ex(r->params, name, &v) ? (uint64_t)json_object_get_int64(v)
							      : 0;
}

bool request_bool(const struct request *r, const char *name)
{
	struct json_object *v;

	return json_object_object_get_ex(r->params, name, &v) && json_object_get_boolean(v);
}

struct json_object *request_list(const struct request *r, const char *name)
{
	struct json_object *v = NULL;

	json_object_object_get_ex(r->params, name, &v);
	return v;
}

size_t request_list_length(const struct request *r, const char *name)
{
	struct json_object *list = request_list(r, name);

	return list ? json_object_array_length(list) : 0;
}

const char *request_list_string(const struct request *r, const char *name, size_t i)
{
	return json_object_get_string(json_object_array_get_idx(request_list(r, name), i));
}

void reply_add(struct request *r, const char *name, struct json_object *value)
{
	json_add(r->reply, name, value);
}

static struct json_object *reply_list(struct request *r, const char *name)
{
	struct json_object *array = NULL;

	if (!json_object_object_get_ex(r->reply, name, &array)) {
		reply_add(r, name, json_object_new_array());
		json_object_object_get_ex(r->reply, name, &array);
	}
	return array;
}

void reply_add_to(struct request *r, const char *list, struct json_object *value)
{
	json_append(reply_list(r, list), value);
}

void reply_note(struct request *r, const char *fmt, ...)
{
	char text[REQUEST_ERROR_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_append_text(reply_list(r, "notes"), text);
}
