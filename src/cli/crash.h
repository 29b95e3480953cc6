/* SPDX-License-Identifier: MIT */
/*
 * The report of `kymo record` on programs that a signal ended: the last events of each, as text.
 */
#ifndef CLI_CRASH_H
#define CLI_CRASH_H

#include "cli/cli.h"

#define CRASH_EVENTS 10u

struct crash {
	const char *name; /* of the program */
	int64_t vpid;	  /* as the contexts of its events have it */
	int signal;
	bool dumped; /* core */
};

/* Returns "SIGSEGV", or "signal 63"; the result is in buf. */
const char *cli_signal_name(char *buf, size_t size, int signal);
/*
 * Prints how the program ended, and the last events of the thread that crashed: the one that
 * recorded crash:signal (libkymo-crash.so), else the program's last event. trace: "" if there is
 * none.
 */
void cli_report_crash(struct cli *cli, const struct crash *c, const char *trace);

#endif
