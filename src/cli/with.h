/* SPDX-License-Identifier: MIT */
/*
 * The option --with, and the environment in which a command's programs find libraries: those that
 * record calls (docs/preload.md), the replacements for LTTng-UST's, and libkymo itself. Functions
 * that return a code return CLI_OK, or another exit code after a report.
 */
#ifndef CLI_WITH_H
#define CLI_WITH_H

#include "cli/cli.h"

/* Returns whether --with names the library. */
bool with_has(struct cli *cli, const char *library);
/* Returns whether events of --with have addresses of code in their fields. */
bool with_addresses(struct cli *cli);
/* Lets programs load the libraries of --with. Adds to rules, if --event left them out, theirs. */
int with_preload(struct cli *cli, struct kymo_value *rules);
/* Lets programs find the replacements for LTTng-UST's libraries first. */
int with_lttng(struct cli *cli);
/* Lets programs find libkymo in a place that the dynamic linker does not search. */
int with_library_path(struct cli *cli);

#endif
