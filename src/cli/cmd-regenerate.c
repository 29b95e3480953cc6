/* SPDX-License-Identifier: MIT */
/* regenerate statedump: applications record their state in the session once more. */
#include "cli/daemon.h"
#include "cli/params.h"
#include "cli/report.h"

static const struct cli_option options[] = {
	CLI_OPTION_SESSION,
	{0},
};

static int run(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *reply = NULL;
	int code = params ? cli_params_session(cli, params) : CLI_FAILED;

	if (code)
		return code;
	kymo_value_set_string(params, "what", cli_arg(cli, 0));
	code = cli_request(cli, "regenerate", params, &reply);
	if (code)
		return code;
	if (cli->json) {
		cli_result(cli, reply);
		return CLI_OK;
	}
	puts("programs have told their state");
	cli_report_notes(cli, reply);
	return CLI_OK;
}

const struct cli_command cmd_regenerate = {
	.name = "regenerate",
	.synopsis = "statedump [-s SESSION]",
	.help = "have programs tell a started session their state again",
	.details =
		"What programs tell of themselves when a session starts, they tell that session again:\n"
		"with kymo_statedump:* enabled what files they consist of, with kymo_vm:* the\n"
		"virtual machines that run, with kymo_* all state of the system, and what programs themselves\n"
		"register. No other session gets it.\n",
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
