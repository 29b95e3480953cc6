/* SPDX-License-Identifier: MIT */
/* Help, made from the tables of commands and options. */
#include "cli/cli.h"

#define OPTION_COLUMN 30

static void print_option(FILE *to, const struct cli_option *o)
{
	const char *arg = cli_option_arg(o) ?: "";
	char left[80];

	snprintf(left, sizeof(left), "  %c%c%c --%s%s%s", o->letter ? '-' : ' ',
		o->letter ? o->letter : ' ', o->letter ? ',' : ' ', o->name,
		*arg && *arg != '[' ? "=" : "", arg);
	fprintf(to, "%-*s", OPTION_COLUMN, left);
	if (strlen(left) >= OPTION_COLUMN)
		fprintf(to, "\n%*s", OPTION_COLUMN, "");
	fprintf(to, "%s\n", o->help);
}

static void print_options(FILE *to, const struct cli_option *o)
{
	for (; o && o->name; o++)
		print_option(to, o);
}

void cli_help_command(FILE *to, const struct cli_command *command)
{
	fprintf(to, "kymo %s - %s\n\nUsage: kymo %s%s%s\n", command->name, command->help,
		command->name, *command->synopsis ? " " : "", command->synopsis);
	if (command->details)
		fprintf(to, "\n%s", command->details);
	fputs("\nOptions:\n", to);
	print_options(to, command->options);
	print_options(to, cli_common_options);
	if (command->mode != CLI_PARSE_UNTIL_ARG) /* else it is that of another program */
		fprintf(to, "\nExit code: %s.\n",
			command->exit_codes ?: "0 done, 1 refused or failed, 2 wrong usage");
}

void cli_help_all(FILE *to)
{
	fputs("kymo - trace programs: record their events and show them\n\n"
	      "Usage: kymo COMMAND [OPTION]... [ARGUMENT]...\n\n"
	      "Commands:\n",
		to);
	for (size_t i = 0; cli_commands[i]; i++)
		if (!cli_commands[i]->internal)
			fprintf(to, "  %-18s%s\n", cli_commands[i]->name, cli_commands[i]->help);
	fputs("\nA first trace:\n"
	      "  kymo record ./program        run the program and record all its events\n"
	      "  kymo view                    show the newest trace\n\n"

	      "Options of all commands: --json (print one JSON object), --help, --version. Before COMMAND:\n"
	      "  -q, --quiet        print errors only\n"
	      "  -v, --verbose      if a session daemon is started, let it log more\n"
	      "  -n, --no-sessiond  start no session daemon\n",
		to);
}

static struct kymo_value *describe_option(const struct cli_option *o)
{
	struct kymo_value *v = kymo_value_new();

	kymo_value_set_string(v, "name", o->name);
	kymo_value_set_string(v, "letter", o->letter ? (const char[]){o->letter, '\0'} : "");
	kymo_value_set_string(v, "argument", cli_option_arg(o) ?: "");
	kymo_value_set_string(v, "help", o->help);
	return v;
}

static struct kymo_value *describe_command(const struct cli_command *c)
{
	struct kymo_value *v = kymo_value_new(), *option;

	kymo_value_set_string(v, "name", c->name);
	kymo_value_set_string(v, "synopsis", c->synopsis);
	kymo_value_set_string(v, "help", c->help);
	kymo_value_set_list(v, "options");
	for (const struct cli_option *o = c->options; o && o->name; o++) {
		option = describe_option(o);
		kymo_value_add(v, "options", option);
		kymo_value_free(option);
	}
	return v;
}

/* All commands, or one. */
static int print_json(struct cli *cli, const char *name)
{
	struct kymo_value *all = kymo_value_new(), *one;
	bool any = false;

	kymo_value_set_list(all, "commands");
	for (size_t i = 0; cli_commands[i]; i++) {
		if (name ? strcmp(cli_commands[i]->name, name) : cli_commands[i]->internal)
			continue;
		one = describe_command(cli_commands[i]);
		kymo_value_add(all, "commands", one);
		kymo_value_free(one);
		any = true;
	}
	if (any)
		cli_result(cli, all);
	kymo_value_free(all);
	return any ? CLI_OK : cli_no_command(cli, name);
}

static int run_help(struct cli *cli)
{
	const char *name = cli_arg(cli, 0);

	if (cli->json)
		return print_json(cli, name);
	if (!name) {
		cli_help_all(stdout);
		return CLI_OK;
	}
	for (size_t i = 0; cli_commands[i]; i++) {
		if (!strcmp(cli_commands[i]->name, name)) {
			cli_help_command(stdout, cli_commands[i]);
			return CLI_OK;
		}
	}
	return cli_no_command(cli, name);
}

const struct cli_command cmd_help = {
	.name = "help",
	.synopsis = "[COMMAND]",
	.help = "show what there is, or how a command is used",
	.max_args = 1,
	.run = run_help,
};

static int run_version(struct cli *cli)
{
	struct kymo_value *v;

	if (!cli->json) {
		printf("kymo %s\n", KYMO_VERSION);
		return CLI_OK;
	}
	v = kymo_value_new();
	kymo_value_set_string(v, "version", KYMO_VERSION);
	cli_result(cli, v);
	kymo_value_free(v);
	return CLI_OK;
}

const struct cli_command cmd_version = {
	.name = "version",
	.synopsis = "",
	.help = "print the version",
	.run = run_version,
};
