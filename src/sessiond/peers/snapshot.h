/* SPDX-License-Identifier: MIT */
/*
 * A snapshot of a session: a consumer of its own writes what the session's rings hold now into a
 * directory of its own, and ends. Neither programs nor the session's own consumer notice. Made by
 * commands; belongs to its session, which takes it along when it goes.
 */
#ifndef SESSIOND_PEERS_SNAPSHOT_H
#define SESSIOND_PEERS_SNAPSHOT_H

#include "sessiond/peers/recording.h"

#define SNAPSHOTS_MAX 4u /* of a session at one time */

struct snapshot {
	struct ky_list node; /* in recording->snapshots */
	struct session *session;
	struct op *op;	       /* done at its end; NULL: it was */
	struct barrier copied; /* when its consumer has a copy of all rings; may be unused */
	struct op *copied_op;
	char *output;
	char *reason;
	uint64_t max_size; /* bytes; 0: no limit */
	int error;	   /* what went wrong, and what that is called; 0: nothing */
	char *message;	   /* or NULL */
	struct consumer consumer;
	struct ky_job ending; /* frees it */
};

/*
 * Chooses the snapshot's directory: below the session's directory if that has nothing but
 * snapshots, else beside it, because a reader of a trace reads all that lies below.
 */
void snapshot_place(const struct session *s, const char *name, char *buf, size_t size);
/*
 * Begins a snapshot; output is an absolute path. reason: what triggered it, which its metadata
 * says; or "". op is done at its end, when *ret_snapshot still
 * exists. copied (may be NULL) is done with 0 when all rings are copied, before op; or not at all.
 * Returns 0; -EBUSY if SNAPSHOTS_MAX are under way; or another -errno. After an error
 * nothing was begun.
 */
int snapshot_new(struct session *s, const char *output, uint64_t max_size, const char *reason,
	struct op *op, struct op *copied, struct snapshot **ret_snapshot);
/* Fails and frees the snapshot, because its session ends. The data written so far stay. */
void snapshot_cancel(struct snapshot *sn);
/* Frees the snapshot, as snapshot_cancel() does, but lets the process finish on its own. */
void snapshot_abandon(struct snapshot *sn);

#endif
