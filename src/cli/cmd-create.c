/* SPDX-License-Identifier: MIT */
#include <limits.h>

#include "cli/daemon.h"
#include "cli/locate.h"
#include "cli/params.h"
#include "cli/report.h"
#include "cli/shipper.h"

#define NAME_TRIES 100

static const struct cli_option options[] = {
	{"output", 'o', "DIR", "directory of the trace; must be new or empty"},
	{"no-output", 0, NULL, "write no trace; only count events"},
	{"snapshot", 0, NULL,
		"keep the newest events in memory; 'kymo snapshot record' writes them"},
	{"live", 0, "[=USEC]",
		"viewers of 'kymo live' see events within USEC (default: 1s), the switch timer of all channels"},
	CLI_OPTION_SECONDS,
	CLI_OPTION_ABSOLUTE_CLOCK,
	CLI_OPTION_SHM_PATH,
	CLI_OPTION_MAX_DISK,
	CLI_OPTION_KEEP_FREE,
	{"set-url", 'U', "URL", "send the trace to another host, as 'kymo ship' does"},
	CLI_OPTION_SPOOL,
	CLI_OPTION_SHIP_RATE,
	{0},
};

/*
 * Fills in the output. *ret_made: the directory is new, by us, and has to go if there will be no
 * session.
 */
static int choose_output(
	struct cli *cli, const char *session, bool dated, char *output, bool *ret_made)
{
	bool given = cli_has(cli, "output");
	int code;

	if (given && cli_has(cli, "no-output"))
		return cli_usage(cli, "either --output or --no-output, not both");
	output[0] = '\0';
	if (cli_has(cli, "no-output"))
		return CLI_OK;
	code = cli_choose_output(cli, session, dated, output);
	*ret_made = !given && !code;
	return code;
}

/* Asks for the session; one without a name gets another default name if its first one is taken. */
static int create_named(struct cli *cli, struct kymo_ctl *ctl, struct kymo_value *params,
	char *name, size_t size, struct kymo_value **reply)
{
	size_t len = strlen(name);
	int code;

	for (unsigned i = 1;; i++) {
		if (kymo_value_set_string(params, "session", name) < 0)
			return cli_fail(cli, "failed", "no memory");
		code = cli_try(cli, ctl, "create", params, reply);
		if (code || kymo_reply_ok(*reply))
			return code;
		if (cli_arg(cli, 0) || i > NAME_TRIES || strcmp(kymo_reply_code(*reply), "exists"))
			return cli_refused(cli, params, *reply);
		snprintf(name + len, size - len, "-%u", i);
		kymo_value_free(*reply);
		*reply = NULL;
	}
}

/* Bounds the trace as `enable-rotation` does. */
static int set_bounds(
	struct cli *cli, struct kymo_ctl *ctl, const char *name, struct kymo_value *bounds)
{
	_cleanup_value_ struct kymo_value *reply = NULL;

	kymo_value_set_string(bounds, "session", name);
	return cli_call(cli, ctl, "enable-rotation", bounds, &reply);
}

/* Destroys a session of which a part was refused. */
static void undo(struct cli *cli, struct kymo_ctl *ctl, const char *name)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *reply = NULL;

	if (params && !kymo_value_set_string(params, "session", name))
		cli_try(cli, ctl, "destroy", params, &reply);
}

/* How soon viewers see events: as LTTng's option, whose default is that of all sessions here. */
static int put_live(struct cli *cli, struct kymo_value *params)
{
	uint64_t usec = 1000000;
	int code;

	if (cli_has(cli, "live") && (cli_has(cli, "snapshot") || cli_has(cli, "no-output")))
		return cli_usage(cli,
			"either --live or --%s, not both: --live is about a trace that grows",
			cli_has(cli, "snapshot") ? "snapshot" : "no-output");
	code = cli_read_amount(cli, "live", CLI_USEC, 100, 3600000000, &usec);
	if (code || !cli_has(cli, "live"))
		return code;
	return cli_params_added(cli, kymo_value_set_u64(params, "switch_timer", usec));
}

/* Reports wrong options, before a daemon is started for them. */
static int put_options(struct cli *cli, struct kymo_value *params)
{
	int code;

	if (cli_has(cli, "snapshot"))
		kymo_value_set_bool(params, "snapshot", true);
	kymo_value_set_bool(params, "absolute_clock", cli_has(cli, "absolute-clock"));
	code = cli_params_seconds(cli, params);
	return code ? code : put_live(cli, params);
}

