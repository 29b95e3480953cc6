/* SPDX-License-Identifier: MIT */
/* add-trigger, list-triggers, remove-trigger: what a session does by itself. */
#include <inttypes.h>

#include "cli/daemon.h"
#include "cli/params.h"
#include "cli/report.h"
#include "cli/text.h"

static const struct cli_option add_options[] = {
	{"when", 0, "CONDITION",
		"the condition, such as 'span(shop:checkout) > 20ms' or 'discarded'"},
	{"do", 0, "ACTION,...", "the actions: notify, snapshot, start, stop, rotate, run:COMMAND"},
	{"rate", 0, "N/PERIOD",
		"act at most N times in each PERIOD (default: 1/1m with a snapshot, else 1/1s)"},
	{"keep", 0, "N|SIZE",
		"keep the newest N snapshots, or the newest that have SIZE together (500M)"},
	CLI_OPTION_SESSION,
	{0},
};

static const struct cli_option list_options[] = {CLI_OPTION_ONE_SESSION, {0}};
static const struct cli_option remove_options[] = {CLI_OPTION_SESSION, {0}};

static int run_add(struct cli *cli)
{
	static const char *const texts[] = {"when", "do", "rate", "keep"};
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *reply = NULL;
	const struct kymo_value *trigger;
	int code = params ? cli_params_session(cli, params) : CLI_FAILED;

	if (code)
		return code;
	if (!cli_has(cli, "when") || !cli_has(cli, "do"))
		return cli_usage(cli, "--when=CONDITION and --do=ACTION are needed");
	if (cli_arg(cli, 0))
		kymo_value_set_string(params, "trigger", cli_arg(cli, 0));
	for (size_t i = 0; i < KY_ARRAY_SIZE(texts); i++)
		if (cli_has(cli, texts[i]))
			kymo_value_set_string(params, texts[i], cli_get(cli, texts[i]));
	code = cli_request(cli, "add-trigger", params, &reply);
	if (code)
		return code;
	trigger = kymo_value_get(reply, "trigger");
	if (cli->json) {
		cli_result(cli, reply);
		return CLI_OK;
	}
	printf("session '%s' has the trigger '%s'\n",
		kymo_value_string(kymo_value_get(trigger, "session")),
		kymo_value_string(kymo_value_get(trigger, "name")));
	cli_report_notes(cli, reply);
	return CLI_OK;
}

static void print_trigger(struct cli *cli, const struct kymo_value *t)
{
	uint64_t n = kymo_value_u64(kymo_value_get(t, "rate_n"));
	uint64_t left_out = kymo_value_u64(kymo_value_get(t, "left_out"));
	uint64_t missed = kymo_value_u64(kymo_value_get(t, "missed_spans"));
	const char *obstacle = kymo_value_string(kymo_value_get(t, "obstacle"));
	char period[32];

	cli_format_usec(period, sizeof(period), kymo_value_u64(kymo_value_get(t, "rate_us")), " ");
	printf("%s: %s\n", kymo_value_string(kymo_value_get(t, "session")),
		kymo_value_string(kymo_value_get(t, "name")));
	printf("  when %s\n", cli_safe(cli, kymo_value_string(kymo_value_get(t, "when"))));
	printf("  do %s, at most %" PRIu64 " time%s in %s\n",
		cli_safe(cli, kymo_value_string(kymo_value_get(t, "do"))), n, n == 1 ? "" : "s",
		period);
	if (kymo_value_get(t, "kept"))
		printf("  keep %s: %" PRIu64 " kept, %" PRIu64 " removed\n",
			cli_safe(cli, kymo_value_string(kymo_value_get(t, "keep"))),
			kymo_value_u64(kymo_value_get(t, "kept")),
			kymo_value_u64(kymo_value_get(t, "removed")));
	n = kymo_value_u64(kymo_value_get(t, "fired"));
	printf("  fired %" PRIu64 " time%s", n, n == 1 ? "" : "s");
	if (left_out)
		printf("; %" PRIu64 " left out because of this limit", left_out);
	printf("\n");
	if (*obstacle)
		printf("  %s\n", cli_safe(cli, obstacle));
	if (missed)
		printf("  not measured: %" PRIu64
		       " span%s of the session, because too many were open at a time\n",
			missed, missed == 1 ? "" : "s");
}

static int run_list(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *params = kymo_value_new(), *reply = NULL;
	_cleanup_ctl_ struct kymo_ctl *ctl = NULL;
	const struct kymo_value *list;
	int code = cli_connect(cli, &ctl);

	if (!code && cli_has(cli, "session"))
		kymo_value_set_string(params, "session", cli_get(cli, "session"));
	if (!code)
		code = cli_call(cli, ctl, "list-triggers", params, &reply);
	if (code)
		return code;
	list = kymo_value_get(reply, "triggers");
	if (cli->json) {
		cli_result(cli, reply);
		return CLI_OK;
	}
	if (!kymo_value_count(list))
		printf("no triggers: 'kymo add-trigger' adds one\n");
	for (size_t i = 0; i < kymo_value_count(list); i++)
		print_trigger(cli, kymo_value_at(list, i));
	return CLI_OK;
}

static int run_remove(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *reply = NULL;
	int code = params ? cli_params_session(cli, params) : CLI_FAILED;

	if (code)
		return code;
	kymo_value_set_string(params, "trigger", cli_arg(cli, 0));
	code = cli_request(cli, "remove-trigger", params, &reply);
	if (code)
		return code;
	if (cli->json)
		cli_result(cli, reply);
	else
		printf("removed trigger '%s'\n", cli_safe(cli, cli_arg(cli, 0)));
	return CLI_OK;
}

const struct cli_command cmd_add_trigger = {
	.name = "add-trigger",
	.synopsis =
		"[NAME] --when=CONDITION --do=ACTION,... [--rate=N/PERIOD] [--keep=N|SIZE] [-s SESSION]",
	.help = "let a session act, for example write a snapshot, when something happens",
	.details =
		"Programs check these conditions at each event: 'event(PATTERN[, LEVEL]) [&& FILTER]' and\n"
		"'span(PATTERN) > TIME'. A snapshot then has the event and those before it.\n"
		"The session daemon checks the others: 'events/s > N', 'bytes/s > SIZE' (or '<'), 'discarded [> N]'\n"
		"events, 'buffers > N%' in use, 'size > SIZE' of the trace, 'disk-free < SIZE' or '< N%',\n"
		"'consumer-failing', 'rotated', and 'died' or 'died(PATTERN)': a signal ended a traced program.\n"
		"A snapshot has the trigger's name, and its metadata says what triggered it. A command runs with the\n"
		"rights of the session's owner, if kymo-sessiond was started with --allow-commands.\n"
		"'kymo watch' shows what triggers do.\n",
	.options = add_options,
	.max_args = 1,
	.run = run_add,
};

const struct cli_command cmd_list_triggers = {
	.name = "list-triggers",
	.synopsis = "[-s SESSION]",
	.help = "show the triggers of all sessions, or of one",
	.options = list_options,
	.run = run_list,
};

const struct cli_command cmd_remove_trigger = {
	.name = "remove-trigger",
	.synopsis = "NAME [-s SESSION]",
	.help = "remove a trigger of a session",
	.options = remove_options,
	.min_args = 1,
	.max_args = 1,
	.run = run_remove,
};
