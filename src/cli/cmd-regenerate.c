/* SPDX-License-Identifier: MIT */
/* regenerate statedump: applications record their state in the session once more. */
#include "cli/daemon.h"
#include "cli/params.h"
#include "cli/report.h"

static const struct cli_option options[] = {
	CLI_OPTION_SESSION,
	{0},
};

static int run_regenerate(struct cli *cli)
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
	if (strcmp(cli_arg(cli, 0), "metadata"))
		puts("applications have recorded their state again");
	cli_report_notes(cli, reply);
	return CLI_OK;
}

const struct cli_command cmd_regenerate = {
	.name = "regenerate",
	.synopsis = "statedump [-s SESSION]",
	.help = "let applications record their state again, in a session that records",
	.details =
		"Applications record their state when a session starts. This command makes them record it again, in\n"
		"this session only. It depends on the session's rules: with kymo_statedump:*, the files from which\n"
		"programs are loaded; with kymo_vm:*, the virtual machines that run; with kymo_*, all state of the\n"
		"system. State dumps that applications register themselves are recorded, too. Kernel channels record\n"
		"the state of the kernel again: processes, threads, descriptors, devices.\n"
		"'kymo regenerate metadata' is accepted, and changes nothing: metadata is always complete.\n",
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.run = run_regenerate,
};
