/* SPDX-License-Identifier: MIT */
/*
 * An event of a ring set, and its conflict: applications may define one event in different ways.
 * The channel refuses the later definitions, or makes each an event of its own (--event-conflict).
 * In both cases `status`, the log and the trace name both definitions. `stop` and `destroy` name
 * the refused ones.
 */
#ifndef SESSIOND_MODEL_SET_EVENT_H
#define SESSIOND_MODEL_SET_EVENT_H

#include "base/buf.h"
#include "sessiond/model/user.h"

struct channel;

/* The application that brought a definition first. */
struct definer {
	pid_t pid;
	char name[64];
};

struct set_event {
	struct ky_hnode node; /* in ring_set->events, by name */
	struct event_desc *desc;
	uint32_t id;	     /* KY_MAP_REFUSED: not recorded, but counted */
	uint32_t n_contexts; /* of the channel's, that its records begin with */
	unsigned n_apps;     /* applications that have it mapped */
	struct definer by;
	/* the event that had the name before, with another definition; or NULL */
	const struct set_event *rival;
	struct ky_list conflict; /* in ring_set->conflicts, if there is a rival */
	bool logged;		 /* the log has the conflict with the rival */
};

/* Appends both definitions, their programs, and what helps. e has a rival. */
void conflict_describe(struct ky_buf *to, const struct channel *c, const struct set_event *e);

#endif
