/* SPDX-License-Identifier: MIT */
/* explain: why the slow instances of a span are slow. The work is in src/explain. */
#include <limits.h>
#include <unistd.h>

#include "analysis/count.h"
#include "analysis/functions.h"
#include "analysis/source-class.h"
#include "cli/progress.h"
#include "cli/select.h"
#include "cli/symbols.h"
#include "cli/trace.h"
#include "explain/explain.h"

static const struct cli_option options[] = {
	{"span", 0, "NAME",
		"the span to explain, as 'kymo stat' lists it; default: the one whose longest instances add the most time"},
	{"pair", 0, "+A..B,...",
		"use two events as the start and the end of a span: of one thread, or with the same FIELD; may be repeated"},
	{"slowest", 0, "N|P%|'>TIME'",
		"which instances are slow: the N longest, the longest P percent, or those longer than TIME (20ms or '>20ms'); default: chosen by their durations"},
	{"against", 0, "TRACE",
		"compare with the typical instances of another trace; typical: of the same (default)"},
	CLI_SELECT_OPTIONS,
	{0},
};

static void put_spans(struct ky_buf *b, const char *const *names)
{
	for (size_t i = 0; names[i] && i < 20; i++)
		ky_buf_printf(b, "%s%s", i ? ", " : "", names[i]);
}

/*
 * Whether the text is this span without its provider, class or parameters, or with the ending of
 * one of its events.
 */
static bool is_meant(const char *span, const char *text)
{
	size_t n = strlen(span), m = strlen(text), name = strcspn(span, "(");

	if (name >= m && !strncmp(span + name - m, text, m) &&
		(name == m || span[name - m - 1] == ':'))
		return true;
	return !strncmp(span, text, n) &&
	       (!strcmp(text + n, "_begin") || !strcmp(text + n, "_end"));
}

static const char *find_meant(const char *const *names, const char *text)
{
	for (size_t i = 0; names[i]; i++) {
		if (is_meant(names[i], text))
			return names[i];
	}
	return cli_nearest(text, names);
}

/* Says which spans there are, and which one was probably meant. */
static int fail_span(struct cli *cli, const struct ky_source *s, const char *path, const char *span,
	const char *why)
{
	_cleanup_free_ const char **names = ky_source_spans(s);
	const char *near = names && span ? find_meant(names, span) : NULL;
	struct ky_buf list = {0};
	bool is_there = !span;
	int r;

	for (size_t i = 0; span && names && names[i]; i++)
		is_there = is_there || !strcmp(names[i], span);
	if (names)
		put_spans(&list, names);
	if (!list.len)
		r = cli_fail(cli, "not-found",
			"there is no span in %s: <kymo/span.h> makes them (kymo_span_begin, kymo_span_end); "
			"or take two events of a thread as one: --pair=A..B",
			path);
	else if (is_there)
		r = cli_fail(cli, "not-found", "%s", why);
	else if (near)
		r = cli_fail(cli, "not-found", "there is no span '%s' in %s: did you mean '%s'?",
			span, path, near);
	else
		r = cli_fail(cli, "not-found", "there is no span '%s' in %s; there are: %s", span,
			path, list.data);
	ky_buf_deinit(&list);
	return r;
}

/* --- names of addresses --- */

/* Opened when the first address is to be shown. */
struct names {
	struct cli *cli;
	const struct ky_trace_reader *reader; /* borrowed */
	struct cli_symbols symbols;
	bool was_opened;
};

static void open_names(struct names *n)
{
	const struct ky_symbolizer *unused;

	n->was_opened = true;
	if (!cli_symbols_has_files(n->reader))
		return;
	n->symbols.is_wanted = true;
	cli_symbols_open(n->cli, &n->symbols, n->reader, &unused);
}

static bool find_symbol(struct names *n, enum ky_symbol_form form, const char *host, int64_t pid,
	uint64_t address, bool is_return, char symbol[KY_SYMBOL_MAX])
{
	struct ky_symbol_address a = {.process = {.host = host, .is_known = pid >= 0, .pid = pid},
		.address = address,
		.is_return = is_return};

	if (!n->was_opened)
		open_names(n);
	return n->symbols.symbols && ky_symbols_find(n->symbols.symbols, &a, form, symbol);
}

