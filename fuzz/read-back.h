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

/*
 * Calls record for each event. Aborts if the reader reports any problem. A path without a trace
 * counts as a trace without events.
 */
void read_back(const char *path, void (*record)(uint64_t number, const char *text, uint64_t len),
	struct read_back *ret);

#endif
