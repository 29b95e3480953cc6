/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for LTTng-UST's libraries: programs and providers that were compiled with LTTng-UST's
 * headers, and are not compiled again, record with Kymo.
 *
 *	abi.h		the structures that they have
 *	describe.c	makes Kymo's descriptions of their fields
 *	registry.c	connects tracepoints with the probes of their name; switches them on and off
 *	record.c	what probes call: the record of an event
 *	messages.c	tracef and tracelog, which are in the library
 *	others.c	functions that programs look for, and that have nothing to do
 */
#ifndef LTTNG_LTTNG_H
#define LTTNG_LTTNG_H

#include <stdbool.h>

#include <kymo/tracepoint.h>

#include "lttng/abi.h"

#define EXPORT __attribute__((visibility("default")))

/*
 * A function to call at the tracepoints of a name: a provider's probe, or one that the program
 * registered.
 */
struct source {
	struct source *next; /* of the same name */
	const char *signature;
	struct abi_probe probe;
	int enabled;
};

/*
 * A field that is for filters only: where its value is among those that a probe passes to a filter.
 */
struct aside {
	size_t offset;
	struct kymo_field field;
};

/* How the probe's next write goes into a record. */
enum step {
	STEP_COPY,
	STEP_LENGTH /* the length of a sequence, of any integer type: 32 bits in a record */
};

struct event {
	struct kymo_watched_event watched;
	struct kymo_event_state state;
	struct abi_enabler enabler;
	struct abi_recorder recorder;
	struct source source;
	struct kymo_field *fields;
	uint8_t *steps;
	struct aside *asides;
	size_t n_asides, n_sequences;
};

extern const struct abi_ops lttng_ops;
int lttng_filter(const struct abi_enabler *enabler, const char *values,
	struct abi_probe_context *context, void *filter_context);

/*
 * Fills in fields, steps and asides. Returns false, and frees them, if the event has a field of an
 * unknown type.
 */
bool lttng_describe(struct event *e, const struct abi_class *cls);
void lttng_describe_free(struct event *e);

/*
 * Objects that were compiled with _LGPL_SOURCE have the read lock of LTTng-UST inline: it counts in
 * a structure of the thread's, for a writer that does not exist here.
 */
struct urcu_reader {
	unsigned long count;
	char others[248];
};
extern __thread struct urcu_reader *lttng_ust_urcu_reader
	__attribute__((tls_model("initial-exec")));

/*
 * Reports a part of the program that is not recorded: to the daemons, and with KYMO_DEBUG=1 on
 * stderr. provider: "" if the part is not an event. Takes no lock.
 */
void lttng_leave_out(const char *provider, const char *event, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
