/* SPDX-License-Identifier: MIT */
/*
 * The end of `kymo record`: ends the sessions, and reports what was recorded, lost, left out, and
 * why there is nothing.
 */
#include <inttypes.h>

#include "cli/agents.h"
#include "cli/crash.h"
#include "cli/daemon.h"
#include "cli/page.h"
#include "cli/recording.h"
#include "cli/report.h"
#include "cli/with.h"

/* The end of a recording. Values are borrowed; NULL: the daemon did not supply them. */
struct ending {
	const struct kymo_value *before;   /* the session before it was destroyed */
	const struct kymo_value *session;  /* when it was destroyed */
	const struct kymo_value *written;  /* with the counts: the session, or its snapshot */
	const struct kymo_value *warnings; /* about the session before */
	bool is_explained;		   /* warnings say why there is no event */
	int exit_code;			   /* of the command */
	size_t n_left;			   /* programs of the command that still run */
	char report[PATH_MAX];		   /* "": there is none */
};

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

/* Adds the reasons why there is not a single event, as `reasons`. */
static void add_reasons(
	const struct recording *rec, const struct kymo_value *session, struct kymo_value *v)
{
	static const char to[] = "reasons";
	const char *event = cli_get(rec->cli, "event");
	uint64_t matched = count_matched(session);
	char text[PATH_MAX + 256];

	if (agents_are_meant(rec->cli)) {
		kymo_value_add_string(v, to,
			"no message of these loggers came: does the program import lttngust after it has configured logging, or use LTTng's handler for Java, and does the logger's own level let messages pass?");
	} else if (cli_get(rec->cli, "filter")) {
		kymo_value_add_string(v, to,
			"none of its events passed --filter, or none has the fields that it names");
	} else if (matched) {
		snprintf(text, sizeof(text),
			"its programs have %" PRIu64
			" such event%s, but did not reach %s before %s ended (sessions record programs that go on in the background: 'kymo create')",
			matched, matched == 1 ? "" : "s", matched == 1 ? "it" : "any of them",
			cli_arg(rec->cli, 0));
		kymo_value_add_string(v, to, text);
	} else if (ky_switch_is_on("KYMO_OFF")) {
		kymo_value_add_string(v, to, "KYMO_OFF is set: programs are not traced");
	} else if (cli_get(rec->cli, "loglevel") || cli_get(rec->cli, "loglevel-only")) {
		kymo_value_add_string(v, to,
			"its programs have no event of such a level, or none at all: without --loglevel all are recorded");
	} else if (cli_get(rec->cli, "with")) {
		kymo_value_add_string(v, to,
			"the libraries of --with recorded nothing: the programs made no such call, or did not load the libraries (they are static or setuid, or ran without the environment)");
	} else if (event && !strncmp(event, "kymo_", 5)) {
		kymo_value_add_string(v, to,
			"the state of the system is recorded by sessions of 'kymo create', not here");
	} else if (event) {
		kymo_value_add_string(v, to,
			"its programs have no event that matches --event: write PROVIDER:NAME, where '*' is any text; without --event, all events are recorded, and 'kymo stat' shows their names");
	} else {
		kymo_value_add_string(v, to,
			"its programs have no events: build them with kymo (pkg-config kymo), or record calls that any program makes: --with=libc");
		kymo_value_add_string(v, to,
			"if they have events: programs that are static or setuid, find no libkymo of their ABI, cannot start a thread, lose their environment (sudo, env -i), or start after the command has ended are not recorded; those of other users only by root's 'kymo create'");
	}
}

static void print_reasons(const struct recording *rec, const struct kymo_value *session)
{
	_cleanup_value_ struct kymo_value *v = kymo_value_new();
	const struct kymo_value *reasons;

	add_reasons(rec, session, v);
	reasons = kymo_value_get(v, "reasons");
	for (size_t i = 0; i < kymo_value_count(reasons); i++)
		fprintf(stderr, "  %s\n", kymo_value_string(kymo_value_at(reasons, i)));
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
	return rec->cli->quiet && is_complete(written) && is_complete(record_kernel_session(rec));
}

