/* SPDX-License-Identifier: MIT */
/* snapshot record: what the buffers of a session hold now, as a trace of its own. */
#include <limits.h>

#include "cli/daemon.h"
#include "cli/locate.h"
#include "cli/params.h"
#include "cli/report.h"

static const struct cli_option options[] = {
	{"output", 'o', "DIR", "directory of the snapshot; must be new or empty"},
	{"name", 'n', "NAME", "the same as the argument NAME"},
	{"max-size", 'm', "SIZE",
		"write at most so many bytes of events, the newest ones; K, M and G may follow"},
	CLI_OPTION_SESSION,
	{0},
};

static int set_output(struct cli *cli, struct kymo_value *params)
{
	const char *given = cli_get(cli, "output");
	char output[PATH_MAX];
	int r;

	if (!given)
		return CLI_OK;
	r = cli_absolute_path(output, sizeof(output), given);
	if (!r)
		r = kymo_value_set_string(params, "output", output);
	return r < 0 ? cli_fail(cli, "failed", "%s: %s", given, strerror(-r)) : CLI_OK;
}

static int make_params(struct cli *cli, struct kymo_value *params)
{
	int code = cli_params_session(cli, params);
	const char *name = cli_arg(cli, 1);

	if (!code && name && cli_has(cli, "name"))
		return cli_usage(cli, "either NAME or --name=NAME, not both");
	/* LTTng has an address here. */
	if (!code && name && strchr(name, '/'))
		return cli_usage(cli,
			"'%s' cannot name a snapshot: 'kymo snapshot record -o DIR' names a directory",
			name);
	if (!code && (name || cli_has(cli, "name")))
		kymo_value_set_string(params, "name", name ? name : cli_get(cli, "name"));
	if (!code)
		code = set_output(cli, params);
	return code ? code : cli_params_amount(cli, params, "max-size", CLI_SIZE, "max_size");
}

static int refuse_action(struct cli *cli, const char *action)
{
	static const char *const actions[] = {"record", NULL};
	const char *near = cli_nearest(action, actions);

	if (strlen(action) > strlen("-output") &&
		!strcmp(action + strlen(action) - strlen("-output"), "-output"))
		return cli_fail(cli, "unsupported",
			"a session has one place for snapshots, its own: 'kymo create --snapshot -o DIR', or say where with each 'kymo snapshot record -o DIR'");
	return cli_usage(cli,
		near ? "unknown action '%s': did you mean '%s'?"
		     : "unknown action '%s': there is '%s'",
		action, actions[0]);
}

static int run_snapshot(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *reply = NULL;
	int code = params ? CLI_OK : CLI_FAILED;

	if (!code && strcmp(cli_arg(cli, 0), "record"))
		code = refuse_action(cli, cli_arg(cli, 0));
	if (!code)
		code = make_params(cli, params);
	if (!code)
		code = cli_request(cli, "snapshot", params, &reply);
	if (code)
		return code;
	if (cli->json)
		cli_result(cli, reply);
	else
		cli_report_snapshot(cli, kymo_value_get(reply, "snapshot"));
	return CLI_OK;
}

const struct cli_command cmd_snapshot = {
	.name = "snapshot",
	.synopsis = "record [NAME] [-o DIR] [--max-size=SIZE] [-s SESSION]",
	.help = "write what a session's buffers hold now, as a trace of its own",
	.details =
		"Any session will do, not only one that was created with 'kymo create --snapshot'. The session's\n"
		"own trace is not affected. The snapshot is a new directory NAME-N-YYYYMMDD-HHMMSS below the\n"
		"session's directory; NAME is 'snapshot' by default. If that directory holds the session's trace,\n"
		"the new one is beside it: SESSION'S-DIRECTORY-NAME-N-YYYYMMDD-HHMMSS.\n",
	.options = options,
	.min_args = 1,
	.max_args = 2,
	.run = run_snapshot,
};
