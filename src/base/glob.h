/* SPDX-License-Identifier: MIT */
/*
 * Event name patterns: `*` stands for any run of characters, also an empty one, `\` makes the next
 * character plain; everything else stands for itself. Used by the session daemon and by the tracer.
 */
#ifndef BASE_GLOB_H
#define BASE_GLOB_H

#include <stdbool.h>

/* Time is O(|pattern| * |text|) at worst; no recursion, no allocation. */
bool ky_glob_match(const char *pattern, const char *text);
/*
 * As ky_glob_match, for a rule and an event's full name. What Kymo itself tells of programs (kymo_statedump:*,
 * kymo_lib:*) and of the system (kymo_vm:* and the collector's others) is matched only by patterns that begin with
 * "kymo_": what stands for all events means those that programs have.
 */
bool ky_glob_match_event(const char *pattern, const char *name);
/* False for a pattern that ends in a lone backslash or is empty. */
bool ky_glob_valid(const char *pattern);

#endif
