/* SPDX-License-Identifier: MIT */
#include "sessiond/control.h"

#include <stdarg.h>

#include "base/utf8.h"
#include "sessiond/daemon.h"
#include "sessiond/json.h"
#include "sessiond/journal.h"
#include "sessiond/option.h"
#include "sessiond/snapshot.h"
#include "svc/log.h"

#define JSON_DEPTH_MAX	 8
#define CLIENTS_MAX	 1024u
#define USER_CLIENTS_MAX 256u /* of one user but the daemon's own */
#define STRING_MAX	 4096 /* check_params() tells it */

/* A user's current session. */
struct selection {
	struct ky_list node; /* in daemon->selections */
	uid_t uid;
	const struct session *session;
	uint64_t when; /* CLOCK_MONOTONIC */
};

static void refuse(struct refusal *refusal, const char *code, const char *fmt, ...) KY_PRINTF(3, 4);

static void refuse(struct refusal *refusal, const char *code, const char *fmt, ...)
{
	char text[REQUEST_ERROR_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	refusal->code = code;
	ky_log_escape(refusal->text, sizeof(refusal->text), text);
}

static bool is_string(struct json_object *v)
{
	size_t len;

	if (!json_object_is_type(v, json_type_string))
		return false;
	len = (size_t)json_object_get_string_len(v);
	return len <= STRING_MAX && strlen(json_object_get_string(v)) == len;
}

static bool has_type(struct json_object *v, enum param_type type)
{
	switch (type) {
	case PARAM_STRING:
		return is_string(v);
	case PARAM_NUMBER:
		return json_object_is_type(v, json_type_int) && json_object_get_int64(v) >= 0 &&
		       json_object_get_int64(v) <= INT32_MAX;
	case PARAM_BYTES:
		return json_object_is_type(v, json_type_int) && json_object_get_int64(v) >= 0;
	case PARAM_BOOL:
		return json_object_is_type(v, json_type_boolean);
	case PARAM_OPTION:
		return has_type(v, PARAM_BYTES) || is_string(v);
	case PARAM_STRINGS:
		if (!json_object_is_type(v, json_type_array))
			return false;
		for (size_t i = 0; i < json_object_array_length(v); i++)
			if (!is_string(json_object_array_get_idx(v, i)))
				return false;
		return true;
	}
	return false;
}

static const struct param *find_param(const struct command *c, const char *name)
{
	static const struct param session = {"session", PARAM_STRING, false};
	static const struct param all = {"all", PARAM_BOOL, false};
	static const struct param no_wait = {"no_wait", PARAM_BOOL, false};

	if (c->scope != SCOPE_NONE && !strcmp(name, "session"))
		return &session;
	if (c->scope == SCOPE_SESSIONS && !strcmp(name, "all"))
		return &all;
	if (c->scope == SCOPE_SESSIONS && !strcmp(name, "no_wait"))
		return &no_wait;
	for (const struct param *p = c->params; p->name; p++)
		if (p->type == PARAM_OPTION ? option_find(name) != NULL : !strcmp(p->name, name))
			return p;
	return NULL;
}

/* A list that a command needs has something in it. */
static bool is_missing(struct json_object *object, const struct param *p)
{
	struct json_object *v;

	return !json_object_object_get_ex(object, p->name, &v) ||
	       (p->type == PARAM_STRINGS && !json_object_array_length(v));
}

static void refuse_param(const struct command *c, const char *name, struct refusal *refusal)
{
	struct ky_buf why = {0};

	for (const struct param *p = c->params; p->name; p++)
		if (p->type == PARAM_OPTION)
			option_explain_unknown(&why, name);
	if (!why.len)
		ky_buf_printf(&why, "'%s' has no parameter '%s'", c->name, name);
	refuse(refusal, "usage", "%s", why.data ? why.data : name);
	ky_buf_deinit(&why);
}

static bool check_params(
	struct json_object *object, const struct command *c, struct refusal *refusal)
{
	static const char *const types[] = {[PARAM_STRING] = "a string of at most 4096 bytes",
		[PARAM_STRINGS] = "a list of strings of at most 4096 bytes each",
		[PARAM_NUMBER] = "a number from 0 to 2147483647",
		[PARAM_BYTES] = "a number of bytes",
		[PARAM_BOOL] = "true or false",
		[PARAM_OPTION] = "a number or a string of at most 4096 bytes"};

	json_object_object_foreach(object, name, value)
	{
		const struct param *p = find_param(c, name);

		if (!strcmp(name, "command"))
			continue;
		if (!p) {
			refuse_param(c, name, refusal);
			return false;
		}
		if (!has_type(value, p->type)) {
			refuse(refusal, "usage", "parameter '%s' of '%s' must be %s", name, c->name,
				types[p->type]);
			return false;
		}
	}
	for (const struct param *p = c->params; p->name; p++) {
		if (p->required && is_missing(object, p)) {
			refuse(refusal, "usage", "'%s' needs the parameter '%s'", c->name, p->name);
			return false;
		}
	}
	return true;
}

static struct json_object *parse_line(const char *line, size_t len)
{
	/* json-c would take surrogates and longer forms. */
	return ky_utf8_valid(line, len) ? json_parse(line, len, JSON_DEPTH_MAX) : NULL;
}

bool request_parse(const char *line, size_t len, struct json_object **ret_object,
	const struct command **ret_command, struct refusal *refusal)
{
	struct json_object *object = parse_line(line, len), *name = NULL;
	const struct command *c;

	if (!object) {
		refuse(refusal, "usage", "a request is one JSON object on one line");
		return false;
	}
	json_object_object_get_ex(object, "command", &name);
	if (!name || !is_string(name)) {
		refuse(refusal, "usage", "a request has a string named 'command'");
		json_object_put(object);
		return false;
	}
	for (c = commands; c->name; c++)
		if (!strcmp(c->name, json_object_get_string(name)))
			break;
	if (!c->name)
		refuse(refusal, "usage", "there is no command '%s'", json_object_get_string(name));
	if (!c->name || !check_params(object, c, refusal)) {
		json_object_put(object);
		return false;
	}
	*ret_object = object;
	*ret_command = c;
	return true;
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

bool request_may_touch(const struct request *r, const struct session *s)
{
	return r->peer.uid == 0 || r->peer.uid == s->uid;
}

/* Refuses a name that no session of the caller's has. */
static void refuse_name(struct request *r, const char *name)
{
	const struct session *s;

	ky_list_foreach (s, &r->daemon->sessions, node) {
		if (request_may_touch(r, s) && name_is_meant(name, s->name)) {
			request_refuse(r, "not-found",
				"there is no session '%s': did you mean '%s'?", name, s->name);
			return;
		}
	}
	request_refuse(r, "not-found", "there is no session '%s': 'kymo list' shows them", name);
}

static struct selection *find_selection(struct daemon *d, uid_t uid)
{
	struct selection *sel;

	ky_list_foreach (sel, &d->selections, node)
		if (sel->uid == uid)
			return sel;
	return NULL;
}

void requests_select(struct daemon *d, uid_t uid, struct session *s, uint64_t when)
{
	struct selection *sel = find_selection(d, uid);

	if (!sel) {
		sel = calloc(1, sizeof(*sel));
		if (!sel)
			return;
		sel->uid = uid;
		ky_list_append(&d->selections, &sel->node);
	}
	if (sel->when <= when) {
		sel->session = s;
		sel->when = when;
	}
}

void request_select(struct request *r, struct session *s)
{
	requests_select(r->daemon, r->peer.uid, s, ky_clock_ns(CLOCK_MONOTONIC));
	journal_selected(s, r->peer.uid);
}

void requests_forget_session(struct daemon *d, const struct session *s)
{
	struct selection *sel, *tmp;
	struct request *r;

	ky_list_foreach_safe (sel, tmp, &d->selections, node) {
		if (sel->session != s)
			continue;
		ky_list_remove(&sel->node);
		free(sel);
	}
	ky_list_foreach (r, &d->requests, node)
		if (r->session == s)
			r->session = NULL;
}

#define OUT_OF_MEMORY                                                                                       \
	"{\"ok\": false, \"code\": \"failed\", \"error\": \"the session daemon has no memory left for its " \
	"answer: see 'kymo status' for what was done\"}"

/* Sends what there is to say as the answer. */
static void answer(struct client *c, struct json_object *reply, const struct refusal *refusal)
{
	static unsigned int left_out;
	struct json_object *refused = NULL;
	const char *text;

	if (refusal->code) {
		refused = json_object_new_object();
		json_add(refused, "ok", json_object_new_boolean(false));
		json_add(refused, "code", json_object_new_string(refusal->code));
		json_add(refused, "error", json_object_new_string(refusal->text));
		if (refusal->position)
			json_add(refused, "position", json_object_new_int((int)refusal->position));
	}
	text = json_object_to_json_string_ext(
		refused ? refused : reply, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	ky_line_conn_answer(
		&c->conn, json_is_incomplete(&left_out) || !text ? OUT_OF_MEMORY : text);
	json_object_put(refused);
}

struct request *request_free(struct request *r)
{
	struct request_step *step, *tmp;

	if (!r)
		return NULL;
	ky_list_foreach_safe (step, tmp, &r->steps, node) {
		session_forget_waiter(step->session);
		ky_list_remove(&step->node);
		free(step);
	}
	if (r->snapshot)
		r->snapshot->request = NULL;
	barrier_deinit(&r->barrier);
	if (r->client)
		r->client->request = NULL;
	ky_list_remove(&r->node);
	json_object_put(r->params);
	json_object_put(r->reply);
	free(r);
	return NULL;
}

void request_finish(struct request *r)
{
	struct client *c = r->client;

	daemon_publish(r->daemon);
	if (c)
		answer(c, r->reply, &r->refusal);
	request_free(r);
}

void request_refuse(struct request *r, const char *code, const char *fmt, ...)
{
	char text[REQUEST_ERROR_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	refuse(&r->refusal, code, "%s", text);
	request_finish(r);
}

/* Finds the session that the request is about; false when it was refused. */
static bool find_session(struct request *r)
{
	const char *name = request_string(r, "session");
	struct selection *sel = find_selection(r->daemon, r->peer.uid);

	if (r->command->scope == SCOPE_NONE || request_bool(r, "all"))
		return true;
	if (name)
		r->session = session_find(r->daemon, name);
	else if (sel)
		r->session = (struct session *)sel->session;
	if (r->session && request_may_touch(r, r->session))
		return true;
	if (r->session)
		request_refuse(r, "permission",
			"session '%s' belongs to the user with uid %u: only that user and root may use it",
			r->session->name, (unsigned)r->session->uid);
	else if (name)
		refuse_name(r, name);
	else
		request_refuse(r, "no-session",
			"there is no current session: name one, choose one with 'kymo set-session NAME', or make one with 'kymo create'");
	return false;
}

static struct request *request_new(struct daemon *d, const struct ky_peer *peer,
	struct json_object *params, const struct command *command)
{
	struct request *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->daemon = d;
	r->peer = *peer;
	r->params = params;
	r->command = command;
	r->reply = json_object_new_object();
	json_add(r->reply, "ok", json_object_new_boolean(true));
	ky_list_init(&r->steps);
	ky_list_append(&d->requests, &r->node);
	return r;
}

void request_replay(
	struct daemon *d, const struct ky_peer *peer, struct json_object *params, struct session *s)
{
	const char *line = json_object_to_json_string_ext(params, JSON_C_TO_STRING_PLAIN);
	const struct command *command;
	struct refusal refusal;
	struct request *r = NULL;
	struct json_object *checked;

	if (request_parse(line, strlen(line), &checked, &command, &refusal)) {
		/* The session may not have come back, as its buffers have gone. */
		if (s || command->scope == SCOPE_NONE)
			r = request_new(d, peer, checked, command);
		if (!r)
			json_object_put(checked);
	}
	json_object_put(params);
	if (!r)
		return;
	r->session = s;
	command->run(r);
}

static void conn_line(struct ky_line_conn *conn, char *line, size_t len)
{
	struct client *c = ky_container_of(conn, struct client, conn);
	struct json_object *params;
	const struct command *command;
	struct refusal refusal = {0};
	struct request *r = NULL;

	if (request_parse(line, len, &params, &command, &refusal)) {
		r = request_new(c->daemon, &c->peer, params, command);
		if (r) {
			r->client = c;
			c->request = r;
		} else {
			json_object_put(params);
			refuse(&refusal, "failed", "the session daemon has no memory left");
		}
	}
	if (!r)
		answer(c, NULL, &refusal);
	else if (c->daemon->stopping)
		request_refuse(r, "ending", "the session daemon is ending");
	else if (find_session(r)) {
		if (command->scope == SCOPE_LASTING)
			journal_request(r->session, r->peer.uid, r->peer.gid, r->params);
		command->run(r);
	}
}

struct client *client_free(struct client *c)
{
	if (!c)
		return NULL;
	if (c->request)
		c->request->client = NULL;
	ky_line_conn_deinit(&c->conn);
	ky_list_remove(&c->node);
	c->daemon->n_clients--;
	free(c);
	return NULL;
}

static void conn_closed(struct ky_line_conn *conn, int error)
{
	if (error)
		ky_warning("client dropped: %s", strerror(-error));
	client_free(ky_container_of(conn, struct client, conn));
}

static bool has_room(const struct daemon *d, uid_t uid)
{
	const struct client *c;
	unsigned n = 0;

	ky_list_foreach (c, &d->clients, node)
		n += c->peer.uid == uid;
	return d->n_clients < CLIENTS_MAX && (n < USER_CLIENTS_MAX || uid == d->uid);
}

void client_accept(struct daemon *d, int fd, const struct ky_peer *peer)
{
	static const struct ky_line_conn_ops ops = {.line = conn_line, .closed = conn_closed};
	struct client *c = has_room(d, peer->uid) ? calloc(1, sizeof(*c)) : NULL;

	if (!c) {
		ky_warning("client with pid %d of uid %u refused: too many clients", (int)peer->pid,
			(unsigned)peer->uid);
		ky_close(fd);
		return;
	}
	c->daemon = d;
	c->peer = *peer;
	if (ky_line_conn_init(&c->conn, &d->loop, fd, &ops) < 0) {
		free(c);
		return;
	}
	d->n_clients++;
	ky_list_append(&d->clients, &c->node);
}
