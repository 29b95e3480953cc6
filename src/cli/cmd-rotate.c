/* SPDX-License-Identifier: MIT */
/* rotate, clear, enable-rotation and disable-rotation: chunks of a session's trace. */
#include <inttypes.h>

#include "cli/daemon.h"
#include "cli/params.h"
#include "cli/report.h"

static const struct cli_option rotate_options[] = {
	CLI_OPTION_SESSION,
	{"no-wait", 'n', NULL, "do not wait until the chunk is complete"},
	{0},
};

static const struct cli_option clear_options[] = {
	CLI_OPTION_SESSION,
	CLI_OPTION_ALL_SESSIONS,
	{"no-wait", 'n', NULL, "do not wait until it is done"},
	{0},
};

static const struct cli_option enable_options[] = {
	{"timer", 0, "USEC", "rotate with this period, in microseconds; ms, s, m and h may follow"},
	{"size", 0, "SIZE", "rotate whenever so many bytes were written; K, M and G may follow"},
	{"keep", 0, "+N|SIZE|AGE",
		"keep the newest chunks: N of them, SIZE (K, M, G) or AGE (s, m, h, d); may be repeated"},
	CLI_OPTION_MAX_DISK,
	CLI_OPTION_KEEP_FREE,
	CLI_OPTION_SESSION,
	{0},
};

static const struct cli_option disable_options[] = {
	{"timer", 0, NULL, "no longer rotate by time"},
	{"size", 0, NULL, "no longer rotate by size"},
	{"keep", 0, NULL, "keep all chunks from now on"},
	{"max-disk", 0, NULL, "no longer limit the size of the trace"},
	{"keep-free", 0, NULL, "no longer keep disk space free"},
	CLI_OPTION_SESSION,
	{0},
};

static void report_rotation(struct cli *cli, const struct kymo_value *rotation)
{
	const char *session = cli_member(cli, rotation, "session");
	const char *state = kymo_value_string(kymo_value_get(rotation, "state"));
	const char *path = cli_member(cli, rotation, "path");

	if (!strcmp(state, "completed"))
		printf("session '%s' rotated: chunk in %s\n", session, path);
	else if (!strcmp(state, "ongoing"))
		printf("session '%s' is being rotated: chunk will be in %s\n", session, path);
	else
		printf("session '%s' has recorded nothing since its chunk began: no chunk was made\n",
			session);
}

static int run_rotate(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *reply = NULL;
	int code = params ? cli_params_which(cli, params) : CLI_FAILED;

	if (!code)
		code = cli_params_no_wait(cli, params);
	if (!code)
		code = cli_request(cli, "rotate", params, &reply);
	if (code)
		return code;
	if (cli->json)
		cli_result(cli, reply);
	else
		report_rotation(cli, kymo_value_get(reply, "rotation"));
	return CLI_OK;
}

static int run_clear(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *reply = NULL;
	const struct kymo_value *cleared;
	int code = params ? cli_params_which_or_all(cli, params) : CLI_FAILED;

	if (!code)
		code = cli_params_no_wait(cli, params);
	if (!code)
		code = cli_request(cli, "clear", params, &reply);
	if (code)
		return code;
	if (cli->json) {
		cli_result(cli, reply);
		return CLI_OK;
	}
	cleared = kymo_value_get(reply, "cleared");
	for (size_t i = 0; i < kymo_value_count(cleared); i++) {
		const struct kymo_value *c = kymo_value_at(cleared, i);
		uint64_t events = kymo_value_u64(kymo_value_get(c, "events"));

		printf("session '%s' cleared: %" PRIu64 " recorded event%s removed\n",
			cli_member(cli, c, "session"), events, events == 1 ? "" : "s");
	}
	if (!kymo_value_count(kymo_value_get(reply, "sessions")))
		puts("there is no session");
	else if (cli_has(cli, "no-wait"))
		puts("the recorded events will be removed");
	return CLI_OK;
}

static int request_schedule(struct cli *cli, struct kymo_value *params)
{
	_cleanup_value_ struct kymo_value *reply = NULL;
	int code = cli_params_which(cli, params);

	if (!code)
		code = cli_request(cli, cli->command->name, params, &reply);
	if (code)
		return code;
	if (cli->json)
		cli_result(cli, reply);
	else
		cli_report_schedule(cli, kymo_value_get(reply, "session"));
	return CLI_OK;
}

static int run_enable(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli);
	bool bounded;
	int code;

	if (!params)
		return CLI_FAILED;
	code = cli_params_bounds(cli, params, true, &bounded);
	if (code)
		return code;
	if (!cli_has(cli, "timer") && !cli_has(cli, "size") && !bounded)
		return cli_usage(cli,
			"no schedule is given: use --timer=USEC, --size=SIZE, or both; or a limit: --keep, --max-disk, --keep-free");
	code = cli_params_amount(cli, params, "timer", CLI_USEC, "timer");
	if (!code)
		code = cli_params_amount(cli, params, "size", CLI_SIZE, "size");
	return code ? code : request_schedule(cli, params);
}

static int run_disable(struct cli *cli)
{
	static const struct {
		const char *option, *member;
	} parts[] = {{"timer", "timer"}, {"size", "size"}, {"keep", "keep_all"},
		{"max-disk", "max_disk"}, {"keep-free", "keep_free"}};
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli);

	if (!params)
		return CLI_FAILED;
	for (size_t i = 0; i < KY_ARRAY_SIZE(parts); i++)
		if (cli_has(cli, parts[i].option))
			kymo_value_set_bool(params, parts[i].member, true);
	return request_schedule(cli, params);
}

const struct cli_command cmd_rotate = {
	.name = "rotate",
	.synopsis = "[[-s] NAME] [--no-wait]",
	.help = "move what was recorded until now to a trace of its own, and continue",
	.details =
		"The chunk TRACE/archives/BEGIN-END-N is complete: it can be read, moved and removed. Each event is in\n"
		"one chunk; the events of the current chunk are below TRACE/ust. Readers of TRACE read all chunks. If\n"
		"nothing was recorded, no chunk is made.\n",
	.options = rotate_options,
	.max_args = 1,
	.run = run_rotate,
};

const struct cli_command cmd_clear = {
	.name = "clear",
	.synopsis = "[[-s] NAME | -a] [--no-wait]",
	.help = "remove the events recorded until now, and continue",
	.details = "Buffers and files of the present chunk; chunks that 'kymo rotate' made stay.\n",
	.options = clear_options,
	.max_args = 1,
	.run = run_clear,
};

const struct cli_command cmd_enable_rotation = {
	.name = "enable-rotation",
	.synopsis =
		"[[-s] NAME] [--timer=USEC] [--size=SIZE] [--keep=N|SIZE|AGE] [--max-disk=SIZE] [--keep-free=SIZE]",
	.help = "rotate repeatedly, and limit the size of a trace",
	.details =
		"The session is rotated while it records, as by 'kymo rotate'. Sizes are checked ten times a second, so\n"
		"a chunk can be larger by what is written in that time. --max-disk rotates at a quarter of its SIZE,\n"
		"and --keep-free every 64 MiB, or earlier. 'kymo status' counts the removed chunks.\n",
	.options = enable_options,
	.max_args = 1,
	.run = run_enable,
};

const struct cli_command cmd_disable_rotation = {
	.name = "disable-rotation",
	.synopsis = "[[-s] NAME] [--timer] [--size] [--keep] [--max-disk] [--keep-free]",
	.help = "end repeated rotation, and the limits of enable-rotation",
	.details = "Without options, ends all of them.\n",
	.options = disable_options,
	.max_args = 1,
	.run = run_disable,
};
