/* SPDX-License-Identifier: MIT */
/*
 * The flight recorder of `kymo record --snapshot --when`: prints each snapshot when it was written,
 * in a thread of its own while the command runs.
 */
#ifndef CLI_FLIGHTS_H
#define CLI_FLIGHTS_H

#include <pthread.h>

#include "cli/cli.h"

/* The name of the trigger that --when makes. */
#define FLIGHTS_TRIGGER "when"

struct flights {
	struct cli *cli;
	struct kymo_ctl *ctl; /* for messages; NULL: --when was not given */
	pthread_t thread;
	bool watching;
	bool quiet;	      /* print nothing */
	pthread_mutex_t lock; /* of the rest */
	pthread_cond_t changed;
	bool ended;
	unsigned n_ended; /* firings whose snapshot was written, or failed */
	unsigned n_written;
};

/*
 * Reads --when, --rate and --keep. Returns CLI_OK, or CLI_USAGE after a report.
 * flights_begin() does nothing without --when.
 */
int flights_init(struct flights *f, struct cli *cli);
/*
 * Adds the trigger to the session, and connects. ctl: of the daemon. Returns CLI_OK, or another
 * exit code after a report.
 */
int flights_begin(struct flights *f, struct kymo_ctl *ctl, const char *rundir, const char *session);
/* Starts the thread: after the command has been started by fork(). */
void flights_watch(struct flights *f);
/* Waits until the snapshot of each firing was written. Bounded. */
void flights_settle(struct flights *f, struct kymo_ctl *ctl);
/* Ends the thread, after the session or the daemon ended. */
void flights_end(struct flights *f);

#endif
