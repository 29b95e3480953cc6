/* SPDX-License-Identifier: MIT */
/*
 * The journal of a session, from which a successor goes on where this daemon was killed: a file in RUNDIR/sessions, of lines
 * of JSON (docs/recovery.md).
 *
 * The journal observes the model, and writes what was done, not what was asked for. Numbers that others rely on are written
 * before they take effect. To replay it means to call the functions that commands call.
 */
#ifndef SESSIOND_JOURNAL_H
#define SESSIOND_JOURNAL_H

#include "sessiond/model/contents.h"

/* Observes this env from now on. Once. */
void journal_init(struct env *e);
/*
 * Makes the sessions that a predecessor has left, as far as files tell: without descriptors. Returns the number of those
 * whose consumer may be there. Logs the others, and forgets them.
 */
unsigned journal_replay(struct env *e);

#endif
