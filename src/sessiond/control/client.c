/* SPDX-License-Identifier: MIT */
#include "sessiond/control/client.h"

#include <sys/socket.h>

#include "sessiond/control/json.h"
#include "sessiond/control/selection.h"
#include "sessiond/model/contents.h"
#include "sessiond/model/lost.h"
#include "sessiond/peers/steps.h"
#include "svc/check.h"
#include "svc/log.h"

#define CLIENTS_MAX	 1024u
#define USER_CLIENTS_MAX 256u /* of one user but the daemon's own */

bool request_may_touch(const struct request *r, const struct session *s)
{
	return r->peer.uid == 0 || r->peer.uid == s->uid;
}

/*
 * Refuses a name that no session of the caller's has: the session was lost (to destroy it is to
 * know of it), or another one may be meant.
 */
static enum outcome refuse_name(struct request *r, const char *name)
{
	const struct lost *l = lost_find(r->env, r->peer.uid, name);
	const struct session *s;

	if (l && strcmp(r->command->name, "destroy") != 0)
		return request_refuse(
			r, "not-found", "%s ('kymo destroy %s' forgets it)", l->why, name);
	if (l) {
		request_refuse(r, "not-found", "%s; it is forgotten now", l->why);
		lost_forget(r->env, name);
		return REFUSED;
	}
	ky_list_foreach (s, &r->env->sessions, node) {
		if (request_may_touch(r, s) && name_is_meant(name, s->name)) {
			return request_refuse(r, "not-found",
				"there is no session '%s': did you mean '%s'?", name, s->name);
		}
	}
	return request_refuse(
		r, "not-found", "there is no session '%s': 'kymo list' shows them", name);
}

void request_select(struct request *r, struct session *s)
{
	selection_set(r->control, r->peer.uid, s, ky_clock_ns(CLOCK_MONOTONIC));
}

#define OUT_OF_MEMORY                                                                                       \
	"{\"ok\": false, \"code\": \"failed\", \"error\": \"the session daemon has no memory left for its " \
	"answer: see 'kymo status' for what was done\"}"

/* Sends the reply, or the refusal if there is one. */
static void send_answer(struct client *c, struct json_object *reply, const struct refusal *refusal)
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

void request_settle(struct request *r, enum outcome outcome)
{
	struct client *c = r->client;

	KY_CHECK(outcome != LATER || !ky_list_empty(&r->ops));
	KY_CHECK((outcome == REFUSED) == (r->refusal.code != NULL) || outcome == LATER);
	if (outcome == LATER)
		return;
	if (c) {
		c->request = NULL;
		send_answer(c, r->reply, &r->refusal);
	}
	request_free(r);
}

static enum outcome refuse_owner(struct request *r, const struct session *s)
{
	return request_refuse(r, "permission",
		"session '%s' belongs to the user with uid %u: only that user and root may use it",
		s->name, (unsigned)s->uid);
}

enum outcome request_find_named(struct request *r)
{
	const char *name = request_string(r, "session");

	r->session = name ? session_find(r->env, name) : NULL;
	if (name && !r->session)
		return refuse_name(r, name);
	return r->session && !request_may_touch(r, r->session) ? refuse_owner(r, r->session) : DONE;
}

/* Finds the session that the request is about. */
static enum outcome find_session(struct request *r)
{
	const char *name = request_string(r, "session");
	const struct lost *l;

	if (r->command->scope == SCOPE_NONE || request_bool(r, "all"))
		return DONE;
	r->session = name ? session_find(r->env, name) : selection_find(r->control, r->peer.uid);
	if (r->session && request_may_touch(r, r->session))
		return DONE;
	if (r->session)
		return refuse_owner(r, r->session);
	if (name)
		return refuse_name(r, name);
	ky_list_foreach (l, &r->env->lost, node)
		if (lost_is_known_to(l, r->peer.uid))
			return request_refuse(
				r, "no-session", "there is no current session: %s", l->why);
	return request_refuse(r, "no-session",
		"there is no current session: name one, choose one with 'kymo set-session NAME', or make one with 'kymo create'");
}

static enum outcome run_request(struct request *r)
{
	if (r->env->stopping)
		return request_refuse(r, "ending", "the session daemon is ending");
	if (find_session(r) == REFUSED)
		return REFUSED;
	return r->command->run(r);
}

