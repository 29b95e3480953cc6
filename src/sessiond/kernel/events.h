/* SPDX-License-Identifier: MIT */
/*
 * The events of a kernel channel: those that its rules match. An event is described in the metadata
 * and to the consumer before the kernel records it.
 */
#ifndef SESSIOND_KERNEL_EVENTS_H
#define SESSIOND_KERNEL_EVENTS_H

#include "base/buf.h"
#include "sessiond/kernel/set.h"

struct kernel_event {
	struct ky_list node; /* in set->events */
	char *system, *name; /* the kernel's */
	char *format;	     /* the kernel's text */
	uint32_t kernel_id, id;
	uint32_t n_contexts;	/* of the channel's, from the first */
	bool wanted;		/* by an enabled rule */
	bool enabled;		/* in the kernel */
	bool changed;		/* since it was enabled: its filter */
	char *filter;		/* what the kernel decides; "": nothing */
	char *rest;		/* what the consumer decides, for people; "": nothing */
	struct ky_buf programs; /* for the consumer */
};

/*
 * Finds the events that the channel's enabled rules match, describes new ones, and counts the
 * matches of each rule. Returns 0, or -errno with one line in why. Observers bring the events to
 * the consumer; kernel_events_apply() enables them when that knows them.
 */
int kernel_events_update(struct channel *c, char why[KERNEL_WHY_MAX]);
/*
 * Before the kernel records: defines probes that another program has removed, and describes events
 * again that the kernel has described in another way since. Returns as kernel_events_update().
 */
int kernel_events_prepare(struct channel *c, char why[KERNEL_WHY_MAX]);
/* Reads what the kernel says of the event: its number and its format. Returns 0 or -errno. */
int kernel_event_read(const struct kernel_set *set, struct kernel_event *e);
/* Enables in the kernel what is wanted, and disables the rest. The first failure is a notice. */
void kernel_events_apply(struct kernel_set *set);
/*
 * Enables again what another program has disabled in the kernel. Returns the number of these
 * events.
 */
unsigned kernel_events_check(struct kernel_set *set);
/* Reports probes of programs whose files were replaced. */
void kernel_events_check_files(struct kernel_set *set);
/*
 * Disables all events in the kernel, until this time of CLOCK_MONOTONIC, so that they cost programs
 * nothing. Returns whether none is left. kernel_events_apply() enables them again.
 */
bool kernel_events_rest(struct kernel_set *set, uint64_t until_ns);
/* Disables in the kernel what no rule wants any more, so that it costs programs nothing. */
void kernel_events_disable(struct kernel_set *set);
/* Describes all events again, with the contexts that the channel has now. Returns 0 or -errno. */
int kernel_events_renew(struct kernel_set *set, char why[KERNEL_WHY_MAX]);
/*
 * Returns false with one line in why if the rule's filter names what none of its events has. A rule
 * for a probe has no events yet.
 */
bool kernel_filter_fits(struct kernel *k, const struct rule *r, char why[KERNEL_WHY_MAX]);
/* An event that a predecessor described. Returns 0 or -errno. */
int kernel_event_restore(struct kernel_set *set, const char *system, const char *name, uint32_t id,
	uint32_t n_contexts);
void kernel_event_free(struct kernel_event *e);
/* Makes the message for the consumer in w (as proto/wire.h). Returns its length or -errno. */
int kernel_event_encode(
	struct ky_writer *w, const struct kernel_set *set, const struct kernel_event *e);

/* Parses a context as context_parse() does, but of kernel events. */
int kernel_context_parse(struct ky_context *ret, const char *spec, char *why, size_t why_size);
/* Writes the description (proto/desc.h) of the event as a trace has it. Returns 0 or -errno. */
int kernel_event_describe(
	struct kernel *k, const char *system, const char *name, struct ky_writer *w);
/* Compiles a filter of kernel events: filter_new() with the contexts of the kernel. */
struct filter *kernel_filter_new(const char *text, struct ky_filter_error *error);
/* Appends which part of the rule's filter the kernel decides, and which the consumer. */
void kernel_put_split(struct ky_buf *to, const struct kernel_set *set, const struct rule *r);

/*
 * Makes the message about the records of stacks, "kernel_stack" or "user_stack". Returns its length
 * or -errno.
 */
int kernel_stack_encode(struct ky_writer *w, const struct kernel_set *set, const char *name);

#endif
