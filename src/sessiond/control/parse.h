/* SPDX-License-Identifier: MIT */
/*
 * Parses a line of a client: a command of the table (commands.c), with parameters of the types in
 * its row (docs/protocol.md). Pure.
 */
#ifndef SESSIOND_CONTROL_PARSE_H
#define SESSIOND_CONTROL_PARSE_H

#include <json-c/json.h>

#include "base/util.h"

#define REQUEST_PARAMS_MAX 16
#define REQUEST_ERROR_MAX  512

struct request;

/* How a command has ended, or not yet (request.h). */
enum outcome {
	DONE,
	LATER,
	REFUSED,
};

enum param_type {
	PARAM_STRING = 1,
	PARAM_STRINGS,
	PARAM_NUMBER, /* 0 .. INT32_MAX */
	PARAM_BYTES,  /* 0 .. INT64_MAX */
	PARAM_BOOL,
	PARAM_OPTION, /* a number or a string; the row is for all options of a channel (option.h) */
};

enum command_scope {
	SCOPE_NONE,    /* of the daemon */
	SCOPE_SESSION, /* of one session: `session`, or the caller's current one */
	/*
	 * of one session, or with `all` each of the caller's; with `no_wait`, answered when the
	 * work has begun
	 */
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
	enum outcome (*run)(struct request *r);
	struct param params[REQUEST_PARAMS_MAX]; /* beside `command`, and what the scope brings */
};

/* Ends with a row without name. */
extern const struct command commands[];

/* Why a request was refused. */
struct refusal {
	const char *code; /* of docs/protocol.md; NULL: it was not */
	char text[REQUEST_ERROR_MAX];
	unsigned position; /* of the character in `filter` that it is about, from 1; 0: none */
};

/* Fills in the refusal; control characters in the text are escaped. */
void refusal_set(struct refusal *refusal, const char *code, const char *fmt, ...) KY_PRINTF(3, 4);

/*
 * Parses a line into *ret_object (owned by the caller) and *ret_command. Returns false with
 * *refusal filled in if it is no request.
 */
bool request_parse(const char *line, size_t len, struct json_object **ret_object,
	const struct command **ret_command, struct refusal *refusal);

#endif
