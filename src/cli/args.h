/* SPDX-License-Identifier: MIT */
/*
 * Options of a command: a table that describes them, and the one parser for all commands. The help
 * text is made from the same table. The parser is pure: argument vector in, values out.
 */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include "base/util.h"

struct cli_option {
	const char *name; /* long form without the dashes; NULL ends a table */
	char letter;	  /* short form, or 0 */
	/*
	 * name of the argument in the help; NULL: the option takes none; "[=NAME]": it may be left
	 * out, and comes behind '='; "+" in front: the option may be repeated, and each value
	 * counts; "-" in front, behind the "+": the argument may be left out, and is "" then
	 */
	const char *arg;
	const char *help; /* one line */
};

/* The name of its argument, or NULL. */
static inline const char *cli_option_arg(const struct cli_option *o)
{
	return o->arg ? o->arg + strspn(o->arg, "+-") : NULL;
}

/* One option as it was given. */
struct cli_given {
	const struct cli_option *opt;
	const char *value; /* NULL when the option takes none; borrowed from argv */
};

struct cli_args {
	const struct cli_option *table;
	struct cli_given *given; /* owned, in the order of the command line */
	size_t n_given;
	char **pos; /* owned array of borrowed arguments that are no options; ends with NULL */
	size_t n_pos;
	size_t n_before; /* CLI_PARSE_SIDES: of them, those before "--"; 0 without "--" */
	char why[256];	 /* the reason of an error: one line */
};

/* Options that every command has; parsed and listed after its own. */
extern const struct cli_option cli_common_options[];

enum cli_parse_mode {
	CLI_PARSE_MIXED = 0, /* options and arguments in any order, "--" ends the options */
	CLI_PARSE_UNTIL_ARG =
		1, /* the first argument ends the options: the rest belongs to another program */
	CLI_PARSE_SIDES = 2, /* as mixed, but "--" separates two lists of arguments */
};

/*
 * Parses argv[0 .. argc-1], which has no program or command name. Returns 0, -ENOMEM, -EINVAL for
 * an unknown option, an empty value, or a second value of an option that has one only, or
 * -EOPNOTSUPP for one that this version does not have yet; a->why then has the reason. The caller
 * calls cli_args_deinit in any case.
 */
int cli_args_parse(struct cli_args *a, const struct cli_option *table, enum cli_parse_mode mode,
	int argc, char **argv);
void cli_args_deinit(struct cli_args *a);
/* Adds an option of the table, as if it was given last. value: borrowed. Returns 0 or -ENOMEM. */
int cli_args_add(struct cli_args *a, const char *name, const char *value);

/* Returns true if the option was given. It must be in the table, or a common one. */
bool cli_args_has(const struct cli_args *a, const char *name);
/* Returns the value that was given, or NULL. Of an option of which each value counts: the last. */
const char *cli_args_get(const struct cli_args *a, const char *name);
/* Returns the next value of an option of which each counts, NULL at the end. *iter starts at 0. */
const char *cli_args_next(const struct cli_args *a, const char *name, size_t *iter);

#endif
