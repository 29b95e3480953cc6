/* SPDX-License-Identifier: MIT */
/*
 * Conflicts: programs define one event in different ways. The channel refuses the later definitions, or makes each an event
 * of its own (--event-conflict). Whichever it is, `status`, the log and the trace name both; `stop` and `destroy` name
 * those that were refused.
 */
#ifndef SESSIOND_MODEL_CONFLICT_H
#define SESSIOND_MODEL_CONFLICT_H

#include "base/buf.h"
#include "sessiond/model/session.h"

/* Appends both definitions, their programs, and what helps. e has a rival. */
void conflict_describe(struct ky_buf *to, const struct channel *c, const struct set_event *e);
/* Likewise, as a comment in the metadata. */
void conflict_comment(struct ky_buf *to, const struct channel *c, const struct set_event *e);
/* Calls each with the text of every conflict of the session. */
void conflicts_report(const struct session *s, bool refused_only,
	void (*each)(void *arg, const char *text), void *arg);

#endif
