/* SPDX-License-Identifier: MIT */
/* enable-channel and disable-channel. */
#include "cli/daemon.h"
#include "cli/params.h"
#include "cli/report.h"

static const struct cli_option enable_options[] = {
	CLI_OPTION_SESSION,
	CLI_OPTION_USERSPACE,
	CLI_OPTION_KERNEL,
	CLI_OPTION_SUBBUF_SIZE,
	CLI_OPTION_NUM_SUBBUF,
	CLI_OPTION_BURST_SIZE,
	CLI_OPTION_BUFFERS,
	CLI_OPTION_POOL_SIZE,
	{"event-conflict", 0, "refuse|separate",
		"an event with a known name but other fields is discarded (default), or is an event of its own"},
	{"discard", 'd', NULL, "discard and count new events while the buffers are full (default)"},
	{"overwrite", 0, NULL,
		"overwrite the oldest events while the buffers are full; 'kymo snapshot record' writes the newest"},
	{"switch-timer", 0, "USEC",
		"how often partly filled sub-buffers are written (default 1s); 0: only at stop"},
	{"read-timer", 0, "USEC",
		"how often the consumer looks for full sub-buffers; 0: adapted to the rate of events (default)"},
	CLI_OPTION_BLOCKING_TIMEOUT,
	{"tracefile-size", 'C', "SIZE",
		"start another file before one gets larger; K, M and G may follow; 0: one file (default)"},
	{"tracefile-count", 'W', "N",
		"keep the newest N files of each buffer; older ones are removed and counted; 0: keep all (default)"},
	{0},
};

/* Options that go to the daemon as they are written. */
static const char *const daemon_options[] = {
	"event-conflict",
	"switch-timer",
	"read-timer",
	"blocking-timeout",
	"tracefile-size",
	"tracefile-count",
};

static const struct cli_option disable_options[] = {
	CLI_OPTION_SESSION,
	CLI_OPTION_USERSPACE,
	CLI_OPTION_KERNEL,
	{0},
};

static void report_channel(struct cli *cli, const struct kymo_value *reply, const char *done)
{
	const struct kymo_value *channel = kymo_value_get(reply, "channel");
	uint64_t size = kymo_value_u64(kymo_value_get(channel, "subbuf_size"));
	uint64_t count = kymo_value_u64(kymo_value_get(channel, "num_subbuf"));
	char text[32];

	printf("channel '%s' %s: %u sub-buffers of %s for each %s, %s mode\n",
		cli_member(cli, channel, "name"), done, (unsigned)count,
		cli_format_size(text, sizeof(text), size), cli_buffers_for(cli, channel),
		cli_member(cli, channel, "mode"));
	cli_report_notes(cli, reply);
}

/* Enables or disables one channel. With --json, adds it to `all`, else prints it. */
static int one_channel(struct cli *cli, struct kymo_ctl *ctl, struct kymo_value *params,
	const char *name, const char *done, struct kymo_value *all)
{
	_cleanup_value_ struct kymo_value *reply = NULL;
	int code;

	kymo_value_set_string(params, "channel", name);
	code = cli_call(cli, ctl, cli->command->name, params, &reply);
	if (code)
		return code;
	if (cli->json)
		kymo_value_add(all, "channels", kymo_value_get(reply, "channel"));
	else
		report_channel(cli, reply, done);
	return CLI_OK;
}

static int each_channel(struct cli *cli, struct kymo_value *params, const char *done)
{
	_cleanup_value_ struct kymo_value *names = cli_params_new(cli), *all = cli_params_new(cli);
	_cleanup_ctl_ struct kymo_ctl *ctl = NULL;
	const struct kymo_value *list;
	int code = names && all ? cli_params_list(cli, names, "names", cli_arg(cli, 0))
				: CLI_FAILED;

	if (!code)
		code = cli_connect(cli, &ctl);
	list = kymo_value_get(names, "names");
	for (size_t i = 0; i < kymo_value_count(list) && !code; i++)
		code = one_channel(
			cli, ctl, params, kymo_value_string(kymo_value_at(list, i)), done, all);
	if (!code && cli->json)
		cli_result(cli, all);
	return code;
}

static int run_enable(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli);
	int code = params ? cli_params_session(cli, params) : CLI_FAILED;

	if (!code)
		code = cli_params_domain(cli, params, false);
	if (!code)
		code = cli_params_buffers(cli, params);
	for (size_t i = 0; !code && i < KY_ARRAY_SIZE(daemon_options); i++)
		if (cli_has(cli, daemon_options[i]))
			code = cli_params_option(
				cli, params, daemon_options[i], cli_get(cli, daemon_options[i]));
	if (!code && cli_has(cli, "overwrite") && cli_has(cli, "discard"))
		code = cli_usage(cli, "either --discard or --overwrite, not both");
	if (!code && (cli_has(cli, "overwrite") || cli_has(cli, "discard")))
		kymo_value_set_string(
			params, "mode", cli_has(cli, "overwrite") ? "overwrite" : "discard");
	return code ? code : each_channel(cli, params, "enabled");
}

static int run_disable(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli);
	int code = params ? cli_params_session(cli, params) : CLI_FAILED;

	if (!code)
		code = cli_params_domain(cli, params, false);
	return code ? code : each_channel(cli, params, "disabled");
}

const struct cli_command cmd_enable_channel = {
	.name = "enable-channel",
	.synopsis = "NAME[,NAME]... [-s SESSION] [OPTION]...",
	.help = "create a channel (buffers for events), or enable it again",
	.details =
		"'kymo set' shows a channel's options, and changes those that can be changed. In a session created\n"
		"with 'kymo create --snapshot', all channels are in overwrite mode. USEC is a number of microseconds;\n"
		"ms or s may follow, as in 500ms.\n"
		"\n"
		"--buffers=thread: a thread gets a buffer with its first event. After the thread ends, another thread\n"
		"gets that buffer. Readers show the process, the thread and its name with each event; this takes no\n"
		"room in the events. Such a buffer has 8 sub-buffers of 64K by default; at most 8G of them are in use.\n"
		"In other channels, 'kymo add-context -t vpid -t vtid' records the process and the thread.\n"
		"--buffers=process: an application cannot damage the buffers of others. Its buffers are released when\n"
		"it ends.\n",
	.options = enable_options,
	.min_args = 1,
	.max_args = 1,
	.run = run_enable,
};

const struct cli_command cmd_disable_channel = {
	.name = "disable-channel",
	.synopsis = "NAME[,NAME]... [-s SESSION]",
	.help = "stop recording into a channel",
	.options = disable_options,
	.min_args = 1,
	.max_args = 1,
	.run = run_disable,
};
