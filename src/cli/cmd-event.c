/* SPDX-License-Identifier: MIT */
/* enable-event and disable-event: the event rules of a channel. */
#include <inttypes.h>

#include "cli/agents.h"
#include "cli/daemon.h"
#include "cli/params.h"
#include "cli/probe.h"
#include "cli/report.h"

static const struct cli_option enable_options[] = {
	CLI_OPTION_USERSPACE,
	CLI_OPTION_KERNEL,
	{"syscall", 0, "[=NAME,..]",
		"with -k: entries and exits of these system calls; without NAME, PATTERN selects them"},
	CLI_OPTIONS_PROBES,
	CLI_OPTIONS_AGENTS,
	{"all", 'a', NULL, "all events: the pattern '*'"},
	CLI_OPTION_SESSION,
	CLI_OPTION_CHANNEL,
	{"exclude", 'x', "+PATTERN",
		"do not record events that match PATTERN; separate several by commas"},
	{"loglevel", 'l', "LEVEL", "only events of this severity or a higher one"},
	{"loglevel-only", 0, "LEVEL", "only events of exactly this level"},
	CLI_OPTION_FILTER,
	{0},
};

static const struct cli_option disable_options[] = {
	CLI_OPTION_USERSPACE,
	CLI_OPTION_KERNEL,
	CLI_OPTIONS_AGENTS,
	{"all", 'a', NULL, "all rules of the channel"},
	{"filter", 'f', "EXPR",
		"only the rules that have this filter, as 'kymo list SESSION' shows it"},
	{"remove", 'r', NULL, "remove the rules, disabled ones too"},
	CLI_OPTION_SESSION,
	CLI_OPTION_CHANNEL,
	{0},
};

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
	if (matched || cli_has(cli, "kernel"))
		printf("%" PRIu64 " event%s now\n", matched, matched == 1 ? " matches" : "s match");
	else
		puts("no event matches now; applications that start later may have some");
	cli_report_notes(cli, reply);
}

/* Enables the rule of one logger. */
static int enable_logger(struct cli *cli, const struct cli_agent_domain *d, const char *logger,
	struct kymo_value **ret_reply)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *one = cli_params_new(cli);
	int code = params && one ? add_target(cli, params) : CLI_FAILED;
	struct ky_buf filter = {0};

	if (!code)
		code = cli_params_added(cli, kymo_value_add_string(one, "loggers", logger));
	if (!code)
		code = agents_filter(cli, d, kymo_value_get(one, "loggers"), &filter);
	if (!code && filter.len)
		kymo_value_set_string(params, "filter", filter.data);
	ky_buf_deinit(&filter);
	if (code)
		return code;
	kymo_value_add_string(params, "patterns", d->event);
	kymo_value_free(*ret_reply);
	*ret_reply = NULL;
	return cli_request(cli, "enable-event", params, ret_reply);
}

/* Calls fn for each logger of the command line. *ret_reply: the last reply. */
static int each_logger(struct cli *cli, const struct cli_agent_domain *d,
	int (*fn)(struct cli *cli, const struct cli_agent_domain *d, const char *logger,
		struct kymo_value **ret_reply),
	struct kymo_value **ret_reply)
{
	_cleanup_value_ struct kymo_value *loggers = cli_params_new(cli);
	const struct kymo_value *list;
	int code = loggers ? cli_params_patterns(cli, loggers) : CLI_FAILED;

	if (!code && cli_has(cli, "all"))
		kymo_value_add_string(loggers, "patterns", "*");
	list = kymo_value_get(loggers, "patterns");
	for (size_t i = 0; i < kymo_value_count(list) && !code; i++)
		code = fn(cli, d, kymo_value_string(kymo_value_at(list, i)), ret_reply);
	return code;
}

static int enable_loggers(struct cli *cli, const struct cli_agent_domain *d)
{
	_cleanup_value_ struct kymo_value *reply = NULL;
	int code;

	if (cli_has(cli, "exclude"))
		return cli_usage(cli, "use a filter to exclude loggers: 'logger_name != \"NAME\"'");
	code = each_logger(cli, d, enable_logger, &reply);
	if (code)
		return code;
	if (cli->json) {
		cli_result(cli, reply);
		return CLI_OK;
	}
	printf("%zu rule%s of loggers enabled\n", kymo_value_count(kymo_value_get(reply, "rules")),
		kymo_value_count(kymo_value_get(reply, "rules")) == 1 ? "" : "s");
	cli_report_notes(cli, reply);
	return CLI_OK;
}

