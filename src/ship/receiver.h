/* SPDX-License-Identifier: MIT */
/*
 * The receiving end of a trace (docs/shipping.md). It trusts nothing: paths are checked and opened
 * beneath its directory, without symbolic links; files only grow; sizes are limited.
 *
 * The received files are its only state. A byte of a recording's file never changes, so it reports
 * to the sender how long its files are, and appends what comes at their ends.
 */
#ifndef SHIP_RECEIVER_H
#define SHIP_RECEIVER_H

#include "ship/segment.h"

#define RECEIVER_DUE_MAX   64u
#define RECEIVER_SILENCE_S 20 /* of a sender that is never silent: its connection is broken */

struct receiver {
	int dir;	    /* borrowed: where traces go */
	int trace;	    /* the directory of this recording; -1 before HELLO */
	int lock;	    /* of .recording there */
	uint64_t max;	    /* bytes of the recording, at most */
	uint64_t n_entries; /* files and directories that it has */
	bool sync;	    /* acknowledges what is on the disk; the sender may ask for it, too */
	uint64_t size;	    /* bytes of the recording */
	char **paths;	    /* of files, by number; owned */
	uint32_t n_paths;
	/* `sync`: acknowledgements that wait for the disk */
	struct segment due[RECEIVER_DUE_MAX];
	unsigned n_due;
	uint64_t due_bytes;
	int in, out;	 /* borrowed: of the connection, blocking; out -1: nothing is sent */
	int patience_ms; /* how long it waits for the connection once the sender is never silent */
	bool never_silent;		  /* the sender has announced that it is never silent */
	char name[SEGMENT_NAME_MAX + 16]; /* of the directory */
	char why[SEGMENT_TEXT_MAX];	  /* of a failure, for both ends */
};

/* Initialises it. The caller sets max, sync, in and out. */
void receiver_init(struct receiver *r, int dir);
void receiver_deinit(struct receiver *r);
/*
 * Handles a segment. Returns 0; 1 when all is received and on the disk; or -errno, with `why`: then
 * the connection ends, and the sender may try again.
 */
int receiver_handle(struct receiver *r, const struct segment *s, const void *payload);

/*
 * Receives segments until all is here. Returns 1 then, 0 at the end of the connection, or -errno;
 * then it has sent `why`.
 */
int receiver_serve(struct receiver *r);

#endif
