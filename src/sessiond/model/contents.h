/* SPDX-License-Identifier: MIT */
/*
 * A session with its contents: functions about several of channels, ring sets, registries and
 * events. Sources above the model include this.
 */
#ifndef SESSIOND_MODEL_CONTENTS_H
#define SESSIOND_MODEL_CONTENTS_H

#include "sessiond/model/channel.h"
#include "sessiond/model/ring-set.h"
#include "sessiond/model/session.h"

/* Frees its channels, ring sets and registries. */
void session_clear(struct session *s);
/* Returns whether the session records anything now. */
bool session_is_active(const struct session *s);
/* Returns whether any application has memory of the channel. */
bool channel_has_buffers(const struct channel *c);
/*
 * Returns the number of different events of the channel that the rule matches, of those that
 * applications have now, or ever had.
 */
unsigned channel_count_matches(const struct channel *c, const struct rule *r, bool living);
/* Calls each with the text of every conflict of the session. */
void conflicts_report(const struct session *s, bool refused_only,
	void (*each)(void *arg, const char *text), void *arg);

#endif
