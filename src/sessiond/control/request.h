/* SPDX-License-Identifier: MIT */
/*
 * A request of a client that is in progress: its parameters, its reply, and the operations that it
 * waits for.
 *
 * A command's function returns DONE, REFUSED (after request_refuse()), or LATER, from
 * request_await(): then operations are under way, and the function that was passed to it returns
 * the outcome later. Only the dispatcher (client.c) answers and frees requests. A request continues
 * after its client has disconnected.
 */
#ifndef SESSIOND_CONTROL_REQUEST_H
#define SESSIOND_CONTROL_REQUEST_H

#include "sessiond/control/control.h"
#include "sessiond/control/parse.h"
#include "sessiond/peers/barrier.h"
#include "svc/unix.h"

struct client;
struct session;

/* An operation that a request waits for. */
struct request_op {
	struct op op;
	struct ky_list node;	 /* in request->ops */
	struct request *request; /* NULL: it was freed before */
	struct session *session; /* the session that it is about; or NULL */
	const void *subject;	 /* likewise, whatever it is */
	void (*ended)(struct request_op *o, int status, const char *message); /* may be NULL */
};

struct request {
	struct ky_list node;   /* in control->requests */
	struct client *client; /* NULL: it has disconnected */
	struct control *control;
	struct env *env;
	struct ky_peer peer;
	const struct command *command;
	struct json_object *params; /* owned */
	struct json_object *reply;  /* owned: what has been found so far */
	struct session *session;    /* SCOPE_SESSION; NULL once it was freed */
	bool session_lost;	    /* the session was freed */
	struct channel *channel;    /* of that session, for a command that waits; channels stay */
	struct refusal refusal;
	char *definitions;  /* of a member's probe, once its place is found; or NULL */
	struct ky_list ops; /* struct request_op: of operations that have not ended */
	/* of what it waits for in applications and consumers */
	struct barrier barrier;
	bool timed_out;
	enum outcome (*then)(struct request *r); /* when all operations have ended */
	struct request_op *watches; /* waits for messages of triggers; NULL: does not */
};

/*
 * Makes a request, and takes ownership of params. Returns NULL if allocation fails: then the caller
 * still owns params.
 */
struct request *request_new(struct control *k, const struct ky_peer *peer,
	struct json_object *params, const struct command *command);
/* Operations that have not ended go on. NULL. */
struct request *request_free(struct request *r);

/* Refuses the request; the first reason counts. Returns REFUSED. */
enum outcome request_refuse(struct request *r, const char *code, const char *fmt, ...)
	KY_PRINTF(3, 4);
/* Refuses it because an operation on a session has failed with this -errno. */
void request_fail(struct request *r, int error, const char *session, const char *message);
/* Returns REFUSED if it was refused, else DONE. */
enum outcome request_outcome(struct request *r);

/*
 * Makes an operation for the request to wait for. Returns NULL if allocation fails. Calls ended()
 * when the operation has ended, before the request continues. Then it frees itself. If the
 * operation does not begin, the caller frees it with request_op_free().
 */
struct request_op *request_op_new(struct request *r, struct session *s,
	void (*ended)(struct request_op *o, int status, const char *message));
void request_op_free(struct request_op *o);
/*
 * Continues with `then` when all operations have ended. Returns LATER, or the result of `then` if
 * none is under way.
 */
enum outcome request_await(struct request *r, enum outcome (*then)(struct request *r));
/*
 * Returns the barrier for the replies of applications and consumers that the request waits for, or
 * NULL if allocation fails: then the request does not wait.
 */
struct barrier *request_barrier(struct request *r);
/* Continues with `then` like request_await(). r->timed_out says whether the barrier timed out. */
enum outcome request_await_peers(
	struct request *r, uint64_t timeout_ns, enum outcome (*then)(struct request *r));
/* Answers and frees the request when all is done (client.c). */
void request_settle(struct request *r, enum outcome outcome);

/* Parameters: of the type that the table says, or absent. */
const char *request_string(const struct request *r, const char *name); /* or NULL */
bool request_number(const struct request *r, const char *name, uint32_t *ret_value);
bool request_has(const struct request *r, const char *name);
uint64_t request_bytes(const struct request *r, const char *name); /* 0 if absent */
bool request_bool(const struct request *r, const char *name);
struct json_object *request_list(const struct request *r, const char *name); /* or NULL */
/* Returns the number of elements; 0 if the parameter is absent. */
size_t request_list_length(const struct request *r, const char *name);
const char *request_list_string(const struct request *r, const char *name, size_t i);

/* Members of the reply. They consume value, which may be NULL where there was no memory for it. */
void reply_add(struct request *r, const char *name, struct json_object *value);
/* Appends to the list of that name, which is made when it is missing. */
void reply_add_to(struct request *r, const char *list, struct json_object *value);
/* Adds a notice for the user. */
void reply_note(struct request *r, const char *fmt, ...) KY_PRINTF(2, 3);

#endif
