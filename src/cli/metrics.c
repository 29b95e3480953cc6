/* SPDX-License-Identifier: MIT */
/*
 * `status --metrics`: the text format of OpenMetrics 1.0. All samples of a family stand together,
 * so each family goes through all sessions.
 */
#include <inttypes.h>

#include "cli/monitor.h"
#include "cli/report.h"

#define NS_PER_S UINT64_C(1000000000)

enum family_kind {
	FAMILY_GAUGE,
	FAMILY_COUNTER, /* its samples are called NAME_total */
};

struct family {
	const char *name; /* without "kymo_" */
	const char *unit; /* the end of the name, or "" */
	enum family_kind kind;
	const char *member; /* of the object; or NULL, and */
	uint64_t (*get)(const struct kymo_value *object);
	uint64_t divisor; /* of the value; 0 means 1 */
	const char *help;
};

#define COUNTER(name, unit, member, help)                                                          \
	{                                                                                          \
		name, unit, FAMILY_COUNTER, member, NULL, 0, help                                  \
	}
#define GAUGE(name, unit, member, divisor, help)                                                   \
	{                                                                                          \
		name, unit, FAMILY_GAUGE, member, NULL, divisor, help                              \
	}

static const char *text(const struct kymo_value *object, const char *member)
{
	return kymo_value_string(kymo_value_get(object, member));
}

static uint64_t is_failing(const struct kymo_value *session)
{
	return *text(session, "error") != '\0';
}

static uint64_t count_applications(const struct kymo_value *session)
{
	return kymo_value_count(kymo_value_get(session, "applications"));
}

static uint64_t count_chunks(const struct kymo_value *session)
{
	return cli_number(kymo_value_get(session, "rotation"), "chunks");
}

static uint64_t count_expired_chunks(const struct kymo_value *session)
{
	return cli_number(kymo_value_get(session, "rotation"), "expired_chunks");
}

static uint64_t count_expired_events(const struct kymo_value *session)
{
	return cli_number(kymo_value_get(session, "rotation"), "expired_events");
}

static uint64_t count_disk(const struct kymo_value *session)
{
	return cli_number(kymo_value_get(session, "rotation"), "disk_bytes");
}

static const struct family session_families[] = {
	{"session_failing", "", FAMILY_GAUGE, NULL, is_failing, 0,
		"1 while the trace cannot be written."},
	{"session_applications", "", FAMILY_GAUGE, NULL, count_applications, 0,
		"Applications that record into the session."},
	{"session_expired_chunks", "", FAMILY_COUNTER, NULL, count_expired_chunks, 0,
		"Chunks that were removed to keep the trace within its limits."},
	{"session_expired_events", "", FAMILY_COUNTER, NULL, count_expired_events, 0,
		"Recorded events in the removed chunks."},
	{"session_disk_bytes", "bytes", FAMILY_GAUGE, NULL, count_disk, 0,
		"Bytes of the trace on disk, if it has a limit."},
	{"session_archived_chunks", "", FAMILY_COUNTER, NULL, count_chunks, 0,
		"Rotations of the session."},
	COUNTER("session_recorded_events", "", "recorded", "Events in the trace."),
	COUNTER("session_written_bytes", "bytes", "bytes", "Bytes of packets written."),
	COUNTER("session_unwritten_events", "", "unwritten",
		"Events that were recorded and could not be written."),
	COUNTER("session_removed_events", "", "removed",
		"Recorded events that were removed with the oldest files."),
	COUNTER("session_cleared_events", "", "cleared",
		"Recorded events that 'kymo clear' removed."),
	COUNTER("session_snapshots", "", "snapshots", "Snapshots written."),
	GAUGE("session_waiting_events", "", "in_buffers", 0,
		"Events in the buffers that are not written yet."),
	GAUGE("session_given_up_buffers", "", "given_up", 0,
		"Buffers that applications have damaged."),
	GAUGE("session_fullest_buffer_ratio", "ratio", "fullest", 1000,
		"High-water mark: the most that a buffer was full when the consumer read it."),
	GAUGE("session_consumer_silent_seconds", "seconds", "silent_ms", 1000,
		"How long the consumer has not worked although it should."),
	COUNTER("session_unrecorded_applications", "", "unrecorded_applications",
		"Applications that ran unrecorded for a while."),
	GAUGE("session_unattended_seconds", "seconds", "unattended_ms", 1000,
		"Time without a session daemon."),
};

