/* SPDX-License-Identifier: MIT */
/*
 * Opening the traces that a command line names. For the commands that read traces.
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

/* Paths of traces. */
struct cli_traces {
	char **paths; /* owned, as they are */
	size_t n;
	bool may_be_empty; /* set by the caller: a session may have recorded no event yet */
};

#define _cleanup_traces_ __attribute__((cleanup(cli_traces_deinit)))
void cli_traces_deinit(struct cli_traces *t);

/*
 * Finds the traces to open: the n named ones or, without any, the most recent one of the user's. A
 * name that is no path may be that of a session, whose trace it then means, also after the session
 * has been destroyed. Reports a failure; returns an exit code. The caller frees *ret with
 * cli_traces_deinit in any case; *ret is all 0 before, except may_be_empty.
 */
int cli_traces_find(struct cli *cli, const char *const *named, size_t n, struct cli_traces *ret);
/* Returns whether a path without links is that of the directory, or leads into it. */
bool cli_is_below(const char *path, const char *dir);
/*
 * Returns whether an output that is to be made lies in one of the traces that the arguments name.
 * Readers would take another trace there for a part of that trace.
 */
bool cli_trace_has(const struct cli *cli, const char *output);
/* Returns the code of an error of opening a trace (cli_fail). */
const char *cli_trace_code(int error);
/*
 * Opens the traces that the arguments name, or, without any, the most recent one of the user's. A
 * reason why not is reported; returns an exit code. ret_path (PATH_MAX bytes, may be NULL) is the
 * first that was opened. If a trace is growing (options) and its session has recorded no event yet,
 * waits for the first one.
 */
int cli_trace_open(struct cli *cli, const struct ky_trace_reader_options *options, char *ret_path,
	struct ky_trace_reader **ret_reader);

#endif
