/* SPDX-License-Identifier: MIT */
/*
 * The option --symbols: addresses as functions and lines (symbols/symbols.h). A command has
 * CLI_SYMBOLS_OPTION in its table. It calls cli_symbols_parse before it opens the trace, with
 * options for the reader, cli_symbols_open after, and cli_symbols_end in any case.
 */
#ifndef CLI_SYMBOLS_H
#define CLI_SYMBOLS_H

#include "cli/cli.h"
#include "export/export.h"
#include "reader/field.h"
#include "reader/format.h"
#include "symbols/symbols.h"

/* clang-format off */
#define CLI_SYMBOLS_OPTION \
	{"symbols", 0, "+[=DIR|FIELD,...]", "show functions and lines of addresses; look for files in DIR (with '/') first"}
/* clang-format on */

#define CLI_SYMBOLS_MAX 32 /* directories; fields */

struct cli_symbols {
	bool is_wanted;
	char *given; /* owned: what the names below point into */
	const char *dirs[CLI_SYMBOLS_MAX], *fields[CLI_SYMBOLS_MAX];
	size_t n_dirs, n_fields;
	struct kymo_reader *reader;	     /* owned */
	struct ky_symbols *symbols;	     /* owned */
	const struct ky_trace_reader *shown; /* borrowed: the reader of the events */
	struct cli_process_fields *process;  /* owned, by class */
	struct ky_symbolizer symbolizer;
};

/* The option --stacks, and --symbols for directories only: of commands that write folded stacks. */
/* clang-format off */
#define CLI_FOLDED_OPTIONS \
	{"stacks", 0, "spans|calls", "folded: stacks of spans, or the context callstack (default: spans, if there are any)"}, \
	{"symbols", 0, "+[=DIR,...]", "folded: look for the files of programs in DIR first"}
/* clang-format on */

/* Reads the option. Reports what is wrong; returns an exit code. */
int cli_symbols_parse(struct cli *cli, struct cli_symbols *s);
/* Lets the reader, which is opened next, find addresses. */
void cli_symbols_prepare(const struct cli_symbols *s, struct ky_trace_reader_options *options);
/* True if the traces' metadata has events that say which files were in memory. */
bool cli_symbols_has_files(const struct ky_trace_reader *r);
/*
 * Reads the state events of the same traces. Does nothing if symbols are not wanted. Reports what
 * is wrong; returns an exit code. Sets *ret to what lines need, or NULL.
 */
int cli_symbols_open(struct cli *cli, struct cli_symbols *s, const struct ky_trace_reader *shown,
	const struct ky_symbolizer **ret);
/* Follows a refresh of the reader of the events; no thread searches. Returns 0 or -ENOMEM. */
int cli_symbols_refresh(struct cli_symbols *s);
/* Warns of a reason why addresses have no symbols. A callback: arg is a struct cli. */
void cli_symbols_warn(void *arg, const char *text);
/* Warns of all these reasons. */
void cli_symbols_report(struct cli *cli, struct cli_symbols *s);
/*
 * Reads the options of folded stacks. s owns what *ret refers to, until cli_symbols_end. Reports
 * what is wrong; returns an exit code.
 */
int cli_symbols_folded(struct cli *cli, struct cli_symbols *s, struct ky_folded_options *ret);
void cli_symbols_end(struct cli_symbols *s);

#endif
