/* SPDX-License-Identifier: MIT */
/* enable-event and disable-event: the event rules of a channel. */
#include <inttypes.h>

#include "cli/daemon.h"
#include "cli/params.h"
#include "cli/report.h"

static const struct cli_option enable_options[] = {
	CLI_OPTION_USERSPACE,
	{"all", 'a', NULL, "all events: the pattern '*'"},
	CLI_OPTION_SESSION,
	CLI_OPTION_CHANNEL,
	{"exclude", 'x', "PATTERN", "but not these; several are separated by commas"},
	{"loglevel", 'l', "LEVEL", "only events as severe as this or more"},
	{"loglevel-only", 0, "LEVEL", "only events of exactly this level"},
	CLI_OPTION_FILTER,
	{0},
};

static const struct cli_option disable_options[] = {
	CLI_OPTION_USERSPACE,
	{"all", 'a', NULL, "all rules of the channel"},
	{"filter", 'f', "EXPR",
		"only the rules that have this filter, as 'kymo list SESSION' shows it"},
	{"remove", 'r', NULL, "forget the rules, disabled ones too"},
	CLI_OPTION_SESSION,
	CLI_OPTION_CHANNEL,
	{0},
};

static int add_level(
	struct cli *cli, struct kymo_value *params, const char *option, const char *member)
{
	const char *text = cli_get(cli, option), *near;
	int level;

	if (!text)
		return CLI_OK;
	if (cli_parse_loglevel(text, &level) < 0) {
		near = cli_nearest(text, ky_loglevel_names);
		return cli_usage(cli, "'%s' is no log level: %s%s", text,
			near ? "did you mean " : "EMERG .. DEBUG_LINE, DEBUG or 0 .. 14",
			near ? near : "");
	}
	kymo_value_set_u64(params, member, (uint64_t)level);
	return CLI_OK;
}

static int add_levels(struct cli *cli, struct kymo_value *params)
{
	int code;

	if (cli_has(cli, "loglevel") && cli_has(cli, "loglevel-only"))
		return cli_usage(cli, "either --loglevel or --loglevel-only, not both");
	code = add_level(cli, params, "loglevel", "loglevel");
	return code ? code : add_level(cli, params, "loglevel-only", "loglevel_only");
}

static int add_exclusions(struct cli *cli, struct kymo_value *params)
{
	const char *text;
	size_t iter = 0;
	int code = CLI_OK;

	while (!code && (text = cli_args_next(&cli->args, "exclude", &iter)))
		code = cli_params_list(cli, params, "exclude", text);
	return code;
}

/* Adds the session and the channel. Returns CLI_OK, or another exit code after a report. */
static int add_target(struct cli *cli, struct kymo_value *params)
{
	int code = cli_params_session(cli, params);

	if (!code && cli_get(cli, "channel"))
		kymo_value_set_string(params, "channel", cli_get(cli, "channel"));
	return code;
}

static void report_enabled(struct cli *cli, const struct kymo_value *reply)
{
	uint64_t matched = kymo_value_u64(kymo_value_get(reply, "matched"));
	size_t n = kymo_value_count(kymo_value_get(reply, "rules"));

	printf("%zu rule%s enabled: ", n, n == 1 ? "" : "s");
	if (matched)
		printf("%" PRIu64 " event%s now\n", matched, matched == 1 ? " matches" : "s match");
	else
		puts("no event matches now; applications that come later are asked when they start");
	cli_report_notes(cli, reply);
}

static int run_enable(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *reply = NULL;
	int code = params ? add_target(cli, params) : CLI_FAILED;

	if (!code)
		code = cli_params_patterns(cli, params);
	if (!code && cli_has(cli, "all"))
		kymo_value_add_string(params, "patterns", "*");
	if (!code)
		code = add_exclusions(cli, params);
	if (!code)
		code = add_levels(cli, params);
	if (!code)
		code = cli_params_filter(cli, params);
	if (!code)
		code = cli_request(cli, "enable-event", params, &reply);
	if (code)
		return code;
	if (cli->json)
		cli_result(cli, reply);
	else
		report_enabled(cli, reply);
	return CLI_OK;
}

static int run_disable(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *reply = NULL;
	int code = params ? add_target(cli, params) : CLI_FAILED;
	size_t n;

	if (!code)
		code = cli_params_patterns(cli, params);
	if (!code && cli_has(cli, "all"))
		kymo_value_set_bool(params, "all_rules", true);
	if (!code)
		code = cli_params_filter(cli, params);
	if (!code && cli_has(cli, "remove"))
		kymo_value_set_bool(params, "remove", true);
	if (!code)
		code = cli_request(cli, "disable-event", params, &reply);
	if (code)
		return code;
	if (cli->json) {
		cli_result(cli, reply);
		return CLI_OK;
	}
	n = kymo_value_count(kymo_value_get(reply, "rules"));
	printf("%zu rule%s %s\n", n, n == 1 ? "" : "s",
		cli_has(cli, "remove") ? "removed" : "disabled");
	return CLI_OK;
}

const struct cli_command cmd_enable_event = {
	.name = "enable-event",
	.synopsis =
		"PATTERN[,PATTERN]... | -a [-c CHANNEL] [-s SESSION] [-x PATTERN,..] [-l LEVEL] [-f EXPR]",
	.help = "record the events that match",
	.details =
		"PATTERN is 'PROVIDER:NAME'; '*' stands for any letters, '\\' makes the next one plain. Kymo's own\n"
		"events must be named: 'kymo_vm:*' virtual machines, 'kymo_process:*' processes (kymo-collectd(8) has more),\n"
		"'kymo_statedump:*' and 'kymo_lib:*' applications' files.\n"
		"LEVEL is EMERG, ALERT, CRIT, ERR, WARNING, NOTICE, INFO, DEBUG_SYSTEM, DEBUG_PROGRAM,\n"
		"DEBUG_PROCESS, DEBUG_MODULE, DEBUG_UNIT, DEBUG_FUNCTION, DEBUG_LINE or DEBUG, or its\n"
		"number, 0 to 14. EXPR compares fields with constants and each other: 'size > 4096 && name == \"lib*\"';\n"
		"it knows C's operators, elements 'list[0]' and contexts '$ctx.vpid': see kymo-filter(7). A session that is\n"
		"recording takes the rule up at once.\n",
	.options = enable_options,
	.max_args = CLI_ANY_ARGS,
	.run = run_enable,
};

const struct cli_command cmd_disable_event = {
	.name = "disable-event",
	.synopsis = "PATTERN[,PATTERN]... | -a [-f EXPR] [-r] [-c CHANNEL] [-s SESSION]",
	.help = "record the events of a rule no more",
	.details =
		"PATTERN is the rule's own text, as 'kymo list SESSION' shows it; rules of that text are meant whatever\n"
		"their exclusions, levels and filters: '*' means the rule '*' alone, --all means all rules. A disabled\n"
		"rule stays in the list, and 'kymo enable-event' with the same options enables it again; --remove takes it out. An event that\n"
		"another rule wants is still recorded. To exchange a filter, enable the rule with the new one, then\n"
		"disable that with the old one.\n",
	.options = disable_options,
	.max_args = CLI_ANY_ARGS,
	.run = run_disable,
};
