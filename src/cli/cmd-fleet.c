/* SPDX-License-Identifier: MIT */
/*
 * fleet: the same request to all hosts of a fleet. A program of its own carries it out, so nothing
 * else depends on the client library that it needs; this command only reads the command line.
 */
#include <limits.h>
#include <unistd.h>

#include "cli/daemon.h"
#include "cli/locate.h"
#include "cli/params.h"

static const struct cli_option options[] = {
	{"local", 0, NULL, "setup: start the servers, on this machine"},
	{"listen", 0, "ADDRESS:PORT,...",
		"setup: where the server listens, or three of them (with --local: 127.0.0.1:4222)"},
	{"shards", 0, "N",
		"setup: spread what hosts ship over so many streams, 1 to 64 (default 1), for thousands of hosts"},
	{"triggers", 0, NULL,
		"setup: allow these hosts to request snapshots of the fleet from their triggers"},
	{"output", 'o', "DIR",
		"setup: the fleet's files (default ~/kymo-fleet); fetch: the traces"},
	{"timeout", 't', "TIME",
		"how long to wait for hosts (default: hosts 10s, fetch 60s, others 30s)"},
	{"reason", 0, "TEXT", "snapshot: the reason, which fetch prints"},
	{"trace-id", 0, "HEX", "snapshot: only hosts whose events have this W3C trace id ship"},
	{"max-size", 'm', "SIZE",
		"snapshot: ship at most so many bytes of each session, the newest"},
	{0},
};

/* Options that only some actions have. */
static const char *const actions[][8] = {
	{"setup", "local", "listen", "shards", "triggers", "output"},
	{"hosts", "timeout"},
	{"start", "timeout"},
	{"stop", "timeout"},
	{"snapshot", "timeout", "reason", "trace-id", "max-size"},
	{"fetch", "timeout", "output"},
	{"forget"},
};

static int check_option(struct cli *cli, const char *const *action, const char *name)
{
	if (!strcmp(name, "json"))
		return CLI_OK;
	for (size_t i = 1; action[i]; i++)
		if (!strcmp(action[i], name))
			return CLI_OK;
	return cli_usage(cli, "'kymo fleet %s' has no --%s", action[0], name);
}

static int check_action(struct cli *cli)
{
	const char *names[KY_ARRAY_SIZE(actions) + 1] = {NULL};
	const char *name = cli_arg(cli, 0), *near;
	int code = CLI_OK;

	for (size_t i = 0; i < KY_ARRAY_SIZE(actions); i++) {
		names[i] = actions[i][0];
		if (strcmp(names[i], name))
			continue;
		for (size_t k = 0; !code && k < cli->args.n_given; k++)
			code = check_option(cli, actions[i], cli->args.given[k].opt->name);
		return code;
	}
	near = cli_nearest(name, names);
	return cli_usage(cli,
		near ? "unknown action '%s': did you mean '%s'?"
		     : "unknown action '%s': there are setup, hosts, start, stop, snapshot, fetch, forget%s",
		name, near ? near : "");
}

static struct kymo_value *make_request(const struct cli *cli)
{
	struct kymo_value *request = kymo_value_new(), *given = kymo_value_new();

	kymo_value_set_string(request, "action", cli_arg(cli, 0));
	kymo_value_set_bool(request, "json", cli->json);
	kymo_value_set_list(request, "args");
	for (size_t i = 1; cli_arg(cli, i); i++)
		kymo_value_add_string(request, "args", cli_arg(cli, i));
	for (size_t i = 0; i < cli->args.n_given; i++)
		kymo_value_set_string(given, cli->args.given[i].opt->name,
			cli->args.given[i].value ? cli->args.given[i].value : "");
	kymo_value_set(request, "options", given);
	kymo_value_free(given);
	return request;
}

static int run_fleet(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *request = NULL;
	char path[PATH_MAX];
	char *argv[] = {path, NULL, NULL};
	int code = check_action(cli);

	if (code)
		return code;
	if (cli_locate_fleet(path, sizeof(path)) < 0)
		return cli_fail(cli, "unsupported",
			"fleets are not part of this installation: install the package kymo-fleet, or build Kymo where libnats is (Debian package libnats-dev)");
	request = make_request(cli);
	argv[1] = (char *)kymo_value_json(request);
	execv(path, argv);
	return cli_fail(cli, "failed", "cannot run %s: %s", path, strerror(errno));
}

const struct cli_command cmd_fleet = {
	.name = "fleet",
	.synopsis = "setup|hosts|start|stop|snapshot|fetch|forget [HOST|SESSION|ID]... [OPTION]...",
	.help = "control the sessions of many hosts, and fetch their snapshots",
	.details =
		"  setup [HOST]...          create a fleet with one server or three, and identities for hosts;\n"
		"                           with --local, start the servers here, else say how to start them\n"
		"  hosts                    show the hosts, what they record, and which of them are silent\n"
		"  start|stop SESSION...    start or stop sessions on all hosts\n"
		"  snapshot [SESSION]...    take a snapshot on each host, and ship it to the server; without SESSION:\n"
		"                           of each started session that was created with --snapshot\n"
		"  fetch [ID]               copy a snapshot here, by default the newest, with clocks that agree;\n"
		"                           'kymo view DIR' reads it\n"
		"  forget HOST...           remove hosts from the list: commands no longer wait for them\n"
		"\n"
		"'kymo-agent' runs on each host. KYMO_FLEET names the file with the servers' addresses and the\n"
		"keys (default: ~/kymo-fleet/fleet.conf if it exists, otherwise /etc/kymo/fleet/fleet.conf).\n",
	.options = options,
	.min_args = 1,
	.max_args = CLI_ANY_ARGS,
	.run = run_fleet,
};
