/* SPDX-License-Identifier: MIT */
#ifndef CLI_TRACK_H
#define CLI_TRACK_H

#include "cli/cli.h"

/*
 * Adds one value of an attribute ("vpid", "vuid", ...), as the daemon wants it: "all" or a number.
 * A user or a group may have a name.
 */
int track_add_value(
	struct cli *cli, struct kymo_value *params, const char *attribute, const char *text);

#endif
