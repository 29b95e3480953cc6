/* SPDX-License-Identifier: MIT */
/*
 * A session daemon for one recording: in a run directory of its own, in a session (setsid) of its
 * own, so that nothing from the terminal ends it, and bound to our life by a pipe, so that it ends
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
	pid_t pid;	      /* -1 once it was waited for */
	int life;	      /* its standard input's other end; -1 */
};
#define PRIVATE_DAEMON_NONE ((struct private_daemon){.rundir = {.fd = -1}, .pid = -1, .life = -1})

/*
 * Starts it and sets KYMO_RUNDIR in the environment, where KYMO_STANDALONE goes. option: one more of the daemon's, or
 * NULL. Waits until it answers; gives up on a signal that is pending in s. CLI_OK, or CLI_FAILED (reported);
 * private_daemon_end in any case.
 */
int private_daemon_start(struct private_daemon *d, struct cli *cli, const struct child_signals *s,
	const char *option);
/* A request. CLI_OK, or another exit code, reported. */
int private_daemon_ask(struct private_daemon *d, struct cli *cli, const char *command,
	const struct kymo_value *params);
/* Makes its one session, with a channel, contexts (NULL: none) and rules, and starts it. As private_daemon_ask. */
int private_daemon_record(struct private_daemon *d, struct cli *cli,
	const struct kymo_value *session, struct kymo_value *channel, struct kymo_value *contexts,
	struct kymo_value *rules);
/* Lets it end, waits for that a bounded time, and removes the run directory. */
void private_daemon_end(struct private_daemon *d);

#endif
