/* SPDX-License-Identifier: MIT */
/*
 * record: runs a command with a session daemon of its own, and records the events of all its
 * programs. The command must not notice. Kymo reports its own failures on stderr once the command
 * runs; its exit status is the command's.
 */
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "abi/state.h"
#include "cli/agents.h"
#include "cli/daemon.h"
#include "cli/params.h"
#include "cli/probe.h"
#include "cli/recording.h"
#include "cli/with.h"
#include "explain/explain.h"
#include "kernel/tracefs-root.h"

/* Exit codes of a shell for commands that could not be run. */
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND	    127

static const struct cli_option options[] = {
	{"output", 'o', "DIR", "directory of the trace; must be new or empty"},
	CLI_OPTION_EVENT,
	{"kernel", 'k', "+PATTERN",
		"also record kernel events of the command's processes: kymo-kernel(7); may be repeated"},
	{"syscall", 0, "+NAME,..",
		"also record these system calls of the command's processes; '*': all"},
	CLI_OPTIONS_PROBES,
	{"sample", 0, "[=HZ]",
		"also sample the call stacks of the command's processes, HZ times a second (default 999)"},
	{"whole-system", 0, NULL,
		"record the kernel events of all processes, not only of the command's"},
	CLI_OPTIONS_AGENTS,
	{"with", 0, "+LIST",
		"also record calls of libc, pthread, dl or cyg-profile; crash: the stack at a crash; lttng: events of programs compiled for LTTng-UST"},
	{"loglevel", 'l', "LEVEL", "only events of this severity or a higher one"},
	{"loglevel-only", 0, "LEVEL", "only events of exactly this level"},
	CLI_OPTION_FILTER,
	{"context", 't', "+TYPE",
		"record a value with each event: vpid, vtid (both are the default), procname...; none: no values; see 'kymo add-context --list'"},
	CLI_OPTION_SUBBUF_SIZE,
	CLI_OPTION_NUM_SUBBUF,
	CLI_OPTION_BURST_SIZE,
	CLI_OPTION_BUFFERS,
	CLI_OPTION_POOL_SIZE,
	{"blocking-timeout", 0, "USEC|inf",
		"how long an event of the command waits for room in the buffers (default 0)"},
	{"event-conflict", 0, "refuse|separate",
		"an event with a known name but other fields is an event of its own (default), or is discarded"},
	CLI_OPTION_ABSOLUTE_CLOCK,
	CLI_OPTION_SHM_PATH,
	{"snapshot", 0, NULL,
		"keep the newest events in memory, and write them when the command ends"},
	CLI_OPTION_SECONDS,
	{"when", 0, "CONDITION",
		"with --snapshot: write them each time CONDITION is met, such as 'span(shop:checkout) > 20ms'; see 'kymo help add-trigger'"},
	{"rate", 0, "N/PERIOD", "with --when: at most N snapshots in each PERIOD (default 1/1m)"},
	{"keep", 0, "N|SIZE",
		"with --when: keep the newest N snapshots, or the newest that have SIZE together"},
	{"explain", 0, NULL,
		"also record what 'kymo explain' uses: calls of libc and pthread, names of threads, and, if this user may, the scheduler, interrupts, page faults, block requests and system calls"},
	{"report", 0, NULL,
		"write a page that shows the trace to DIR.html; unless -t is given, record the context procname, too"},
	{"no-summary", 0, NULL, "print nothing at the end, unless something failed"},
	{0},
};

/* Names the session after the command. Replaces characters that a name may not have. */
static void name_session(struct recording *rec)
{
	const char *command = cli_arg(rec->cli, 0), *slash = strrchr(command, '/');
	char *p;

	command = slash ? slash + 1 : command;
	snprintf(rec->session, sizeof(rec->session), "%s", *command ? command : "command");
	for (p = rec->session; *p; p++) {
		char one[2] = {*p, '\0'};

		if (!ky_name_valid(one) && (*p != '.' || p == rec->session))
			*p = '_';
	}
}

static int choose_output(struct recording *rec)
{
	int code = cli_choose_output(rec->cli, rec->session, false, rec->output);

	rec->new_output = !code && (!cli_has(rec->cli, "output") || access(rec->output, F_OK) < 0);
	return code;
}

