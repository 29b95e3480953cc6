/* SPDX-License-Identifier: MIT */
/*
 * Opening the trace that a command line names. For the commands that read traces: view, stat.
 */
#ifndef CLI_TRACE_H
#define CLI_TRACE_H

#include "cli/cli.h"
#include "reader/reader.h"

#define _cleanup_reader_ __attribute__((cleanup(cli_cleanup_reader)))

static inline void cli_cleanup_reader(struct ky_trace_reader **r)
{
	ky_trace_reader_close(*r);
}

/*
 * Opens the trace at path, or, if that is NULL, the most recent one of the user's. A reason why
 * not is reported; returns an exit code. While a trace is read, a file that someone shortens ends
 * the program with one line. ret_path (PATH_MAX bytes, may be NULL) is what was opened.
 */
int cli_trace_open(struct cli *cli, const char *path, const struct ky_trace_reader_options *options,
	char *ret_path, struct ky_trace_reader **ret_reader);

#endif
