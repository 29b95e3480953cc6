/* SPDX-License-Identifier: MIT */
/*
 * Sessions as JSON: `kymo save` writes them, and `kymo load` makes them again. docs/sessions.md and
 * docs/sessions.schema.json describe the format.
 */
#ifndef CLI_PROFILE_H
#define CLI_PROFILE_H

#include "cli/cli.h"

struct json_object;

#define PROFILE_VERSION 1

/* Makes the object of a file without sessions. Returns NULL if allocation fails. */
struct json_object *profile_new(void);
/*
 * Adds a session, as `status` describes it, with its triggers, as `list-triggers` does. Returns 0
 * or -ENOMEM.
 */
int profile_add(struct json_object *profile, const struct kymo_value *session,
	const struct kymo_value *triggers);

struct profile_options {
	const char *name, *output; /* replace those of the only session; or NULL */
	bool force;		   /* replace sessions that have these names */
	bool missing;		   /* leave out sessions that exist */
};

/*
 * Makes the sessions of a file's text. Adds their names to the list `sessions` of `loaded`. Reports
 * a failure with the file's path and the number of the line. A session that fails leaves nothing.
 * *ctl: if NULL, connects once the text is known to be JSON, and starts a daemon if none runs; the
 * caller closes it.
 */
int profile_load(struct cli *cli, struct kymo_ctl **ctl, const char *path, const char *text,
	const struct profile_options *options, struct kymo_value *loaded);
/* Destroys the session of this name, if there is one. */
int profile_destroy_old(struct cli *cli, struct kymo_ctl *ctl, const char *name);

/*
 * Returns the line on which the value begins, from 1: of "sessions/0/name" in valid JSON. If the
 * text has no such value, returns the line of the innermost one around it that exists. Pure.
 */
unsigned profile_line(const char *text, const char *value_path);

#endif
