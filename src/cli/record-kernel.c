/* SPDX-License-Identifier: MIT */
/* Kernel events of `kymo record`, of this user's private daemon or of root's. */

#include "cli/daemon.h"
#include "cli/params.h"
#include "cli/probe.h"
#include "cli/recording.h"

/* Of applications' buffers, if only one option is given; a sub-buffer of the kernel. */
#define SUBBUF_SIZE	   (256u << 10)
#define NUM_SUBBUF	   8u
#define KERNEL_SUBBUF_SIZE (64u << 10)

bool record_wants_kernel(const struct recording *rec)
{
	return cli_has(rec->cli, "kernel") || cli_has(rec->cli, "syscall") ||
	       probe_is_given(rec->cli);
}

int record_ask_kernel(struct recording *rec, const char *command, struct kymo_value *params)
{
	_cleanup_value_ struct kymo_value *reply = NULL;

	if (!rec->root)
		return private_daemon_ask(&rec->daemon, rec->cli, command, params);
	kymo_value_set_string(params, "session", rec->root_session);
	return cli_call(rec->cli, rec->root, command, params, &reply);
}

/* Adds one kernel rule: of the option's values, if it was given. */
static int add_kernel_rules(struct recording *rec, const char *option, const char *kind)
{
	_cleanup_value_ struct kymo_value *rules = cli_params_new(rec->cli);
	const char *text;
	size_t iter = 0;
	int code = rules ? CLI_OK : CLI_FAILED;

	if (!cli_has(rec->cli, option))
		return code;
	while (!code && (text = cli_args_next(&rec->cli->args, option, &iter)))
		code = cli_params_list(
			rec->cli, rules, "patterns", strcmp(text, "--all") ? text : "*");
	if (!code)
		code = cli_params_filter(rec->cli, rules);
	if (code)
		return code;
	kymo_value_set_string(rules, "domain", "kernel");
	kymo_value_set_string(rules, "kind", kind);
	return record_ask_kernel(rec, "enable-event", rules);
}

/* Adds a kernel rule for each value of the options for probes. */
static int add_probes(struct recording *rec)
{
	int code = CLI_OK;

	for (size_t i = 0; probe_options[i]; i++) {
		const char *place;
		size_t iter = 0;

		while (!code && (place = cli_args_next(&rec->cli->args, probe_options[i], &iter))) {
			_cleanup_value_ struct kymo_value *rule = cli_params_new(rec->cli);

			code = rule ? probe_params(rec->cli, probe_options[i], place, NULL, rule)
				    : CLI_FAILED;
			if (!code)
				code = cli_params_filter(rec->cli, rule);
			if (!code)
				code = record_ask_kernel(rec, "enable-event", rule);
		}
	}
	return code;
}

/*
 * Gives the kernel's buffers the size of the applications'. Their sub-buffers always have 64 KiB.
 */
static int size_kernel_buffers(struct recording *rec, const struct kymo_value *channel)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(rec->cli);
	const struct kymo_value *given_size = kymo_value_get(channel, "subbuf_size");
	const struct kymo_value *given_n = kymo_value_get(channel, "num_subbuf");
	uint64_t n = given_n ? kymo_value_u64(given_n) : NUM_SUBBUF, size;

	if (!params)
		return CLI_FAILED;
	if (!given_size && !given_n)
		return CLI_OK;
	if (__builtin_mul_overflow(given_size ? kymo_value_u64(given_size) : SUBBUF_SIZE, n, &size))
		size = UINT64_MAX;
	kymo_value_set_string(params, "channel", "kernel0");
	kymo_value_set_string(params, "domain", "kernel");
	kymo_value_set_u64(params, "subbuf_size", KERNEL_SUBBUF_SIZE);
	kymo_value_set_u64(params, "num_subbuf", KY_MAX(size / KERNEL_SUBBUF_SIZE, 2u));
	return record_ask_kernel(rec, "enable-channel", params);
}

static int start_root(struct recording *rec)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(rec->cli);

	return params ? record_ask_kernel(rec, "start", params) : CLI_FAILED;
}

/*
 * Only root's daemon can record the kernel. For another user it does so in a session of its own,
 * below the directory of the trace and with the same clock. That ends with this command.
 */
static int begin_root(struct recording *rec)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(rec->cli), *reply = NULL;
	_cleanup_value_ struct kymo_value *status = NULL;
	char output[PATH_MAX + 16];
	int code = params ? cli_call(rec->cli, rec->daemon.ctl, "status", NULL, &status)
			  : CLI_FAILED;

	if (!code && cli_has(rec->cli, "snapshot"))
		code = cli_fail(rec->cli, "unsupported",
			"snapshots of kernel events are for sessions of root's daemon: 'kymo create --snapshot'");
	if (code)
		return code;
	snprintf(rec->root_session, sizeof(rec->root_session), "record-%d", (int)getpid());
	snprintf(output, sizeof(output), "%s/system", rec->output);
	kymo_value_set_string(params, "session", rec->root_session);
	kymo_value_set_string(params, "output", output);
	kymo_value_set_string(params, "clock",
		kymo_value_string(kymo_value_get(kymo_value_get(status, "session"), "clock")));
	kymo_value_set_bool(params, "bound", true);
	kymo_value_set_bool(params, "absolute_clock", cli_has(rec->cli, "absolute-clock"));
	return cli_call(rec->cli, rec->root, "create", params, &reply);
}

int record_begin_kernel(struct recording *rec, const struct kymo_value *channel)
{
	_cleanup_value_ struct kymo_value *nobody = cli_params_new(rec->cli);
	int code = nobody ? CLI_OK : CLI_FAILED;

	if (!record_wants_kernel(rec))
		return cli_has(rec->cli, "whole-system")
			       ? cli_usage(rec->cli, "--whole-system needs --kernel or --syscall")
			       : code;
	if (!code && rec->root)
		code = begin_root(rec);
	if (!code && !cli_has(rec->cli, "whole-system")) {
		kymo_value_add_string(nobody, "pid", "all");
		code = record_ask_kernel(rec, "untrack", nobody);
	}
	if (!code)
		code = size_kernel_buffers(rec, channel);
	if (!code)
		code = add_kernel_rules(rec, "kernel", "event");
	if (!code)
		code = add_kernel_rules(rec, "syscall", "syscall");
	if (!code)
		code = add_probes(rec);
	return code || !rec->root ? code : start_root(rec);
}

const struct kymo_value *record_kernel_session(const struct recording *rec)
{
	return kymo_value_at(kymo_value_get(rec->kernel, "sessions"), 0);
}

void record_end_kernel(struct recording *rec)
{
	_cleanup_value_ struct kymo_value *params = kymo_value_new();

	if (!rec->root || !params)
		return;
	kymo_value_set_string(params, "session", rec->root_session);
	if (kymo_ctl_call(rec->root, "destroy", params, &rec->kernel) == 0 &&
		kymo_reply_ok(rec->kernel))
		return;
	if (rec->kernel)
		cli_warn(rec->cli, "the recording of the kernel could not be completed: %s",
			kymo_reply_error(rec->kernel));
	else
		cli_warn(rec->cli,
			"the recording of the kernel ended early: root's session daemon ended, or was restarted");
	kymo_value_free(rec->kernel);
	rec->kernel = NULL;
}
