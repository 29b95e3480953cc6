/* SPDX-License-Identifier: MIT */
/* report: writes a trace as one HTML page. The work is in src/report. */
#include <limits.h>
#include <sys/stat.h>

#include "cli/page.h"
#include "cli/params.h"
#include "cli/progress.h"
#include "cli/select.h"
#include "cli/symbols.h"
#include "cli/trace.h"
#include "explain/explain.h"

#define DEFAULT_FILE "kymo-report.html"

static const struct cli_option options[] = {
	{"output", 'o', "FILE",
		"write the page to FILE; -: standard output; default: " DEFAULT_FILE
		" in the current directory"},
	{"detail", 0, "N",
		"list at most N events with their fields: half from the start, half from the end (default 5000000)"},
	{"explain", 0, "SPAN",
		"also show why the slow instances of SPAN are slow, with links to examples"},
	{"symbols", 0, "+[=DIR|FIELD,...]",
		"look for the files of programs in DIR (with '/') first, to name their functions"},
	CLI_SELECT_OPTIONS,
	{0},
};

static int print_report_summary(
	struct cli *cli, const char *path, const struct ky_report_summary *s)
{
	struct stat st = {0};
	bool has_size = strcmp(path, "-") != 0 && !stat(path, &st);
	struct kymo_value *v;

	if (cli->json) {
		v = kymo_value_new();
		kymo_value_set_string(v, "path", path);
		if (has_size)
			kymo_value_set_u64(v, "size", (uint64_t)st.st_size);
		kymo_value_set_u64(v, "events", s->n_events);
		kymo_value_set_u64(v, "listed", s->n_listed);
		kymo_value_set_u64(v, "too_long", s->n_long);
		kymo_value_set_u64(v, "slices", s->n_slices);
		kymo_value_set_u64(v, "discarded", s->totals.n_discarded);
		cli_result(cli, v);
		kymo_value_free(v);
		return CLI_OK;
	}
	if (has_size)
		printf("%s: %llu events, %llu slices, %.1f MB\n", cli_safe(cli, path),
			(unsigned long long)s->n_events, (unsigned long long)s->n_slices,
			(double)st.st_size / 1e6);
	if (s->n_listed < s->n_events)
		cli_warn(cli,
			"%llu events are listed with their fields, the first half and the last; all are drawn",
			(unsigned long long)s->n_listed);
	if (s->n_long)
		cli_warn(cli, "%llu event%s too much text: without their fields",
			(unsigned long long)s->n_long, s->n_long == 1 ? " has" : "s have");
	if (s->totals.n_discarded)
		cli_warn(cli, "%llu event%s discarded", (unsigned long long)s->totals.n_discarded,
			s->totals.n_discarded == 1 ? " was" : "s were");
	return CLI_OK;
}

/* Makes the command line of a page of a part of these traces, without the limits of time. */
static void put_command(struct cli *cli, struct ky_buf *b, const char *newest)
{
	static const char *const kept[] = {"event", "filter", "explain"};

	ky_buf_puts(b, "kymo report");
	for (unsigned i = 0; i < KY_MAX(cli->args.n_pos, 1u); i++) {
		ky_buf_puts(b, " ");
		ky_buf_put_word(b, cli->args.n_pos ? cli->args.pos[i] : newest);
	}
	for (size_t i = 0; i < KY_ARRAY_SIZE(kept); i++) {
		if (!cli_has(cli, kept[i]))
			continue;
		ky_buf_printf(b, " --%s=", kept[i]);
		ky_buf_put_word(b, cli_get(cli, kept[i]));
	}
}

/* Explains a span, as JSON. Reports a failure; returns an exit code. */
static int append_explanation(
	struct cli *cli, const struct ky_query *query, const char *path, struct ky_buf *to)
{
	struct ky_explain_question q = {.span = cli_get(cli, "explain"), .query = query};
	struct ky_explanation e;
	char why[PATH_MAX + 256] = "";
	int r;

