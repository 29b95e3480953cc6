/* SPDX-License-Identifier: MIT */
/* set: options of channels, which the session daemon knows (sessiond/model/option.h). */
#include <inttypes.h>

#include "cli/daemon.h"
#include "cli/params.h"
#include "cli/report.h"

static const struct cli_option options[] = {
	CLI_OPTION_SESSION,
	{"channel", 'c', "CHANNEL", "channel; without it, all channels of the session"},
	CLI_OPTION_USERSPACE,
	{0},
};

/* As it can be given: "100ms". */
static void print_value(struct cli *cli, const struct kymo_value *option)
{
	const struct kymo_value *v = kymo_value_get(option, "value");
	bool is_time = *kymo_value_string(kymo_value_get(option, "unit"));
	const char *text = kymo_value_string(v);
	char buf[32];

	if (*text)
		printf("%s", cli_safe(cli, text));
	else if (is_time && kymo_value_u64(v))
		printf("%s", cli_format_usec(buf, sizeof(buf), kymo_value_u64(v), ""));
	else
		printf("%" PRIu64, kymo_value_u64(v));
}

/* All that there is, with the present values. */
static void print_options(struct cli *cli, const struct kymo_value *channel)
{
	const struct kymo_value *list = kymo_value_get(channel, "options");

	printf("channel %s%s%s\n", cli_style(cli, CLI_BOLD), cli_member(cli, channel, "name"),
		cli_style(cli, CLI_PLAIN));
	for (size_t i = 0; i < kymo_value_count(list); i++) {
		const struct kymo_value *o = kymo_value_at(list, i);

		printf("  %s%s=", cli_style(cli, CLI_BOLD), cli_member(cli, o, "key"));
		print_value(cli, o);
		printf("%s  %s\n      %s; changes %s\n", cli_style(cli, CLI_PLAIN),
			cli_member(cli, o, "help"), cli_member(cli, o, "allowed"),
			cli_member(cli, o, "changes"));
	}
}

/* key: with '-' or '_'. */
static const struct kymo_value *find_option(const struct kymo_value *channel, char *key)
{
	const struct kymo_value *list = kymo_value_get(channel, "options"), *o = NULL;
	char other[CLI_KEY_MAX];

	cli_param_name(key);
	for (size_t i = 0; i < kymo_value_count(list); i++) {
		o = kymo_value_at(list, i);
		snprintf(other, sizeof(other), "%s", kymo_value_string(kymo_value_get(o, "key")));
		if (!strcmp(cli_param_name(other), key))
			break;
	}
	return o;
}

/* Those that were given, as they are now. */
static void print_changed(struct cli *cli, const struct kymo_value *channel)
{
	const char *comma = "";

	printf("channel '%s': ", cli_member(cli, channel, "name"));
	for (size_t i = 0; cli_arg(cli, i); i++) {
		char key[CLI_KEY_MAX];

		cli_pair_key(key, cli_arg(cli, i));
		printf("%s%s=", comma, key);
		print_value(cli, find_option(channel, key));
		comma = ", ";
	}
	putchar('\n');
}

/* Adds the i-th KEY=VALUE. */
static int add_pair(struct cli *cli, struct kymo_value *params, size_t i)
{
	char key[CLI_KEY_MAX], other[CLI_KEY_MAX];

	cli_pair_key(key, cli_arg(cli, i));
	for (size_t j = 0; j < i; j++) {
		cli_pair_key(other, cli_arg(cli, j));
		if (!strcmp(key, other) && strcmp(cli_arg(cli, i), cli_arg(cli, j)))
			return cli_usage(cli, "%s can be given once only: '%s' or '%s'?", key,
				cli_arg(cli, j), cli_arg(cli, i));
	}
	return cli_params_pair(cli, params, cli_arg(cli, i));
}

static int run_set(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *reply = NULL;
	const struct kymo_value *channels;
	int code = params ? cli_params_session(cli, params) : CLI_FAILED;

	if (!code && cli_has(cli, "channel"))
		kymo_value_set_string(params, "channel", cli_get(cli, "channel"));
	for (size_t i = 0; !code && cli_arg(cli, i); i++)
		code = add_pair(cli, params, i);
	if (!code)
		code = cli_request(cli, "set", params, &reply);
	if (code)
		return code;
	if (cli->json) {
		cli_result(cli, reply);
		return CLI_OK;
	}
	channels = kymo_value_get(reply, "channels");
	for (size_t i = 0; i < kymo_value_count(channels); i++) {
		if (cli_arg(cli, 0))
			print_changed(cli, kymo_value_at(channels, i));
		else
			print_options(cli, kymo_value_at(channels, i));
	}
	cli_report_notes(cli, reply);
	return CLI_OK;
}

const struct cli_command cmd_set = {
	.name = "set",
	.synopsis = "[-s SESSION] [-c CHANNEL] [KEY=VALUE]...",
	.help = "show the options of channels, or change them, also while they record",
	.details =
		"Without KEY=VALUE, shows the options, their values, the allowed values, and when a change takes effect.\n"
		"The keys are the names of the options of 'kymo enable-channel', and 'mode' (discard or overwrite). If\n"
		"one change is refused, none is made.\n",
	.options = options,
	.max_args = CLI_ANY_ARGS,
	.run = run_set,
};