static const struct family buffer_families[] = {
	COUNTER("buffer_recorded_events", "", "recorded", "Events recorded into the buffers."),
	COUNTER("buffer_discarded_events", "", "discarded", "Events discarded at the buffers."),
	GAUGE("buffer_used_bytes", "bytes", "used", 0,
		"Bytes in the buffers that the consumer has not read."),
};

static const struct family memory_family = GAUGE("buffer_memory_bytes", "bytes", "memory", 0,
	"Memory of the machine that the buffers take.");

/* Of channels whose buffers have overwritten something. */
static const struct family reach_families[] = {
	GAUGE("channel_held_shortest_seconds", "seconds", "reach_shortest_ns", NS_PER_S,
		"How far back a snapshot would reach in the buffer with the shortest past."),
	GAUGE("channel_held_longest_seconds", "seconds", "reach_longest_ns", NS_PER_S,
		"How far back a snapshot would reach in the buffer with the longest past."),
};

static void print_head(const struct family *f)
{
	printf("# TYPE kymo_%s %s\n", f->name, f->kind == FAMILY_COUNTER ? "counter" : "gauge");
	if (*f->unit)
		printf("# UNIT kymo_%s %s\n", f->name, f->unit);
	printf("# HELP kymo_%s %s\n", f->name, f->help);
}

/* NAME="value", with what the format wants escaped. */
static void print_label(const char *name, const char *value, const char *before)
{
	printf("%s%s=\"", before, name);
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", stdout);
		else if (*value == '"' || *value == '\\')
			printf("\\%c", *value);
		else
			putchar(*value);
	}
	putchar('"');
}

static void print_number_label(const char *name, uint64_t value, const char *before)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRIu64, value);
	print_label(name, digits, before);
}

static void begin_sample(const struct family *f)
{
	printf("kymo_%s%s", f->name, f->kind == FAMILY_COUNTER ? "_total" : "");
}

static void print_value(const struct family *f, const struct kymo_value *object)
{
	uint64_t v = f->get ? f->get(object) : cli_number(object, f->member);

	if (f->divisor)
		printf("%" PRIu64 ".%03" PRIu64 "\n", v / f->divisor,
			v % f->divisor * 1000 / f->divisor);
	else
		printf("%" PRIu64 "\n", v);
}

static void print_session_family(const struct family *f, const struct kymo_value *sessions)
{
	print_head(f);
	for (size_t i = 0; i < kymo_value_count(sessions); i++) {
		const struct kymo_value *s = kymo_value_at(sessions, i);

		begin_sample(f);
		print_label("session", text(s, "name"), "{");
		fputs("} ", stdout);
		print_value(f, s);
	}
}

static void print_discarded(const struct kymo_value *sessions)
{
	static const struct family f = COUNTER(
		"session_discarded_events", "", "", "Events that are not in the trace, by reason.");
	static const char *const reasons[][2] = {{"too_large", "discarded_too_big"},
		{"refused", "discarded_refused"}, {"no_buffer", "discarded_no_slot"},
		{"interrupted", "discarded_interrupted"}};

	print_head(&f);
	for (size_t i = 0; i < kymo_value_count(sessions); i++) {
		const struct kymo_value *s = kymo_value_at(sessions, i);
		uint64_t rest = cli_number(s, "discarded");

		for (size_t k = 0; k <= KY_ARRAY_SIZE(reasons); k++) {
			bool last = k == KY_ARRAY_SIZE(reasons);
			uint64_t n = last ? rest : cli_number(s, reasons[k][1]);

			rest -= KY_MIN(rest, n);
			begin_sample(&f);
			print_label("session", text(s, "name"), "{");
			print_label("reason", last ? "full" : reasons[k][0], ",");
			printf("} %" PRIu64 "\n", n);
		}
	}
}

static void print_states(const struct kymo_value *sessions)
{
	static const char *const states[] = {"started", "paused", "stopped"};

	puts("# TYPE kymo_session_state stateset\n"
	     "# HELP kymo_session_state Whether the session records.");
	for (size_t i = 0; i < kymo_value_count(sessions); i++)
		for (size_t k = 0; k < KY_ARRAY_SIZE(states); k++) {
			const struct kymo_value *s = kymo_value_at(sessions, i);

			fputs("kymo_session_state", stdout);
			print_label("session", text(s, "name"), "{");
			print_label("kymo_session_state", states[k], ",");
			printf("} %d\n", !strcmp(text(s, "state"), states[k]));
		}
}

static const char *program_name(const struct kymo_value *session, uint64_t pid)
{
	const struct kymo_value *apps = kymo_value_get(session, "applications");

	for (size_t i = 0; i < kymo_value_count(apps); i++)
		if (cli_number(kymo_value_at(apps, i), "pid") == pid)
			return text(kymo_value_at(apps, i), "name");
	return "";
}

