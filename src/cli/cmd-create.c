/* SPDX-License-Identifier: MIT */
#include <limits.h>

#include "cli/daemon.h"
#include "cli/locate.h"
#include "cli/params.h"
#include "cli/report.h"

static const struct cli_option options[] = {
	{"output", 'o', "DIR", "directory of the trace; must be new or empty"},
	{"no-output", 0, NULL, "write no trace, only count"},
	{"snapshot", 0, NULL,
		"keep the newest events in memory; 'kymo snapshot record' writes them"},
	CLI_OPTION_SHM_PATH,
	{0},
};

/*
 * Fills in the output. *ret_made: the directory is new, by us, and has to go if there will be no
 * session.
 */
static int choose_output(
	struct cli *cli, const char *session, bool dated, char *output, bool *ret_made)
{
	bool given = cli_has(cli, "output");
	int code;

	if (given && cli_has(cli, "no-output"))
		return cli_usage(cli, "either --output or --no-output, not both");
	output[0] = '\0';
	if (cli_has(cli, "no-output"))
		return CLI_OK;
	code = cli_choose_output(cli, session, dated, output);
	*ret_made = !given && !code;
	return code;
}

static int create(struct cli *cli, struct kymo_ctl *ctl, const char *name, const char *output)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *reply = NULL;
	int code;

	if (!params)
		return CLI_FAILED;
	kymo_value_set_string(params, "session", name);
	kymo_value_set_string(params, "output", output);
	if (cli_has(cli, "snapshot"))
		kymo_value_set_bool(params, "snapshot", true);
	code = cli_params_shm_path(cli, params);
	if (!code)
		code = cli_call(cli, ctl, "create", params, &reply);
	if (code)
		return code;
	if (cli->json)
		cli_result(cli, reply);
	else if (*output)
		printf("session '%s' created: its %s to %s\n", cli_safe(cli, name),
			cli_has(cli, "snapshot") ? "snapshots go" : "trace goes",
			cli_safe(cli, output));
	else
		printf("session '%s' created: no trace is written\n", cli_safe(cli, name));
	if (!cli->json)
		cli_report_notes(cli, reply);
	return CLI_OK;
}

static int run(struct cli *cli)
{
	_cleanup_ctl_ struct kymo_ctl *ctl = NULL;
	char name[64], date[32], output[PATH_MAX];
	const char *session = cli_arg(cli, 0);
	bool made = false;
	int code;

	if (session && !cli_session_name_valid(session))
		return cli_fail(cli, "usage",
			"'%s' cannot name a session: use up to 128 letters, digits, '.', '_' and '-'",
			session);
	cli_format_date(date, sizeof(date));
	snprintf(name, sizeof(name), "auto-%s", date);
	code = choose_output(cli, session ? session : name, !session, output, &made);
	if (!code)
		code = cli_connect_or_start(cli, &ctl);
	if (!code)
		code = create(cli, ctl, session ? session : name, output);
	if (code && made)
		rmdir(output);
	return code;
}

const struct cli_command cmd_create = {
	.name = "create",
	.synopsis = "[NAME] [-o DIR] [--snapshot] [--shm-path=DIR]",
	.help = "make a session, and start a daemon if none runs",
	.details =
		"Without a name, the session is called auto-YYYYMMDD-HHMMSS. Without --output, its trace goes\n"
		"to a new directory SESSION-YYYYMMDD-HHMMSS below $KYMO_HOME or $HOME/kymo-traces.\n"
		"\n"
		"With --shm-path, the buffers are files, best in a tmpfs (/dev/shm/NAME): when everything was\n"
		"killed, 'kymo recover DIR' writes out what they hold. The directory goes with the session.\n",
	.options = options,
	.max_args = 1,
	.run = run,
};
