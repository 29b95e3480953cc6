/* SPDX-License-Identifier: MIT */
/* start, stop and destroy: one request about a session, or about all, in three words. */
#include "cli/daemon.h"
#include "cli/params.h"
#include "cli/report.h"

static const struct cli_option options[] = {
	{"all", 'a', NULL, "all sessions of this user"},
	{0},
};

static int request(struct cli *cli, struct kymo_value **ret_reply)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli);
	int code = params ? cli_params_which(cli, params) : CLI_FAILED;

	return code ? code : cli_request(cli, cli->command->name, params, ret_reply);
}

static int run_start(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *reply = NULL;
	const struct kymo_value *sessions;
	int code = request(cli, &reply);

	if (code)
		return code;
	if (cli->json) {
		cli_result(cli, reply);
		return CLI_OK;
	}
	sessions = kymo_value_get(reply, "sessions");
	for (size_t i = 0; i < kymo_value_count(sessions); i++)
		printf("session '%s' started\n",
			cli_member(cli, kymo_value_at(sessions, i), "name"));
	if (!kymo_value_count(sessions))
		puts("there is no session");
	return CLI_OK;
}

/* Done, but not well, when something that was recorded could not be written. */
static int exit_code(const struct kymo_value *sessions)
{
	for (size_t i = 0; i < kymo_value_count(sessions); i++)
		if (kymo_value_u64(kymo_value_get(kymo_value_at(sessions, i), "unwritten")))
			return CLI_FAILED;
	return CLI_OK;
}

static int run_end(struct cli *cli, const char *done)
{
	_cleanup_value_ struct kymo_value *reply = NULL;
	int code = request(cli, &reply);

	if (code)
		return code;
	if (cli->json)
		cli_result(cli, reply);
	else
		cli_report_ended(cli, kymo_value_get(reply, "sessions"), done);
	return exit_code(kymo_value_get(reply, "sessions"));
}

static int run_stop(struct cli *cli)
{
	return run_end(cli, "stopped");
}

static int run_destroy(struct cli *cli)
{
	return run_end(cli, "destroyed");
}

const struct cli_command cmd_start = {
	.name = "start",
	.synopsis = "[NAME | -a]",
	.help = "begin to record",
	.options = options,
	.max_args = 1,
	.run = run_start,
};

const struct cli_command cmd_stop = {
	.name = "stop",
	.synopsis = "[NAME | -a]",
	.help = "end recording; all recorded events are in the trace then",
	.details = "A stopped session can be started again.\n",
	.options = options,
	.max_args = 1,
	.run = run_stop,
};

const struct cli_command cmd_destroy = {
	.name = "destroy",
	.synopsis = "[NAME | -a]",
	.help = "stop a session and forget it; its trace stays",
	.options = options,
	.max_args = 1,
	.run = run_destroy,
};
