/* SPDX-License-Identifier: MIT */
/* start, stop, pause, resume and destroy: one request about one session, or about all. */
#include <inttypes.h>

#include "cli/daemon.h"
#include "cli/params.h"
#include "cli/report.h"
#include "cli/shipping.h"

static const struct cli_option options[] = {
	CLI_OPTION_SESSION,
	CLI_OPTION_ALL_SESSIONS,
	{"no-wait", 'n', NULL, "do not wait until it is done"},
	{0},
};

static int request_for_sessions(struct cli *cli, struct kymo_value **ret_reply)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli);
	int code = params ? cli_params_which_or_all(cli, params) : CLI_FAILED;

	if (!code)
		code = cli_params_no_wait(cli, params);
	return code ? code : cli_request(cli, cli->command->name, params, ret_reply);
}

static void report_state(struct cli *cli, const struct kymo_value *session)
{
	printf("session '%s' %s\n", cli_member(cli, session, "name"),
		!strcmp(cli->command->name, "resume") ? "resumed"
						      : cli_member(cli, session, "state"));
}

/* start, pause and resume. */
static int run_state(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *reply = NULL;
	const struct kymo_value *sessions;
	int code = request_for_sessions(cli, &reply);

	if (code)
		return code;
	if (cli->json) {
		cli_result(cli, reply);
		return CLI_OK;
	}
	sessions = kymo_value_get(reply, "sessions");
	for (size_t i = 0; i < kymo_value_count(sessions); i++)
		report_state(cli, kymo_value_at(sessions, i));
	if (!kymo_value_count(sessions))
		puts("there is no session");
	cli_report_notes(cli, reply);
	return CLI_OK;
}

/*
 * Warns of recorded events that are not in the trace: they are lost, or still wait for room on the
 * disk. Returns whether there are any.
 */
static bool warn_of_missing(struct cli *cli, const struct kymo_value *session)
{
	const uint64_t lost = kymo_value_u64(kymo_value_get(session, "unwritten"));
	const char *error = cli_member(cli, session, "error");
	const uint64_t waiting = *error ? kymo_value_u64(kymo_value_get(session, "in_buffers")) : 0;

	if (lost || waiting)
		cli_warn(cli, "session '%s': %" PRIu64 " recorded event%s not in the trace%s%s%s",
			cli_member(cli, session, "name"), lost + waiting,
			lost + waiting == 1 ? " is" : "s are", lost ? "" : " yet",
			*error ? ": " : "", error);
	return lost || waiting;
}

static int exit_code(struct cli *cli, const struct kymo_value *sessions)
{
	int code = CLI_OK;

	for (size_t i = 0; i < kymo_value_count(sessions); i++)
		if (warn_of_missing(cli, kymo_value_at(sessions, i)))
			code = CLI_FAILED;
	return code;
}

static void report_begun(const struct kymo_value *sessions, const char *done)
{
	size_t n = kymo_value_count(sessions);

	printf("%zu session%s will be %s\n", n, n == 1 ? "" : "s", done);
}

/* A command that sends a trace goes on after the session: it says how far it is. */
static void report_shipping(struct cli *cli, const struct kymo_value *sessions)
{
	for (size_t i = 0; i < kymo_value_count(sessions); i++) {
		const char *output = cli_member(cli, kymo_value_at(sessions, i), "output");

		if (*output)
			shipping_report(cli, output);
	}
}

static int run_end(struct cli *cli, const char *done)
{
	_cleanup_value_ struct kymo_value *reply = NULL;
	int code = request_for_sessions(cli, &reply);

	if (code)
		return code;
	if (cli->json)
		cli_result(cli, reply);
	else if (cli_has(cli, "no-wait"))
		report_begun(kymo_value_get(reply, "sessions"), done);
	else
		cli_report_ended(cli, kymo_value_get(reply, "sessions"), done);
	if (!cli->json && !cli_has(cli, "no-wait"))
		report_shipping(cli, kymo_value_get(reply, "sessions"));
	if (!cli->json)
		cli_report_notes(cli, reply);
	return exit_code(cli, kymo_value_get(reply, "sessions"));
}

static int run_stop(struct cli *cli)
{
	return run_end(cli, "stopped");
}

static int run_destroy(struct cli *cli)
{
	return run_end(cli, "destroyed");
}

#define SYNOPSIS "[[-s] NAME | -a] [--no-wait]"

const struct cli_command cmd_start = {
	.name = "start",
	.synopsis = SYNOPSIS,
	.help = "start recording, or continue it after a stop",
	.options = options,
	.max_args = 1,
	.run = run_state,
};

const struct cli_command cmd_stop = {
	.name = "stop",
	.synopsis = SYNOPSIS,
	.help = "stop recording; all recorded events are then in the trace",
	.details =
		"A stopped session can be started again. 'kymo pause' is faster: it does not empty the buffers.\n",
	.options = options,
	.max_args = 1,
	.run = run_stop,
};

const struct cli_command cmd_pause = {
	.name = "pause",
	.synopsis = SYNOPSIS,
	.help = "suspend recording; the buffers keep their events",
	.details =
		"When the command returns, no application records, and applications that start do not record either.\n"
		"'kymo resume' (or 'kymo start') continues, in the same trace. Events that are in the buffers are\n"
		"written to the trace as usual, and snapshots have them. In overwrite mode, they are no longer\n"
		"overwritten. 'kymo stop' writes all events of a paused session, as of a started one.\n",
	.options = options,
	.max_args = 1,
	.run = run_state,
};

const struct cli_command cmd_resume = {
	.name = "resume",
	.synopsis = SYNOPSIS,
	.help = "continue to record after a pause",
	.options = options,
	.max_args = 1,
	.run = run_state,
};

const struct cli_command cmd_destroy = {
	.name = "destroy",
	.synopsis = SYNOPSIS,
	.help = "stop a session and remove it; its trace stays",
	.options = options,
	.max_args = 1,
	.run = run_destroy,
};