/* bounds: NULL if there are none. The same for the shipper. */
static int create_and_report(struct cli *cli, struct kymo_ctl *ctl, struct kymo_value *params,
	char *name, size_t size, const char *output, struct kymo_value *bounds,
	struct shipper *shipper)
{
	_cleanup_value_ struct kymo_value *reply = NULL;
	int code;

	kymo_value_set_string(params, "output", output);
	code = cli_params_shm_path(cli, params);
	if (!code)
		code = create_named(cli, ctl, params, name, size, &reply);
	if (code)
		return code;
	if (bounds)
		code = set_bounds(cli, ctl, name, bounds);
	if (!code && shipper)
		code = shipper_open(cli, shipper, output, NULL);
	if (code) {
		undo(cli, ctl, name);
		return code;
	}
	if (cli->json)
		cli_result(cli, reply);
	else if (*output)
		printf("session '%s' created: its %s to %s\n", cli_safe(cli, name),
			cli_has(cli, "snapshot") ? "snapshots go" : "trace goes",
			cli_safe(cli, output));
	else
		printf("session '%s' created: no trace is written\n", cli_safe(cli, name));
	if (!cli->json) {
		if (cli_has(cli, "live"))
			printf("viewers read it while it records: 'kymo live %s'\n",
				cli_safe(cli, name));
		puts(CLI_OWNER_HINT);
		cli_report_notes(cli, reply);
	}
	return CLI_OK;
}

/* Takes --set-url. *ret_ships: it is there. */
static int init_shipper(struct cli *cli, struct shipper *ret, bool *ret_ships)
{
	const char *url = cli_get(cli, "set-url");

	*ret_ships = url;
	if (url && cli_has(cli, "no-output"))
		return cli_usage(cli, "--set-url sends the trace: there is none with --no-output");
	if (!url && (cli_has(cli, "spool") || cli_has(cli, "ship-rate")))
		return cli_usage(cli, "--%s is about a trace that --set-url=URL sends",
			cli_has(cli, "spool") ? "spool" : "ship-rate");
	return url ? shipper_init(cli, ret, url) : CLI_OK;
}

static int run_create(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *bounds = cli_params_new(cli);
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli);
	_cleanup_ctl_ struct kymo_ctl *ctl = NULL;
	char name[160], date[32], output[PATH_MAX];
	const char *session = cli_arg(cli, 0);
	bool made = false, bounded = false, ships = false;
	struct shipper shipper = {.trace = -1};
	int code = bounds ? cli_params_bounds(cli, bounds, false, &bounded) : CLI_FAILED;

	if (!code)
		code = params ? put_options(cli, params) : CLI_FAILED;
	if (!code)
		code = init_shipper(cli, &shipper, &ships);
	if (!code && session && !ky_name_valid(session))
		code = cli_fail(cli, "usage",
			"'%s' cannot name a session: use up to 128 letters, digits, '.', '_' and '-', and no '.' first",
			session);
	cli_format_date(date, sizeof(date));
	snprintf(name, sizeof(name), "%s%s", session ? session : "auto-", session ? "" : date);
	if (!code)
		code = choose_output(cli, name, !session, output, &made);
	if (!code)
		code = cli_connect_or_start(cli, &ctl);
	if (!code)
		code = create_and_report(cli, ctl, params, name, sizeof(name), output,
			bounded ? bounds : NULL, ships ? &shipper : NULL);
	if (code && made)
		rmdir(output);
	if (!code && ships)
		code = shipper_detach(cli, &shipper);
	shipper_deinit(&shipper);
	return code;
}

const struct cli_command cmd_create = {
	.name = "create",
	.synopsis =
		"[NAME] [-o DIR] [--snapshot [--seconds=N]] [--live[=USEC]] [--shm-path=DIR] [--max-disk=SIZE] [--keep-free=SIZE] [--set-url=URL [--spool=SIZE] [--ship-rate=SIZE]]",
	.help = "create a session, and start a session daemon if none runs",
	.details =
		"Without a name, the session is called auto-YYYYMMDD-HHMMSS. Without --output, its trace goes\n"
		"to a new directory SESSION-YYYYMMDD-HHMMSS below $KYMO_HOME or $HOME/kymo-traces.\n"
		"\n"
		"With --shm-path, the buffers are files in DIR, which should be in a tmpfs (/dev/shm/NAME). If the\n"
		"daemons and the programs are all killed, 'kymo recover DIR' writes the contents of the buffers to the\n"
		"trace. DIR is removed with the session.\n"
		"\n"
		"With --set-url, 'kymo ship' sends the trace in the background, with the rights and the ssh keys of the\n"
		"user who creates the session. 'kymo ship --help' describes URL. 'kymo status' shows how much was sent.\n",
	.options = options,
	.max_args = 1,
	.run = run_create,
};
