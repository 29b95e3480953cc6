/* SPDX-License-Identifier: MIT */
/*
 * Opening the traces that a command line names. For the commands that read traces.
 */
#ifndef CLI_TRACE_H
#define CLI_TRACE_H

#include "cli/cli.h"
#include "reader/cursor.h"

#define _cleanup_cursor_ __attribute__((cleanup(cli_cleanup_cursor)))
#define _cleanup_reader_ __attribute__((cleanup(cli_cleanup_reader)))

static inline void cli_cleanup_reader(struct ky_trace_reader **r)
{
	ky_trace_reader_close(*r);
}

static inline void cli_cleanup_cursor(struct ky_cursor **c)
{
	ky_cursor_close(*c);
}

/*
 * Finds the traces to open: the n named ones or, without any, the most recent one of the user's,
 * whose path is put into `found` (PATH_MAX bytes). *ret_paths: borrowed from both. Reports a
 * failure; returns an exit code.
 */
int cli_trace_find(struct cli *cli, char **named, size_t n, char *found,
	const char *const **ret_paths, size_t *ret_n);
/* Returns the code of an error of opening a trace (cli_fail). */
const char *cli_trace_code(int error);
/*
 * Opens the traces that the arguments name, or, without any, the most recent one of the user's. A
 * reason why not is reported; returns an exit code. ret_path (PATH_MAX bytes, may be NULL) is the
 * first that was opened.
 */
int cli_trace_open(struct cli *cli, const struct ky_trace_reader_options *options, char *ret_path,
	struct ky_trace_reader **ret_reader);

#endif
