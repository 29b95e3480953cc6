/* SPDX-License-Identifier: MIT */
/*
 * Which programs a session records: for each attribute all, or those in a set. Pure.
 */
#ifndef SESSIOND_MODEL_TRACKER_H
#define SESSIOND_MODEL_TRACKER_H

#include "base/util.h"

#define TRACKER_VALUES_MAX 1024u

enum tracker_attribute {
	TRACK_VPID, /* process, as it calls itself in its PID namespace */
	TRACK_VUID, /* user and group: as the kernel says of the connection */
	TRACK_VGID,
	TRACK_PID, /* process, for kernel events; its children are tracked too */
	N_TRACKERS,
};

extern const char *const tracker_names[N_TRACKERS];

/* All zeros tracks all. */
struct tracker {
	bool narrowed; /* to these */
	uint32_t *values;
	uint32_t n;
};

void tracker_deinit(struct tracker *t);
/* Makes *to, which must be empty, a copy. 0 or -ENOMEM. */
int tracker_copy(struct tracker *to, const struct tracker *from);
bool tracker_has(const struct tracker *t, uint32_t value);
/* Narrows down to the value, or adds it. 0, -ENOMEM or -EDQUOT. */
int tracker_add(struct tracker *t, uint32_t value);
/* -ENOENT: it is not among the values, -EINVAL: all are tracked. */
int tracker_remove(struct tracker *t, uint32_t value);
/* Forgets the values; tracks all or none. */
void tracker_reset(struct tracker *t, bool all);

#endif
