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
#include "cli/crash.h"
#include "cli/daemon.h"
#include "cli/flights.h"
#include "cli/kernel-access.h"
#include "cli/locate.h"
#include "cli/page.h"
#include "cli/params.h"
#include "cli/private-daemon.h"
#include "cli/probe.h"
#include "cli/report.h"
#include "explain/explain.h"

/* Exit codes of a shell for commands that could not be run. */
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND	    127

/* Of applications' buffers, if only one option is given; a sub-buffer of the kernel. */
#define SUBBUF_SIZE	   (256u << 10)
#define NUM_SUBBUF	   8u
#define KERNEL_SUBBUF_SIZE (64u << 10)

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

struct recording {
	struct cli *cli;
	struct private_daemon daemon;
	/* root's daemon, which records the kernel for other users; NULL: ours does */
	struct kymo_ctl *root;
	char root_session[96];
	struct kymo_value *kernel; /* state of root_session at its end; NULL: none, or it failed */
	struct child_signals signals;
	struct child child;
	struct flights flights;
	char session[64];
	char output[PATH_MAX]; /* "" when no trace is kept */
	bool new_output;       /* we made it: remove it if it stays empty */
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

static bool records_kernel(const struct recording *rec)
{
	return cli_has(rec->cli, "kernel") || cli_has(rec->cli, "syscall") ||
	       probe_is_given(rec->cli);
}

static bool is_with(struct cli *cli, const char *library)
{
	const char *given;
	size_t iter = 0;

	while ((given = cli_args_next(&cli->args, "with", &iter)))
		if (strstr(given, library))
			return true;
	return false;
}

/* Returns whether a daemon records the kernel for this user; else says why not. */
static bool may_record_kernel(struct recording *rec)
{
	struct cli_kernel_access k = cli_kernel_access();

	if (geteuid() && !cli_has(rec->cli, "snapshot") &&
		!kymo_ctl_open(KY_RUN_GLOBAL, &rec->root))
		return true; /* root's daemon; one of this user's own would refuse */
	if (!k.place && !rec->cli->json)
		cli_warn(rec->cli, "--explain without events of the kernel: %s: %s", k.why,
			k.advice);
	return k.place != NULL;
}

/* Adds the options of what `kymo explain` uses. */
static int add_explained(struct recording *rec)
{
	struct cli_args *args = &rec->cli->args;
	int r = 0;

	if (!cli_has(rec->cli, "explain"))
		return CLI_OK;
	if (!is_with(rec->cli, "libc"))
		r = cli_args_add(args, "with", "libc");
	if (!r && !is_with(rec->cli, "pthread"))
		r = cli_args_add(args, "with", "pthread");
	if (!r && !cli_has(rec->cli, "context"))
		r = cli_args_add(args, "context", "vpid,vtid,procname");
	if (!r && may_record_kernel(rec))
		r = cli_args_add(args, "kernel", KY_EXPLAIN_KERNEL);
	if (!r && records_kernel(rec) && !cli_has(rec->cli, "syscall"))
		r = cli_args_add(args, "syscall", "*");
	return r ? cli_fail(rec->cli, "failed", "no memory") : CLI_OK;
}

/* Puts value in front of (or behind) the list that the variable holds, separated by a colon. */
static int extend_variable(const char *variable, const char *value, bool in_front)
{
	const char *old = getenv(variable);
	struct ky_buf b = {0};
	int r;

	if (old && *old && in_front)
		ky_buf_printf(&b, "%s:%s", value, old);
	else if (old && *old)
		ky_buf_printf(&b, "%s:%s", old, value);
	else
		ky_buf_puts(&b, value);
	r = b.error;
	if (!r && setenv(variable, b.data, 1) < 0)
		r = -errno;
	ky_buf_deinit(&b);
	return r;
}

/* Lets programs find the replacements for LTTng-UST's libraries first. */
static int stand_in(struct cli *cli)
{
	char dir[PATH_MAX];

	if (cli_locate_lttng_dir(dir) < 0)
		return cli_fail(cli, "unsupported",
			"liblttng-ust.so.1 of Kymo's, which --with=lttng needs, is not installed");
	if (strchr(dir, ':'))
		return cli_fail(cli, "failed",
			"%s cannot be searched for libraries: its path has a colon", dir);
	return extend_variable("LD_LIBRARY_PATH", dir, true) < 0
		       ? cli_fail(cli, "failed", "no memory")
		       : CLI_OK;
}

/* The libraries of --with. */
static const struct library {
	const char *name, *provider; /* of its events */
	bool has_addresses;	     /* of code, in fields of its events */
} libraries[] = {
	{"libc", "libc", true},
	{"pthread", "pthread", true},
	{"dl", "dl", false},
	{"crash", "crash", true},
	{"cyg-profile", "cyg_profile", true},
};

static bool any_begins_with(const struct kymo_value *patterns, const char *provider)
{
	size_t len = strlen(provider);

	for (size_t i = 0; i < kymo_value_count(patterns); i++) {
		const char *pattern = kymo_value_string(kymo_value_at(patterns, i));

		if (!strncmp(pattern, provider, len) && pattern[len] == ':')
			return true;
	}
	return false;
}

/* The user asked for the library: --event of other providers does not exclude its events. */
static int add_rule_of(struct cli *cli, struct kymo_value *rules, const char *provider)
{
	char pattern[32];

	if (!cli_has(cli, "event") || any_begins_with(kymo_value_get(rules, "patterns"), provider))
		return CLI_OK;
	snprintf(pattern, sizeof(pattern), "%s:*", provider);
	return cli_params_list(cli, rules, "patterns", pattern);
}

static int preload(struct cli *cli, const char *name, struct kymo_value *rules)
{
	const struct library *l = libraries, *end = l + KY_ARRAY_SIZE(libraries);
	char file[64], path[PATH_MAX];

	if (!strcmp(name, "lttng"))
		return stand_in(cli);
	while (l < end && strcmp(l->name, name))
		l++;
	if (l == end)
		return cli_usage(cli,
			"'%s' is none of libc, pthread, dl, crash, cyg-profile and lttng", name);
	snprintf(file, sizeof(file), "libkymo-%s.so", name);
	if (cli_locate_preload(path, sizeof(path), file) < 0)
		return cli_fail(cli, "unsupported", "%s, which --with=%s needs, is not installed",
			file, name);
	if (strpbrk(path, ": "))
		return cli_fail(cli, "failed",
			"%s cannot be preloaded: its path has a colon or a space", path);
	if (extend_variable("LD_PRELOAD", path, true) < 0)
		return cli_fail(cli, "failed", "no memory");
	return add_rule_of(cli, rules, l->provider);
}

/* True if events get addresses of code: `kymo view --symbols` needs the programs' files then. */
static bool has_addresses(struct cli *cli, const struct kymo_value *contexts)
{
	const struct kymo_value *list = kymo_value_get(contexts, "contexts");

	for (size_t i = 0; i < KY_ARRAY_SIZE(libraries); i++)
		if (libraries[i].has_addresses && is_with(cli, libraries[i].name))
			return true;
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

	if (!has_addresses(cli, contexts))
		return CLI_OK;
	for (size_t i = 0; i < kymo_value_count(list); i++)
		has_process |= !strcmp(kymo_value_string(kymo_value_at(list, i)), "vpid");
	if (!has_process && strcmp(kymo_value_string(kymo_value_at(list, 0)), "none"))
		kymo_value_add_string(contexts, "contexts", "vpid");
	return cli_params_list(cli, state, "patterns", "kymo_statedump:*,kymo_lib:*");
}

/*
 * Allows programs that were built with sanitizers. By default, one with -fsanitize=address does not
 * start if other libraries precede the sanitizer's, and a child of fork() ends in one with
 * -fsanitize=thread when it starts a thread, as libkymo does. All of this works all the same.
 */
static int allow_sanitizers(struct cli *cli)
{
	int r = extend_variable("TSAN_OPTIONS", "die_after_fork=0", true);

	if (!r && cli_has(cli, "with"))
		r = extend_variable("ASAN_OPTIONS", "verify_asan_link_order=0", true);
	return r < 0 ? cli_fail(cli, "failed", "no memory") : CLI_OK;
}

static int preload_all(struct cli *cli, struct kymo_value *rules)
{
	const char *given;
	size_t iter = 0;
	int code = allow_sanitizers(cli);

	while (!code && (given = cli_args_next(&cli->args, "with", &iter))) {
		_cleanup_value_ struct kymo_value *v = cli_params_new(cli);
		const struct kymo_value *names;

		code = v ? cli_params_list(cli, v, "names", given) : CLI_FAILED;
		names = kymo_value_get(v, "names");
		for (size_t i = 0; i < kymo_value_count(names) && !code; i++)
			code = preload(cli, kymo_value_string(kymo_value_at(names, i)), rules);
	}
	return code;
}

/* Lets programs find their library in a place that the dynamic linker does not search. */
static int add_library_path(struct cli *cli)
{
	char dir[PATH_MAX];

	if (cli_locate_tracer_dir(dir) < 0 || cli_is_system_libdir(dir))
		return CLI_OK;
	return extend_variable("LD_LIBRARY_PATH", dir, false) < 0
		       ? cli_fail(cli, "failed", "no memory")
		       : CLI_OK;
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
	struct recording *rec, const struct agent_domain *d, struct kymo_value *rules)
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
	return code ? code : stand_in(rec->cli);
}

