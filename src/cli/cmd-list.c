/* SPDX-License-Identifier: MIT */
/* list, status and set-session. */
#include <inttypes.h>

#include "cli/agents.h"
#include "cli/daemon.h"
#include "cli/monitor.h"
#include "cli/params.h"
#include "cli/shipping.h"
#include "cli/report.h"

/* `list` shows these instead of sessions; of a session that is named, -u and -k show a part. */
#define OPTIONS_KINDS                                                                              \
	{"userspace", 'u', NULL, "list applications and their events instead of sessions"},        \
		{"kernel", 'k', NULL, "list the events of the kernel instead of sessions"},        \
		{"syscall", 'S', NULL, "with -k: list system calls instead"},                      \
	{                                                                                          \
		"fields", 'f', NULL, "with -u and -k: list the fields of each event, too"          \
	}

static const struct cli_option status_options[] = {
	CLI_OPTION_SESSION,
	OPTIONS_KINDS,
	{"check", 0, NULL,
		"print one line, and exit with 0 if all is well: for monitoring systems"},
	{"within", 0, "TIME",
		"with --check: report events that were lost in this time (default 10m)"},
	{"metrics", 0, NULL, "print all measurements, as OpenMetrics text"},
	{0},
};

static const struct cli_option list_options[] = {
	CLI_OPTION_ONE_SESSION,
	OPTIONS_KINDS,
	{"python", 'p', NULL, "list the loggers of Python programs instead of sessions"},
	{"jul", 'j', NULL, "the same for Java programs with java.util.logging"},
	{"log4j", 'l', NULL, "the same for Log4j"},
	{"log4j2", 0, NULL, "the same for Log4j 2"},
	{0},
};

/* Without a daemon there is nothing to list: that is an answer, not a failure. */
static int list_nothing(struct cli *cli, const char *member)
{
	_cleanup_value_ struct kymo_value *v = NULL;

	if (!cli->json) {
		printf("nothing to list: %s\n", cli_no_daemon());
		return CLI_OK;
	}
	v = kymo_value_new();
	kymo_value_set_bool(v, "daemon", false);
	kymo_value_set_list(v, member);
	cli_result(cli, v);
	return CLI_OK;
}

static void print_sessions(struct cli *cli, const struct kymo_value *sessions)
{
	for (size_t i = 0; i < kymo_value_count(sessions); i++) {
		const struct kymo_value *s = kymo_value_at(sessions, i);
		const char *output = cli_member(cli, s, "output");

		printf("%s%s%s [%s]%s%s\n", cli_style(cli, CLI_BOLD), cli_member(cli, s, "name"),
			cli_style(cli, CLI_PLAIN), cli_member(cli, s, "state"), *output ? " " : "",
			output);
		cli_report_problem(cli, s, "  ");
	}
	if (!kymo_value_count(sessions))
		puts("there is no session: make one with 'kymo create'");
}

static void print_event(struct cli *cli, const struct kymo_value *event)
{
	const struct kymo_value *fields = kymo_value_get(event, "fields");
	int64_t level = kymo_value_i64(kymo_value_get(event, "loglevel"));
	const char *name = cli_loglevel_name(level);

	printf("  %s%s%s (%s)\n", cli_style(cli, CLI_BOLD), cli_member(cli, event, "name"),
		cli_style(cli, CLI_PLAIN), name ? name : "unknown level");
	if (!cli_has(cli, "fields"))
		return;
	for (size_t i = 0; i < kymo_value_count(fields); i++) {
		const struct kymo_value *f = kymo_value_at(fields, i);

		printf("    %s: %s\n", cli_member(cli, f, "name"), cli_member(cli, f, "type"));
	}
}

static void print_application(struct cli *cli, const struct kymo_value *app)
{
	const struct kymo_value *events = kymo_value_get(app, "events");
	uint64_t left_out = kymo_value_u64(kymo_value_get(app, "events_left_out"));

	printf("%" PRIu64 " %s, user %" PRIu64 ", %s\n", kymo_value_u64(kymo_value_get(app, "pid")),
		cli_member(cli, app, "name"), kymo_value_u64(kymo_value_get(app, "uid")),
		cli_member(cli, app, "abi"));
	for (size_t i = 0; i < kymo_value_count(events); i++)
		print_event(cli, kymo_value_at(events, i));
	if (left_out)
		printf("  %" PRIu64 " more, as applications of this user have too many events\n",
			left_out);
	else if (!kymo_value_count(events))
		puts("  no event");
}

static void print_applications(struct cli *cli, const struct kymo_value *apps)
{
	for (size_t i = 0; i < kymo_value_count(apps); i++)
		print_application(cli, kymo_value_at(apps, i));
	if (!kymo_value_count(apps))
		puts("no instrumented application is running");
}

