/* SPDX-License-Identifier: MIT */
/* The events that the kernel has, and those of them that a rule matches. */
#ifndef SESSIOND_KERNEL_MATCHES_H
#define SESSIOND_KERNEL_MATCHES_H

#include "base/buf.h"
#include "kernel/program.h"
#include "sessiond/kernel/set.h"

/* An event of the kernel, and what the trace calls it. */
struct kernel_candidate {
	const char *system, *name; /* borrowed */
	char trace_name[KY_KPROGRAM_NAME];
};

void kernel_candidate_init(struct kernel_candidate *c, const char *system, const char *name);
/*
 * Returns whether the rule of a channel matches the event. set: NULL for a rule without a channel,
 * which has no probes.
 */
bool kernel_rule_has(
	const struct kernel_set *set, const struct rule *r, const struct kernel_candidate *c);
/*
 * Counts the events that the rule matches, without a channel: for messages about a rule that is not
 * enabled yet. If there are none, writes up to RULE_SIMILAR_MAX names that are like its pattern,
 * separated by ", ".
 * Returns -errno with one line in why.
 */
int kernel_count_matches(
	struct kernel *k, const struct rule *r, struct ky_buf *similar, char why[KERNEL_WHY_MAX]);
/* Returns the name of the call that the event enters, or NULL. */
const char *kernel_event_call(const char *system, const char *name);
/* Calls each with "SYSTEM", "NAME" of all events of the kernel. Returns 0 or -errno. */
int kernel_events_list(
	struct kernel *k, void (*each)(void *arg, const char *system, const char *name), void *arg);

#endif
