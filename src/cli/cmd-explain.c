/* SPDX-License-Identifier: MIT */
/* explain: why the slow instances of a span are slow. The work is in src/explain. */
#include <limits.h>

#include "cli/trace.h"
#include "explain/explain.h"

static const struct cli_option options[] = {
	{"span", 0, "NAME", "the span to explain, as 'kymo stat' lists it"},
	{"slowest", 0, "N|P%|'>TIME'",
		"which instances are slow: so many, so many percent, or those longer than TIME (>20ms); default: what the trace shows"},
	{"against", 0, "TRACE", "compare with the typical instances of another trace"},
	{0},
};

static void put_spans(struct ky_buf *b, const char *const *names)
{
	for (size_t i = 0; names[i] && i < 20; i++)
		ky_buf_printf(b, "%s%s", i ? ", " : "", names[i]);
}

/* Says which spans there are, and which one was probably meant. */
static int fail_span(struct cli *cli, const struct ky_source *s, const char *span, const char *why)
{
	_cleanup_free_ const char **names = ky_source_spans(s);
	const char *near = names ? cli_nearest(span, names) : NULL;
	struct ky_buf list = {0};
	bool is_there = false;
	int r;

	for (size_t i = 0; names && names[i]; i++)
		is_there = is_there || !strcmp(names[i], span);
	if (names)
		put_spans(&list, names);
	if (is_there)
		r = cli_fail(cli, "not-found", "%s", why);
	else if (!list.len)
		r = cli_fail(cli, "not-found",
			"there is no span in this trace: <kymo/span.h> makes them (kymo_span_begin, kymo_span_end)");
	else if (near)
		r = cli_fail(cli, "not-found",
			"there is no span '%s' in this trace: did you mean '%s'?", span, near);
	else
		r = cli_fail(cli, "not-found", "there is no span '%s' in this trace; there are: %s",
			span, list.data);
	ky_buf_deinit(&list);
	return r;
}

static int print(struct cli *cli, const struct ky_explanation *e)
{
	struct ky_buf b = {0};
	int r = CLI_OK;

	if (cli->json)
		ky_explanation_json(&b, e);
	else
		ky_explanation_text(&b, e);
	if (b.error)
		r = cli_fail(cli, "failed", "no memory");
	else if (cli->json)
		cli_print_json(cli, b.data);
	else
		for (char *line, *text = b.data; (line = strsep(&text, "\n")) && text;)
			printf("%s\n", cli_safe(cli, line));
	ky_buf_deinit(&b);
	return r;
}

static int explain(struct cli *cli, const struct ky_explain_question *q)
{
	struct ky_explanation e;
	char why[PATH_MAX + 256] = "";
	int r = ky_explain_trace(&e, q, why, sizeof(why));

	if (!r)
		r = print(cli, &e);
	else if (r == KY_EXPLAIN_E_SPAN)
		r = fail_span(cli, e.sources[e.sources[1] ? 1 : 0], q->span, why);
	else if (r == KY_EXPLAIN_E_OPEN)
		r = cli_fail(cli, "failed", "%s", why);
	else
		r = cli_fail(cli, "failed", "cannot read the trace: %s", strerror(-r));
	ky_explanation_deinit(&e);
	return r;
}

static int run(struct cli *cli)
{
	const char *slowest = cli_get(cli, "slowest");
	struct ky_explain_question q = {.span = cli_get(cli, "span"),
		.against = cli_get(cli, "against"),
		.first_ns = INT64_MIN,
		.last_ns = INT64_MAX};
	const struct ky_trace_reader_options reader_options = {0};
	struct ky_trace_reader *reader = NULL;
	char path[PATH_MAX];
	const char *newest = path;
	int r;

	if (!q.span)
		return cli_usage(cli, "the span is missing: --span=NAME ('kymo stat' lists spans)");
	if (slowest && ky_slowest_parse(&q.slowest, slowest) < 0)
		return cli_usage(cli,
			"bad --slowest '%s': write a number, as 20; a percentage, as 1%%; or a time, as '>20ms'",
			slowest);
	r = cli_trace_open(cli, &reader_options, path, &reader);
	if (r)
		return r;
	ky_trace_reader_close(reader);
	q.paths = cli->args.n_pos ? (const char *const *)cli->args.pos : &newest;
	q.n_paths = KY_MAX((size_t)cli->args.n_pos, (size_t)1);
	return explain(cli, &q);
}

const struct cli_command cmd_explain = {
	.name = "explain",
	.synopsis = "[TRACE]... --span=NAME [--slowest=N|P%|'>TIME'] [--against=TRACE]",
	.help = "say why the slow instances of a span are slow",
	.details =
		"Compares the slow instances of a span with typical ones. The first line is the answer:\n"
		"NAME is slow because ...; or nothing recorded tells why; or nothing stands out. Then come\n"
		"both groups, the findings by their part of the extra time, each with an example to look at,\n"
		"and what this trace cannot tell. TRACE as for 'kymo view'; several are one trace.\n",
	.options = options,
	.max_args = CLI_ANY_ARGS,
	.run = run,
};
