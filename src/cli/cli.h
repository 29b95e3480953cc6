/* SPDX-License-Identifier: MIT */
/*
 * The `kymo` command: a table of commands, each described by one struct cli_command in its own
 * cmd-<name>.c, and what they share: options, results, errors.
 *
 * To add a command: write cmd-<name>.c with its `const struct cli_command cmd_<name>`, declare it
 * below, add it to cli_commands[] in cli.c and the file to meson.build.
 *
 * A handler returns an exit code. It says its result once: with cli->json by cli_result() (or
 * cli_print_json()), else as text on stdout with printf. Errors go through cli_fail() or
 * cli_usage(), whose return value is the exit code.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <kymo/ctl.h>

#include "cli/args.h"
#include "cli/text.h"

/* Exit codes, fixed by contract. */
enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1, /* refused or failed; one line on stderr says what, why and what to do */
	CLI_USAGE = 2,
};

struct cli;

struct cli_command {
	const char *name;
	const char *synopsis;	/* behind the name: "[NAME] [-o DIR]" */
	const char *help;	/* one line, no full stop */
	const char *details;	/* more lines for --help, each ended by a newline; or NULL */
	const char *exit_codes; /* for --help, where they are others than those of most commands */
	const struct cli_option *options; /* ends with an empty row; NULL: only the common ones */
	enum cli_parse_mode mode;
	bool internal;		     /* for other parts of Kymo: not in the list of commands */
	unsigned min_args, max_args; /* arguments that are no options */
	int (*run)(struct cli *cli);
};

/* One run of the program. */
struct cli {
	const struct cli_command *command; /* NULL before it is known */
	struct cli_args args;
	bool quiet;	    /* only errors are printed */
	bool verbose;	    /* such a daemon logs more */
	bool no_sessiond;   /* none is started */
	bool starts_daemon; /* it may start one where none runs */
	bool json;	    /* one JSON object is wanted instead of text */
	bool colour;	    /* stdout is a terminal that may be coloured */
	FILE *result; /* where that object goes: stdout, but for commands whose stdout is another's
		       */
	bool printed; /* it has been printed */
	struct cli_progress *progress; /* the command's, or NULL; lines on stderr erase it */
	char **strings;		       /* made by cli_safe, freed at the end */
	size_t n_strings;
};

#define CLI_ANY_ARGS (~0u)

/* All commands, then NULL. */
extern const struct cli_command *const cli_commands[];
extern const struct cli_command cmd_record;
extern const struct cli_command cmd_create, cmd_destroy, cmd_start, cmd_stop, cmd_pause, cmd_resume;
extern const struct cli_command cmd_enable_channel, cmd_disable_channel, cmd_set;
extern const struct cli_command cmd_enable_event, cmd_disable_event;
extern const struct cli_command cmd_add_context;
extern const struct cli_command cmd_snapshot, cmd_recover, cmd_regenerate;
extern const struct cli_command cmd_rotate, cmd_clear, cmd_enable_rotation, cmd_disable_rotation;
extern const struct cli_command cmd_track, cmd_untrack;
extern const struct cli_command cmd_add_trigger, cmd_list_triggers, cmd_remove_trigger, cmd_watch;
extern const struct cli_command cmd_list, cmd_status, cmd_set_session, cmd_load;
extern const struct cli_command cmd_doctor, cmd_save;
extern const struct cli_command cmd_view, cmd_stat, cmd_explain, cmd_sql, cmd_export, cmd_diff,
	cmd_top, cmd_report, cmd_web, cmd_live, cmd_merge;
extern const struct cli_command cmd_standalone, cmd_ship, cmd_receive, cmd_fleet;
extern const struct cli_command cmd_help, cmd_version;

/* Runs the command line; returns the exit code. */
int cli_main(int argc, char **argv);

/* Shorthands for the command's own options; see args.h. */
bool cli_has(const struct cli *cli, const char *option);
const char *cli_get(const struct cli *cli, const char *option);
/* Argument i that is no option, or NULL. */
const char *cli_arg(const struct cli *cli, size_t i);

/*
 * Reports a failure: one line "kymo: <text>" on stderr, control characters escaped, and with --json
 * also {"ok": false, "code": code, "error": text}. code: a word of docs/protocol.md. Returns
 * CLI_FAILED.
 */
int cli_fail(struct cli *cli, const char *code, const char *fmt, ...) KY_PRINTF(3, 4);
/* Reports an invalid command line: code "usage", and points to --help. Returns CLI_USAGE. */
int cli_usage(struct cli *cli, const char *fmt, ...) KY_PRINTF(2, 3);
/* Reports an unknown command, and suggests a similar one. Returns the exit code. */
int cli_no_command(struct cli *cli, const char *name);
/* Prints a warning, one line on stderr, although the command succeeds. */
void cli_warn(const struct cli *cli, const char *fmt, ...) KY_PRINTF(2, 3);
/* The same, of a text, as a callback of a reader: arg is a struct cli. */
void cli_warn_text(void *arg, const char *text);
/* Prints each line of another Kymo program's log as a warning. Changes the text. */
void cli_warn_log(const struct cli *cli, char *said);

/* Prints v as the one JSON object of this run, with "ok": true added if it has no "ok". */
void cli_result(struct cli *cli, struct kymo_value *v);
/* Returns CLI_OK. With --json, prints the object of a command that has written a file. */
int cli_result_output(struct cli *cli, const char *path);
/* Prints an object that a command has written itself; text has no newline at its end. */
void cli_print_json(struct cli *cli, const char *text);
/* The same for a text in a buffer, which it frees. Fails if there was no memory for the text. */
int cli_print_json_buf(struct cli *cli, struct ky_buf *text);
/* Appends a member of a JSON object, and a comma behind it. */
void cli_put_member(struct ky_buf *b, const char *name, const char *value);

/* text itself when a terminal can show it as it is, else an escaped copy that lives as long as cli.
 */
const char *cli_safe(struct cli *cli, const char *text);
/* The same, quoted if a shell would not read it as one word: for commands that people copy. */
const char *cli_safe_word(struct cli *cli, const char *text);

enum cli_style {
	CLI_PLAIN,
	CLI_BOLD,
	CLI_DIM,
	CLI_RED,
};
/* Returns whether stdout is a terminal that knows escape sequences. */
bool cli_is_screen(void);
/* Escape sequence that starts a style on stdout; "" unless stdout is to be coloured. */
const char *cli_style(const struct cli *cli, enum cli_style style);

/* help.c: texts made from the tables. */
void cli_help_all(FILE *to);
/* Prints the help of a command (NULL: of all) on stdout; as JSON if that is wanted. CLI_OK. */
int cli_help(struct cli *cli, const struct cli_command *command);

#endif
