/* SPDX-License-Identifier: MIT */
/*
 * A session daemon for one recording. It has a run directory of its own, and a session (setsid) of
 * its own, so that no signal of the terminal ends it. A pipe binds it to our life, so that it ends
 * in good order even if we are killed.
 */
#ifndef CLI_PRIVATE_DAEMON_H
#define CLI_PRIVATE_DAEMON_H

#include "cli/child.h"
#include "cli/cli.h"
#include "cli/private-rundir.h"

struct private_daemon {
	struct private_rundir rundir;
	struct kymo_ctl *ctl; /* connected; NULL if it never answered */
	pid_t pid;	      /* -1 after it was reaped */
	int life;	      /* the other end of its standard input; -1 */
};
#define PRIVATE_DAEMON_NONE ((struct private_daemon){.rundir = {.fd = -1}, .pid = -1, .life = -1})

/*
 * Starts the daemon, and waits until it replies. Sets KYMO_RUNDIR in the environment, and removes
 * KYMO_STANDALONE. option: one more option of the daemon, or NULL. agents: sets LTTNG_HOME, so that
 * the command's agents find this daemon's port. Gives up if a signal in s is pending. Returns
 * CLI_OK, or CLI_FAILED after a report. The caller calls private_daemon_end in any case.
 */
int private_daemon_start(struct private_daemon *d, struct cli *cli, const struct child_signals *s,
	const char *option, bool agents);
/* Sends a request. Returns CLI_OK, or another exit code after a report. */
int private_daemon_ask(struct private_daemon *d, struct cli *cli, const char *command,
	const struct kymo_value *params);
/*
 * Makes the daemon's one session, with a channel, contexts (NULL: none), rules and a rule for state
 * events (NULL, or without patterns: none), and starts it.
 * Returns as private_daemon_ask.
 */
int private_daemon_record(struct private_daemon *d, struct cli *cli,
	const struct kymo_value *session, struct kymo_value *channel, struct kymo_value *contexts,
	struct kymo_value *rules, struct kymo_value *state);
/* Ends the daemon, waits a limited time for its exit, and removes the run directory. */
void private_daemon_end(struct private_daemon *d);

#endif