/* Returns whether a daemon records the kernel for this user; else says why not. */
static bool may_record_kernel(struct recording *rec)
{
	struct ky_tracefs_refusal no;
	int fd;

	if (geteuid() && !cli_has(rec->cli, "snapshot") &&
		!kymo_ctl_open(KY_RUN_GLOBAL, &rec->root))
		return true; /* root's daemon; one of this user's own would refuse */
	fd = ky_tracefs_open(&no);
	ky_close(fd);
	if (fd < 0 && !rec->cli->json)
		cli_warn(rec->cli, "--explain without events of the kernel: %s: %s", no.problem,
			no.advice);
	return fd >= 0;
}

/* Adds the options of what `kymo explain` uses. */
static int add_explained(struct recording *rec)
{
	struct cli_args *args = &rec->cli->args;
	int r = 0;

	if (!cli_has(rec->cli, "explain"))
		return CLI_OK;
	if (!with_has(rec->cli, "libc"))
		r = cli_args_add(args, "with", "libc");
	if (!r && !with_has(rec->cli, "pthread"))
		r = cli_args_add(args, "with", "pthread");
	if (!r && !cli_has(rec->cli, "context"))
		r = cli_args_add(args, "context", "vpid,vtid,procname");
	if (!r && may_record_kernel(rec))
		r = cli_args_add(args, "kernel", KY_EXPLAIN_KERNEL);
	if (!r && record_wants_kernel(rec) && !cli_has(rec->cli, "syscall"))
		r = cli_args_add(args, "syscall", "*");
	return r ? cli_fail(rec->cli, "failed", "no memory") : CLI_OK;
}

/* Returns true if a context is an address of code. */
static bool has_code_context(const struct kymo_value *list)
{
	for (size_t i = 0; i < kymo_value_count(list); i++) {
		const char *context = kymo_value_string(kymo_value_at(list, i));

		if (!strcmp(context, "ip") || !strncmp(context, "callstack", strlen("callstack")))
			return true;
	}
	return false;
}

/* Prepares the rule for the events that say which files programs have in memory. */
static int add_state_rule(struct cli *cli, struct kymo_value *state, struct kymo_value *contexts,
	const struct kymo_value *channel)
{
	const struct kymo_value *list = kymo_value_get(contexts, "contexts");
	const char *buffers = kymo_value_string(kymo_value_get(channel, "buffers"));
	bool has_process = !list || !strcmp(buffers, "thread");

	/* `kymo view --symbols` needs the files then. */
	if (!with_addresses(cli) && !has_code_context(list))
		return CLI_OK;
	for (size_t i = 0; i < kymo_value_count(list); i++)
		has_process |= !strcmp(kymo_value_string(kymo_value_at(list, i)), "vpid");
	if (!has_process && strcmp(kymo_value_string(kymo_value_at(list, 0)), "none"))
		kymo_value_add_string(contexts, "contexts", "vpid");
	return cli_params_list(cli, state, "patterns", "kymo_statedump:*,kymo_lib:*");
}

/* Allows the command's programs to block, for --blocking-timeout. */
static int allow_blocking(struct cli *cli, struct kymo_value *channel)
{
	const char *timeout = cli_get(cli, "blocking-timeout");

	if (!timeout)
		return CLI_OK;
	if (setenv("KYMO_ALLOW_BLOCKING", "1", 1) < 0)
		return cli_fail(cli, "failed", "no memory");
	return cli_params_option(cli, channel, "blocking-timeout", timeout);
}

/* Adds the loggers of --event as a rule. */
static int add_loggers(
	struct recording *rec, const struct cli_agent_domain *d, struct kymo_value *rules)
{
	_cleanup_value_ struct kymo_value *loggers = cli_params_new(rec->cli);
	struct ky_buf filter = {0};
	int code = loggers ? cli_params_rules(rec->cli, loggers) : CLI_FAILED;

	if (!code)
		code = agents_filter(rec->cli, d, kymo_value_get(loggers, "patterns"), &filter);
	if (!code && filter.len)
		kymo_value_set_string(rules, "filter", filter.data);
	ky_buf_deinit(&filter);
	if (!code)
		kymo_value_add_string(rules, "patterns", d->event);
	return code ? code : with_lttng(rec->cli);
}

static int add_rules(struct recording *rec, struct kymo_value *rules)
{
	const struct cli_agent_domain *domain;
	int code = agents_domain(rec->cli, &domain);

	if (!code && domain)
		return add_loggers(rec, domain, rules);
	if (!code)
		code = cli_params_levels(rec->cli, rules);
	if (!code)
		code = cli_params_filter(rec->cli, rules);
	return code ? code : cli_params_rules(rec->cli, rules);
}

