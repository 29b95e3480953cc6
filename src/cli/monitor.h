/* SPDX-License-Identifier: MIT */
/*
 * `status --check` and `status --metrics`, for monitoring systems. Both only look: they start no
 * daemon, and no successor of one that was killed.
 */
#ifndef CLI_MONITOR_H
#define CLI_MONITOR_H

#include "cli/cli.h"

/* The sessions that were asked for: one, or all that this user may see. */
struct monitored {
	struct kymo_value *hello;    /* the daemon's reply; NULL: none answered */
	struct kymo_value *sessions; /* a list of the members `session` of `status` */
	/*
	 * 0; -ENOENT if no daemon runs; -ENOEXEC if one was killed and has left sessions; or
	 * another -errno of libkymo-ctl
	 */
	int error;
	struct kymo_value *refusal; /* the daemon's reply if there is no such session, else NULL */
	struct kymo_value *listed;  /* the daemon's list of all; NULL if one was asked for */
};

#define MONITOR_TIMEOUT_MS 8000 /* monitoring systems wait for ten seconds */

/*
 * Requests the state of the sessions from the daemon. Fills in *m, also after a failure. The caller
 * calls monitor_free().
 */
void monitor_read(struct cli *cli, struct monitored *m);
void monitor_free(struct monitored *m);
/* Describes m->error, or that the session is unknown. */
const char *monitor_why(const struct monitored *m);

/* One line, and the exit codes of a Nagios check. */
int monitor_check(struct cli *cli);
/* Everything that can be measured, in the text format of OpenMetrics. */
int monitor_metrics(struct cli *cli);

#endif