static bool find_function(void *arg, const char *host, int64_t pid, uint64_t address,
	bool is_return, char *text, size_t size)
{
	char symbol[KY_SYMBOL_MAX], *inlined;

	if (!find_symbol(arg, KY_SYMBOL_STACK, host, pid, address, is_return, symbol))
		return false;
	inlined = strrchr(symbol, ';');
	snprintf(text, size, "%s", inlined ? inlined + 1 : symbol);
	return true;
}

static bool find_name(void *arg, const char *host, int64_t pid, uint64_t address, bool is_return,
	char *text, size_t size)
{
	char symbol[KY_SYMBOL_MAX], *end;

	if (!find_symbol(arg, KY_SYMBOL_PLACE, host, pid, address, is_return, symbol))
		return false;
	/* Of a variable, its name alone. */
	end = is_return ? NULL : strstr(symbol, "+0x0 (");
	if (end)
		*end = '\0';
	snprintf(text, size, "%s", symbol);
	return true;
}

/* Without the file's name or inlined functions: entries are the function's own. */
static bool find_entry(
	void *arg, const char *host, int64_t pid, uint64_t address, char *text, size_t size)
{
	char symbol[KY_SYMBOL_MAX];

	if (!find_symbol(arg, KY_SYMBOL_STACK, host, pid, address, false, symbol) || *symbol == '[')
		return false;
	symbol[strcspn(symbol, ";")] = '\0';
	snprintf(text, size, "%s", symbol);
	return true;
}

/* --- without --span --- */

#define NEARLY 0.8 /* as much time as another span's outliers have */

/* The time by which the longer instances exceed the median, more than the shorter ones miss it. */
static double outlier_ns(const struct ky_span_name *n)
{
	double usual = (double)ky_histogram_permille(&n->ns, 500);
	double third = (double)ky_histogram_permille(&n->ns, 333);

	/* More than half of them may be slow. */
	return (double)n->ns.sum - (double)n->ns.n * (usual > 2 * third ? third : usual);
}

static bool may_be_worst(const struct ky_span_name *n, bool with_libraries)
{
	return n->ns.n >= KY_MIN_INSTANCES && (with_libraries || !ky_source_is_library(n->name));
}

/*
 * The span whose outliers add most time. Spans inside it have nearly as much: the one with the
 * greatest total is the outermost. NULL: none has enough instances.
 */
static const struct ky_span_name *find_worst_of(const struct ky_spans *spans, bool with_libraries)
{
	const struct ky_span_name *best = NULL;

	for (size_t i = 0; i < spans->names.n; i++) {
		const struct ky_span_name *n = spans->by_total[i];

		if (may_be_worst(n, with_libraries) && (!best || outlier_ns(n) > outlier_ns(best)))
			best = n;
	}
	for (size_t i = 0; best && i < spans->names.n; i++) {
		const struct ky_span_name *n = spans->by_total[i];

		if (may_be_worst(n, with_libraries) && outlier_ns(n) >= NEARLY * outlier_ns(best))
			return n;
	}
	return best;
}

/* A program's own span says more than the calls in which a thread waits for work. */
static const struct ky_span_name *find_worst(const struct ky_spans *spans)
{
	const struct ky_span_name *worst = find_worst_of(spans, false);

	worst = worst ? worst : find_worst_of(spans, true);
	if (worst)
		return worst;
	/* One of which only begins, or ends, are recorded is refused with the reason. */
	return spans->names.n ? spans->by_total[0] : NULL;
}

static void put_others(
	struct ky_buf *b, const struct ky_spans *spans, const struct ky_span_name *chosen)
{
	ky_buf_printf(b,
		"%.*s is the span whose longest instances add most time. Explain others with --span=NAME:",
		(int)chosen->name_len, chosen->name);
	for (size_t i = 0, n = 0; i < spans->names.n && n < 8; i++) {
		const struct ky_span_name *o = spans->by_total[i];

		if (o != chosen && o->ns.n)
			ky_buf_printf(b, "%s %.*s", n++ ? "," : "", (int)o->name_len, o->name);
	}
}

/* Calls of libraries are explained only if no span of the program has enough instances. */
static void put_pair(struct ky_buf *b, const struct ky_span_name *chosen)
{
	if (ky_source_is_library(chosen->name))
		ky_buf_printf(b,
			"%sNo span of the program ended %d times: --pair=A..B takes two events of a thread as one",
			b->len ? ". " : "", KY_MIN_INSTANCES);
}

