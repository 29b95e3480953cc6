/* SPDX-License-Identifier: MIT */
/*
 * Requests to the session daemon, for commands. The functions report failures (cli_fail), so
 * callers only pass the exit code on.
 */
#ifndef CLI_DAEMON_H
#define CLI_DAEMON_H

#include "cli/cli.h"

/*
 * Connects to the running daemon. If a daemon was killed and has left sessions, starts its
 * successor, here and below. Returns CLI_OK, or CLI_FAILED after a report.
 */
int cli_connect(struct cli *cli, struct kymo_ctl **ret_ctl);
/* Does the same, but starts a daemon in the background if none runs. */
int cli_connect_or_start(struct cli *cli, struct kymo_ctl **ret_ctl);
/* Connects if there is a daemon. If there is none, returns CLI_OK and sets *ret_ctl to NULL. */
int cli_connect_if_running(struct cli *cli, struct kymo_ctl **ret_ctl);

/*
 * Returns a static text: that no daemon runs, what to do, and who may use the system's daemon if
 * this user may not.
 */
const char *cli_no_daemon(void);
#define CLI_NO_ANSWER "the session daemon does not answer: 'kymo doctor' says what to do"
#define CLI_RUNDIR_TOO_LONG                                                                        \
	"the run directory's path is too long for a socket: set KYMO_RUNDIR to a shorter one"
/*
 * Returns a static text: the daemon that refuses this user, and the users whom it accepts; or the
 * run directory that this user may not enter. *ret_advice: what to do.
 */
const char *cli_permission_denied(const char **ret_advice);
/* Fails: a command takes a trace or a session, there is no such trace, and no daemon runs. */
int cli_no_trace_or_session(struct cli *cli, const char *name);

/*
 * Sends a command. Returns CLI_OK with a reply, which may be a refusal: the caller reports that
 * with cli_refused, and frees the reply.
 */
int cli_try(struct cli *cli, struct kymo_ctl *ctl, const char *command,
	const struct kymo_value *params, struct kymo_value **ret_reply);
/* Reports a refusal. Returns the exit code. */
int cli_refused(struct cli *cli, const struct kymo_value *params, const struct kymo_value *reply);
/*
 * Sends a command. Reports a refusal, and returns CLI_FAILED for it. On CLI_OK the caller frees
 * *ret_reply.
 */
int cli_call(struct cli *cli, struct kymo_ctl *ctl, const char *command,
	const struct kymo_value *params, struct kymo_value **ret_reply);
/*
 * Prints what we wait for if that takes more than a second and a user sits at a terminal. NULL: the
 * wait is over.
 */
void cli_report_slow(const char *what);
/* Does cli_connect, cli_call and disconnects. */
int cli_request(struct cli *cli, const char *command, const struct kymo_value *params,
	struct kymo_value **ret_reply);

/*
 * Returns our environment for a daemon that we start, without the variables for other programs
 * (preloaded libraries, the service manager's socket). The caller frees the array, not its strings.
 * Returns NULL if there is no memory.
 */
char **cli_daemon_environ(void);

#define _cleanup_ctl_	__attribute__((cleanup(cli_cleanup_ctl)))
#define _cleanup_value_ __attribute__((cleanup(cli_cleanup_value)))

static inline void cli_cleanup_ctl(struct kymo_ctl **ctl)
{
	kymo_ctl_close(*ctl);
}

static inline void cli_cleanup_value(struct kymo_value **v)
{
	kymo_value_free(*v);
}

#endif
