/* SPDX-License-Identifier: MIT */
/* ship: sends a trace to another host, also while it is recorded. */
#include "cli/shipper.h"

static const struct cli_option options[] = {
	{"once", 0, NULL, "send what is there, and do not wait for the end of the recording"},
	CLI_OPTION_SPOOL,
	{"name", 0, "NAME", "name of the directory at the other end (default: that of TRACE)"},
	{"background", 'b', NULL, "return at once; 'kymo status' says how far it is"},
	{0},
};

static int run(struct cli *cli)
{
	struct shipper s;
	int code;

	if (cli_has(cli, "once") && cli_has(cli, "spool"))
		return cli_usage(cli, "--once sends a copy: there is no --spool");
	code = shipper_init(cli, &s, cli_arg(cli, 1));
	s.once = cli_has(cli, "once");
	if (!code)
		code = shipper_open(cli, &s, cli_arg(cli, 0), cli_get(cli, "name"));
	if (!code)
		code = cli_has(cli, "background") ? shipper_detach(cli, &s) : shipper_run(cli, &s);
	shipper_deinit(&s);
	return code;
}

const struct cli_command cmd_ship = {
	.name = "ship",
	.synopsis = "TRACE URL [--spool=SIZE] [--name=NAME] [--once] [--background]",
	.help = "send a trace to another host, also while it is recorded",
	.details =
		"URL is ssh://[USER@]HOST[:PORT]/DIR, or exec:COMMAND that leads to 'kymo receive\n"
		"DIR' by its standard input and output. The trace can be read there at any time.\n"
		"If the connection breaks, it is made again, and goes on where the other end is;\n"
		"so does the command when it is run again. It ends when the recording has ended\n"
		"and all has arrived. After a rotation the next part goes to a directory of its own.\n"
		"With --spool the trace here is but a spool: it cannot be read.\n",
	.options = options,
	.min_args = 2,
	.max_args = 2,
	.run = run,
};