/* A buffer set's sample; process: the one that has it alone, or NULL. */
static void print_buffer_sample(const struct family *f, const struct kymo_value *session,
	const struct kymo_value *channel, const struct kymo_value *set,
	const struct kymo_value *process)
{
	const struct kymo_value *object = process ? process : set;

	begin_sample(f);
	print_label("session", text(session, "name"), "{");
	print_label("channel", text(channel, "name"), ",");
	print_number_label("set", cli_number(object, "set"), ",");
	print_number_label("uid", cli_number(set, "uid"), ",");
	print_label("abi", text(set, "abi"), ",");
	if (process) {
		print_number_label("pid", cli_number(process, "pid"), ",");
		print_label("program", program_name(session, cli_number(process, "pid")), ",");
	}
	fputs("} ", stdout);
	print_value(f, object);
}

/* by_process: one sample for each process where processes have buffers of their own. */
static void print_buffer_family(
	const struct family *f, const struct kymo_value *sessions, bool by_process)
{
	print_head(f);
	for (size_t i = 0; i < kymo_value_count(sessions); i++) {
		const struct kymo_value *s = kymo_value_at(sessions, i);
		const struct kymo_value *channels = kymo_value_get(s, "channels");

		for (size_t c = 0; c < kymo_value_count(channels); c++) {
			const struct kymo_value *channel = kymo_value_at(channels, c);
			const struct kymo_value *sets = kymo_value_get(channel, "ring_sets");

			for (size_t k = 0; k < kymo_value_count(sets); k++) {
				const struct kymo_value *set = kymo_value_at(sets, k);
				const struct kymo_value *own = kymo_value_get(set, "processes");
				size_t n = by_process ? kymo_value_count(own) : 0;

				for (size_t p = 0; p < n; p++)
					print_buffer_sample(
						f, s, channel, set, kymo_value_at(own, p));
				if (!own || !by_process)
					print_buffer_sample(f, s, channel, set, NULL);
			}
		}
	}
}

static void print_reach_family(const struct family *f, const struct kymo_value *sessions)
{
	print_head(f);
	for (size_t i = 0; i < kymo_value_count(sessions); i++) {
		const struct kymo_value *s = kymo_value_at(sessions, i);
		const struct kymo_value *channels = kymo_value_get(s, "channels");

		for (size_t c = 0; c < kymo_value_count(channels); c++) {
			const struct kymo_value *channel = kymo_value_at(channels, c);

			if (!kymo_value_get(channel, f->member))
				continue;
			begin_sample(f);
			print_label("session", text(s, "name"), "{");
			print_label("channel", text(channel, "name"), ",");
			fputs("} ", stdout);
			print_value(f, channel);
		}
	}
}

static void print_up(const struct monitored *m)
{
	puts("# TYPE kymo_up gauge\n# HELP kymo_up 1 if the session daemon answers.");
	printf("kymo_up %d\n", !m->error);
	if (m->error)
		return;
	puts("# TYPE kymo_daemon info\n# HELP kymo_daemon The session daemon.");
	fputs("kymo_daemon_info", stdout);
	print_label("version", text(m->hello, "version"), "{");
	print_label("rundir", text(m->hello, "rundir"), ",");
	puts("} 1");
}

static void print_all(const struct monitored *m)
{
	const struct kymo_value *sessions = kymo_value_get(m->sessions, "sessions");

	print_up(m);
	if (!m->error) {
		print_states(sessions);
		for (size_t i = 0; i < KY_ARRAY_SIZE(session_families); i++)
			print_session_family(&session_families[i], sessions);
		print_discarded(sessions);
		for (size_t i = 0; i < KY_ARRAY_SIZE(reach_families); i++)
			print_reach_family(&reach_families[i], sessions);
		for (size_t i = 0; i < KY_ARRAY_SIZE(buffer_families); i++)
			print_buffer_family(&buffer_families[i], sessions, true);
		print_buffer_family(&memory_family, sessions, false);
	}
	puts("# EOF");
}

int monitor_metrics(struct cli *cli)
{
	struct monitored m;
	int code = CLI_OK;

	if (cli->json)
		return cli_usage(cli,
			"--metrics has a format of its own: 'kymo status --json' has the same as JSON");
	monitor_read(cli, &m);
	if (!m.error && m.refusal)
		code = cli_fail(cli, "no-session", "%s", monitor_why(&m));
	else
		print_all(&m);
	monitor_free(&m);
	return code;
}
