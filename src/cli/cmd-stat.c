/* SPDX-License-Identifier: MIT */
/* stat: what a trace holds, in numbers. Every record is walked over, none is believed from an
 * index. */
#include <inttypes.h>
#include <limits.h>
#include <time.h>

#include "analysis/count.h"
#include "analysis/tally.h"
#include "cli/measure.h"
#include "cli/progress.h"
#include "cli/select.h"
#include "cli/sites.h"
#include "cli/trace.h"
#include "reader/format.h"

#define NS_PER_S 1000000000

/* Events of one name, whatever their stream. */
struct count {
	const char *name;
	uint64_t n;
};

struct stats {
	struct ky_totals totals;
	size_t n_streams;
	uint64_t n_bytes;
	struct count *counts; /* owned; the most frequent first */
	size_t n_counts;
	bool is_cut;	     /* some streams' beginnings are missing: complete_ns holds */
	int64_t complete_ns; /* all streams are there from then on */
	struct ky_spans spans;
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

static int count_names(
	struct stats *s, const struct ky_trace_reader *reader, const uint64_t *counts)
{
	s->counts = calloc(reader->n_classes + 1, sizeof(*s->counts));
	if (!s->counts)
		return -ENOMEM;
	for (size_t i = 0; i < reader->n_classes; i++) {
		if (counts[i])
			s->counts[s->n_counts++] = (struct count){
				reader->classes[i]->name, counts[i]};
	}
	merge_counts(s);
	return 0;
}

static int collect_stats(struct stats *s, const struct ky_query *query,
	const struct ky_trace_reader_options *options)
{
	const struct ky_trace_reader *reader = query->reader;
	struct ky_counts counts;
	int r;

	s->n_streams = reader->n_streams;
	s->is_cut = ky_trace_reader_complete_from(reader, &s->complete_ns);
	for (size_t i = 0; i < reader->n_streams; i++)
		s->n_bytes += reader->streams[i]->n_bytes;
	r = ky_counts_collect(&counts, query, &s->spans, options, 0);
	s->totals = counts.totals;
	if (!r)
		r = count_names(s, reader, counts.of_class);
	ky_counts_deinit(&counts);
	return r ? r : ky_spans_finish(&s->spans);
}

static void add_json_span(struct ky_buf *b, const struct ky_span_name *n)
{
	char total[40];

	ky_buf_puts(b, "{\"name\": ");
	ky_format_json_string(b, n->name, n->name_len);
	ky_buf_printf(b,
		", \"async\": %s, \"count\": %" PRIu64 ", \"total_ns\": %s"
		", \"self_ns\": %" PRIu64 ", \"min_ns\": %" PRIu64 ", \"median_ns\": %" PRIu64
		", \"p90_ns\": %" PRIu64 ", \"p99_ns\": %" PRIu64 ", \"max_ns\": %" PRIu64
		", \"unfinished\": %" PRIu64 ", \"unbegun\": %" PRIu64 ", \"cut\": %" PRIu64 "}",
		n->is_async ? "true" : "false", n->ns.n, measure_put_sum(total, n->ns.sum),
		n->self_ns, n->ns.min, ky_histogram_permille(&n->ns, 500),
		ky_histogram_permille(&n->ns, 900), ky_histogram_permille(&n->ns, 990), n->ns.max,
		n->n_open, n->n_unbegun, n->n_cut);
}

static int print_json(struct cli *cli, const struct stats *s, const struct ky_trace_reader *reader)
{
	const struct ky_totals *t = &s->totals;
	struct ky_buf b = {0};

	ky_buf_printf(&b,
		"{\"ok\": true, \"events\": %" PRIu64 ", \"discarded\": %" PRIu64
		", \"duration_ns\": %" PRId64 ", \"begin_ns\": %" PRId64 ", \"end_ns\": %" PRId64
		", \"packets\": %" PRIu64 ", \"packets_discarded\": %" PRIu64
		", \"bytes\": %" PRIu64 ", \"streams\": %zu, \"damaged\": %" PRIu64
		", \"truncated\": %zu, \"unreadable\": %zu",
		t->n_events, t->n_discarded, t->end_ns - t->begin_ns, t->begin_ns, t->end_ns,
		t->n_packets, t->n_packets_lost, s->n_bytes, s->n_streams, t->n_corrupt,
		t->n_truncated, reader->n_unreadable);
	if (s->is_cut)
		ky_buf_printf(&b, ", \"complete_from_ns\": %" PRId64, s->complete_ns);
	ky_buf_puts(&b, ", \"gaps\": [");
	for (size_t i = 0; i < reader->n_gaps; i++) {
		ky_buf_puts(&b, i ? ", " : "");
		ky_format_json_string(&b, reader->gaps[i], strlen(reader->gaps[i]));
	}
	ky_buf_puts(&b, "], \"by_name\": {");
	for (size_t i = 0; i < s->n_counts; i++) {
		ky_buf_puts(&b, i ? ", " : "");
		ky_format_json_string(&b, s->counts[i].name, strlen(s->counts[i].name));
		ky_buf_printf(&b, ": %" PRIu64, s->counts[i].n);
	}
	ky_buf_puts(&b, "}, \"spans\": [");
	for (size_t i = 0; i < s->spans.names.n; i++) {
		ky_buf_puts(&b, i ? ", " : "");
		add_json_span(&b, s->spans.by_total[i]);
	}
	ky_buf_puts(&b, "]}");
	return cli_print_json_buf(cli, &b);
}

/* "2026-11-21 08:06:38.040876525", local time. */
static void print_time(const char *what, int64_t ns)
{
	int64_t fraction = (ns % NS_PER_S + NS_PER_S) % NS_PER_S;
	time_t second = (time_t)(ns / NS_PER_S - (ns % NS_PER_S < 0));
	char text[64] = "?";
	struct tm tm;

	if (localtime_r(&second, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	printf("%-11s%s.%09" PRId64 "\n", what, text, fraction);
}

static void print_clock(struct cli *cli, const struct ky_tsdl *t)
{
	const struct ky_trace_clock *c = t->n_clocks ? &t->clocks[0] : NULL;

	if (c)
		printf("%-11s%s, %" PRIu64 " Hz\n", "clock",
			cli_safe(cli, c->description ? c->description : c->name), c->freq);
}

static void print_origin(struct cli *cli, const struct ky_trace_reader *reader, const char *path)
{
	const struct ky_tsdl *t = &reader->traces[0]->tsdl;
	const struct ky_env *host = ky_tsdl_env(t, "hostname");

	printf("%-11s%s\n", "trace", cli_safe(cli, path));
	if (host && host->text)
		printf("%-11s%s\n", "host", cli_safe(cli, host->text));
	print_clock(cli, t);
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

static void print_span(struct cli *cli, const struct ky_span_name *n)
{
	static const unsigned permilles[] = {0, 500, 900, 990, 1000};
	_cleanup_free_ char *name = strndup(n->name, n->name_len);

	printf("%10" PRIu64, n->ns.n);
	measure_print_duration(n->ns.sum);
	measure_print_duration(n->self_ns);
	for (size_t i = 0; i < KY_ARRAY_SIZE(permilles); i++)
		measure_print_duration(ky_histogram_permille(&n->ns, permilles[i]));
	printf("  %s%s", name ? cli_safe(cli, name) : "?", n->is_async ? " (async)" : "");
	if (n->n_open)
		printf(", %" PRIu64 " unfinished", n->n_open);
	if (n->n_unbegun)
		printf(", %" PRIu64 " without a beginning", n->n_unbegun);
	if (n->n_cut)
		printf(", %" PRIu64 " cut by missing events", n->n_cut);
	printf("\n");
}

static void print_spans(struct cli *cli, const struct ky_spans *spans)
{
	if (spans->names.n)
		printf("\n%10s  %8s  %8s  %8s  %8s  %8s  %8s  %8s  %s\n", "spans", "total", "self",
			"min", "median", "90 %", "99 %", "max", "name");
	for (size_t i = 0; i < spans->names.n; i++)
		print_span(cli, spans->by_total[i]);
}

static void print_text(struct cli *cli, const struct stats *s, const struct ky_trace_reader *reader,
	const char *path)
{
	const struct ky_totals *t = &s->totals;
	char size[32];

	print_origin(cli, reader, path);
	if (t->has_time) {
		print_time("first", t->begin_ns);
		print_time("last", t->end_ns);
		if (s->is_cut)
			print_time("complete", s->complete_ns);
		printf("%-11s%" PRId64 ".%09" PRId64 " s\n", "duration",
			(t->end_ns - t->begin_ns) / NS_PER_S, (t->end_ns - t->begin_ns) % NS_PER_S);
	}
	printf("%-11s%" PRIu64 "\n", "recorded", t->n_events);
	printf("%-11s%" PRIu64 "%s\n", "discarded", t->n_discarded,
		t->n_discarded
			? " (full buffers: --subbuf-size, --num-subbuf; or another reason, which 'kymo stop' and 'kymo record' report; with those that could not be written)"
			: "");
	printf("%-11s%" PRIu64 " in %zu stream%s, %s\n", "packets", t->n_packets, s->n_streams,
		s->n_streams == 1 ? "" : "s", cli_format_size(size, sizeof(size), s->n_bytes));
	if (t->n_packets_lost)
		printf("%-11s%" PRIu64 " packets\n", "missing", t->n_packets_lost);
	if (t->n_corrupt || t->n_truncated)
		printf("%-11s%" PRIu64 " places, %zu streams end within a packet\n", "damaged",
			t->n_corrupt, t->n_truncated);
	if (reader->n_unreadable)
		printf("%-11s%zu files or directories, whose events are in no number here\n",
			"unreadable", reader->n_unreadable);
	print_counts(cli, s);
	print_spans(cli, &s->spans);
}

/* --- by the values of fields --- */

static int print_groups_json(struct cli *cli, const struct ky_tally *g, const char *by)
{
	struct ky_buf b = {0};

	ky_buf_printf(&b, "{\"ok\": true, \"events\": %" PRIu64 ", \"by\": ", g->n_events);
	ky_format_json_string(&b, by, strlen(by));
	ky_buf_puts(&b, ", \"groups\": [");
	for (size_t i = 0; i < g->n; i++) {
		ky_buf_puts(&b, i ? ", {\"key\": " : "{\"key\": ");
		ky_format_json_string(&b, g->by_n[i]->key, g->by_n[i]->len);
		ky_buf_printf(&b, ", \"events\": %" PRIu64 "}", g->by_n[i]->n);
	}
	ky_buf_printf(&b, "], \"others\": %" PRIu64 "}", g->n_others);
	return cli_print_json_buf(cli, &b);
}

static int print_groups(struct cli *cli, const struct ky_tally *g, const char *by)
{
	printf("%12s  %6s  %s\n", "events", "share", cli_safe(cli, by));
	for (size_t i = 0; i < g->n; i++)
		printf("%12" PRIu64 "  %5.1f%%  %s\n", g->by_n[i]->n,
			100.0 * (double)g->by_n[i]->n / (double)g->n_events,
			cli_safe(cli, g->by_n[i]->key));
	if (g->n_others)
		printf("%12" PRIu64 "  of other values\n", g->n_others);
	return CLI_OK;
}

/* Refuses a field that no class has, and names a similar one. */
static int refuse_field(struct cli *cli, const struct ky_trace_reader *reader, const char *name)
{
	static const char *const fixed[] = {"name", "process", "thread", "cpu", "stream", NULL};
	const char *near = cli_near_field(reader, name, cli_nearest(name, fixed));
	char members[CLI_MEMBERS_TEXT];

	if (cli_has_members(reader, name, members))
		return cli_usage(cli, "%s", members);
	if (near)
		return cli_usage(cli,
			"no event of the trace has a field or context '%s': did you mean '%s'?",
			name, near);
	return cli_usage(cli, "no event of the trace has a field or context '%s'", name);
}

static int run_groups(struct cli *cli, const struct ky_query *query, const char *by,
	const struct ky_trace_reader_options *options)
{
	struct ky_tally g;
	int r = ky_tally_collect(&g, query, by, options);

	cli_progress_end(&cli->progress);
	if (r == -EINVAL)
		r = cli_usage(cli, "bad list of fields '%s'", by);
	else if (r == -ENOENT)
		r = refuse_field(cli, query->reader, g.unknown);
	else if (r < 0)
		r = cli_fail(cli, "failed", "cannot read the trace: %s", strerror(-r));
	else
		r = cli->json ? print_groups_json(cli, &g, by) : print_groups(cli, &g, by);
	ky_tally_deinit(&g);
	return r;
}

static int run_stat(struct cli *cli)
{
	const char *by = cli_get(cli, "by");
	struct ky_trace_reader_options options = {.warn = cli_warn_text, .arg = cli};
	struct cli_progress progress;
	_cleanup_reader_ struct ky_trace_reader *reader = NULL;
	struct cli_selection selection;
	struct ky_query query = {0};
	struct stats s = {0};
	char path[PATH_MAX];
	int r = cli_select_parse(cli, &selection);

	if (!r)
		r = measure_check_options(cli);
	if (!r)
		r = sites_check_options(cli);
	if (!r)
		cli->progress = cli_progress_watch(&progress, &options);
	if (!r)
		r = cli_trace_open(cli, &options, path, &reader);
	if (!r)
		cli_progress_expect(cli->progress, reader);
	if (!r)
		r = cli_select_apply(cli, &selection, reader, &query);
	if (!r && measure_is_wanted(cli)) {
		r = measure_run(cli, &query, &options, path);
	} else if (!r && sites_is_wanted(cli)) {
		r = sites_run(cli, &query, &options, path);
	} else if (!r && by) {
		r = run_groups(cli, &query, by, &options);
	} else if (!r) {
		r = collect_stats(&s, &query, &options);
		cli_progress_end(&cli->progress);
		if (r < 0)
			r = cli_fail(cli, "failed", "cannot read the trace: %s", strerror(-r));
		else if (cli->json)
			r = print_json(cli, &s, reader);
		else
			print_text(cli, &s, reader, path);
	}
	cli_progress_end(&cli->progress);
	free(s.counts);
	ky_spans_deinit(&s.spans);
	ky_query_deinit(&query);
	return r;
}

static const struct cli_option options_of_stat[] = {
	{"by", 0, "NAME,...",
		"count by values: name, process, thread, cpu, stream, or a field or context"},
	{"latency", 0, "+A..B,...",
		"measure the time from each event A to event B: A..B[,key=FIELD+FIELD][,nest|fifo]"},
	{"hist", 0, "+FIELD", "show the distribution of a numeric field"},
	{"top", 0, "+FIELD", "list the events with the greatest values of a numeric field"},
	{"locks", 0, NULL,
		"show waiting times and holders of locks, in a trace of 'kymo record --with=pthread'"},
	{"memory", 0, NULL,
		"show allocations, memory in use and memory never released, in a trace of 'kymo record --with=libc'"},
	CLI_SELECT_OPTIONS,
	{0},
};

const struct cli_command cmd_stat = {
	.name = "stat",
	.synopsis =
		"[TRACE]... [--by=NAME,...] [--latency=A..B[,key=FIELD+FIELD][,nest|fifo]] [--hist=FIELD] [--top=FIELD] [--locks] [--memory] " CLI_SELECT_SYNOPSIS,
	.help = "count the recorded and discarded events of a trace; show how long spans took",
	.details =
		"TRACE is a directory of CTF traces, of Kymo or another tracer; several are counted together. Default:\n"
		"the newest trace below $KYMO_HOME or $HOME/kymo-traces.\n"
		"Percentiles are at most 0.1 % off; all else is exact.\n"
		"--latency, --hist and --top may be repeated, and used together. A key is a list of fields, or thread,\n"
		"process, cpu, stream: A and B are a pair only if they have the same key. If several A with one key are\n"
		"open, B ends the last one, or with fifo the first one. If records are missing between A and B, they\n"
		"are not a pair.\n" CLI_SELECT_DETAILS,
	.options = options_of_stat,
	.max_args = CLI_ANY_ARGS,
	.run = run_stat,
};