static int show_session(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *reply = NULL;
	int code = params ? cli_params_which(cli, params) : CLI_FAILED;
	const char *output;

	if (!code)
		code = cli_request(cli, "status", params, &reply);
	if (code)
		return code;
	output = kymo_value_string(kymo_value_get(kymo_value_get(reply, "session"), "output"));
	if (cli->json) {
		shipping_add(reply, output);
		cli_result(cli, reply);
		return CLI_OK;
	}
	cli_report_session(cli, kymo_value_get(reply, "session"),
		cli_has(cli, "kernel")	    ? "kernel"
		: cli_has(cli, "userspace") ? "user"
					    : NULL);
	shipping_report(cli, output);
	cli_report_warnings(stdout, cli, kymo_value_get(reply, "warnings"));
	return CLI_OK;
}

static int list(struct cli *cli, struct kymo_ctl *ctl, const char *command, const char *member,
	void (*print)(struct cli *, const struct kymo_value *))
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *reply = NULL;
	int code;

	if (!params)
		return CLI_FAILED;
	if (cli_has(cli, "userspace") && !cli_has(cli, "fields") && !cli->json)
		kymo_value_set_bool(params, "brief", true);
	code = cli_call(cli, ctl, command, params, &reply);
	if (code)
		return code;
	if (cli->json)
		cli_result(cli, reply);
	else
		print(cli, kymo_value_get(reply, member));
	if (!cli->json)
		cli_report_notes(cli, reply);
	return CLI_OK;
}

static void print_kernel_event(struct cli *cli, const struct kymo_value *event)
{
	const struct kymo_value *fields = kymo_value_get(event, "fields");

	if (cli_has(cli, "syscall"))
		puts(cli_member(cli, event, "syscall"));
	else
		printf("%s:%s\n", cli_member(cli, event, "system"), cli_member(cli, event, "name"));
	for (size_t i = 0; i < kymo_value_count(fields); i++) {
		const struct kymo_value *f = kymo_value_at(fields, i);

		printf("  %s: %s\n", cli_member(cli, f, "name"), cli_member(cli, f, "type"));
	}
}

static int list_kernel(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *reply = NULL;
	const struct kymo_value *events;
	int code;

	if (!params)
		return CLI_FAILED;
	kymo_value_set_bool(params, "syscall", cli_has(cli, "syscall"));
	kymo_value_set_bool(params, "fields", cli_has(cli, "fields"));
	code = cli_request(cli, "list-kernel", params, &reply);
	if (code)
		return code;
	if (cli->json) {
		cli_result(cli, reply);
		return CLI_OK;
	}
	events = kymo_value_get(reply, "events");
	for (size_t i = 0; i < kymo_value_count(events); i++)
		print_kernel_event(cli, kymo_value_at(events, i));
	return CLI_OK;
}

static void print_agent(struct cli *cli, const struct kymo_value *agent)
{
	const struct kymo_value *loggers = kymo_value_get(agent, "loggers");
	const char *name = cli_member(cli, agent, "name");

	printf("%" PRIu64 " %s, user %" PRIu64 ", %s\n",
		kymo_value_u64(kymo_value_get(agent, "pid")), *name ? name : "(unknown program)",
		kymo_value_u64(kymo_value_get(agent, "uid")), cli_member(cli, agent, "domain"));
	for (size_t i = 0; i < kymo_value_count(loggers); i++)
		printf("  %s%s%s\n", cli_style(cli, CLI_BOLD),
			cli_safe(cli, kymo_value_string(kymo_value_at(loggers, i))),
			cli_style(cli, CLI_PLAIN));
	if (!kymo_value_bool(kymo_value_get(agent, "answered")))
		puts("  it has not answered");
	else if (!kymo_value_bool(kymo_value_get(agent, "complete")))
		puts("  and more: too many to list");
	else if (!kymo_value_count(loggers))
		puts("  no logger");
}

static void print_agents(struct cli *cli, const struct kymo_value *agents)
{
	size_t n = 0;

	for (size_t i = 0; i < kymo_value_count(agents); i++) {
		const struct kymo_value *agent = kymo_value_at(agents, i);

		if (!cli_has(cli, kymo_value_string(kymo_value_get(agent, "domain"))))
			continue;
		print_agent(cli, agent);
		n++;
	}
	if (!n)
		puts("no program of that kind is connected");
}