/* Adds the domain, and what a kernel rule is about. */
static int add_kind(struct cli *cli, struct kymo_value *params)
{
	int code = cli_params_domain(cli, params, false);

	if (code || !cli_has(cli, "syscall"))
		return code;
	if (!cli_has(cli, "kernel"))
		return cli_usage(cli, "--syscall needs --kernel");
	kymo_value_set_string(params, "kind", "syscall");
	return CLI_OK;
}

/* Adds the place of a probe, and its name if that is given. */
static int add_probe(struct cli *cli, struct kymo_value *params)
{
	const char *option = NULL, *place = NULL;
	size_t iter = 0;

	for (size_t i = 0; probe_options[i]; i++) {
		if (!cli_has(cli, probe_options[i]))
			continue;
		if (option)
			return cli_usage(
				cli, "either --%s or --%s, not both", option, probe_options[i]);
		option = probe_options[i];
		place = cli_args_next(&cli->args, option, &iter);
		if (cli_args_next(&cli->args, option, &iter))
			return cli_usage(cli, "there can be one --%s only", option);
	}
	if (!cli_has(cli, "kernel"))
		return cli_usage(cli, "--%s needs --kernel", option);
	if (cli_has(cli, "syscall") || cli_has(cli, "all") || cli_has(cli, "exclude"))
		return cli_usage(
			cli, "--%s goes with none of --syscall, --all and --exclude", option);
	if (cli_arg(cli, 1) || (cli_arg(cli, 0) && !strcmp(option, "function")))
		return cli_usage(cli, !strcmp(option, "function")
					      ? "--function has the pattern itself"
					      : "a probe has one name");
	return probe_params(cli, option, place, cli_arg(cli, 0), params);
}

/* Adds what the rule is about: patterns, or the place of a probe. */
static int add_subject(struct cli *cli, struct kymo_value *params)
{
	int code;

	if (probe_is_given(cli))
		return add_probe(cli, params);
	if (cli_get(cli, "syscall") && (cli_arg(cli, 0) || cli_has(cli, "all")))
		return cli_usage(cli, "either --syscall=NAME, or --syscall and names or --all");
	if (cli_get(cli, "syscall"))
		return cli_params_list(cli, params, "patterns", cli_get(cli, "syscall"));
	code = cli_params_patterns(cli, params);
	if (!code && cli_has(cli, "all"))
		kymo_value_add_string(params, "patterns", "*");
	return code;
}

static int run_enable(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *reply = NULL;
	const struct cli_agent_domain *domain;
	int code = params ? agents_domain(cli, &domain) : CLI_FAILED;

	if (!code && domain)
		return enable_loggers(cli, domain);
	if (!code)
		code = add_target(cli, params);
	if (!code)
		code = add_kind(cli, params);
	if (!code)
		code = add_subject(cli, params);
	if (!code)
		code = add_exclusions(cli, params);
	if (!code)
		code = cli_params_levels(cli, params);
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

/* Disables the rules of one logger, or all of the domain: those with this filter; NULL: any. */
static int disable_filter(struct cli *cli, const struct cli_agent_domain *d, const char *filter,
	struct kymo_value **ret_reply)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli);
	int code = params ? add_target(cli, params) : CLI_FAILED;

	if (code)
		return code;
	kymo_value_add_string(params, "patterns", d->event);
	if (filter)
		kymo_value_set_string(params, "filter", filter);
	if (cli_has(cli, "remove"))
		kymo_value_set_bool(params, "remove", true);
	kymo_value_free(*ret_reply);
	*ret_reply = NULL;
	return cli_request(cli, "disable-event", params, ret_reply);
}

static const struct kymo_value *find_channel(const struct kymo_value *session, const char *name)
{
	const struct kymo_value *channels = kymo_value_get(session, "channels"), *c;

	for (size_t i = 0; i < kymo_value_count(channels); i++) {
		c = kymo_value_at(channels, i);
		if (!strcmp(kymo_value_string(kymo_value_get(c, "name")), name ? name : "channel0"))
			return c;
	}
	return NULL;
}