/* Prints what root's daemon has recorded. */
static void print_kernel(struct recording *rec)
{
	const struct kymo_value *session = record_kernel_session(rec);
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

/* Returns true if there was not a single event. */
static bool is_nothing(const struct recording *rec, const struct kymo_value *written)
{
	return !rec->kernel && !kymo_value_u64(kymo_value_get(written, "recorded")) &&
	       !kymo_value_u64(kymo_value_get(written, "discarded")) &&
	       !kymo_value_u64(kymo_value_get(written, "unwritten"));
}

/* Returns false if the directory of the trace was moved, removed or replaced meanwhile. */
static bool is_in_place(const struct recording *rec)
{
	struct stat st;

	return !*rec->output || !rec->made.st_ino ||
	       (stat(rec->output, &st) == 0 && st.st_dev == rec->made.st_dev &&
		       st.st_ino == rec->made.st_ino);
}

static void print_summary(struct recording *rec, const struct ending *e)
{
	bool nothing = is_nothing(rec, e->written);
	const char *how = cli_has(rec->cli, "explain") ? "explain" : "view";
	bool in_place = is_in_place(rec);
	struct ky_buf counts = {0}, dir = {0};

	if (is_quiet(rec, e->written) || rec->cli->json)
		return;
	if (!*rec->output)
		ky_buf_puts(&counts, "0 events recorded, no trace is kept");
	else
		cli_format_counts(&counts, e->written);
	cli_warn(rec->cli, "%s", counts.data ? counts.data : "");
	cli_report_losses(stderr, rec->cli, e->written, "kymo record");
	print_reach(e->before);
	print_kernel(rec);
	ky_buf_put_word(&dir, rec->output);
	if (!in_place)
		fputs("  the trace is no longer there: its directory was moved, removed or replaced during the recording\n",
			stderr);
	if (nothing && !e->is_explained)
		print_reasons(rec, e->session);
	else if (!nothing && in_place)
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

/* Writes the page of the trace beside it. A failure is reported. */
static void write_report(struct recording *rec, struct ending *e)
{
	const size_t size = sizeof(e->report);
	bool json = rec->cli->json, is_written;

	rec->cli->json = false; /* a failure is not the result of this command */
	is_written = snprintf(e->report, size, "%s.html", rec->output) < (int)size &&
		     cli_page_of_trace(rec->cli, e->report, rec->output) == CLI_OK;
	rec->cli->json = json;
	if (!is_written)
		*e->report = '\0';
	else if (!json && !rec->cli->quiet)
		cli_warn(rec->cli, "look at it with a browser: %s", e->report);
}

static void print_object(struct recording *rec, const struct ending *e)
{
	static const char *const numbers[] = {
		"recorded", "discarded", "unwritten", "bytes", "overwritten"};
	_cleanup_value_ struct kymo_value *v = kymo_value_new();

	if (!rec->cli->json)
		return;
	kymo_value_set_bool(v, "ok", e->written != NULL);
	kymo_value_set_u64(v, "exit_code", (uint64_t)e->exit_code);
	kymo_value_set_u64(v, "still_running", e->n_left);
	kymo_value_set_string(v, "output", rec->output);
	for (size_t i = 0; i < KY_ARRAY_SIZE(numbers) && e->written; i++)
		kymo_value_set_u64(
			v, numbers[i], kymo_value_u64(kymo_value_get(e->written, numbers[i])));
	if (rec->flights.ctl)
		kymo_value_set_u64(v, "snapshots", rec->flights.n_written);
	if (e->session)
		kymo_value_set(v, "session", e->session);
	if (rec->kernel)
		kymo_value_set(v, "kernel", record_kernel_session(rec));
	if (e->warnings)
		kymo_value_set(v, "warnings", e->warnings);
	if (e->session && e->written && !rec->flights.ctl && is_nothing(rec, e->written) &&
		!e->is_explained)
		add_reasons(rec, e->session, v);
	if (*e->report)
		kymo_value_set_string(v, "report", e->report);
	if (!e->written)
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

/* Returns true for the signals with which libkymo-crash.so records a stack. */
static bool has_stack(int signal)
{
	return signal == SIGSEGV || signal == SIGABRT || signal == SIGBUS || signal == SIGFPE ||
	       signal == SIGILL;
}

static void report_crashes(struct recording *rec, const struct kymo_value *session)
{
	const struct kymo_value *deaths = kymo_value_get(session, "deaths");
	bool lacks_stack = false;
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
		lacks_stack |= has_stack(c.signal) && !with_has(rec->cli, "crash");
	}
	if (lacks_stack)
		cli_warn(rec->cli, "--with=crash records the stack of a crash");
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
	return cli_has(rec->cli, "with") ||
	       !(record_wants_kernel(rec) || cli_has(rec->cli, "sample"));
}

/*
 * Warns of events that were left out, also with --no-summary: nobody would notice their absence
 * from a trace that has others.
 */
static void print_warnings(struct recording *rec, const struct ending *e)
{
	if (!e->session || rec->cli->json || rec->flights.ctl)
		return;
	if ((kymo_value_u64(kymo_value_get(e->written, "recorded")) && wants_programs(rec)) ||
		kymo_value_u64(kymo_value_get(e->session, "unrecorded_applications")) ||
		cli_get(rec->cli, "filter") || cli_get(rec->cli, "event") || e->is_explained)
		cli_report_warnings(stderr, rec->cli, e->warnings);
}

void record_finish(struct recording *rec, int exit_code)
{
	_cleanup_value_ struct kymo_value *status = NULL, *reply = NULL, *snapshot = NULL;
	_cleanup_value_ struct kymo_value *params = kymo_value_new();
	struct ending e = {.exit_code = exit_code};
	bool flies = rec->flights.ctl;

	if (params)
		kymo_value_set_bool(params, "without_losses",
			!cli_has(rec->cli, "snapshot")); /* the summary has them */
	if (kymo_ctl_call(rec->daemon.ctl, "status", params, &status) == 0) {
		e.before = kymo_value_get(status, "session");
		e.warnings = kymo_value_get(status, "warnings");
		e.n_left = count_left(rec, e.before);
	}
	record_end_kernel(rec);
	take_snapshot(rec, &snapshot);
	flights_settle(&rec->flights, rec->daemon.ctl);
	if (kymo_ctl_call(rec->daemon.ctl, "destroy", NULL, &reply) == 0)
		e.session = kymo_value_at(kymo_value_get(reply, "sessions"), 0);
	e.is_explained = has_reasons(e.session, e.warnings);
	e.written = cli_has(rec->cli, "snapshot") && !flies ? kymo_value_get(snapshot, "snapshot")
							    : e.session;
	if (e.n_left)
		cli_warn(rec->cli,
			"%s has ended, and the recording with it; %zu program%s of it still run%s, untraced",
			cli_arg(rec->cli, 0), e.n_left, e.n_left == 1 ? "" : "s",
			e.n_left == 1 ? "s" : "");
	if (!e.session || !is_in_place(rec))
		rec->new_output = false; /* the consumer may still write it; it is not ours */
	if (rec->new_output && rmdir(rec->output) == 0)
		rec->output[0] = '\0'; /* nothing was written: nothing is kept */
	if (!e.session || !e.written)
		report_failure(rec, e.session ? snapshot : reply);
	else if (!flies)
		print_summary(rec, &e);
	print_warnings(rec, &e);
	if (!is_in_place(rec))
		rec->output[0] = '\0'; /* another directory may be there */
	report_crashes(rec, e.session);
	if (e.written && *rec->output && cli_has(rec->cli, "report") && !flies)
		write_report(rec, &e);
	print_object(rec, &e);
}
