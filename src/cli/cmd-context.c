/* SPDX-License-Identifier: MIT */
/* add-context: values that are recorded with each event of a channel. */
#include "cli/daemon.h"
#include "cli/params.h"
#include "cli/report.h"
#include "proto/context.h"

static const struct cli_option options[] = {
	{"type", 't', "+TYPE", "the value to record; TYPE[,TYPE]..., may be repeated"},
	{"list", 0, NULL, "show all types, and do nothing else"},
	CLI_OPTION_USERSPACE,
	CLI_OPTION_KERNEL,
	CLI_OPTION_SESSION,
	{"channel", 'c', "CHANNEL", "channel; without it, all channels of the session"},
	{0},
};

/* A family's help begins with the form of what follows its name. */
static void print_type(const struct ky_ctx_type *t)
{
	const char *colon = strstr(t->help, ": ");
	bool family = t->kind == KY_CTX_PERF || t->kind == KY_CTX_APP ||
		      t->kind == KY_CTX_CALLSTACK;

	if (family)
		printf("%s%.*s\n%14s%s\n", t->name, (int)(colon - t->help), t->help, "", colon + 2);
	else
		printf("%-14s%s\n", t->name, t->help);
}

static int list_json(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *v = cli_params_new(cli);

	if (!v)
		return CLI_FAILED;
	for (const struct ky_ctx_type *t = ky_ctx_types; t->name[0]; t++)
		kymo_value_add_string(v, "types", t->name);
	for (const struct ky_ctx_counter *c = ky_ctx_counters; c->name[0]; c++)
		kymo_value_add_string(v, "counters", c->name);
	cli_result(cli, v);
	return CLI_OK;
}

static int list_types(struct cli *cli)
{
	unsigned column = 80;

	if (cli->json)
		return list_json(cli);
	for (const struct ky_ctx_type *t = ky_ctx_types; t->name[0]; t++)
		print_type(t);
	printf("counters (those of the processor only where it lets programs count):");
	for (const struct ky_ctx_counter *c = ky_ctx_counters; c->name[0]; c++) {
		column += (unsigned)strlen(c->name) + 1;
		printf(column > 78 ? "\n  %s" : " %s", c->name);
		column = column > 78 ? 2 + (unsigned)strlen(c->name) : column;
	}
	putchar('\n');
	return CLI_OK;
}

static void report_channel_contexts(struct cli *cli, const struct kymo_value *reply)
{
	const struct kymo_value *channels = kymo_value_get(reply, "channels");

	for (size_t i = 0; i < kymo_value_count(channels); i++) {
		const struct kymo_value *c = kymo_value_at(channels, i);

		printf("channel '%s': ", cli_member(cli, c, "name"));
		cli_report_contexts(cli, c);
	}
	cli_report_notes(cli, reply);
}

static int run_context(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *reply = NULL;
	int code = params ? cli_params_session(cli, params) : CLI_FAILED;

	if (cli_has(cli, "list"))
		return list_types(cli);
	if (!code)
		code = cli_params_contexts(cli, params, "type");
	if (!code && !kymo_value_get(params, "contexts"))
		return cli_usage(cli,
			"no context is given: --type=TYPE; 'kymo add-context --list' shows them");
	if (!code)
		code = cli_params_domain(cli, params, false);
	if (!code && cli_get(cli, "channel"))
		kymo_value_set_string(params, "channel", cli_get(cli, "channel"));
	if (!code)
		code = cli_request(cli, "add-context", params, &reply);
	if (code)
		return code;
	if (cli->json)
		cli_result(cli, reply);
	else
		report_channel_contexts(cli, reply);
	return CLI_OK;
}

const struct cli_command cmd_add_context = {
	.name = "add-context",
	.synopsis = "-t TYPE [-t TYPE]... [-c CHANNEL] [-s SESSION] [-k]",
	.help = "record a value, such as the thread's number, with each event",
	.details =
		"TYPE is vpid, vtid, procname, perf:thread:page-faults, callstack, '$app.PROVIDER:NAME' or another one\n"
		"that --list shows. With -k, TYPE is tid, pid, procname, interruptible, preemptible, need_reschedule,\n"
		"callstack-kernel or callstack-user. A context cannot be removed. If the session is recording, events\n"
		"have the values from now on.\n",
	.options = options,
	.max_args = 0,
	.run = run_context,
};
