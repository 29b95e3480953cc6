/* SPDX-License-Identifier: MIT */
/* The options --latency, --hist and --top of stat. */
#ifndef CLI_MEASURE_H
#define CLI_MEASURE_H

#include "cli/cli.h"
#include "reader/query.h"

/* True if one of the options is given. */
bool measure_is_wanted(const struct cli *cli);
/* Reports what is wrong with the options; returns an exit code. */
int measure_check_options(struct cli *cli);
/* Measures, and prints the results. path: of the trace if none is named. Returns an exit code. */
int measure_run(struct cli *cli, const struct ky_query *query,
	const struct ky_trace_reader_options *options, const char *path);
/* "12.3 us", right-aligned in a column. */
void measure_print_duration(unsigned __int128 ns);
/* Writes a decimal number to `to`, and returns it. */
const char *measure_put_sum(char to[40], unsigned __int128 sum);
/* ": ", and the command that shows what lies between two times; path: as above. */
void measure_print_view(struct cli *cli, const char *path, int64_t from_ns, int64_t to_ns);

#endif
