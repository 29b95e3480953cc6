/* SPDX-License-Identifier: MIT */
/*
 * The actions of `kymo fleet`. The command line has checked the options; this program of its own
 * carries them out, so that only it depends on the client library of NATS.
 */
#ifndef FLEET_FLEET_H
#define FLEET_FLEET_H

#include "fleet/hosts.h"

/* Exit codes of the command line. */
enum {
	FLEET_OK,
	FLEET_FAILED,
	FLEET_USAGE,
};

struct fleet {
	const struct kymo_value *args;	  /* of the action: list of texts; borrowed */
	const struct kymo_value *options; /* object of texts; borrowed */
	struct kymo_value *result;	  /* with --json: what is printed; else NULL */
	struct fleet_config config;
	struct link link;
	struct hosts hosts;
};

/* One line on stderr; with --json also the result. Returns FLEET_FAILED. */
int fleet_fail(struct fleet *f, const char *fmt, ...) KY_PRINTF(2, 3);
/* Likewise for what makes no sense. Returns FLEET_USAGE. */
int fleet_usage(struct fleet *f, const char *fmt, ...) KY_PRINTF(2, 3);
/* A line on stderr, although the action goes on. */
void fleet_warn(const char *fmt, ...) KY_PRINTF(1, 2);
/* Returns the value of an option, or NULL. */
const char *fleet_option(const struct fleet *f, const char *name);
bool fleet_has(const struct fleet *f, const char *name);
/* Prints a text from elsewhere, so that it can do nothing to a terminal. */
void fleet_put(const char *text);
/*
 * Connects, and reads which hosts there are. limit_us: how long the command may take then, and
 * FLEET_WAIT_MS more; 0: only single answers have a limit. Returns a code.
 */
int fleet_connect(struct fleet *f, uint64_t limit_us);
/* The time that is waited for hosts. Returns a code. */
int fleet_timeout(struct fleet *f, uint64_t default_us, uint64_t *ret_us);

/* `kymo fleet setup` and `kymo fleet fetch`. Return a code. */
int setup_run(struct fleet *f);
int fetch_run(struct fleet *f);

#endif
