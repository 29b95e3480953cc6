/* SPDX-License-Identifier: MIT */
/* ship: sends a trace to another host, also while it is recorded. */
#include "cli/shipper.h"

static const struct cli_option options[] = {
	{"once", 0, NULL,
		"send the data that is there now, and do not wait for the end of the recording"},
	CLI_OPTION_SPOOL,
	CLI_OPTION_SHIP_RATE,
	{"name", 0, "NAME",
		"name of the trace's directory on the other host (default: its name here)"},
	{"background", 'b', NULL,
		"return at once, and send in the background; 'kymo status' shows how much was sent"},
	{0},
};

static int run_ship(struct cli *cli)
{
	struct shipper s;
	int code;

	if (cli_has(cli, "once") && cli_has(cli, "spool"))
		return cli_usage(cli, "--once and --spool exclude each other: --once sends a copy");
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
	.synopsis =
		"TRACE URL [--spool=SIZE] [--ship-rate=SIZE] [--name=NAME] [--once] [--background]",
	.help = "send a trace to another host, also while it is recorded",
	.details =
		"URL is ssh://[USER@]HOST[:PORT]/DIR, or exec:COMMAND. COMMAND must connect its\n"
		"standard input and output to 'kymo receive DIR'. The other host can read the trace at any\n"
		"time.\n"
		"If the connection breaks, the command connects again, and continues after the last data\n"
		"that has arrived; it does the same when it is run again. It ends when the recording has\n"
		"ended and all data has arrived. After a rotation, the next chunk goes to a directory of its\n"
		"own. With --spool, the trace can no longer be read on this host.\n",
	.options = options,
	.min_args = 2,
	.max_args = 2,
	.run = run_ship,
};
