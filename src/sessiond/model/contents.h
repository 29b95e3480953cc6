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
/* Does it record anything now? */
bool session_is_active(const struct session *s);
/* Does any program have memory of it? */
bool channel_has_buffers(const struct channel *c);
/* Number of different events of the channel that the rule matches; of those that programs have now,
 * or ever had. */
unsigned channel_count_matches(const struct channel *c, const struct rule *r, bool living);
/* Calls each with the text of every conflict of the session. */
void conflicts_report(const struct session *s, bool refused_only,
	void (*each)(void *arg, const char *text), void *arg);

#endif
