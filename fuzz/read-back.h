/* SPDX-License-Identifier: MIT */
/*
 * Reads a trace of events with a number and a string back, to test the code that wrote it. A
 * separate file, because the headers of reader and writer define the same names.
 */
#ifndef FUZZ_READ_BACK_H
#define FUZZ_READ_BACK_H

#include <stdint.h>

struct read_back {
	uint64_t n_events, n_discarded; /* in all traces below the path */
};

/* An event that was read. ns: its time. */
struct read_event {
	uint64_t number, len;
	const char *text;
	int64_t ns;
};

/*
 * Calls record for each event, in the order in which the reader shows them. Aborts if the reader
 * reports any problem. A path without a trace counts as a trace without events.
 */
void read_back(
	const char *path, void (*record)(const struct read_event *event), struct read_back *ret);

#endif