/* Adds the functions that were entered and left. */
static int add_calls(struct ky_spans *spans, struct ky_source *source, const struct ky_texts *names)
{
	struct ky_source_event e;
	int r = ky_source_has_calls(source) ? ky_source_start(source, KY_SOURCE_CALLS, 0) : 0;

	if (r || !ky_source_has_calls(source))
		return r;
	while (!r && (r = ky_source_next(source, &e)) > 0) {
		int64_t tid = e.item ? ky_source_number(&e, KY_FIELD_TID, -1) : -1;
		struct ky_span_pair p = {
			.key = (const char *)&tid, .key_len = sizeof(tid), .ns = e.ns};

		r = 0;
		if (e.kind == KY_EVENT_LOST || !e.class->is_function)
			continue;
		p.name = ky_spans_name(spans, ky_texts_get(names, e.class->base));
		p.trace = e.item->trace;
		p.stream = e.item->stream;
		p.is_begin = e.kind == KY_EVENT_SPAN_BEGIN;
		r = p.name ? ky_spans_add_pair(spans, &p) : -ENOMEM;
	}
	return r;
}

/*
 * Chooses the span to explain if none is asked for. ret_name: the caller frees it; NULL: there is
 * no span. others: gets a line about the choice if there is more than one, or it is a library's.
 * 0 or a negative errno.
 */
static int choose_span(const struct ky_explain_question *q, char **ret_name, struct ky_buf *others)
{
	const struct ky_trace_reader_options reader_options = {0};
	struct ky_query all = *q->query; /* borrows what query owns */
	const struct ky_span_name *worst = NULL;
	struct ky_spans spans = {0};
	struct ky_counts counts = {0};
	struct ky_texts names = {0};
	struct ky_source *source = NULL;
	size_t n = 0;
	int r;

	all.expr = NULL; /* it is about the begin of the span that is chosen */
	r = ky_counts_collect(&counts, &all, &spans, &reader_options, 0);
	if (!r)
		r = ky_source_new(&source, &all, &names);
	if (!r) {
		ky_source_name_functions(source, q->functions);
		r = add_calls(&spans, source, &names);
	}
	if (!r)
		r = ky_spans_finish(&spans);
	if (!r)
		worst = find_worst(&spans);
	for (size_t i = 0; worst && i < spans.names.n; i++)
		n += spans.by_total[i]->ns.n > 0;
	if (n > 1)
		put_others(others, &spans, worst);
	if (worst)
		put_pair(others, worst);
	*ret_name = worst ? strndup(worst->name, worst->name_len) : NULL;
	if (worst && !*ret_name)
		r = -ENOMEM;
	ky_counts_deinit(&counts);
	ky_spans_deinit(&spans);
	ky_source_free(source);
	ky_texts_deinit(&names);
	return r ? r : others->error;
}

/* others: a line about other spans; NULL: there is none. */
static int print_explanation(struct cli *cli, const struct ky_explanation *e, const char *others)
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
	if (others && !cli->json && !r)
		printf("%s\n", cli_safe(cli, others));
	ky_buf_deinit(&b);
	return r;
}

static int explain_and_print(
	struct cli *cli, const struct ky_explain_question *q, const char *others)
{
	struct ky_explanation e;
	char why[PATH_MAX + 256] = "";
	int r = ky_explain_trace(&e, q, why, sizeof(why));

	cli_progress_end(&cli->progress);
	if (!r)
		r = print_explanation(cli, &e, others);
	else if (r == KY_EXPLAIN_E_PAIR)
		r = cli_usage(cli, "%s", why);
	else if (r == KY_EXPLAIN_E_SPAN)
		r = fail_span(cli, e.sources[e.sources[1] ? 1 : 0],
			e.sources[1] ? q->against : "this trace", q->span, why);
	else
		r = cli_fail(cli, "failed", "cannot read the trace: %s", strerror(-r));
	ky_explanation_deinit(&e);
	return r;
}

/* Explains the span that is asked for, or chooses one. */
static int explain_any(struct cli *cli, struct ky_explain_question *q)
{
	_cleanup_free_ char *name = NULL;
	struct ky_buf others = {0};
	int r = q->span ? 0 : choose_span(q, &name, &others);

	if (r < 0) {
		r = cli_fail(cli, "failed", "cannot read the trace: %s", strerror(-r));
	} else if (!q->span && !name) {
		r = cli_fail(cli, "not-found",
			"there is no span in this trace: <kymo/span.h> makes them (kymo_span_begin, kymo_span_end); "
			"or take two events of a thread as one: --pair=A..B");
	} else {
		q->span = q->span ? q->span : name;
		r = explain_and_print(cli, q, others.len ? others.data : NULL);
	}
	ky_buf_deinit(&others);
	return r;
}

