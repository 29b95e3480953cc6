/* SPDX-License-Identifier: MIT */
/*
 * A snapshot of a session: a consumer of its own writes what the session's rings hold now into a
 * directory of its own, and ends. Neither programs nor the session's own consumer notice. Made by
 * commands; belongs to its session, which takes it along when it goes.
 */
#ifndef SESSIOND_SNAPSHOT_H
#define SESSIOND_SNAPSHOT_H

#include "sessiond/session.h"

#define SNAPSHOTS_MAX 4u /* of a session at one time */

struct request;

struct snapshot {
	struct ky_list node; /* in session->snapshots */
	struct session *session;
	struct request *request; /* that waits for it; NULL: none any more */
	char *output;
	uint64_t max_size; /* bytes; 0: no limit */
	int error;	   /* what went wrong, and what that is called; 0: nothing */
	char *message;	   /* or NULL */
	struct consumer consumer;
	struct ky_job ending; /* frees it */
};

/*
 * Begins one: output is an absolute path. snapshot_done() is called at its end. -EBUSY: enough are
 * under way; or another -errno. Nothing was begun then.
 */
int snapshot_new(struct session *s, const char *output, uint64_t max_size, struct request *request);
/* Ends it as it is; what is written stays. Nobody is told. NULL. */
struct snapshot *snapshot_free(struct snapshot *sn);
/* The same, but its process finishes on its own. */
void snapshot_abandon(struct snapshot *sn);
/* The session goes: its snapshot fails. */
void snapshot_cancel(struct snapshot *sn);

/* commands.c: answers sn->request, which is not NULL. */
void snapshot_done(struct snapshot *sn);

#endif
