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

/* --- for journal.c and journal-replay.c alone --- */

#define JOURNAL_FORMAT 2u
#define JOURNAL_STATES 4

/* By enum session_state. */
extern const char *const journal_states[JOURNAL_STATES];
/* Returns the path of a session's journal, or of the directory if the name is "", in one static buffer. */
const char *journal_path(const struct env *e, const char *name);

#endif
