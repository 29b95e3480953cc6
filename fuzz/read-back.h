/* SPDX-License-Identifier: MIT */
/*
 * What our reader finds in a trace of events with a number and a string, whose writing is tested. It is on its own because the
 * names of what it includes are others' too.
 */
#ifndef FUZZ_READ_BACK_H
#define FUZZ_READ_BACK_H

#include <stdint.h>

struct read_back {
	uint64_t n_events, n_discarded; /* in all traces below the path */
};

/* Calls record for each event. Aborts when there is anything to complain of; a path without a trace is one without events. */
void read_back(const char *path, void (*record)(uint64_t number, const char *text, uint64_t len),
	struct read_back *ret);

#endif