	if (!q.span)
		return CLI_OK;
	q.paths = cli->args.n_pos ? (const char *const *)cli->args.pos : &path;
	q.n_paths = KY_MAX((size_t)cli->args.n_pos, (size_t)1);
	r = ky_explain_trace(&e, &q, why, sizeof(why));
	if (!r)
		ky_explanation_json(to, &e);
	ky_explanation_deinit(&e);
	if (r == KY_EXPLAIN_E_SPAN)
		return cli_fail(cli, "not-found",
			"there is no span '%s' in this trace: 'kymo stat' lists them", q.span);
	r = r ? r : to->error;
	return r ? cli_fail(cli, "failed", "cannot read the trace: %s", strerror(-r)) : CLI_OK;
}

static int make_report(struct cli *cli, struct ky_report_options *o, const char *path)
{
	const char *output = cli_has(cli, "output") ? cli_get(cli, "output") : DEFAULT_FILE;
	struct ky_report_summary summary;
	struct ky_buf command = {0}, findings = {0};
	int r = append_explanation(cli, o->query, path, &findings);

	if (!strcmp(output, "-"))
		cli->result = stderr;
	if (r) {
		ky_buf_deinit(&findings);
		return r;
	}
	o->findings = findings.len ? findings.data : NULL;
	put_command(cli, &command, path);
	o->command = command.error ? "kymo report" : command.data;
	o->title = path;
	r = cli_page_write(cli, output, o, &summary);
	cli_progress_end(&cli->progress);
	ky_buf_deinit(&command);
	ky_buf_deinit(&findings);
	return r ? r : print_report_summary(cli, output, &summary);
}

static int run_report(struct cli *cli)
{
	struct ky_trace_reader_options reader_options = {.warn = cli_warn_text, .arg = cli};
	struct cli_progress progress;
	struct ky_report_options o = {.reader = &reader_options, .max_events = CLI_PAGE_EVENTS};
	_cleanup_reader_ struct ky_trace_reader *reader = NULL;
	struct cli_selection selection = {0};
	struct cli_symbols symbols = {0};
	struct ky_query query = {0};
	char path[PATH_MAX];
	int r;

	r = cli_read_amount(cli, "detail", CLI_NUMBER, 0, INT64_MAX, &o.max_events);
	if (!r)
		r = cli_select_parse(cli, &selection);
	if (!r)
		r = cli_symbols_parse(cli, &symbols);
	symbols.is_wanted = true;
	cli_symbols_prepare(&symbols, &reader_options);
	if (!r)
		cli->progress = cli_progress_watch(&progress, &reader_options);
	if (!r)
		r = cli_trace_open(cli, &reader_options, path, &reader);
	if (!r)
		cli_progress_expect(cli->progress, reader);
	if (!r)
		r = cli_select_apply(cli, &selection, reader, &query);
	o.query = &query;
	if (!r)
		r = cli_symbols_open(cli, &symbols, reader, &o.symbols);
	if (!r)
		r = make_report(cli, &o, path);
	cli_progress_end(&cli->progress);
	if (cli_has(cli, "symbols"))
		cli_symbols_report(cli, &symbols);
	cli_symbols_end(&symbols);
	ky_query_deinit(&query);
	return r;
}

const struct cli_command cmd_report = {
	.name = "report",
	.synopsis =
		"[TRACE]... [-o FILE] [--detail=N] [--explain=SPAN] [--symbols] " CLI_SELECT_SYNOPSIS,
	.help = "write a trace as one HTML page: a timeline, statistics, all events",
	.details =
		"The page needs only a browser and no network, so you can send it to anybody. It shows threads, spans,\n"
		"system calls, counters and losses over time; 'kymo stat' has the same figures. Press ? in the\n"
		"page for its keys. Without TRACE, the most recent trace is taken.\n" CLI_SELECT_DETAILS,
	.options = options,
	.max_args = CLI_ANY_ARGS,
	.run = run_report,
};