#define SAMPLE_HZ 999u

/* Prepares CPU samples. The command does not run if there can be none. */
static int add_samples(struct recording *rec)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(rec->cli);
	_cleanup_value_ struct kymo_value *reply = NULL;
	uint64_t hz = SAMPLE_HZ;
	int code;

	if (!params)
		return CLI_FAILED;
	if (!cli_has(rec->cli, "sample"))
		return CLI_OK;
	code = cli_read_amount(rec->cli, "sample", CLI_NUMBER, 1, UINT32_MAX, &hz);
	if (code)
		return code;
	if (cli_has(rec->cli, "snapshot"))
		return cli_usage(rec->cli,
			"--sample and --snapshot exclude each other: CPU samples are written as they come");
	kymo_value_set_u64(params, "frequency", hz);
	return cli_call(rec->cli, rec->daemon.ctl, "sample", params, &reply);
}

/* Samples the command's process, and narrows kernel events down to it; its children inherit it. */
static void track_command(void *arg, pid_t pid)
{
	struct recording *rec = arg;
	_cleanup_value_ struct kymo_value *sampled = kymo_value_new();
	_cleanup_value_ struct kymo_value *params = kymo_value_new();
	char digits[16];

	if (sampled && cli_has(rec->cli, "sample")) {
		kymo_value_set_u64(sampled, "pid", (uint64_t)pid);
		private_daemon_ask(&rec->daemon, rec->cli, "sample", sampled);
	}
	if (!params || !record_wants_kernel(rec) || cli_has(rec->cli, "whole-system"))
		return;
	snprintf(digits, sizeof(digits), "%d", (int)pid);
	kymo_value_add_string(params, "pid", digits);
	record_ask_kernel(rec, "track", params);
}

/* Prepares all before the command runs. Checks the command line before it makes files. */
static int set_up(struct recording *rec)
{
	_cleanup_value_ struct kymo_value *session = cli_params_new(rec->cli);
	_cleanup_value_ struct kymo_value *channel = cli_params_new(rec->cli);
	_cleanup_value_ struct kymo_value *rules = cli_params_new(rec->cli);
	_cleanup_value_ struct kymo_value *contexts = cli_params_new(rec->cli);
	_cleanup_value_ struct kymo_value *state = cli_params_new(rec->cli);
	int code = session && channel && rules && contexts && state ? add_explained(rec)
								    : CLI_FAILED;

	if (!code)
		code = cli_params_buffers(rec->cli, channel);
	if (!code)
		code = allow_blocking(rec->cli, channel);
	if (!code && cli_has(rec->cli, "event-conflict"))
		code = cli_params_option(
			rec->cli, channel, "event-conflict", cli_get(rec->cli, "event-conflict"));
	if (!code)
		code = cli_params_shm_path(rec->cli, session);
	if (!code)
		code = cli_params_contexts(rec->cli, contexts, "context");
	if (!code && cli_has(rec->cli, "report") && !cli_has(rec->cli, "context"))
		code = cli_params_list(rec->cli, contexts, "contexts", "vpid,vtid,procname");
	if (!code)
		code = add_rules(rec, rules);
	if (!code)
		code = with_preload(rec->cli, rules);
	if (!code)
		code = add_state_rule(rec->cli, state, contexts, channel);
	if (!code)
		code = with_library_path(rec->cli);
	if (!code)
		code = flights_init(&rec->flights, rec->cli);
	if (!code)
		code = cli_params_seconds(rec->cli, session);
	if (!code)
		code = choose_output(rec);
	if (!code && geteuid() && record_wants_kernel(rec) && !rec->root)
		kymo_ctl_open(NULL, &rec->root); /* without it, ours says what is missing */
	if (!code)
		code = private_daemon_start(
			&rec->daemon, rec->cli, &rec->signals, NULL, agents_are_meant(rec->cli));
	if (code)
		return code;
	kymo_value_set_string(session, "session", rec->session);
	kymo_value_set_string(session, "output", rec->output);
	kymo_value_set_bool(session, "snapshot", cli_has(rec->cli, "snapshot"));
	kymo_value_set_bool(session, "absolute_clock", cli_has(rec->cli, "absolute-clock"));
	code = private_daemon_record(
		&rec->daemon, rec->cli, session, channel, contexts, rules, state);
	if (!code && stat(rec->output, &rec->made) < 0)
		rec->made = (struct stat){0}; /* as with --snapshot */
	if (!code)
		code = record_begin_kernel(rec, channel);
	if (!code)
		code = add_samples(rec);
	return code ? code
		    : flights_begin(&rec->flights, rec->daemon.ctl, rec->daemon.rundir.path,
			      rec->session);
}

