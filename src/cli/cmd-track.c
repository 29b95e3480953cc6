/* SPDX-License-Identifier: MIT */
/* track and untrack: which programs a session records. */
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>

#include "cli/daemon.h"
#include "cli/params.h"
#include "cli/report.h"
#include "cli/track.h"

static const struct cli_option options[] = {
	{"vpid", 0, "+-PID,..", "processes, by their number in their own PID namespace; or 'all'"},
	{"vuid", 0, "+-USER,..", "users, by name or number; or 'all'"},
	{"vgid", 0, "+-GROUP,..", "groups, by name or number; or 'all'"},
	{"pid", 'p', "+-PID,..",
		"for kernel events: processes, and children that they create from then on; or 'all'"},
	{"all", 'a', NULL, "the same as --vpid=all --vuid=all --vgid=all --pid=all"},
	CLI_OPTION_SESSION,
	CLI_OPTION_USERSPACE,
	CLI_OPTION_KERNEL,
	{0},
};

static const char *const attributes[] = {"vpid", "vuid", "vgid", "pid"};

static bool find_user(const char *name, uint32_t *ret_id)
{
	const struct passwd *pw = getpwnam(name);

	*ret_id = pw ? pw->pw_uid : 0;
	return pw;
}

static bool find_group(const char *name, uint32_t *ret_id)
{
	const struct group *gr = getgrnam(name);

	*ret_id = gr ? gr->gr_gid : 0;
	return gr;
}

int track_add_value(
	struct cli *cli, struct kymo_value *params, const char *attribute, const char *text)
{
	uint64_t number;
	uint32_t id = 0;
	char digits[16];
	bool known = true;

	if (!strcmp(text, "all") || ky_parse_number(text, UINT32_MAX, &number) == 0)
		return cli_params_added(cli, kymo_value_add_string(params, attribute, text));
	if (strstr(attribute, "pid"))
		return cli_usage(cli, "'%s' is not the number of a process", text);
	known = !strcmp(attribute, "vuid") ? find_user(text, &id) : find_group(text, &id);
	if (!known)
		return cli_fail(cli, "not-found", "there is no %s '%s' on this machine",
			!strcmp(attribute, "vuid") ? "user" : "group", text);
	snprintf(digits, sizeof(digits), "%" PRIu32, id);
	return cli_params_added(cli, kymo_value_add_string(params, attribute, digits));
}

/* Adds the values of an option. all: --all was given, which stands for a value that is left out. */
static int add_values(struct cli *cli, struct kymo_value *params, const char *option,
	const char *attribute, const char *text, bool all)
{
	_cleanup_value_ struct kymo_value *list = cli_params_new(cli);
	const struct kymo_value *values;
	int code = CLI_OK;

	if (*text && all)
		return cli_usage(cli, "either --all or --%s=%s, not both", option, text);
	if (!*text && !all)
		return cli_usage(cli, "--%s needs an argument, or --all beside it", option);
	code = list ? cli_params_list(cli, list, "values", all ? "all" : text) : CLI_FAILED;
	values = kymo_value_get(list, "values");
	for (size_t i = 0; !code && i < kymo_value_count(values); i++)
		code = track_add_value(
			cli, params, attribute, kymo_value_string(kymo_value_at(values, i)));
	return code;
}

/* Of user space, LTTng's --pid is --vpid. */
static const char *option_attribute(struct cli *cli, const char *option)
{
	return !strcmp(option, "pid") && cli_has(cli, "userspace") ? "vpid" : option;
}

/* As LTTng has it, "--all" is about the attributes that are named without values, if any is. */
static int add_attributes(struct cli *cli, struct kymo_value *params)
{
	bool all = cli_has(cli, "all"), kernel = cli_has(cli, "kernel"), any = false;
	const char *text;
	int code = CLI_OK;

	for (size_t i = 0; i < KY_ARRAY_SIZE(attributes); i++)
		any |= cli_has(cli, attributes[i]);
	if (!any && !all)
		return cli_usage(cli,
			"nothing to track is given: use --vpid, --vuid, --vgid, --pid or --all");
	for (size_t i = 0; i < KY_ARRAY_SIZE(attributes); i++) {
		const char *option = attributes[i], *attribute = option_attribute(cli, option);
		bool is_kernel = !strcmp(option, "pid");
		size_t iter = 0;

		if (kernel && !is_kernel && cli_has(cli, option))
			return cli_usage(cli,
				"kernel events can be narrowed down to processes only: --pid, not --%s",
				option);
		while (!code && (text = cli_args_next(&cli->args, option, &iter)))
			code = add_values(cli, params, option, attribute, text, all);
		if (!code && !any && attribute == option && (is_kernel || !kernel))
			code = add_values(cli, params, option, attribute, "", all);
	}
	return code;
}

static int run_track(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *reply = NULL;
	int code = params ? cli_params_session(cli, params) : CLI_FAILED;

	if (!code && cli_has(cli, "kernel") && cli_has(cli, "userspace"))
		code = cli_usage(cli, "either --kernel or --userspace, not both");
	if (!code)
		code = add_attributes(cli, params);
	if (!code)
		code = cli_request(cli, cli->command->name, params, &reply);
	if (code)
		return code;
	if (cli->json)
		cli_result(cli, reply);
	else if (!cli_report_tracked(cli, reply))
		puts(cli_has(cli, "kernel") ? "kernel events of all processes are recorded"
					    : "all applications are tracked");
	if (!cli->json)
		cli_report_notes(cli, reply);
	return CLI_OK;
}

#define DETAILS                                                                                                         \
	"A session records an application if it tracks its process, its user and its group. At first, it tracks all.\n" \
	"After the first 'kymo track --vpid=5', only process 5 is tracked; each further command adds to the tracked\n"  \
	"processes. 'kymo untrack --vpid=5' removes process 5; 'kymo untrack --vpid=all' removes all; 'kymo track\n"    \
	"--vpid=all' tracks all again. The user and the group are those that an application had when it connected to\n" \
	"the session daemon.\n"

const struct cli_command cmd_track = {
	.name = "track",
	.synopsis =
		"[--vpid=PID,..] [--vuid=USER,..] [--vgid=GROUP,..] [--pid=PID,..] | -a [-s SESSION]",
	.help = "record only these processes, users and groups",
	.details = DETAILS,
	.options = options,
	.run = run_track,
};

const struct cli_command cmd_untrack = {
	.name = "untrack",
	.synopsis =
		"[--vpid=PID,..] [--vuid=USER,..] [--vgid=GROUP,..] [--pid=PID,..] | -a [-s SESSION]",
	.help = "no longer record these processes, users and groups",
	.details = DETAILS,
	.options = options,
	.run = run_track,
};
