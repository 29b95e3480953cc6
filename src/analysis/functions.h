/* SPDX-License-Identifier: MIT */
/*
 * Functions as spans: programs that were compiled with -finstrument-functions have two event
 * classes for all functions. Each function gets classes of its own, with its name.
 */
#ifndef ANALYSIS_FUNCTIONS_H
#define ANALYSIS_FUNCTIONS_H

#include "analysis/source-event.h"

/* Finds the names of functions by the addresses at which they are entered. */
struct ky_function_names {
	/* Returns false if none is known. pid: -1 if it is not known. */
	bool (*find)(void *arg, const char *host, int64_t pid, uint64_t address, char *text,
		size_t size);
	void *arg;
};

struct ky_functions {
	const struct ky_function_names *finder; /* borrowed; NULL: functions are no spans */
	struct ky_htab table;			/* struct ky_function, by process and address */
	struct ky_function *last; /* the function that was looked up last; NULL: none */
};

/* Whether events of this class are entries or exits of functions. */
bool ky_functions_is_call(const struct ky_source_class *c);
/* The class of the event's function; the event's own if functions are no spans, or too many. */
const struct ky_source_class *ky_functions_class(
	struct ky_functions *f, struct ky_texts *names, const struct ky_source_event *e);
/* Adds the names of functions that were entered to a list of n, which has room. Its new length. */
size_t ky_functions_list(
	const struct ky_functions *f, const struct ky_texts *names, const char **list, size_t n);
void ky_functions_deinit(struct ky_functions *f);

#endif
