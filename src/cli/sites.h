/* SPDX-License-Identifier: MIT */
/* The options --locks and --memory of stat: by sites of the program. */
#ifndef CLI_SITES_H
#define CLI_SITES_H

#include "cli/cli.h"
#include "reader/query.h"

/* True if one of the options is given. */
bool sites_is_wanted(const struct cli *cli);
/* Reports what does not go with the options; returns an exit code. */
int sites_check_options(struct cli *cli);
/* Reads the events, and prints the results. path: as in measure.h. Returns an exit code. */
int sites_run(struct cli *cli, const struct ky_query *query,
	const struct ky_trace_reader_options *options, const char *path);

#endif
