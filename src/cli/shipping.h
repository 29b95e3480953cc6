/* SPDX-License-Identifier: MIT */
/*
 * How far `kymo ship` is with a trace, for `kymo status`: TRACE/.shipping, which the running
 * command holds a lock on. Nothing depends on it: what is at the other end decides where shipping
 * goes on.
 */
#ifndef CLI_SHIPPING_H
#define CLI_SHIPPING_H

#include "cli/cli.h"

struct shipping_note {
	int fd;		 /* owned; -1: another command has the file, or it cannot be written */
	const char *url; /* borrowed */
	uint64_t there, all;
	char trouble[256]; /* "" if there is none */
	uint64_t since_s;  /* of the trouble, from 1970 */
	uint64_t written_ns;
};

/* trace: the directory. */
void shipping_begin(struct shipping_note *n, int trace, const char *url);
/* Notes progress, now and then. */
void shipping_progress(struct shipping_note *n, uint64_t there, uint64_t all);
/* Notes why it does not go on, and how far it is. */
void shipping_trouble(struct shipping_note *n, const char *why, uint64_t there, uint64_t all);
/* done: all has arrived; then there is nothing more to say. */
void shipping_end(struct shipping_note *n, int trace, bool done);

/* Prints what there is to say about the trace of a session, or adds it to an object. */
void shipping_report(struct cli *cli, const char *trace);
void shipping_add(struct kymo_value *to, const char *trace);

#endif
