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
 * Returns the number of names of events of the channel that the rule matches, of those that
 * applications have now (living), or ever had. The latter costs no time but at first.
 */
unsigned channel_count_matches(const struct channel *c, struct rule *r, bool living);
#define CONFLICTS_MAX 64u /* of programs of one kind: the others are counted */
/* Which conflicts: of definitions that are refused, or recorded all the same. */
enum conflicts { CONFLICTS_REFUSED = 1, CONFLICTS_RECORDED = 2, CONFLICTS_ALL = 3 };
/* Calls each with the texts of such conflicts of the session. */
void conflicts_report(const struct session *s, enum conflicts which,
	void (*each)(void *arg, const char *text), void *arg);

#endif