static int cannot_run(struct recording *rec, int r)
{
	const char *command = cli_arg(rec->cli, 0);
	struct stat st;
	bool is_here = !stat(command, &st) && S_ISREG(st.st_mode) && !access(command, X_OK);
	bool is_number = !command[strspn(command, "0123456789")];

	private_daemon_ask(&rec->daemon, rec->cli, "destroy", NULL);
	if (r == -ENOENT && is_number)
		cli_fail(rec->cli, "failed",
			"%s: command not found; a session records a process that runs: 'kymo create', 'kymo enable-event -a', 'kymo track --vpid=%s', 'kymo start'",
			command, command);
	else if (r == -ENOENT && strchr(command, ' '))
		cli_fail(rec->cli, "failed",
			"%s: command not found: write its arguments behind it, outside of the quotes",
			command);
	else if (r == -ENOENT && !strchr(command, '/'))
		cli_fail(rec->cli, "failed", "%s: command not found%s%s%s", command,
			is_here ? ": did you mean './" : "", is_here ? command : "",
			is_here ? "'?" : "");
	else
		cli_fail(rec->cli, "failed", "cannot run %s: %s", command, strerror(-r));
	return r == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

static int run_command(struct recording *rec, int *ret_signal)
{
	int code, r, status;

	rec->child.other = rec->daemon.pid;
	r = child_start(&rec->child, &rec->signals, rec->cli->args.pos, track_command, rec);
	if (r < 0)
		return cannot_run(rec, r);
	flights_watch(&rec->flights);
	status = child_wait(&rec->child, &rec->signals);
	rec->daemon.pid = rec->child.other;
	*ret_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	code = *ret_signal ? 128 + *ret_signal : WEXITSTATUS(status);
	record_finish(rec, code);
	return code;
}

static int run_record(struct cli *cli)
{
	struct recording rec = {.cli = cli, .daemon = PRIVATE_DAEMON_NONE};
	int code, signal;

	child_signals_hold(&rec.signals);
	name_session(&rec);
	cli->colour = false;
	cli->quiet = cli->quiet || cli_has(cli, "no-summary");
	code = set_up(&rec);
	signal = child_signals_pending(&rec.signals);
	if (!code && !signal)
		code = run_command(&rec, &signal);
	private_daemon_end(&rec.daemon);
	flights_end(&rec.flights);
	kymo_ctl_close(rec.root);
	kymo_value_free(rec.kernel);
	if (rec.new_output)
		rmdir(rec.output);
	if (signal)
		child_signals_die(signal);
	return code;
}

const struct cli_command cmd_record = {
	.name = "record",
	.synopsis = "[-o DIR] [-e PATTERN]... [-t TYPE]... [--with=LIST] [--] COMMAND [ARG]...",
	.help = "run a command, and record its events",
	.details =
		"The trace is a new directory COMMAND-YYYYMMDD-HHMMSS below $KYMO_HOME or $HOME/kymo-traces. The\n"
		"recording ends when the command ends. Only the command writes to standard output; the summary, and\n"
		"the object of --json, go to standard error.\n"
		"The exit status is that of the command; 127 if the command was not found, 126 if it could not be run,\n"
		"1 if it was not run because no trace can be created, 2 for wrong usage.\n"
		"With --snapshot, full buffers overwrite the oldest events instead of discarding new ones;\n"
		"--subbuf-size and --num-subbuf set how many events they hold. With --when too, the contents of the\n"
		"buffers are written to a new directory below DIR each time the condition is met, at most once a\n"
		"minute. Nothing is written when the command ends.\n"
		"With --blocking-timeout=inf, no event is lost: the command waits while its buffers are full. It gets\n"
		"KYMO_ALLOW_BLOCKING=1.\n"
		"With --shm-path, the buffers are files in DIR, which should be in a tmpfs (/dev/shm/NAME). If the\n"
		"command and the daemons are all killed, 'kymo recover DIR' completes the trace.\n",
	.options = options,
	.mode = CLI_PARSE_UNTIL_ARG,
	.min_args = 1,
	.max_args = CLI_ANY_ARGS,
	.run = run_record,
};