static int disable_logger(struct cli *cli, const struct cli_agent_domain *d, const char *logger,
	struct kymo_value **ret_reply)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *status = NULL;
	const struct kymo_value *rules, *rule;
	int code = params ? cli_params_session(cli, params) : CLI_FAILED;
	size_t n = 0;

	if (!strcmp(logger, "*"))
		return disable_filter(cli, d, NULL, ret_reply);
	if (!code)
		code = cli_request(cli, "status", params, &status);
	if (code)
		return code;
	rules = kymo_value_get(
		find_channel(kymo_value_get(status, "session"), cli_get(cli, "channel")), "rules");
	for (size_t i = 0; i < kymo_value_count(rules) && !code; i++) {
		const char *filter;

		rule = kymo_value_at(rules, i);
		filter = kymo_value_string(kymo_value_get(rule, "filter"));
		if (strcmp(kymo_value_string(kymo_value_get(rule, "pattern")), d->event) ||
			!agents_filter_names(filter, logger) ||
			(!kymo_value_bool(kymo_value_get(rule, "enabled")) &&
				!cli_has(cli, "remove")))
			continue;
		code = disable_filter(cli, d, filter, ret_reply);
		n++;
	}
	if (!code && !n)
		code = cli_fail(cli, "not-found",
			"no enabled rule of --%s is for the logger '%s': 'kymo status' shows them",
			d->option, logger);
	return code;
}

static int disable_loggers(struct cli *cli, const struct cli_agent_domain *d)
{
	_cleanup_value_ struct kymo_value *reply = NULL;
	int code;

	if (cli_has(cli, "filter"))
		return cli_usage(cli, "--filter and --%s exclude each other here", d->option);
	code = each_logger(cli, d, disable_logger, &reply);
	if (!code && cli->json)
		cli_result(cli, reply);
	else if (!code)
		printf("loggers %s\n", cli_has(cli, "remove") ? "removed" : "disabled");
	return code;
}

static int run_disable(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *reply = NULL;
	const struct cli_agent_domain *domain;
	int code = params ? agents_domain(cli, &domain) : CLI_FAILED;
	size_t n;

	if (!code && domain)
		return disable_loggers(cli, domain);
	if (!code)
		code = add_target(cli, params);
	if (!code)
		code = cli_params_domain(cli, params, true);
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
	cli_report_notes(cli, reply);
	return CLI_OK;
}

const struct cli_command cmd_enable_event = {
	.name = "enable-event",
	.synopsis =
		"PATTERN[,PATTERN]... | -a [-c CHANNEL] [-s SESSION] [-x PATTERN,..] [-l LEVEL] [-f EXPR]",
	.help = "record the events that match",
	.details =
		"PATTERN is 'PROVIDER:NAME'; '*' matches any characters, '\\' takes away the special meaning of the next\n"
		"character. '*' does not match Kymo's own events; these patterns do: 'kymo_vm:*' virtual machines,\n"
		"'kymo_process:*' processes (kymo-collectd(8) has more), 'kymo_statedump:*' and 'kymo_lib:*' the files\n"
		"from which programs are loaded.\n"
		"LEVEL is EMERG, ALERT, CRIT, ERR, WARNING, NOTICE, INFO, DEBUG_SYSTEM, DEBUG_PROGRAM,\n"
		"DEBUG_PROCESS, DEBUG_MODULE, DEBUG_UNIT, DEBUG_FUNCTION, DEBUG_LINE or DEBUG, or its\n"
		"number, 0 to 14. With --python, --jul, --log4j or --log4j2, PATTERN is the name of a logger, and LEVEL\n"
		"is a level of that language.\n"
		"EXPR compares fields with constants and with each other: 'size > 4096 && name == \"lib*\"'. It has C's\n"
		"operators, elements 'list[0]' and contexts '$ctx.vpid': see kymo-filter(7).\n"
		"If the session is recording, the rule takes effect at once.\n",
	.options = enable_options,
	.max_args = CLI_ANY_ARGS,
	.run = run_enable,
};

const struct cli_command cmd_disable_event = {
	.name = "disable-event",
	.synopsis = "PATTERN[,PATTERN]... | -a [-f EXPR] [-r] [-c CHANNEL] [-s SESSION]",
	.help = "stop recording the events of a rule",
	.details =
		"PATTERN is the text of the rule, as 'kymo list SESSION' shows it. The command disables all rules of that\n"
		"text, whatever their exclusions, levels and filters. '*' means only the rule '*'; --all means all rules.\n"
		"A disabled rule stays in the list, and 'kymo enable-event' with the same options enables it again.\n"
		"--remove removes it. If another rule also matches an event, the event is still recorded. To replace a\n"
		"filter, enable the rule with the new filter, then disable the rule with the old one.\n",
	.options = disable_options,
	.max_args = CLI_ANY_ARGS,
	.run = run_disable,
};