static int add_rules(struct recording *rec, struct kymo_value *rules)
{
	const struct agent_domain *domain;
	int code = agents_domain(rec->cli, &domain);

	if (!code && domain)
		return add_loggers(rec, domain, rules);
	if (!code)
		code = cli_params_levels(rec->cli, rules);
	if (!code)
		code = cli_params_filter(rec->cli, rules);
	return code ? code : cli_params_rules(rec->cli, rules);
}

/* Asks the daemon that records the kernel. */
static int ask_kernel(struct recording *rec, const char *command, struct kymo_value *params)
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
	return ask_kernel(rec, "enable-event", rules);
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
				code = ask_kernel(rec, "enable-event", rule);
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
	return ask_kernel(rec, "enable-channel", params);
}

static int start_root(struct recording *rec)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(rec->cli);

	return params ? ask_kernel(rec, "start", params) : CLI_FAILED;
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

/* Adds kernel events, of no process before the command's. */
static int add_kernel(struct recording *rec, const struct kymo_value *channel)
{
	_cleanup_value_ struct kymo_value *nobody = cli_params_new(rec->cli);
	int code = nobody ? CLI_OK : CLI_FAILED;

	if (!records_kernel(rec))
		return cli_has(rec->cli, "whole-system")
			       ? cli_usage(rec->cli, "--whole-system needs --kernel or --syscall")
			       : code;
	if (!code && rec->root)
		code = begin_root(rec);
	if (!code && !cli_has(rec->cli, "whole-system")) {
		kymo_value_add_string(nobody, "pid", "all");
		code = ask_kernel(rec, "untrack", nobody);
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

#define SAMPLE_HZ 999u

/* Prepares CPU samples. The command does not run if there can be none. */
static int add_samples(struct recording *rec)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(rec->cli);
	_cleanup_value_ struct kymo_value *reply = NULL;
	const char *given = cli_get(rec->cli, "sample");
	uint64_t hz = SAMPLE_HZ;
	char *end;

	if (!params)
		return CLI_FAILED;
	if (!cli_has(rec->cli, "sample"))
		return CLI_OK;
	if (given) {
		hz = strtoull(given, &end, 10);
		if (*given < '0' || *given > '9' || *end || !hz || hz > UINT32_MAX)
			return cli_usage(rec->cli,
				"--sample: '%s' is not a number of samples per second", given);
	}
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
	if (!params || !records_kernel(rec) || cli_has(rec->cli, "whole-system"))
		return;
	snprintf(digits, sizeof(digits), "%d", (int)pid);
	kymo_value_add_string(params, "pid", digits);
	ask_kernel(rec, "track", params);
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
		code = preload_all(rec->cli, rules);
	if (!code)
		code = add_state_rule(rec->cli, state, contexts, channel);
	if (!code)
		code = add_library_path(rec->cli);
	if (!code)
		code = flights_init(&rec->flights, rec->cli);
	if (!code)
		code = cli_params_seconds(rec->cli, session);
	if (!code)
		code = choose_output(rec);
	if (!code && geteuid() && records_kernel(rec) && !rec->root)
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
	if (!code)
		code = add_kernel(rec, channel);
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

	private_daemon_ask(&rec->daemon, rec->cli, "destroy", NULL);
	if (r == -ENOENT && !strchr(command, '/'))
		cli_fail(rec->cli, "failed", "%s: command not found%s%s%s", command,
			is_here ? ": did you mean './" : "", is_here ? command : "",
			is_here ? "'?" : "");
	else
		cli_fail(rec->cli, "failed", "cannot run %s: %s", command, strerror(-r));
	return r == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

/* Counts traced programs that the command started and that outlive it. */
static size_t count_left(struct recording *rec, const struct kymo_value *session)
{
	const struct kymo_value *apps = kymo_value_get(session, "applications");
	size_t n = 0;

	for (size_t i = 0; i < kymo_value_count(apps); i++) {
		int64_t pid = kymo_value_i64(kymo_value_get(kymo_value_at(apps, i), "pid"));

		if (pid > 0 && pid != rec->child.pid &&
			(kill((pid_t)pid, 0) == 0 || errno == EPERM))
			n++;
	}
	return n;
}

/* A word for a shell: quoted if it has to be. */
static void quote(struct ky_buf *to, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "%+,-./:=@_";

	if (strspn(text, plain) == strlen(text)) {
		ky_buf_puts(to, text);
		return;
	}
	ky_buf_puts(to, "'");
	for (; *text; text++)
		ky_buf_append(to, *text == '\'' ? "'\\''" : text, *text == '\'' ? 4 : 1);
	ky_buf_puts(to, "'");
}

/* Returns the session of root's daemon as it was at the end; NULL if there is none. */
static const struct kymo_value *kernel_session(const struct recording *rec)
{
	return kymo_value_at(kymo_value_get(rec->kernel, "sessions"), 0);
}

/* Returns the number of events of the command's programs that a rule matched. */
static uint64_t count_matched(const struct kymo_value *session)
{
	const struct kymo_value *channel = kymo_value_at(kymo_value_get(session, "channels"), 0);
	const struct kymo_value *rules = kymo_value_get(channel, "rules");
	uint64_t n = 0;

	for (size_t i = 0; i < kymo_value_count(rules); i++)
		n += kymo_value_u64(kymo_value_get(kymo_value_at(rules, i), "matched"));
	return n;
}

/* Explains why there is not a single event. */
static void explain_nothing(const struct recording *rec, const struct kymo_value *session)
{
	uint64_t matched = count_matched(session);

	if (agents_are_meant(rec->cli))
		fputs("  no message of these loggers came: does the program import lttngust, or use LTTng's handler for Java, and does the logger's own level let messages pass?\n",
			stderr);
	else if (cli_get(rec->cli, "filter"))
		fputs("  none of its events passed --filter, or none has the fields that it names\n",
			stderr);
	else if (matched)
		fprintf(stderr,
			"  its programs have %" PRIu64 " such event%s, but did not reach %s\n",
			matched, matched == 1 ? "" : "s", matched == 1 ? "it" : "any of them");
	else if (ky_switch_is_on("KYMO_OFF"))
		fputs("  KYMO_OFF is set: programs are not traced\n", stderr);
	else if (cli_get(rec->cli, "loglevel") || cli_get(rec->cli, "loglevel-only"))
		fputs("  its programs have no event of such a level, or none at all: without --loglevel all are recorded\n",
			stderr);
	else if (cli_get(rec->cli, "with"))
		fputs("  no such event came from the libraries of --with: the programs have none, or could not get the libraries (static, setuid, environment dropped)\n",
			stderr);
	else if (cli_get(rec->cli, "event") && !strncmp(cli_get(rec->cli, "event"), "kymo_", 5))
		fputs("  the state of the system is recorded by sessions of 'kymo create', not here\n",
			stderr);
	else if (cli_get(rec->cli, "event"))
		fputs("  its programs have no event that matches --event, 'PROVIDER:NAME' with '*' for any letters: without it all are recorded, and 'kymo "
		      "stat' shows their names\n",
			stderr);
	else
		fputs("  its programs have no events: build them with kymo (pkg-config kymo), or record calls that "
		      "any program makes, '--with=libc'\n"
		      "  or they are static or setuid, find no libkymo of their kind, started when the command had ended, or run "
		      "as another user, whom only root's 'kymo create' records\n",
			stderr);
}

/* Returns true if the trace of a session, or a snapshot, has all that was to be in it. */
static bool is_complete(const struct kymo_value *written)
{
	return !kymo_value_u64(kymo_value_get(written, "discarded")) &&
	       !kymo_value_u64(kymo_value_get(written, "unwritten")) &&
	       !*kymo_value_string(kymo_value_get(written, "error"));
}

/* Returns true for --no-summary and --quiet if nothing is missing. */
static bool is_quiet(const struct recording *rec, const struct kymo_value *written)
{
	return rec->cli->quiet && is_complete(written) && is_complete(kernel_session(rec));
}

/* Prints what root's daemon has recorded. */
static void print_kernel(struct recording *rec)
{
	const struct kymo_value *session = kernel_session(rec);
	struct ky_buf counts = {0};

	if (!session)
		return;
	cli_format_counts(&counts, session);
	cli_warn(rec->cli, "of the kernel: %s", counts.data ? counts.data : "");
	cli_report_losses(stderr, rec->cli, session, "kymo record");
	ky_buf_deinit(&counts);
}

/* Reports that a buffer has overwritten events of the seconds that --seconds wants. */
static void print_reach(const struct kymo_value *before)
{
	const struct kymo_value *channel = kymo_value_at(kymo_value_get(before, "channels"), 0);
	double wanted = (double)cli_number(before, "seconds");
	double reach = (double)cli_number(channel, "reach_shortest_ns") / 1e9;

	if (reach > 0 && reach < wanted)
		fprintf(stderr,
			"  the busiest buffer reached back %.3g s, less than %g s: it needs some seconds to grow (--subbuf-size and --num-subbuf set its first size), or a larger --burst-size\n",
			reach, wanted);
}

/* Returns true if there are warnings other than the one that says that no event matches '*'. */
static bool has_reasons(const struct kymo_value *session, const struct kymo_value *warnings)
{
	return kymo_value_count(warnings) > (count_matched(session) ? 0 : 1);
}

/*
 * before: the session before it was destroyed; written: the object with the counts: the session, or
 * its snapshot. explained: warnings follow that say why there is no event.
 */
static void print_summary(struct recording *rec, const struct kymo_value *before,
	const struct kymo_value *session, const struct kymo_value *written, bool explained)
{
	bool nothing = !rec->kernel && !kymo_value_u64(kymo_value_get(written, "recorded")) &&
		       !kymo_value_u64(kymo_value_get(written, "discarded")) &&
		       !kymo_value_u64(kymo_value_get(written, "unwritten"));
	const char *how = cli_has(rec->cli, "explain") ? "explain" : "view";
	struct ky_buf counts = {0}, dir = {0};

	if (is_quiet(rec, written) || rec->cli->json)
		return;
	if (!*rec->output)
		ky_buf_puts(&counts, "0 events recorded, no trace is kept");
	else
		cli_format_counts(&counts, written);
	cli_warn(rec->cli, "%s", counts.data ? counts.data : "");
	cli_report_losses(stderr, rec->cli, written, "kymo record");
	print_reach(before);
	print_kernel(rec);
	quote(&dir, rec->output);
	if (nothing && !explained)
		explain_nothing(rec, session);
	else if (!nothing)
		cli_warn(rec->cli, "%s it with: kymo %s %s", how, how, dir.data ? dir.data : "");
	ky_buf_deinit(&counts);
	ky_buf_deinit(&dir);
}

static void report_failure(struct recording *rec, const struct kymo_value *reply)
{
	const char *shm_path = cli_get(rec->cli, "shm-path");

	if (reply)
		cli_warn(rec->cli, "the recording could not be completed: %s",
			kymo_reply_error(reply));
	else
		cli_warn(rec->cli,
			"the session daemon ended during the recording: the trace in %s may lack its last events%s%s",
			rec->output, shm_path ? "; if it does, 'kymo recover' adds them from " : "",
			shm_path ? shm_path : "");
}

/* Writes the page of the trace beside it. If that fails, it is reported, and the path is "". */
static void write_report(struct recording *rec, char *ret_path, size_t size)
{
	bool json = rec->cli->json, is_written;

	rec->cli->json = false; /* a failure is not the result of this command */
	is_written = snprintf(ret_path, size, "%s.html", rec->output) < (int)size &&
		     cli_page_of_trace(rec->cli, ret_path, rec->output) == CLI_OK;
	rec->cli->json = json;
	if (!is_written)
		*ret_path = '\0';
	else if (!json && !rec->cli->quiet)
		cli_warn(rec->cli, "look at it with a browser: %s", ret_path);
}

static void print_object(struct recording *rec, const struct kymo_value *session,
	const struct kymo_value *written, const struct kymo_value *warnings, const char *report,
	int exit_code, size_t left)
{
	static const char *const numbers[] = {
		"recorded", "discarded", "unwritten", "bytes", "overwritten"};
	_cleanup_value_ struct kymo_value *v = kymo_value_new();

	if (!rec->cli->json)
		return;
	kymo_value_set_bool(v, "ok", written != NULL);
	kymo_value_set_u64(v, "exit_code", (uint64_t)exit_code);
	kymo_value_set_u64(v, "still_running", left);
	kymo_value_set_string(v, "output", rec->output);
	for (size_t i = 0; i < KY_ARRAY_SIZE(numbers) && written; i++)
		kymo_value_set_u64(
			v, numbers[i], kymo_value_u64(kymo_value_get(written, numbers[i])));
	if (rec->flights.ctl)
		kymo_value_set_u64(v, "snapshots", rec->flights.n_written);
	if (session)
		kymo_value_set(v, "session", session);
	if (rec->kernel)
		kymo_value_set(v, "kernel", kernel_session(rec));
	if (warnings)
		kymo_value_set(v, "warnings", warnings);
	if (*report)
		kymo_value_set_string(v, "report", report);
	if (!written)
		kymo_value_set_string(
			v, "error", "the session daemon did not complete the recording");
	cli_result(rec->cli, v);
}

/* Returns whether the signal means that something went wrong, and not that somebody ended it. */
static bool is_crash(int signal)
{
	static const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP,
		SIGKILL, SIGXCPU, SIGXFSZ};

	for (size_t i = 0; i < KY_ARRAY_SIZE(signals); i++)
		if (signals[i] == signal)
			return true;
	return false;
}

static void report_crashes(struct recording *rec, const struct kymo_value *session)
{
	const struct kymo_value *deaths = kymo_value_get(session, "deaths");
	char name[32];

	for (size_t i = 0; i < kymo_value_count(deaths) && !rec->cli->json; i++) {
		const struct kymo_value *d = kymo_value_at(deaths, i);
		struct crash c = {.name = kymo_value_string(kymo_value_get(d, "name")),
			.vpid = kymo_value_i64(kymo_value_get(d, "vpid")),
			.signal = (int)kymo_value_i64(kymo_value_get(d, "signal")),
			.dumped = kymo_value_bool(kymo_value_get(d, "dumped_core"))};

		if (is_crash(c.signal) && rec->flights.ctl)
			cli_warn(rec->cli, "%s (pid %" PRId64 ") ended by %s", c.name, c.vpid,
				cli_signal_name(name, sizeof(name), c.signal));
		else if (is_crash(c.signal))
			cli_report_crash(rec->cli, &c, rec->output);
	}
}

/* Takes a snapshot if requested. *ret_reply is NULL if the daemon did not reply. */
static void take_snapshot(struct recording *rec, struct kymo_value **ret_reply)
{
	_cleanup_value_ struct kymo_value *params = kymo_value_new();

	if (!params || !cli_has(rec->cli, "snapshot") || rec->flights.ctl)
		return;
	kymo_value_set_string(params, "output", rec->output);
	kymo_ctl_call(rec->daemon.ctl, "snapshot", params, ret_reply);
}

/* Returns false for kernel events or samples alone: programs need not have any event then. */
static bool wants_programs(const struct recording *rec)
{
	return cli_has(rec->cli, "with") || !(records_kernel(rec) || cli_has(rec->cli, "sample"));
}

/* Ends the session of root's daemon, which writes what the kernel still has. */
static void end_root(struct recording *rec)
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

static void finish_record(struct recording *rec, int exit_code)
{
	_cleanup_value_ struct kymo_value *status = NULL, *reply = NULL, *snapshot = NULL;
	_cleanup_value_ struct kymo_value *params = kymo_value_new();
	const struct kymo_value *session = NULL, *written, *warnings;
	char path[PATH_MAX] = "";
	bool flies = rec->flights.ctl, explained;
	size_t left = 0;

	if (params)
		kymo_value_set_bool(params, "without_losses",
			!cli_has(rec->cli, "snapshot")); /* the summary has them */
	if (kymo_ctl_call(rec->daemon.ctl, "status", params, &status) == 0)
		left = count_left(rec, kymo_value_get(status, "session"));
	warnings = kymo_value_get(status, "warnings");
	end_root(rec);
	take_snapshot(rec, &snapshot);
	flights_settle(&rec->flights, rec->daemon.ctl);
	if (kymo_ctl_call(rec->daemon.ctl, "destroy", NULL, &reply) == 0)
		session = kymo_value_at(kymo_value_get(reply, "sessions"), 0);
	explained = has_reasons(session, warnings);
	written = cli_has(rec->cli, "snapshot") && !flies ? kymo_value_get(snapshot, "snapshot")
							  : session;
	if (left)
		cli_warn(rec->cli,
			"%s has ended, and the recording with it; %zu program%s of it still run%s, untraced",
			cli_arg(rec->cli, 0), left, left == 1 ? "" : "s", left == 1 ? "s" : "");
	if (!session)
		rec->new_output = false; /* the consumer may still write the trace */
	if (rec->new_output && rmdir(rec->output) == 0)
		rec->output[0] = '\0'; /* nothing was written: nothing is kept */
	if (session && written && !flies)
		print_summary(rec, kymo_value_get(status, "session"), session, written, explained);
	else if (!session || !written)
		report_failure(rec, session ? snapshot : reply);
	/*
	 * Warns of events that were left out, also with --no-summary: nobody would notice their
	 * absence from a trace that has others.
	 */
	if (session && !rec->cli->json && !flies &&
		((kymo_value_u64(kymo_value_get(written, "recorded")) && wants_programs(rec)) ||
			kymo_value_u64(kymo_value_get(session, "unrecorded_applications")) ||
			cli_get(rec->cli, "filter") || cli_get(rec->cli, "event") || explained))
		cli_report_warnings(stderr, rec->cli, warnings);
	report_crashes(rec, session);
	if (written && *rec->output && cli_has(rec->cli, "report") && !flies)
		write_report(rec, path, sizeof(path));
	print_object(rec, session, written, warnings, path, exit_code, left);
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
	finish_record(rec, code);
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
		"The exit code is that of the command; 127 if the command was not found, 126 if it could not be run,\n"
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
