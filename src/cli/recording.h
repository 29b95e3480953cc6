/* SPDX-License-Identifier: MIT */
/*
 * A recording of `kymo record`, which three files share: cmd-record.c prepares it and runs the
 * command, record-kernel.c records the kernel, record-end.c ends and reports it. Functions that
 * return a code return CLI_OK, or another exit code after a report.
 */
#ifndef CLI_RECORDING_H
#define CLI_RECORDING_H

#include <limits.h>
#include <sys/stat.h>

#include "cli/flights.h"
#include "cli/private-daemon.h"

struct recording {
	struct cli *cli;
	struct private_daemon daemon;
	/* root's daemon, which records the kernel for other users; NULL: ours does */
	struct kymo_ctl *root;
	char root_session[96];
	struct kymo_value *kernel; /* state of root_session at its end; NULL: none, or it failed */
	struct child_signals signals;
	struct child child;
	struct flights flights;
	char session[64];
	char output[PATH_MAX]; /* "" when no trace is kept */
	bool new_output;       /* we made it: remove it if it stays empty */
	struct stat made;      /* the output when the recording began; all 0: it did not exist */
};

/* Returns whether the command line wants kernel events. */
bool record_wants_kernel(const struct recording *rec);
/* Adds kernel events, of no process before the command's. channel: that of the applications. */
int record_begin_kernel(struct recording *rec, const struct kymo_value *channel);
/* Sends a request to the daemon that records the kernel. */
int record_ask_kernel(struct recording *rec, const char *command, struct kymo_value *params);
/* Ends the session of root's daemon, which writes what the kernel still has. */
void record_end_kernel(struct recording *rec);
/* Returns the session of root's daemon as it was at the end; NULL if there is none. */
const struct kymo_value *record_kernel_session(const struct recording *rec);

/* Ends the recording after the command, and reports it. exit_code: the command's. */
void record_finish(struct recording *rec, int exit_code);

#endif
