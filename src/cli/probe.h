/* SPDX-License-Identifier: MIT */
/*
 * Options for probes, --probe, --function and --userspace-probe: rules of kernel channels for
 * events that the kernel makes at places of itself and of programs. Places of programs are found
 * here, with the user's rights: the daemon reads no program.
 */
#ifndef CLI_PROBE_H
#define CLI_PROBE_H

#include "cli/cli.h"

#define CLI_OPTIONS_PROBES                                                                                                            \
	{"probe", 0, "+SYMBOL[+OFF]", "record an event when the kernel reaches this place"},                                          \
		{"function", 0, "+PATTERN",                                                                                           \
			"record events when these functions of the kernel begin and end"},                                            \
	{                                                                                                                             \
		"userspace-probe", 0, "+PATH:SYMBOL[+OFF]",                                                                           \
			"record an event when a process reaches this place of a program; 'sdt:PATH:PROVIDER:NAME': a SystemTap probe" \
	}

/* The options, then NULL. */
extern const char *const probe_options[];

/* Returns whether any of the options was given. */
bool probe_is_given(const struct cli *cli);
/*
 * Adds the parameters of the rule for one value of an option: kind, place, definitions, and the
 * event's name as its pattern. name: NULL: from the place. Returns CLI_OK, or another exit code
 * after a report.
 */
int probe_params(struct cli *cli, const char *option, const char *place, const char *name,
	struct kymo_value *params);

#endif
