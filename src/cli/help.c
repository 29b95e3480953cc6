/* SPDX-License-Identifier: MIT */
/* Help, made from the tables of commands and options. */
#include "cli/cli.h"

#define OPTION_COLUMN 30

static void print_option(const struct cli_option *o)
{
	const char *arg = cli_option_arg(o) ?: "";
	char left[80];

	snprintf(left, sizeof(left), "  %c%c%c --%s%s%s", o->letter ? '-' : ' ',
		o->letter ? o->letter : ' ', o->letter ? ',' : ' ', o->name,
		*arg && *arg != '[' ? "=" : "", arg);
	printf("%-*s", OPTION_COLUMN, left);
	if (strlen(left) >= OPTION_COLUMN)
		printf("\n%*s", OPTION_COLUMN, "");
	puts(o->help);
}

static void print_options(const struct cli_option *o)
{
	for (; o && o->name; o++)
		print_option(o);
}

static void print_command(const struct cli_command *command)
{
	printf("kymo %s - %s\n\nUsage: kymo %s%s%s\n", command->name, command->help, command->name,
		*command->synopsis ? " " : "", command->synopsis);
	if (command->details)
		printf("\n%s", command->details);
	puts("\nOptions:");
	print_options(command->options);
	print_options(cli_common_options);
	if (command->mode != CLI_PARSE_UNTIL_ARG) /* else it is that of another program */
		printf("\nExit status: %s.\n",
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

static void print_json(struct cli *cli, const struct cli_command *command)
{
	struct kymo_value *all = kymo_value_new(), *one;

	kymo_value_set_list(all, "commands");
	for (size_t i = 0; cli_commands[i]; i++) {
		if (command ? cli_commands[i] != command : cli_commands[i]->internal)
			continue;
		one = describe_command(cli_commands[i]);
		kymo_value_add(all, "commands", one);
		kymo_value_free(one);
	}
	cli_result(cli, all);
	kymo_value_free(all);
}

int cli_help(struct cli *cli, const struct cli_command *command)
{
	cli->result = stdout;
	if (cli->json)
		print_json(cli, command);
	else if (command)
		print_command(command);
	else
		cli_help_all(stdout);
	return CLI_OK;
}

static int run_help(struct cli *cli)
{
	const char *name = cli_arg(cli, 0);

	for (size_t i = 0; name && cli_commands[i]; i++)
		if (!strcmp(cli_commands[i]->name, name))
			return cli_help(cli, cli_commands[i]);
	return name ? cli_no_command(cli, name) : cli_help(cli, NULL);
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
