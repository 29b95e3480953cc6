/* SPDX-License-Identifier: MIT */
/* explain: why the slow instances of a span are slow. The work is in src/explain. */
#include <limits.h>

#include "cli/select.h"
#include "cli/trace.h"
#include "explain/explain.h"

static const struct cli_option options[] = {
	{"span", 0, "NAME", "the span to explain, as 'kymo stat' lists it"},
	{"pair", 0, "A..B,...",
		"take two events as begin and end of a span: of a thread, or those with the same FIELD; may be repeated"},
	{"slowest", 0, "N|P%|'>TIME'",
		"which instances are slow: so many, so many percent, or those longer than TIME (>20ms); default: what the trace shows"},
	{"against", 0, "TRACE", "compare with the typical instances of another trace"},
	CLI_SELECT_OPTIONS,
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
	else if (r == KY_EXPLAIN_E_PAIR)
		r = cli_usage(cli, "%s", why);
	else if (r == KY_EXPLAIN_E_SPAN)
		r = fail_span(cli, e.sources[e.sources[1] ? 1 : 0], q->span, why);
	else
		r = cli_fail(cli, "failed", "cannot read the trace: %s", strerror(-r));
	ky_explanation_deinit(&e);
	return r;
}

/* Opens the trace to compare with, which no other option is about. */
static int explain_against(struct cli *cli, struct ky_explain_question *q)
{
	const struct ky_trace_reader_options reader_options = {0};
	_cleanup_reader_ struct ky_trace_reader *reader = NULL;
	struct ky_query query;
	char why[PATH_MAX + 256];
	int r;

	if (!q->against)
		return explain(cli, q);
	r = ky_trace_reader_open(&reader, &q->against, 1, &reader_options, why, sizeof(why));
	if (r < 0)
		return cli_fail(cli, "failed", "%s", why);
	ky_query_init(&query, reader);
	q->against_query = &query;
	r = explain(cli, q);
	ky_query_deinit(&query);
	return r;
}

/* Collects --pair. 0 or -ENOMEM. */
static int get_pairs(struct cli *cli, struct ky_explain_question *q)
{
	const char **pairs = NULL, *text;
	size_t n = 0, iter = 0;

	while (cli_args_next(&cli->args, "pair", &iter))
		n++;
	pairs = calloc(n + 1, sizeof(*pairs));
	if (!pairs)
		return -ENOMEM;
	for (iter = 0; (text = cli_args_next(&cli->args, "pair", &iter));)
		pairs[q->n_pairs++] = text;
	q->pairs = pairs;
	return 0;
}

/* The first pair is the span if no other one is asked for. Its name is without the key. */
static const char *pair_name(const struct ky_explain_question *q, char *buf, size_t size)
{
	snprintf(buf, size, "%.*s", (int)strcspn(q->pairs[0], ","), q->pairs[0]);
	return buf;
}

static int parse_options(struct cli *cli, struct ky_explain_question *q, struct cli_selection *s,
	char *span, size_t size)
{
	const char *slowest = cli_get(cli, "slowest");

	q->span = cli_get(cli, "span");
	q->against = cli_get(cli, "against");
	if (!q->span && q->n_pairs)
		q->span = pair_name(q, span, size);
	if (!q->span)
		return cli_usage(cli, "the span is missing: --span=NAME ('kymo stat' lists spans)");
	if (slowest && ky_slowest_parse(&q->slowest, slowest) < 0)
		return cli_usage(cli,
			"bad --slowest '%s': write a number, as 20; a percentage, as 1%%; or a time, as '>20ms'",
			slowest);
	return cli_select_parse(cli, s);
}

static int run(struct cli *cli)
{
	const struct ky_trace_reader_options reader_options = {0};
	_cleanup_reader_ struct ky_trace_reader *reader = NULL;
	struct ky_explain_question q = {0};
	struct cli_selection selection = {0};
	struct ky_query query;
	char path[PATH_MAX];
	const char *newest = path;
	char span[512];
	int r = get_pairs(cli, &q) < 0 ? cli_fail(cli, "failed", "no memory")
				       : parse_options(cli, &q, &selection, span, sizeof(span));

	if (!r)
		r = cli_trace_open(cli, &reader_options, path, &reader);
	if (r) {
		free((void *)q.pairs);
		return r;
	}
	q.paths = cli->args.n_pos ? (const char *const *)cli->args.pos : &newest;
	q.n_paths = KY_MAX((size_t)cli->args.n_pos, (size_t)1);
	q.query = &query;
	r = cli_select_apply(cli, &selection, reader, &query);
	if (!r)
		r = explain_against(cli, &q);
	ky_query_deinit(&query);
	free((void *)q.pairs);
	return r;
}

const struct cli_command cmd_explain = {
	.name = "explain",
	.synopsis =
		"[TRACE]... --span=NAME [--pair=A..B[,key=FIELD]] [--slowest=N|P%|'>TIME'] [--against=TRACE] " CLI_SELECT_SYNOPSIS,
	.help = "say why the slow instances of a span are slow",
	.details =
		"Compares the slow instances of a span with typical ones. The first line is the answer:\n"
		"NAME is slow because ...; or nothing recorded tells why; or nothing stands out. Then\n"
		"follow both groups, the findings by their part of the extra time, each with an example,\n"
		"and what this trace does not show. TRACE as for 'kymo view'; several are one trace.\n"
		"-f selects instances by the fields of their begin; -e the events to use.\n" CLI_SELECT_DETAILS,
	.options = options,
	.max_args = CLI_ANY_ARGS,
	.run = run,
};
