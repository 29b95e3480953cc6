/* SPDX-License-Identifier: MIT */
/*
 * The control protocol: one table row for each command says its name, its parameters and its
 * handler (docs/protocol.md). A request is parsed by a pure function, then carried out; handlers
 * that wait for programs or consumers answer later, from a barrier or when sessions have finished
 * their steps.
 */
#ifndef SESSIOND_CONTROL_H
#define SESSIOND_CONTROL_H

#include <json-c/json.h>

#include "sessiond/session.h"
#include "svc/line-conn.h"
#include "svc/unix.h"

#define REQUEST_PARAMS_MAX 16
#define REQUEST_ERROR_MAX  512

struct request;

enum param_type {
	PARAM_STRING = 1,
	PARAM_STRINGS,
	PARAM_NUMBER, /* 0 .. INT32_MAX */
	PARAM_BYTES,  /* 0 .. INT64_MAX */
	PARAM_BOOL,
	PARAM_OPTION, /* a number or a string: the row stands for all options of a channel (option.h) */
};

enum command_scope {
	SCOPE_NONE,    /* of the daemon */
	SCOPE_SESSION, /* of one session: `session`, or the caller's current one */
	SCOPE_LASTING, /* likewise, and changes it: a successor of the daemon carries it out again */
	/* of one session, or with `all` each of the caller's; with `no_wait`, answered when the work has begun */
	SCOPE_SESSIONS,
};

struct param {
	const char *name;
	enum param_type type;
	bool required;
};

struct command {
	const char *name;
	enum command_scope scope;
	void (*run)(struct request *r);
	struct param params[REQUEST_PARAMS_MAX]; /* beside `command`, and what the scope brings */
};

/* Why a request was refused. */
struct refusal {
	const char *code; /* of docs/protocol.md */
	char text[REQUEST_ERROR_MAX];
	unsigned position; /* of the character in `filter` that it is about, from 1; 0: none */
};

/*
 * Parses a line into *ret_object (owned by the caller) and *ret_command. False with *refusal filled
 * in when it is no request. Pure.
 */
bool request_parse(const char *line, size_t len, struct json_object **ret_object,
	const struct command **ret_command, struct refusal *refusal);

/* One client connection. */
struct client {
	struct ky_list node; /* in daemon->clients */
	struct daemon *daemon;
	struct ky_line_conn conn;
	struct ky_peer peer;
	struct request *request; /* that is being carried out; NULL: none */
};

/* A session of the request that is on its way through a step. */
struct request_step {
	struct ky_list node; /* in request->steps */
	struct session_waiter waiter;
	struct request *request;
	struct session *session;
};

struct request {
	struct ky_list node;   /* in daemon->requests */
	struct client *client; /* NULL: it has gone; the work is finished all the same */
	struct daemon *daemon;
	struct ky_peer peer;
	const struct command *command;
	struct json_object *params; /* owned */
	struct json_object *reply;  /* owned: what has been found so far */
	struct session *session;    /* SCOPE_SESSION; NULL once it has gone */
	struct refusal refusal;	    /* code NULL: none */
	struct barrier barrier;
	struct ky_list steps;
	struct snapshot *snapshot; /* that it waits for; or NULL */
};

/* Carries out a lasting request of a predecessor once more, for nobody. Takes params; s: its session, NULL for `create`. */
void request_replay(struct daemon *d, const struct ky_peer *peer, struct json_object *params,
	struct session *s);

void client_accept(struct daemon *d, int fd, const struct ky_peer *peer);
struct client *client_free(struct client *c); /* NULL */

/* Answers and frees the request: with the reply, or with the refusal if there is one. */
void request_finish(struct request *r);
/* Refuses, and finishes. */
void request_refuse(struct request *r, const char *code, const char *fmt, ...) KY_PRINTF(3, 4);
/* Sessions about to be freed are forgotten by those who would come back to them. */
void requests_forget_session(struct daemon *d, const struct session *s);
struct request *request_free(struct request *r); /* NULL */

/* Parameters: of the type that the table says, or absent. */
const char *request_string(const struct request *r, const char *name); /* or NULL */
bool request_number(const struct request *r, const char *name, uint32_t *ret_value);
uint64_t request_bytes(const struct request *r, const char *name); /* 0 when absent */
bool request_bool(const struct request *r, const char *name);
struct json_object *request_list(const struct request *r, const char *name); /* or NULL */

/* May the caller touch it? */
bool request_may_touch(const struct request *r, const struct session *s);

/* The caller's current session. */
void request_select(struct request *r, struct session *s);
/* A user's current session since `when`, unless another is since later. */
void requests_select(struct daemon *d, uid_t uid, struct session *s, uint64_t when);

/* commands.c */
extern const struct command commands[];

#endif
