/* SPDX-License-Identifier: MIT */
#include "cli/report.h"

#include <inttypes.h>

uint64_t cli_number(const struct kymo_value *object, const char *name)
{
	return kymo_value_u64(kymo_value_get(object, name));
}

const char *cli_member(struct cli *cli, const struct kymo_value *object, const char *name)
{
	return cli_safe(cli, kymo_value_string(kymo_value_get(object, name)));
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* Returns true for a session, not a snapshot, that writes snapshots only. */
static bool keeps_snapshots(const struct kymo_value *session)
{
	return kymo_value_bool(kymo_value_get(session, "snapshot"));
}

void cli_format_counts(struct ky_buf *to, const struct kymo_value *session)
{
	uint64_t recorded = cli_number(session, "recorded");
	const char *output = kymo_value_string(kymo_value_get(session, "output"));
	uint64_t snapshots = cli_number(session, "snapshots");
	char size[32];

	if (keeps_snapshots(session))
		ky_buf_printf(to, "%" PRIu64 " snapshot%s", snapshots, plural(snapshots));
	else
		ky_buf_printf(to, "%" PRIu64 " event%s recorded, %" PRIu64 " discarded, %s",
			recorded, plural(recorded), cli_number(session, "discarded"),
			cli_format_size(size, sizeof(size), cli_number(session, "bytes")));
	if (!keeps_snapshots(session) && cli_number(session, "in_buffers"))
		ky_buf_printf(to, ", %" PRIu64 " still in the buffers",
			cli_number(session, "in_buffers"));
	if (*output) {
		ky_buf_puts(to, ", in ");
		cli_escape(to, output);
	}
}

/* Reports the events that a snapshot left out; a session has no such counts. */
static void report_left_out(FILE *to, const struct kymo_value *snapshot)
{
	uint64_t overwritten = cli_number(snapshot, "overwritten");
	uint64_t left_out = cli_number(snapshot, "left_out");

	if (overwritten)
		fprintf(to, "  %" PRIu64 " older event%s no longer in the buffers\n", overwritten,
			overwritten == 1 ? " was" : "s were");
	if (left_out)
		fprintf(to, "  %" PRIu64 " event%s left out for --max-size%s\n", left_out,
			left_out == 1 ? " was" : "s were",
			cli_number(snapshot, "recorded")
				? ""
				: ", which no sub-buffer fits: only whole ones are written");
}

/* Reports recorded events that a user's option or command has removed from the trace. */
static void report_gone(FILE *to, const struct kymo_value *session)
{
	uint64_t removed = cli_number(session, "removed"), cleared = cli_number(session, "cleared");

	if (removed)
		fprintf(to,
			"  %" PRIu64
			" of the recorded events %s removed with the oldest files, for --tracefile-count\n",
			removed, removed == 1 ? "was" : "were");
	if (cleared)
		fprintf(to, "  %" PRIu64 " of the recorded events %s removed by 'kymo clear'\n",
			cleared, cleared == 1 ? "was" : "were");
}

/* "N buffers were given up": the reason, where their events are, and what to do. */
static void report_given_up(FILE *to, const struct kymo_value *session)
{
	uint64_t n = cli_number(session, "given_up"), damaged = cli_number(session, "damaged");

	if (!n)
		return;
	fprintf(to,
		"  %" PRIu64
		" buffer%s given up, as an application has overwritten the control words; %" PRIu64
		" of the recorded events %s apart, in directories 'damaged' of the trace; it may have overwritten their counts of discarded events, too\n",
		n, n == 1 ? " was" : "s were", damaged, damaged == 1 ? "is" : "are");
	fprintf(to,
		"  Applications that share these buffers record nothing more into them: 'kymo destroy' and "
		"'kymo create' give them new ones\n");
}

static void report_list(FILE *to, struct cli *cli, const struct kymo_value *list)
{
	for (size_t i = 0; i < kymo_value_count(list); i++)
		fprintf(to, "  %s\n", cli_safe(cli, kymo_value_string(kymo_value_at(list, i))));
}

/* Prints the begin of a line, to which the caller adds the reason. False if n is 0. */
static bool report_discarded(FILE *to, uint64_t n)
{
	if (n)
		fprintf(to, "  %" PRIu64 " event%s discarded", n, n == 1 ? " was" : "s were");
	return n;
}

void cli_report_losses(
	FILE *to, struct cli *cli, const struct kymo_value *session, const char *command)
{
	uint64_t too_big = cli_number(session, "discarded_too_big"),
		 unwritten = cli_number(session, "unwritten");
	uint64_t refused = cli_number(session, "discarded_refused");
	uint64_t discarded = cli_number(session, "discarded");
	uint64_t no_slot = cli_number(session, "discarded_no_slot");
	uint64_t interrupted = cli_number(session, "discarded_interrupted");
	uint64_t full = discarded - KY_MIN(discarded, too_big + refused + no_slot + interrupted);
	const char *error = cli_member(cli, session, "error");

	report_left_out(to, session);
	if (report_discarded(to, full) && *error)
		fputs(" because the buffers were full, and the trace could not be written\n", to);
	else if (full)
		fprintf(to,
			" because the buffers were full: give them more room next time, "
			"'%s --subbuf-size=SIZE --num-subbuf=N'\n",
			command);
	if (report_discarded(to, too_big))
		fprintf(to,
			": too large for a sub-buffer ('%s --subbuf-size=SIZE' makes these larger next time), "
			"with too many elements, or states for which there was no room\n",
			command);
	if (report_discarded(to, no_slot))
		fprintf(to,
			" because their threads had no buffer: others had them all, or they started faster than an application that may lock its memory maps buffers; make these smaller next time, "
			"'%s --subbuf-size=SIZE --num-subbuf=N'\n",
			command);
	if (report_discarded(to, interrupted))
		fputs(" because the recording was interrupted at every attempt, as by a debugger that executes single steps, or their threads have given up restartable sequences (rseq): channels with --buffers=thread record them\n",
			to);
	if (report_discarded(to, refused))
		fputs(": another definition of the name came first (--event-conflict=separate keeps both), their description is too large, or libkymo cannot record their contexts\n",
			to);
	report_list(to, cli, kymo_value_get(session, "refused"));
	if (unwritten)
		fprintf(to, "  %" PRIu64 " event%s could not be written\n", unwritten,
			plural(unwritten));
	report_gone(to, session);
	report_given_up(to, session);
	if (*error)
		fprintf(to, "  %serror:%s %s\n", cli_style(cli, CLI_RED), cli_style(cli, CLI_PLAIN),
			error);
}

void cli_report_snapshot(struct cli *cli, const struct kymo_value *snapshot)
{
	struct ky_buf counts = {0};

	cli_format_counts(&counts, snapshot);
	printf("snapshot of session '%s': %s\n", cli_member(cli, snapshot, "session"),
		counts.data ? counts.data : "");
	ky_buf_deinit(&counts);
	if (!cli_number(snapshot, "recorded") && !cli_number(snapshot, "left_out"))
		puts("  the buffers are empty: 'kymo status' shows what is recorded");
	cli_report_losses(stdout, cli, snapshot, "kymo enable-channel NAME");
}

void cli_report_ended(struct cli *cli, const struct kymo_value *sessions, const char *done)
{
	for (size_t i = 0; i < kymo_value_count(sessions); i++) {
		const struct kymo_value *session = kymo_value_at(sessions, i);
		struct ky_buf counts = {0};

		cli_format_counts(&counts, session);
		printf("session '%s' %s: %s\n", cli_member(cli, session, "name"), done,
			counts.data ? counts.data : "");
		ky_buf_deinit(&counts);
		cli_report_losses(stdout, cli, session, "kymo enable-channel NAME");
	}
	if (!kymo_value_count(sessions))
		puts("there is no session");
}

static void report_level(const struct kymo_value *rule)
{
	const char *type = kymo_value_string(kymo_value_get(rule, "loglevel_type"));
	const char *level = cli_loglevel_name(kymo_value_i64(kymo_value_get(rule, "loglevel")));

	if (!*type || !strcmp(type, "all") || !level)
		return;
	printf(!strcmp(type, "only") ? ", level %s" : ", level %s or more severe", level);
}

static void report_rule(struct cli *cli, const struct kymo_value *rule)
{
	const struct kymo_value *exclude = kymo_value_get(rule, "exclude");
	uint64_t matched = cli_number(rule, "matched");

	printf("    %s", cli_member(cli, rule, "pattern"));
	for (size_t i = 0; i < kymo_value_count(exclude); i++)
		printf("%s%s", i ? "," : ", but not ",
			cli_safe(cli, kymo_value_string(kymo_value_at(exclude, i))));
	report_level(rule);
	if (*kymo_value_string(kymo_value_get(rule, "filter")))
		printf(", filter '%s'", cli_member(cli, rule, "filter"));
	printf(": %" PRIu64 " event%s%s\n", matched, plural(matched),
		kymo_value_bool(kymo_value_get(rule, "enabled")) ? "" : " (disabled)");
}

void cli_report_contexts(struct cli *cli, const struct kymo_value *channel)
{
	const struct kymo_value *contexts = kymo_value_get(channel, "contexts");

	for (size_t i = 0; i < kymo_value_count(contexts); i++)
		printf("%s%s", i ? ", " : "",
			cli_safe(cli, kymo_value_string(kymo_value_at(contexts, i))));
	putchar('\n');
}

static void report_ring_set(struct cli *cli, const struct kymo_value *set)
{
	const char *kind = kymo_value_string(kymo_value_get(set, "kind"));
	uint64_t n = cli_number(set, "count");
	char size[32], memory[32];

	printf("    buffers of user %" PRIu64 ", %s: %" PRIu64 " for %s", cli_number(set, "uid"),
		cli_member(cli, set, "abi"), n,
		!strcmp(kind, "cpu")	   ? "CPUs"
		: !strcmp(kind, "process") ? "processes now"
					   : "threads");
	if (n)
		printf(", of %s%s each", !strcmp(kind, "process") ? "up to " : "",
			cli_format_size(size, sizeof(size), cli_number(set, "size")));
	printf("; %s of memory in use%s\n",
		cli_format_size(memory, sizeof(memory), cli_number(set, "memory")),
		kymo_value_bool(kymo_value_get(set, "replaced"))
			? "; damaged: only applications that started before use them"
			: "");
	if (!strcmp(kind, "thread"))
		printf("      %" PRIu64 " in use now, %" PRIu64 " in use so far; pool of %" PRIu64
		       ", %" PRIu64 " made by the thread itself, before one was ready\n",
			cli_number(set, "in_use"), cli_number(set, "claimed"),
			cli_number(set, "pool_size"), cli_number(set, "unprepared"));
}

const char *cli_buffers_for(struct cli *cli, const struct kymo_value *channel)
{
	const char *buffers = cli_member(cli, channel, "buffers");

	return !strcmp(buffers, "cpu")	     ? "CPU"
	       : !strcmp(buffers, "process") ? "CPU of each process"
	       : !strcmp(buffers, "auto")    ? "CPU (of each process if it is root's)"
					     : buffers;
}

static void report_files(const struct kymo_value *channel)
{
	uint64_t size = cli_number(channel, "tracefile_size"),
		 count = cli_number(channel, "tracefile_count");
	char text[32];

	if (size)
		printf("    trace files of at most %s", cli_format_size(text, sizeof(text), size));
	if (count)
		printf(", the newest %" PRIu64 " of each buffer", count);
	if (size)
		putchar('\n');
}

static void report_blocking(const struct kymo_value *timeout)
{
	if (*kymo_value_string(timeout))
		puts("    applications that allow it wait until there is room");
	else if (kymo_value_u64(timeout))
		printf("    applications that allow it wait for room, for up to %" PRIu64 " us\n",
			kymo_value_u64(timeout));
}

/* How far back a snapshot would reach. Until something was overwritten, it would have all. */
static void report_reach(const struct kymo_value *channel, uint64_t wanted_s)
{
	double shortest = (double)cli_number(channel, "reach_shortest_ns") / 1e9;
	double longest = (double)cli_number(channel, "reach_longest_ns") / 1e9;

	if (longest > 0)
		printf("    a snapshot would reach back %.3g s (the busiest buffer) to %.3g s\n",
			shortest, longest);
	if (longest > 0 && shortest < (double)wanted_s)
		printf("    that is less than %" PRIu64
		       " s: its buffers still grow, or need a larger --burst-size\n",
			wanted_s);
}

static void report_burst(struct cli *cli, const struct kymo_value *channel)
{
	bool overwrites = !strcmp(cli_member(cli, channel, "mode"), "overwrite");
	char text[32];

	if (kymo_value_bool(kymo_value_get(channel, "grows")) &&
		strcmp(cli_member(cli, channel, "buffers"), "thread"))
		printf("    a buffer grows to at most %s %s\n",
			cli_format_size(text, sizeof(text), cli_number(channel, "burst_size")),
			overwrites ? "until it holds the seconds that are wanted"
				   : "while the consumer is late");
}

static void report_channel(struct cli *cli, const struct kymo_value *channel, uint64_t wanted_s)
{
	const struct kymo_value *sets = kymo_value_get(channel, "ring_sets");

	const struct kymo_value *rules = kymo_value_get(channel, "rules");
	char size[32];

	printf("  %s%s%s: %" PRIu64 " sub-buffers of %s for each %s, %s mode%s%s%s\n",
		cli_style(cli, CLI_BOLD), cli_member(cli, channel, "name"),
		cli_style(cli, CLI_PLAIN), cli_number(channel, "num_subbuf"),
		cli_format_size(size, sizeof(size), cli_number(channel, "subbuf_size")),
		cli_buffers_for(cli, channel), cli_member(cli, channel, "mode"),
		!strcmp(kymo_value_string(kymo_value_get(channel, "event_conflict")), "separate")
			? ", conflicting events separate"
			: "",
		strcmp(kymo_value_string(kymo_value_get(channel, "domain")), "kernel")
			? ""
			: ", kernel events",
		kymo_value_bool(kymo_value_get(channel, "enabled")) ? "" : " (disabled)");
	report_burst(cli, channel);
	report_files(channel);
	report_blocking(kymo_value_get(channel, "blocking_timeout"));
	if (kymo_value_count(kymo_value_get(channel, "contexts"))) {
		printf("    with each event: ");
		cli_report_contexts(cli, channel);
	}
	for (size_t i = 0; i < kymo_value_count(rules); i++)
		report_rule(cli, kymo_value_at(rules, i));
	if (!kymo_value_count(rules))
		puts("    no event rule: add some with 'kymo enable-event'");
	for (size_t i = 0; i < kymo_value_count(sets); i++)
		report_ring_set(cli, kymo_value_at(sets, i));
	report_reach(channel, wanted_s);
}

static void report_application(struct cli *cli, const struct kymo_value *app)
{
	uint64_t events = cli_number(app, "events");

	printf("  %" PRIu64 " %s, user %" PRIu64 ", %s: %" PRIu64 " event%s\n",
		cli_number(app, "pid"), cli_member(cli, app, "name"), cli_number(app, "uid"),
		cli_member(cli, app, "abi"), events, plural(events));
}

static bool report_attribute(
	struct cli *cli, const struct kymo_value *tracked, const char *name, const char *what)
{
	const struct kymo_value *values = kymo_value_get(tracked, name);
	size_t n = kymo_value_count(values);

	if (n == 1 && !strcmp(kymo_value_string(kymo_value_at(values, 0)), "all"))
		return false;
	printf("tracked %s:%s", what, n ? "" : " none");
	for (size_t i = 0; i < n; i++)
		printf("%s %s", i ? "," : "",
			cli_safe(cli, kymo_value_string(kymo_value_at(values, i))));
	putchar('\n');
	return true;
}

bool cli_report_tracked(struct cli *cli, const struct kymo_value *object)
{
	const struct kymo_value *tracked = kymo_value_get(object, "tracked");

	bool any = report_attribute(cli, tracked, "vpid", "processes");

	any |= report_attribute(cli, tracked, "vuid", "users");
	any |= report_attribute(cli, tracked, "vgid", "groups");
	any |= report_attribute(cli, tracked, "pid", "processes of kernel events");
	return any;
}

/* Prints what limits the trace on disk. Returns whether anything does. */
static bool report_bounds(const struct kymo_value *rotation, bool more)
{
	static const struct {
		const char *member, *before, *after;
		enum { COUNT, SIZE, SECONDS } kind;
	} bounds[] = {{"max_disk", " the trace has at most ", "", SIZE},
		{"keep_free", " ", " of the disk stay free", SIZE},
		{"keep_chunks", " the newest ", " chunks stay", COUNT},
		{"keep_bytes", " ", " of chunks stay", SIZE},
		{"keep_s", " chunks of the last ", " stay", SECONDS}};
	bool any = false;
	char text[32];

	for (size_t i = 0; i < KY_ARRAY_SIZE(bounds); i++) {
		uint64_t v = cli_number(rotation, bounds[i].member);

		if (!v)
			continue;
		if (bounds[i].kind == SIZE)
			cli_format_size(text, sizeof(text), v);
		else if (bounds[i].kind == SECONDS)
			cli_format_usec(text, sizeof(text), v * 1000000, " ");
		else
			snprintf(text, sizeof(text), "%" PRIu64, v);
		printf("%s%s%s%s", more || any ? ";" : "", bounds[i].before, text, bounds[i].after);
		any = true;
	}
	return any;
}

static bool report_schedule(const struct kymo_value *rotation)
{
	uint64_t timer = cli_number(rotation, "timer"), size = cli_number(rotation, "size");
	char text[32];

	if (timer)
		printf(" every %s", cli_format_usec(text, sizeof(text), timer, " "));
	if (size)
		printf("%s when %s were written", timer ? " and" : "",
			cli_format_size(text, sizeof(text), size));
	return report_bounds(rotation, timer || size) || timer || size;
}

void cli_report_schedule(struct cli *cli, const struct kymo_value *session)
{
	printf("session '%s' is rotated:", cli_member(cli, session, "name"));
	puts(report_schedule(kymo_value_get(session, "rotation")) ? "" : " by 'kymo rotate' only");
}

static void report_chunks(struct cli *cli, const struct kymo_value *session)
{
	const struct kymo_value *rotation = kymo_value_get(session, "rotation");
	uint64_t chunks = cli_number(rotation, "chunks");
	uint64_t expired = cli_number(rotation, "expired_chunks");
	uint64_t events = cli_number(rotation, "expired_events");
	char text[32];

	if (chunks)
		printf("  rotated %" PRIu64 " time%s, last chunk in %s\n", chunks, plural(chunks),
			cli_member(cli, rotation, "last"));
	if (cli_number(rotation, "timer") || cli_number(rotation, "size") ||
		cli_number(rotation, "max_disk") || cli_number(rotation, "keep_free")) {
		printf("  is rotated:");
		report_schedule(rotation);
		putchar('\n');
	}
	if (expired)
		printf("  %" PRIu64 " of the recorded events %s removed with the oldest %" PRIu64
		       " chunk%s (%s), to keep the trace in its bounds\n",
			events, events == 1 ? "was" : "were", expired, plural(expired),
			cli_format_size(text, sizeof(text), cli_number(rotation, "expired_bytes")));
}

static bool is_of_domain(const struct kymo_value *channel, const char *domain)
{
	return !domain || !strcmp(kymo_value_string(kymo_value_get(channel, "domain")), domain);
}

void cli_report_session(struct cli *cli, const struct kymo_value *session, const char *domain)
{
	const struct kymo_value *channels = kymo_value_get(session, "channels");
	const struct kymo_value *apps = kymo_value_get(session, "applications");
	struct ky_buf counts = {0};
	size_t n = 0;

	cli_format_counts(&counts, session);
	printf("%s%s%s [%s] of user %" PRIu64 ", domain %s: %s\n", cli_style(cli, CLI_BOLD),
		cli_member(cli, session, "name"), cli_style(cli, CLI_PLAIN),
		cli_member(cli, session, "state"), cli_number(session, "owner"),
		cli_member(cli, session, "domain"), counts.data ? counts.data : "");
	ky_buf_deinit(&counts);
	report_gone(stdout, session);
	report_given_up(stdout, session);
	report_chunks(cli, session);
	if (kymo_value_get(session, "shm_path"))
		printf("buffers are files in %s\n", cli_member(cli, session, "shm_path"));
	puts("channels:");
	for (size_t i = 0; i < kymo_value_count(channels); i++) {
		const struct kymo_value *c = kymo_value_at(channels, i);

		if (!is_of_domain(c, domain))
			continue;
		report_channel(cli, c, cli_number(session, "seconds"));
		n++;
	}
	if (!n)
		printf("  none%s\n", domain ? "" : ": 'kymo enable-event' makes channel0");
	cli_report_tracked(cli, session);
	puts("applications:");
	for (size_t i = 0; i < kymo_value_count(apps); i++)
		report_application(cli, kymo_value_at(apps, i));
	if (!kymo_value_count(apps))
		puts("  none");
}

void cli_report_problem(struct cli *cli, const struct kymo_value *session, const char *indent)
{
	const char *error = cli_member(cli, session, "error");
	uint64_t silent_ms = kymo_value_u64(kymo_value_get(session, "silent_ms"));

	if (!*error && !silent_ms)
		return;
	printf("%s%serror:%s ", indent, cli_style(cli, CLI_RED), cli_style(cli, CLI_PLAIN));
	if (*error)
		puts(error);
	else
		printf("the consumer has not worked for %" PRIu64 " s: 'kymo status %s' says why\n",
			silent_ms / 1000, cli_member(cli, session, "name"));
}

void cli_report_warnings(FILE *to, struct cli *cli, const struct kymo_value *warnings)
{
	for (size_t i = 0; i < kymo_value_count(warnings); i++)
		fprintf(to, "%swarning:%s %s\n", cli_style(cli, CLI_RED), cli_style(cli, CLI_PLAIN),
			cli_safe(cli, kymo_value_string(kymo_value_at(warnings, i))));
}

void cli_report_notes(struct cli *cli, const struct kymo_value *reply)
{
	const struct kymo_value *notes = kymo_value_get(reply, "notes");

	for (size_t i = 0; i < kymo_value_count(notes); i++)
		printf("note: %s\n", cli_safe(cli, kymo_value_string(kymo_value_at(notes, i))));
}