/* Opens the trace to compare with, which no other option is about. */
static int explain_against(struct cli *cli, struct ky_explain_question *q)
{
	const struct ky_trace_reader_options reader_options = {0};
	_cleanup_reader_ struct ky_trace_reader *reader = NULL;
	_cleanup_traces_ struct cli_traces t = {0};
	struct names names = {.cli = cli};
	const struct ky_function_names functions = {find_entry, &names};
	struct ky_query query;
	char why[PATH_MAX + 256];
	int r;

	if (!q->against)
		return explain_any(cli, q);
	r = cli_traces_find(cli, &q->against, 1, &t);
	if (r)
		return r;
	r = ky_trace_reader_open(
		&reader, (const char *const *)t.paths, t.n, &reader_options, why, sizeof(why));
	if (r < 0)
		return cli_fail(cli, cli_trace_code(r), "%s", why);
	ky_query_init(&query, reader);
	names.reader = reader;
	q->against_query = &query;
	q->against_functions = &functions;
	r = explain_any(cli, q);
	cli_symbols_end(&names.symbols);
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
	if (q->against && !strcmp(q->against, "typical") && access(q->against, F_OK) < 0)
		q->against = NULL; /* the typical instances of the same trace */
	if (!q->span && q->n_pairs)
		q->span = pair_name(q, span, size);
	if (slowest && ky_slowest_parse(&q->slowest, slowest) < 0)
		return cli_usage(cli,
			"bad --slowest '%s': write a number, as 20; a percentage, as 1%%; or a time, as 20ms, for those that are longer",
			slowest);
	return cli_select_parse(cli, s);
}

static int run_explain(struct cli *cli)
{
	const struct ky_trace_reader_options report = {.warn = cli_warn_text, .arg = cli};
	struct ky_trace_reader_options reader_options = {0};
	struct cli_progress progress;
	_cleanup_reader_ struct ky_trace_reader *reader = NULL;
	struct names names = {.cli = cli};
	const struct ky_explain_symbols symbols = {find_name, find_function, &names};
	const struct ky_function_names functions = {find_entry, &names};
	struct ky_explain_question q = {
		.symbols = &symbols, .functions = &functions, .report = &report};
	struct cli_selection selection = {0};
	struct ky_query query;
	char path[PATH_MAX];
	const char *newest = path;
	char span[512];
	int r = get_pairs(cli, &q) < 0 ? cli_fail(cli, "failed", "no memory")
				       : parse_options(cli, &q, &selection, span, sizeof(span));

	if (!r)
		cli->progress = cli_progress_watch(&progress, &reader_options);
	if (!r)
		r = cli_trace_open(cli, &reader_options, path, &reader);
	if (r) {
		cli_progress_end(&cli->progress);
		free((void *)q.pairs);
		return r;
	}
	q.paths = cli->args.n_pos ? (const char *const *)cli->args.pos : &newest;
	q.n_paths = KY_MAX((size_t)cli->args.n_pos, (size_t)1);
	q.query = &query;
	names.reader = reader;
	cli_progress_expect(cli->progress, reader);
	r = cli_select_apply(cli, &selection, reader, &query);
	if (!r)
		r = explain_against(cli, &q);
	cli_progress_end(&cli->progress);
	cli_symbols_end(&names.symbols);
	ky_query_deinit(&query);
	free((void *)q.pairs);
	return r;
}

const struct cli_command cmd_explain = {
	.name = "explain",
	.synopsis =
		"[TRACE]... [--span=NAME] [--pair=A..B[,key=FIELD]] [--slowest=N|P%|'>TIME'] [--against=TRACE] " CLI_SELECT_SYNOPSIS,
	.help = "find out why some instances of a span are slow",
	.details =
		"Compares the slow instances of a span with typical ones. The first line is the answer:\n"
		"'NAME is slow because ...', 'NAME is slow in part because ...', 'nothing recorded tells why'\n"
		"or 'nothing stands out'.\n"
		"Then follow both groups; the findings, by their part of the extra time, each with an\n"
		"example; and what this trace does not show.\n"
		"-f selects instances by the fields of their first event; -e selects the events to use.\n"
		"TRACE as for 'kymo view'; several are read as one trace.\n" CLI_SELECT_DETAILS,
	.options = options,
	.max_args = CLI_ANY_ARGS,
	.run = run_explain,
};
