/* SPDX-License-Identifier: MIT */
/*
 * Conditions of triggers about amounts, for example rates, sizes and fill levels. They are compared
 * every TRIGGER_LOOK_NS while the session records, with counts that the daemon requests from the
 * consumer, or reads in the buffers. Such a condition fires when it becomes true, and again after
 * it was false; `discarded` fires again when more events were discarded.
 */
#ifndef SESSIOND_PEERS_TRIGGER_AMOUNTS_H
#define SESSIOND_PEERS_TRIGGER_AMOUNTS_H

#include "sessiond/peers/trigger-list.h"

void trigger_amounts_init(struct triggers *t);
void trigger_amounts_deinit(struct triggers *t);
/* Prepares a new trigger, which does not fire for losses before it. */
void trigger_amounts_begin(struct trigger *t);
/* Begins or ends to look at amounts, as the triggers and the session's state require. */
void trigger_amounts_watch(struct triggers *t);

#endif
