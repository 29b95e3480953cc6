/* SPDX-License-Identifier: MIT */
/*
 * How many threads or files of each user a state dump has room for. The session daemon looks at
 * them all at once, and a hostile user may have millions of descriptors, so there is a limit for
 * all users together, of whom each may have half of what the others leave. Root has no limit.
 */
#ifndef SESSIOND_KERNEL_DUMP_ROOM_H
#define SESSIOND_KERNEL_DUMP_ROOM_H

#include "base/util.h"

#define DUMP_ROOM_USERS 64 /* users that it distinguishes; all others count as one */

struct dump_room {
	uint32_t max, n; /* of all users together but root */
	uint32_t n_users;
	struct {
		uid_t uid;
		uint32_t n;
		bool is_full;
	} users[DUMP_ROOM_USERS + 1]; /* the last: all others */
};

/* Returns true if there was no room for this user: there will be none, because the rest shrinks. */
bool dump_room_is_full(const struct dump_room *r, uid_t uid);
/* Returns true if there is room for one more of this user, and takes it. */
bool dump_room_take(struct dump_room *r, uid_t uid);

#endif
