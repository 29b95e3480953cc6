/* SPDX-License-Identifier: MIT */
/*
 * Talking to the session daemon for a command: failures are reported (cli_fail), so callers only
 * pass the exit code on.
 */
#ifndef CLI_DAEMON_H
#define CLI_DAEMON_H

#include "cli/cli.h"

/*
 * Connects to the daemon that runs. CLI_OK or, reported, CLI_FAILED. When one was killed and has left sessions, its
 * successor is started, here and below.
 */
int cli_connect(struct cli *cli, struct kymo_ctl **ret_ctl);
/* The same, but starts a daemon in the background if none runs. */
int cli_connect_or_start(struct cli *cli, struct kymo_ctl **ret_ctl);
/* Connects if there is a daemon: CLI_OK with *ret_ctl NULL when there is none. */
int cli_connect_if_running(struct cli *cli, struct kymo_ctl **ret_ctl);

/* That there is none, what to do, and who may use the system's daemon when this user may not. A static text. */
const char *cli_no_daemon(void);

/* Sends a command. CLI_OK with a reply, which may be a refusal: the caller frees it, and reports it with cli_refused. */
int cli_try(struct cli *cli, struct kymo_ctl *ctl, const char *command,
	const struct kymo_value *params, struct kymo_value **ret_reply);
/* Reports a refusal. Returns the exit code. */
int cli_refused(struct cli *cli, const struct kymo_value *params, const struct kymo_value *reply);
/* Sends a command; a refusal is reported and is CLI_FAILED. On CLI_OK the caller frees *ret_reply.
 */
int cli_call(struct cli *cli, struct kymo_ctl *ctl, const char *command,
	const struct kymo_value *params, struct kymo_value **ret_reply);
/* Somebody who waits at a terminal for more than a second is told what for; NULL: it is over. */
void cli_tell_when_slow(const char *what);
/* cli_connect, cli_call and away. */
int cli_request(struct cli *cli, const char *command, const struct kymo_value *params,
	struct kymo_value **ret_reply);

/*
 * Our environment for a daemon that we start: without what is meant for other programs (preloaded
 * libraries, the service manager's socket). The array is the caller's, its strings are not; NULL
 * without memory.
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
