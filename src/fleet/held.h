/* SPDX-License-Identifier: MIT */
/*
 * Snapshots that this host holds, each in a directory with the identifier of its request:
 *
 *   ID/report      the answer, when the snapshot is complete
 *   ID/shipped     exists when all of it is in the fleet's stream, or nothing is to be there
 *   ID/again       the request to ship it once more, from its beginning: the servers have lost it
 *   ID/SESSION/    the trace
 *
 * The directory is the only state: an agent that is started again goes on where it was.
 */
#ifndef FLEET_HELD_H
#define FLEET_HELD_H

#include <kymo/ctl.h>

#include "fleet/link.h"

#define HELD_REPORT  "report"
#define HELD_SHIPPED "shipped"
#define HELD_AGAIN   "again"

struct held {
	char path[PATH_MAX]; /* of the directory of all */
	int dir;
	uint64_t max_bytes, max_us;
	int64_t ahead_s; /* the wall clock, of the one that nobody sets */
};

/* Makes and opens the directory of this host. Returns 0 or -errno, with `why`. */
int held_open(struct held *h, const struct fleet_config *c, char *why, size_t size);
/* Returns the report of a snapshot, which the caller frees; NULL if there is none. */
struct kymo_value *held_report(const struct held *h, const char *id);
/*
 * Makes an empty directory for a snapshot. If there is no room, removes the oldest ones that are
 * shipped, or that no agent has completed. Returns 0, -EDQUOT if there still is no room, or -errno.
 */
int held_make(const struct held *h, const char *id);
/* Removes a snapshot, if it is there. Returns 0 or -errno. */
int held_remove(const struct held *h, const char *id);
/* Writes the report: from then on the snapshot is complete. */
int held_complete(const struct held *h, const char *id, const struct kymo_value *report);
int held_set_shipped(const struct held *h, const char *id);
/* Lets it be shipped once more, unless it is being shipped. request: its identifier. */
int held_set_again(const struct held *h, const char *id, const char *request);
/*
 * Stores the request to ship it once more; "": there was none. Returns 0, or -errno if that is not
 * known.
 */
int held_get_again(const struct held *h, const char *id, char request[FLEET_ID_MAX + 1]);
/*
 * Stores in ret_id the snapshot after this one, in a circle, that is due: it is complete, is to be
 * shipped, and is not yet. after: "" begins anywhere; it may be ret_id itself. Returns false if
 * none is due.
 */
bool held_next_due(const struct held *h, const char *after, char ret_id[FLEET_ID_MAX + 1]);
/* Removes snapshots whose time is over. The steps of a clock that is set do not count. */
void held_expire(struct held *h);

#endif
