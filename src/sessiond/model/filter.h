/* SPDX-License-Identifier: MIT */
/*
 * The filter of a rule: its text, and the program that the daemon sends to applications. The rules
 * of one command share it.
 */
#ifndef SESSIOND_MODEL_FILTER_H
#define SESSIOND_MODEL_FILTER_H

#include "filter/filter.h"
#include "sessiond/model/user.h"

#define FILTER_CACHE 256u

/* How well a filter matches an event. A later value explains better why nothing is recorded. */
enum filter_match {
	FILTER_MATCHES,
	FILTER_MISSES_FIELD, /* usual for events that the user does not mean */
	FILTER_MISTAKES_FIELD,
};

struct filter {
	unsigned refs;
	uint32_t number; /* in messages; no other filter has it */
	char *text;
	uint32_t len;
	uint8_t program[KY_FILTER_PROGRAM_MAX];
	/* For the event of this serial number, as last asked. */
	struct {
		uint64_t serial;
		enum filter_match match;
	} cache[FILTER_CACHE];
};

/*
 * Parses a filter and returns a reference. Returns NULL with the fault in *error, or with an empty
 * *error if allocation fails.
 */
struct filter *filter_new(const char *text, struct ky_filter_error *error);
/* The same, with other contexts than those of applications. */
struct filter *filter_new_with(
	const char *text, ky_filter_find_context find, struct ky_filter_error *error);
struct filter *filter_ref(struct filter *f);   /* NULL */
struct filter *filter_unref(struct filter *f); /* NULL */
/* Checks whether the event has all fields that the filter names, of the right types. */
enum filter_match filter_match(struct filter *f, const struct event_desc *d);
/* Explains why not; "" if it matches. */
void filter_explain(
	const struct filter *f, const struct event_desc *d, struct ky_filter_error *error);

#endif
