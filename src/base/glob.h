/* SPDX-License-Identifier: MIT */
/*
 * Event name patterns: `*` matches any run of characters, also an empty one; `\` makes the next
 * character literal; every other character matches itself. The session daemon and the tracer use
 * them.
 */
#ifndef BASE_GLOB_H
#define BASE_GLOB_H

#include <stdbool.h>

/* Matches a text. Time is O(|pattern| * |text|) at worst; no recursion, no allocation. */
bool ky_glob_match(const char *pattern, const char *text);
/*
 * Like ky_glob_match, for a rule and an event's full name. Kymo's own events about applications
 * (kymo_statedump:*, kymo_lib:*) and the system (kymo_vm:* and the collector's others) match only
 * patterns that begin with "kymo_": patterns for all events mean those of applications.
 */
bool ky_glob_match_event(const char *pattern, const char *name);
/* Returns false for a pattern that is empty or ends in a lone backslash. */
bool ky_glob_valid(const char *pattern);

#endif