/* -u, -k and what goes with them. one: a session is named. */
static int check_kinds(struct cli *cli, bool one)
{
	bool programs = cli_has(cli, "userspace"), kernel = cli_has(cli, "kernel");

	if (kernel && programs)
		return cli_usage(cli, "either --kernel or --userspace, not both");
	if (cli_has(cli, "syscall") && !kernel)
		return cli_usage(cli, "--syscall goes with --kernel");
	if (cli_has(cli, "fields") && !programs && !kernel)
		return cli_usage(cli, "--fields goes with --userspace or --kernel");
	if (one && (cli_has(cli, "syscall") || cli_has(cli, "fields")))
		return cli_usage(cli, "either a session or --%s, not both",
			cli_has(cli, "syscall") ? "syscall" : "fields");
	return CLI_OK;
}

/* Shows what the kernel or programs offer, or the sessions. agents: loggers. */
static int list_offers(struct cli *cli, bool agents)
{
	bool programs = cli_has(cli, "userspace");
	_cleanup_ctl_ struct kymo_ctl *ctl = NULL;
	int code;

	if (cli_has(cli, "kernel"))
		return list_kernel(cli);
	code = cli_connect_if_running(cli, &ctl);
	if (code)
		return code;
	if (!ctl)
		return list_nothing(cli, agents	    ? "agents"
					 : programs ? "applications"
						    : "sessions");
	if (agents)
		return list(cli, ctl, "list-loggers", "agents", print_agents);
	return programs ? list(cli, ctl, "list-events", "applications", print_applications)
			: list(cli, ctl, "list", "sessions", print_sessions);
}

static int run_list(struct cli *cli)
{
	bool agents = agents_are_meant(cli), one = cli_arg(cli, 0) || cli_has(cli, "session");
	int code = check_kinds(cli, one);

	if (!code && agents && (one || cli_has(cli, "userspace") || cli_has(cli, "kernel")))
		code = cli_usage(
			cli, "a list of loggers excludes sessions, --userspace and --kernel");
	if (code)
		return code;
	return one ? show_session(cli) : list_offers(cli, agents);
}

static int run_status(struct cli *cli)
{
	bool check = cli_has(cli, "check"), metrics = cli_has(cli, "metrics");
	bool kind = cli_has(cli, "userspace") || cli_has(cli, "kernel");
	bool one = cli_arg(cli, 0) || cli_has(cli, "session");
	int code = check_kinds(cli, one);

	if (code)
		return code;
	if (cli_arg(cli, 0) && cli_has(cli, "session"))
		return cli_usage(cli, "either NAME or --session, not both");
	if (check && metrics)
		return cli_usage(cli, "either --check or --metrics, not both");
	if (cli_has(cli, "within") && !check)
		return cli_usage(cli, "--within goes with --check");
	if (kind && (check || metrics))
		return cli_usage(cli,
			"--%s shows all: it goes with neither --userspace nor --kernel",
			check ? "check" : "metrics");
	if (kind && !one)
		return list_offers(cli, false);
	return check ? monitor_check(cli) : metrics ? monitor_metrics(cli) : show_session(cli);
}

static int run_set_session(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *reply = NULL;
	int code;

	if (!params)
		return CLI_FAILED;
	kymo_value_set_string(params, "session", cli_arg(cli, 0));
	code = cli_request(cli, "set-session", params, &reply);
	if (code)
		return code;
	if (cli->json)
		cli_result(cli, reply);
	else
		printf("the current session is '%s'\n", cli_safe(cli, cli_arg(cli, 0)));
	return CLI_OK;
}

const struct cli_command cmd_list = {
	.name = "list",
	.synopsis =
		"[[-s] NAME [-u | -k] | -u [--fields] | -k [--syscall] [--fields] | -p | -j | -l | --log4j2]",
	.help = "show the sessions, one session, applications and their events, or loggers",
	.options = list_options,
	.max_args = 1,
	.run = run_list,
};

const struct cli_command cmd_status = {
	.name = "status",
	.synopsis =
		"[[-s] NAME] [-u | -k] [--syscall] [--fields] | [[-s] NAME] [--check [--within=TIME] | --metrics]",
	.help = "show a session, what it has recorded, and its faults",
	.details =
		"-u, -k, --syscall and --fields have the same effect as those of 'kymo list'.\n"
		"If no session is named, --check and --metrics are about all sessions. They never start a daemon.\n",
	.exit_codes =
		"0 done, 1 refused or failed, 2 wrong usage; of --check, as monitoring systems expect:\n"
		"0 OK, 1 WARNING: events were or may be lost, 2 CRITICAL: a trace cannot be written, or a daemon was killed\n"
		"or does not answer, 3 UNKNOWN: no daemon runs, or the line cannot be written",
	.options = status_options,
	.max_args = 1,
	.run = run_status,
};

const struct cli_command cmd_set_session = {
	.name = "set-session",
	.synopsis = "NAME",
	.help = "choose the current session: commands use it if they name none",
	.min_args = 1,
	.max_args = 1,
	.run = run_set_session,
};