static void conn_line(struct ky_line_conn *conn, char *line, size_t len)
{
	struct client *c = ky_container_of(conn, struct client, conn);
	struct json_object *params;
	const struct command *command;
	struct refusal refusal = {0};
	struct request *r = NULL;

	if (request_parse(line, len, &params, &command, &refusal)) {
		r = request_new(c->control, &c->peer, params, command);
		if (!r) {
			json_object_put(params);
			refusal_set(&refusal, "failed", "the session daemon has no memory left");
		}
	}
	if (!r) {
		send_answer(c, NULL, &refusal);
		return;
	}
	r->client = c;
	c->request = r;
	request_settle(r, run_request(r));
}

/* Ends the sessions that the client has bound to its connection. */
static void end_bound(const struct client *c)
{
	struct session *s, *tmp;

	ky_list_foreach_safe (s, tmp, &c->control->env->sessions, node) {
		if (s->bound != c)
			continue;
		s->bound = NULL;
		s->abandoned = true;
		if (!c->control->env->stopping)
			session_destroy(s, NULL);
	}
}

struct client *client_free(struct client *c)
{
	if (!c)
		return NULL;
	if (c->request)
		c->request->client = NULL; /* it goes on */
	end_bound(c);
	watches_answer(c->control, false);
	ky_line_conn_deinit(&c->conn);
	ky_list_remove(&c->node);
	user_unref(c->user);
	c->control->n_clients--;
	free(c);
	return NULL;
}

static void conn_closed(struct ky_line_conn *conn, int error)
{
	struct client *c = ky_container_of(conn, struct client, conn);

	env_set_cause(c->control->env, c->peer.uid);
	if (error)
		ky_warning("client of uid %u dropped: %s", (unsigned)c->peer.uid, strerror(-error));
	env_set_cause(c->control->env, c->control->env->uid);
	client_free(c);
}

static bool has_room(const struct control *k, uid_t uid)
{
	const struct client *c;
	unsigned n = 0;

	ky_list_foreach (c, &k->clients, node)
		n += c->peer.uid == uid;
	return k->n_clients < CLIENTS_MAX && (n < USER_CLIENTS_MAX || uid == k->env->uid);
}

/* Says why, and closes the connection. */
static void refuse_client(struct control *k, int fd, const struct ky_peer *peer)
{
	static const char why[] =
		"{\"ok\":false,\"code\":\"busy\",\"error\":\"too many connections to the session "
		"daemon are open: close some\"}\n";

	env_set_cause(k->env, peer->uid);
	ky_warning("client with pid %d of uid %u refused: too many clients", (int)peer->pid,
		(unsigned)peer->uid);
	env_set_cause(k->env, k->env->uid);
	send(fd, why, sizeof(why) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	ky_close_foreign(fd);
}

void client_accept(struct control *k, int fd, const struct ky_peer *peer)
{
	static const struct ky_line_conn_ops ops = {.line = conn_line, .closed = conn_closed};
	struct user *u = has_room(k, peer->uid) ? user_get(&k->env->users, peer->uid) : NULL;
	struct client *c = u ? calloc(1, sizeof(*c)) : NULL;

	if (!c) {
		refuse_client(k, fd, peer);
		user_unref(u);
		return;
	}
	c->control = k;
	c->peer = *peer;
	c->user = u;
	if (ky_line_conn_init(&c->conn, &k->env->loop, fd, &ops) < 0) {
		user_unref(u);
		free(c);
		return;
	}
	c->conn.share = &u->queued.share;
	k->n_clients++;
	ky_list_append(&k->clients, &c->node);
}

/* Requests that wait for the session do not come back to it. */
static void session_freed(struct session *s)
{
	struct control *k = s->env->control;
	struct request *r;

	selections_forget(k, s);
	ky_list_foreach (r, &k->requests, node) {
		if (r->session != s)
			continue;
		r->session = NULL;
		r->session_lost = true;
	}
	watches_answer(k, false);
}

static void message_added(struct env *e)
{
	watches_answer(e->control, false);
}

void control_init(struct control *k, struct env *e)
{
	k->env = e;
	e->control = k;
	k->n_clients = 0;
	ky_list_init(&k->clients);
	ky_list_init(&k->requests);
	ky_list_init(&k->selections);
	k->observer = (struct observer){
		.session_freed = session_freed, .message_added = message_added};
	ky_list_append(&e->observers, &k->observer.node);
}
