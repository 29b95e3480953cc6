/* SPDX-License-Identifier: MIT */
/* stat: what a trace holds, in numbers. Every record is walked over, none is believed from an
 * index. */
#include <inttypes.h>
#include <limits.h>
#include <time.h>

#include "cli/trace.h"
#include "reader/format.h"

#define NS_PER_S 1000000000

/* Events of one name, whatever their stream. */
struct count {
	const char *name;
	uint64_t n;
};

struct stats {
	struct ky_trace_reader_totals totals;
	bool has_time;
	int64_t begin_ns, end_ns;
	struct count *counts; /* owned; the most frequent first */
	size_t n_counts;
};

static int by_name(const void *a, const void *b)
{
	const struct count *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int by_count(const void *a, const void *b)
{
	const struct count *x = a, *y = b;

	return x->n != y->n ? (x->n < y->n ? 1 : -1) : strcmp(x->name, y->name);
}

static size_t n_classes(const struct ky_trace_reader *reader, size_t n_traces)
{
	size_t n = 0;

	for (size_t i = 0; i < n_traces; i++) {
		const struct ky_layout *l = &ky_trace_reader_trace(reader, i)->layout;

		for (size_t j = 0; j < l->n_streams; j++)
			n += l->streams[j].n_events;
	}
	return n;
}

static void add_counts(struct stats *s, const struct ky_stream_class *c)
{
	for (size_t i = 0; i < c->n_events; i++) {
		if (c->events[i].n_recorded)
			s->counts[s->n_counts++] = (struct count){
				c->events[i].name ? c->events[i].name : "<unknown>",
				c->events[i].n_recorded};
	}
}

/* Sums up the counts of equal names. */
static void merge_counts(struct stats *s)
{
	size_t n = 0;

	qsort(s->counts, s->n_counts, sizeof(*s->counts), by_name);
	for (size_t i = 0; i < s->n_counts; i++) {
		if (n && !strcmp(s->counts[n - 1].name, s->counts[i].name))
			s->counts[n - 1].n += s->counts[i].n;
		else
			s->counts[n++] = s->counts[i];
	}
	s->n_counts = n;
	qsort(s->counts, n, sizeof(*s->counts), by_count);
}

static int count_names(struct stats *s, const struct ky_trace_reader *reader)
{
	s->counts = calloc(n_classes(reader, s->totals.n_traces) + 1, sizeof(*s->counts));
	if (!s->counts)
		return -ENOMEM;
	for (size_t i = 0; i < s->totals.n_traces; i++) {
		const struct ky_layout *l = &ky_trace_reader_trace(reader, i)->layout;

		for (size_t j = 0; j < l->n_streams; j++)
			add_counts(s, &l->streams[j]);
	}
	merge_counts(s);
	return 0;
}

static int collect(struct stats *s, struct ky_trace_reader *reader)
{
	struct ky_item item;
	int r;

	while ((r = ky_trace_reader_next(reader, &item)) > 0) {
		if (item.kind != KY_ITEM_EVENT || !item.has_time)
			continue;
		if (!s->has_time)
			s->begin_ns = item.ns;
		s->has_time = true;
		s->end_ns = item.ns;
	}
	ky_trace_reader_totals(reader, &s->totals);
	return r ? r : count_names(s, reader);
}

static int print_json(struct cli *cli, const struct stats *s)
{
	const struct ky_trace_reader_totals *t = &s->totals;
	struct ky_buf b = {0};

	ky_buf_printf(&b,
		"{\"ok\": true, \"events\": %" PRIu64 ", \"discarded\": %" PRIu64
		", \"duration_ns\": %" PRId64 ", \"begin_ns\": %" PRId64 ", \"end_ns\": %" PRId64
		", \"packets\": %" PRIu64 ", \"packets_discarded\": %" PRIu64
		", \"bytes\": %" PRIu64 ", \"streams\": %zu, \"damaged\": %" PRIu64
		", \"truncated\": %zu, \"by_name\": {",
		t->n_events, t->n_discarded, s->end_ns - s->begin_ns, s->begin_ns, s->end_ns,
		t->n_packets, t->n_packets_lost, t->n_bytes, t->n_streams, t->n_corrupt,
		t->n_truncated);
	for (size_t i = 0; i < s->n_counts; i++) {
		ky_buf_puts(&b, i ? ", " : "");
		ky_format_json_string(&b, s->counts[i].name, strlen(s->counts[i].name));
		ky_buf_printf(&b, ": %" PRIu64, s->counts[i].n);
	}
	ky_buf_puts(&b, "}}");
	if (b.error) {
		ky_buf_deinit(&b);
		return cli_fail(cli, "failed", "no memory");
	}
	cli_print_json(cli, b.data);
	ky_buf_deinit(&b);
	return CLI_OK;
}

/* "2026-11-21 08:06:38.040876525", local time. */
static void print_time(const char *what, int64_t ns)
{
	int64_t fraction = (ns % NS_PER_S + NS_PER_S) % NS_PER_S;
	time_t second = (time_t)((ns - fraction) / NS_PER_S);
	char text[64] = "?";
	struct tm tm;

	if (localtime_r(&second, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	printf("%-11s%s.%09" PRId64 "\n", what, text, fraction);
}

static void print_clock(const struct ky_tsdl *t)
{
	const struct ky_clock *c = t->n_clocks ? &t->clocks[0] : NULL;

	if (c)
		printf("%-11s%s, %" PRIu64 " Hz\n", "clock",
			c->description ? c->description : c->name, c->freq);
}

static void print_origin(struct cli *cli, const struct ky_trace_reader *reader, const char *path)
{
	const struct ky_tsdl *t = &ky_trace_reader_trace(reader, 0)->tsdl;
	const struct ky_env *host = ky_tsdl_env(t, "hostname");

	printf("%-11s%s\n", "trace", cli_safe(cli, path));
	if (host && host->text)
		printf("%-11s%s\n", "host", cli_safe(cli, host->text));
	print_clock(t);
}

static void print_counts(struct cli *cli, const struct stats *s)
{
	if (s->n_counts)
		printf("\n%12s  %6s  %s\n", "events", "share", "name");
	for (size_t i = 0; i < s->n_counts; i++)
		printf("%12" PRIu64 "  %5.1f%%  %s\n", s->counts[i].n,
			100.0 * (double)s->counts[i].n / (double)s->totals.n_events,
			cli_safe(cli, s->counts[i].name));
}

static void print_text(struct cli *cli, const struct stats *s, const struct ky_trace_reader *reader,
	const char *path)
{
	const struct ky_trace_reader_totals *t = &s->totals;
	char size[32];

	print_origin(cli, reader, path);
	if (s->has_time) {
		print_time("first", s->begin_ns);
		print_time("last", s->end_ns);
		printf("%-11s%" PRId64 ".%09" PRId64 " s\n", "duration",
			(s->end_ns - s->begin_ns) / NS_PER_S, (s->end_ns - s->begin_ns) % NS_PER_S);
	}
	printf("%-11s%" PRIu64 "\n", "recorded", t->n_events);
	printf("%-11s%" PRIu64 "%s\n", "discarded", t->n_discarded,
		t->n_discarded
			? " (full buffers: --subbuf-size, --num-subbuf; or another cause, which 'kymo stop' and 'record' told)"
			: "");
	printf("%-11s%" PRIu64 " in %zu stream%s, %s\n", "packets", t->n_packets, t->n_streams,
		t->n_streams == 1 ? "" : "s", cli_format_size(size, sizeof(size), t->n_bytes));
	if (t->n_packets_lost)
		printf("%-11s%" PRIu64 " packets\n", "missing", t->n_packets_lost);
	if (t->n_corrupt || t->n_truncated)
		printf("%-11s%" PRIu64 " places, %zu streams end within a packet\n", "damaged",
			t->n_corrupt, t->n_truncated);
	print_counts(cli, s);
}

static void warn(void *arg, const char *text)
{
	cli_warn(arg, "%s", text);
}

static int run(struct cli *cli)
{
	const struct ky_trace_reader_options options = {
		.no_values = true, .warn = warn, .arg = cli};
	_cleanup_reader_ struct ky_trace_reader *reader = NULL;
	struct stats s = {0};
	char path[PATH_MAX];
	int r = cli_trace_open(cli, cli_arg(cli, 0), &options, path, &reader);

	if (r)
		return r;
	r = collect(&s, reader);
	if (r < 0)
		r = cli_fail(cli, "failed", "cannot read the trace: %s", strerror(-r));
	else if (cli->json)
		r = print_json(cli, &s);
	else
		print_text(cli, &s, reader, path);
	free(s.counts);
	return r;
}

const struct cli_command cmd_stat = {
	.name = "stat",
	.synopsis = "[TRACE]",
	.help = "count the events of a trace, recorded and discarded",
	.details =
		"TRACE is a directory of CTF 1.8 traces, of Kymo or LTTng; without it, the most recent trace\n"
		"below $KYMO_HOME or $HOME/kymo-traces is taken.\n",
	.max_args = 1,
	.run = run,
};
