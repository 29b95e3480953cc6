/* SPDX-License-Identifier: MIT */
/*
 * The journal of a session, a file in RUNDIR/sessions, of lines of JSON (docs/recovery.md). If this
 * daemon is killed, a successor continues from it.
 *
 * The journal observes the model, and writes what was done, not what was requested. It writes
 * numbers before they take effect, because other processes rely on them. Replay calls the functions
 * that commands call.
 */
#ifndef SESSIOND_JOURNAL_H
#define SESSIOND_JOURNAL_H

#include "sessiond/model/contents.h"

/* Observes this env from now on. Once. */
void journal_init(struct env *e);
/*
 * Makes a predecessor's sessions from the files, without descriptors. Returns the number of the
 * sessions whose consumer may still run. Logs the others, and forgets them. Returns -errno if it
 * has too little memory or too few descriptors to read a journal: that one stays for another
 * daemon.
 */
int journal_replay(struct env *e);

/* --- for journal.c and journal-replay.c alone --- */

#define JOURNAL_FORMAT 2u
#define JOURNAL_STATES 4

/* By enum session_state. */
extern const char *const journal_states[JOURNAL_STATES];
/*
 * Returns the path of a session's journal, or of the directory if the name is "", in one static
 * buffer.
 */
const char *journal_path(const struct env *e, const char *name);
/*
 * Returns the path of a session's journal while it is suspended, in the same buffer: some lines
 * could not be written to it, and no successor may use it.
 */
const char *journal_path_kept(const struct env *e, const char *name);

#endif
