/* SPDX-License-Identifier: MIT */
/*
 * diff: are runs of a program slower than others? Runs are compared, not events: the events of one
 * run are not independent. With five runs or more on both sides, a difference counts if the
 * Mann-Whitney test over the runs' values finds it; with fewer, it is shown as not tested.
 */
#include <inttypes.h>
#include <math.h>

#include "cli/opened.h"
#include "cli/runs.h"
#include "cli/symbols.h"
#include "explain/stats.h"
#include "export/folded.h"
#include "reader/format.h"

#define MIN_TESTED     5 /* runs of each side */
#define SIGNIFICANT    0.05
#define MAX_CONDITIONS 16

static const struct cli_option options[] = {
	{"fail-if", 0, "+COND",
		"exit with 1 if COND holds for a span: 'p99 > +10%', 'median > +1ms'"},
	{"latency", 0, "+A..B,...",
		"compare the time from each event A to event B: see 'kymo stat'"},
	{"to", 0, "folded", "write stacks with a number for each side, for flame graphs"},
	{"output", 'o', "FILE",
		"with --to: the file, which is replaced if it exists; default: standard output"},
	CLI_FOLDED_OPTIONS,
	CLI_SELECT_OPTIONS,
	{0},
};

/* One measure of one name on both sides. */
struct change {
	double base, now; /* medians of the runs */
	size_t n[N_SIDES];
	double p; /* two-sided; -1: not tested */
};

/* "p99 > +10%": a measure becomes greater (or, with <, less) by more than a limit. */
struct condition {
	const char *text; /* borrowed */
	enum measure measure;
	bool is_less, is_relative;
	double limit; /* percent, or nanoseconds, or a number */
};

struct diff {
	struct cli *cli;
	struct runs runs;
	struct condition conditions[MAX_CONDITIONS];
	size_t n_conditions;
	double *scratch[N_SIDES]; /* owned: a value for each run */
	size_t n_met;
	struct ky_buf met; /* the first condition that is met, as a sentence */
};

/* --- statistics --- */

static struct change get_change(const struct diff *d, const struct series *s, enum measure measure)
{
	struct change c = {.p = -1};
	double greater, less;

	for (enum side side = SIDE_BASE; side < N_SIDES; side++)
		c.n[side] = runs_values(&d->runs, s, side, measure, d->scratch[side]);
	c.base = ky_stats_median(d->scratch[SIDE_BASE], c.n[SIDE_BASE]);
	c.now = ky_stats_median(d->scratch[SIDE_NEW], c.n[SIDE_NEW]);
	if (c.n[SIDE_BASE] < MIN_TESTED || c.n[SIDE_NEW] < MIN_TESTED)
		return c;
	greater = ky_stats_mann_whitney(
		d->scratch[SIDE_NEW], c.n[SIDE_NEW], d->scratch[SIDE_BASE], c.n[SIDE_BASE]);
	less = ky_stats_mann_whitney(
		d->scratch[SIDE_BASE], c.n[SIDE_BASE], d->scratch[SIDE_NEW], c.n[SIDE_NEW]);
	c.p = KY_MIN(1.0, 2 * KY_MIN(greater, less));
	return c;
}

/* The change in percent; infinite from nothing to something. */
static double change_percent(const struct change *c)
{
	if (c->base == c->now)
		return 0;
	return c->base > 0 ? (c->now - c->base) / c->base * 100 : INFINITY;
}

static bool is_there(const struct series *s, const struct runs *r, enum side side)
{
	for (size_t i = 0; i < r->n[side]; i++)
		if (s->v[side][MEASURE_COUNT][i] > 0)
			return true;
	return false;
}

static bool is_on_both(const struct series *s, const struct runs *r)
{
	return is_there(s, r, SIDE_BASE) && is_there(s, r, SIDE_NEW);
}

/* --- conditions --- */

static const char *skip_blanks(const char *p)
{
	while (*p == ' ')
		p++;
	return p;
}

static bool parse_limit(struct condition *c, const char *p)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"", 1}};
	char *end;

	c->limit = fabs(strtod(p, &end));
	if (end == p || !isfinite(c->limit))
		return false;
	end = (char *)skip_blanks(end);
	c->is_relative = !strcmp(end, "%");
	if (c->is_relative)
		return true;
	for (size_t i = 0; i < KY_ARRAY_SIZE(units); i++) {
		if (strcmp(end, units[i].name))
			continue;
		c->limit *= units[i].ns;
		return c->measure != MEASURE_COUNT || !*end;
	}
	return false;
}

static bool parse_condition(struct condition *c, const char *text)
{
	size_t len = strcspn(text, " <>"), m = 0;
	const char *p = skip_blanks(text + len);

	c->text = text;
	while (m < N_MEASURES &&
		(strlen(measure_names[m]) != len || strncmp(measure_names[m], text, len)))
		m++;
	c->measure = (enum measure)m;
	c->is_less = *p == '<';
	if (m == N_MEASURES || (*p != '<' && *p != '>'))
		return false;
	p = skip_blanks(p + 1);
	return *p == (c->is_less ? '-' : '+') && parse_limit(c, p);
}

static int parse_conditions(struct diff *d)
{
	const char *text;
	size_t iter = 0;

	while ((text = cli_args_next(&d->cli->args, "fail-if", &iter))) {
		if (d->n_conditions == MAX_CONDITIONS)
			return cli_usage(
				d->cli, "too many conditions: %u are possible", MAX_CONDITIONS);
		if (!parse_condition(&d->conditions[d->n_conditions++], text))
			return cli_usage(d->cli,
				"bad condition '%s': write 'p99 > +10%%', 'median > +1ms' or 'count < -5%%'; measures: count, total, mean, median, p90, p99, max",
				text);
	}
	return CLI_OK;
}

static bool is_beyond(const struct condition *c, const struct change *change)
{
	double by = c->is_relative ? change_percent(change) : change->now - change->base;

	return c->is_less ? by < -c->limit : by > c->limit;
}

static void put_duration(struct ky_buf *b, double ns)
{
	/* the limit is that of the rounded number */
	const char *unit = ky_scale_ns(&ns, ns < 1000 ? 999.5 : 999.95);

	ky_buf_printf(b, "%.*f %s", strcmp(unit, "ns") != 0, ns, unit);
}

static void put_value(struct ky_buf *b, enum measure measure, double v)
{
	if (measure == MEASURE_COUNT)
		ky_buf_printf(b, "%.*f", v == floor(v) ? 0 : 1, v); /* a median may have a half */
	else
		put_duration(b, v);
}

/* "shop:checkout: p99 is 23.8 % greater (324.6 us, 401.9 us; p=0.002)" */
static void put_met(struct diff *d, const struct series *s, const struct condition *c,
	const struct change *change)
{
	double by = change_percent(change);

	ky_buf_printf(&d->met, "%s: %s is ", s->name, measure_names[c->measure]);
	if (isinf(by))
		ky_buf_puts(&d->met, "new");
	else
		ky_buf_printf(&d->met, "%.1f %% %s", fabs(by), by > 0 ? "greater" : "less");
	ky_buf_puts(&d->met, " (");
	put_value(&d->met, c->measure, change->base);
	ky_buf_puts(&d->met, ", now ");
	put_value(&d->met, c->measure, change->now);
	if (change->p >= 0)
		ky_buf_printf(&d->met, "; p=%.2g)", change->p);
	else
		ky_buf_puts(&d->met, "; not tested: fewer than 5 runs on a side)");
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/*
 * Holm's correction: the p of all names that a condition applies to, in ascending order, are
 * multiplied by how many are left. Returns the greatest p that is still significant; -1: none is.
 */
static double find_threshold(double *p, size_t n)
{
	double found = -1;

	qsort(p, n, sizeof(*p), by_value);
	for (size_t i = 0; i < n && p[i] * (double)(n - i) < SIGNIFICANT; i++)
		found = p[i];
	return found;
}

/* Adds the names for which a condition is met. Returns the number that it applies to. */
static size_t check_condition(struct diff *d, const struct condition *c)
{
	double *p = calloc(d->runs.n_series + 1, sizeof(*p)), threshold;
	size_t n = 0, n_tested = 0;

	for (size_t i = 0; p && i < d->runs.n_series; i++) {
		const struct series *s = &d->runs.series[i];

		if (s->kind == SERIES_EVENT || !is_on_both(s, &d->runs))
			continue;
		n++;
		p[n_tested] = get_change(d, s, c->measure).p;
		n_tested += p[n_tested] >= 0;
	}
	threshold = p ? find_threshold(p, n_tested) : -1;
	for (size_t i = 0; i < d->runs.n_series; i++) {
		const struct series *s = &d->runs.series[i];
		struct change change;

		if (s->kind == SERIES_EVENT || !is_on_both(s, &d->runs))
			continue;
		change = get_change(d, s, c->measure);
		if (!is_beyond(c, &change) || change.p > threshold)
			continue;
		if (!d->n_met++)
			put_met(d, s, c, &change);
	}
	free(p);
	return n;
}

/* --- text --- */

/* "+23.8 %", "~" for no significant change, "=" for none at all. */
static void put_change(struct ky_buf *b, const struct change *c)
{
	double by = change_percent(c);

	if (by == 0)
		ky_buf_puts(b, "=");
	else if (c->p >= SIGNIFICANT)
		ky_buf_puts(b, "~");
	else if (isinf(by))
		ky_buf_puts(b, "new");
	else
		ky_buf_printf(b, "%+.1f %%", by);
	if (c->p >= 0 && c->p < SIGNIFICANT && by != 0)
		ky_buf_printf(b, " (p=%.2g)", c->p);
}

static void print_pair(const struct change *c, enum measure measure, int width)
{
	struct ky_buf b = {0};
	size_t n = 0;

	put_value(&b, measure, c->base);
	ky_buf_puts(&b, " → ");
	put_value(&b, measure, c->now);
	ky_buf_puts(&b, "  ");
	put_change(&b, c);
	for (size_t i = 0; i < b.len; i++)
		n += (b.data[i] & 0xc0) != 0x80;
	printf("  %s%*s", b.data ? b.data : "", KY_MAX(width - (int)n, 0), "");
	ky_buf_deinit(&b);
}

static void print_series(struct diff *d, const struct series *s, int width)
{
	const struct change median = get_change(d, s, MEASURE_MEDIAN),
			    p99 = get_change(d, s, MEASURE_P99),
			    count = get_change(d, s, MEASURE_COUNT);
	char name[300], runs[48];

	snprintf(name, sizeof(name), "%s%s", cli_safe(d->cli, s->name),
		s->kind == SERIES_ASYNC ? " (async)" : "");
	snprintf(runs, sizeof(runs), "%zu+%zu", median.n[SIDE_BASE], median.n[SIDE_NEW]);
	printf("%-*s  %6s", width, name, runs);
	print_pair(&median, MEASURE_MEDIAN, 34);
	print_pair(&p99, MEASURE_P99, 34);
	print_pair(&count, MEASURE_COUNT, 0);
	printf("\n");
}

static void print_losses(const struct diff *d)
{
	static const char *const names[] = {"BASE", "NEW"};

	for (enum side side = SIDE_BASE; side < N_SIDES; side++)
		if (d->runs.n_lost[side])
			printf("%s: records are missing in %zu of %zu runs (%" PRIu64
			       " events, packets, damaged places or unreadable files): percentiles may be wrong\n",
				names[side], d->runs.n_with_losses[side], d->runs.n[side],
				d->runs.n_lost[side]);
}

static double mean_count(const struct diff *d, const struct series *s, enum side side)
{
	double sum = 0;

	for (size_t i = 0; i < d->runs.n[side]; i++)
		sum += s->v[side][MEASURE_COUNT][i];
	return sum / (double)d->runs.n[side];
}

static void print_only(struct diff *d, const struct series *s)
{
	enum side side = is_there(s, &d->runs, SIDE_NEW) ? SIDE_NEW : SIDE_BASE;
	double n = mean_count(d, s, side);

	printf("only in %s: %s (%.*f time%s a run)\n", side == SIDE_NEW ? "NEW" : "BASE",
		cli_safe(d->cli, s->name), n == floor(n) ? 0 : 1, n, n == 1 ? "" : "s");
}

/*
 * Prints events that came more or less often; those of spans are shown with the spans. Returns
 * whether it did.
 */
static bool print_event(struct diff *d, const struct series *s)
{
	const struct change c = get_change(d, s, MEASURE_COUNT);

	if (change_percent(&c) == 0 || c.p >= SIGNIFICANT)
		return false;
	printf("%s:", cli_safe(d->cli, s->name));
	print_pair(&c, MEASURE_COUNT, 0);
	printf(" events a run\n");
	return true;
}

static int name_width(const struct diff *d)
{
	size_t width = 4;

	for (size_t i = 0; i < d->runs.n_series; i++) {
		const struct series *s = &d->runs.series[i];

		if (s->kind != SERIES_EVENT && is_on_both(s, &d->runs))
			width = KY_MAX(width, strlen(s->name) + (s->kind == SERIES_ASYNC ? 8 : 0));
	}
	return (int)KY_MIN(width, (size_t)60);
}

static void print_text(struct diff *d)
{
	int width = name_width(d);
	bool any = false, differs = false;

	print_losses(d);
	for (size_t i = 0; i < d->runs.n_series; i++) {
		const struct series *s = &d->runs.series[i];

		if (s->kind == SERIES_EVENT || !is_on_both(s, &d->runs))
			continue;
		if (!any)
			printf("%-*s  %6s  %-34s  %-34s  %s\n", width, "", "runs", "median", "99 %",
				"count");
		any = true;
		print_series(d, s, width);
	}
	if (any && (d->runs.n[SIDE_BASE] < MIN_TESTED || d->runs.n[SIDE_NEW] < MIN_TESTED))
		printf("Fewer than %u runs on a side: differences are not tested.\n", MIN_TESTED);
	for (size_t i = 0; i < d->runs.n_series; i++) {
		if (is_on_both(&d->runs.series[i], &d->runs))
			continue;
		print_only(d, &d->runs.series[i]);
		differs = true;
	}
	for (size_t i = 0; i < d->runs.n_series; i++)
		if (d->runs.series[i].kind == SERIES_EVENT &&
			is_on_both(&d->runs.series[i], &d->runs))
			differs |= print_event(d, &d->runs.series[i]);
	if (!any && !differs)
		printf("no difference: %zu event%s on both sides, as often\n", d->runs.n_series,
			d->runs.n_series == 1 ? "" : "s");
}

/* --- JSON --- */

static void put_json_change(
	struct ky_buf *b, struct diff *d, const struct series *s, enum measure m)
{
	const struct change c = get_change(d, s, m);

	ky_buf_printf(b, ", \"%s%s\": {\"base\": %.17g, \"new\": %.17g", measure_names[m],
		m == MEASURE_COUNT ? "" : "_ns", c.base, c.now);
	if (c.p >= 0)
		ky_buf_printf(b, ", \"p\": %.17g", c.p);
	ky_buf_puts(b, "}");
}

static void put_json_series(struct ky_buf *b, struct diff *d, const struct series *s)
{
	static const char *const kinds[] = {"span", "async", "latency", "event"};

	ky_buf_puts(b, "{");
	cli_put_member(b, "name", s->name);
	ky_buf_printf(b, "\"kind\": \"%s\", \"in_base\": %s, \"in_new\": %s", kinds[s->kind],
		is_there(s, &d->runs, SIDE_BASE) ? "true" : "false",
		is_there(s, &d->runs, SIDE_NEW) ? "true" : "false");
	for (size_t m = 0; m < (s->kind == SERIES_EVENT ? 1 : N_MEASURES); m++)
		put_json_change(b, d, s, (enum measure)m);
	ky_buf_puts(b, "}");
}

static int print_json(struct diff *d)
{
	struct ky_buf b = {0};

	ky_buf_printf(&b,
		"{\"ok\": %s, \"runs\": [%zu, %zu], \"lost\": [%" PRIu64 ", %" PRIu64
		"], \"met\": %zu, ",
		d->n_met ? "false" : "true", d->runs.n[SIDE_BASE], d->runs.n[SIDE_NEW],
		d->runs.n_lost[SIDE_BASE], d->runs.n_lost[SIDE_NEW], d->n_met);
	if (d->n_met) {
		ky_buf_puts(&b, "\"code\": \"changed\", \"error\": ");
		ky_format_json_string(&b, d->met.data, d->met.len);
		ky_buf_puts(&b, ", ");
	}
	ky_buf_puts(&b, "\"names\": [");
	for (size_t i = 0; i < d->runs.n_series; i++) {
		ky_buf_puts(&b, i ? ", " : "");
		put_json_series(&b, d, &d->runs.series[i]);
	}
	ky_buf_puts(&b, "]}");
	return cli_print_json_buf(d->cli, &b);
}

/* --- stacks --- */

/* Adds the stacks of one run. */
static int read_stacks(struct ky_folded *f, struct cli *cli, char *path,
	const struct cli_selection *selection, const struct ky_folded_options *o, enum side side)
{
	_cleanup_opened_ struct cli_opened opened = {0};
	struct ky_tables tables = {0};
	struct ky_tables_part part;
	int r = cli_opened_open(&opened, cli, &path, 1), e = 0;

	if (!r)
		r = cli_opened_part(&opened, selection, &part);
	if (!r)
		e = ky_tables_init(&tables, opened.reader, &part);
	if (!r && !e)
		e = ky_folded_read(f, &tables, o, side);
	ky_tables_deinit(&tables);
	return e < 0 ? cli_fail(cli, "failed", "diff: cannot read %s: %s", path, strerror(-e)) : r;
}

static int write_stacks(struct cli *cli, const struct ky_folded *f, const char *path)
{
	struct ky_out out;
	int r = ky_out_open(&out, path, NULL), e;

	if (!r)
		r = ky_folded_write(f, &out, N_SIDES);
	e = ky_out_close(&out, !r);
	r = r ? r : e;
	return r < 0 ? cli_fail(cli, "failed", "diff: cannot write %s: %s", path, strerror(-r))
		     : cli_result_output(cli, path);
}

/* Writes the stacks of all runs, of which the first n_base are the base. */
static int compare_stacks(struct cli *cli, const struct cli_selection *selection, size_t n_base)
{
	const char *path = cli_get(cli, "output");
	struct cli_symbols symbols = {0};
	struct ky_folded_options o;
	struct ky_folded f = {0};
	int r = cli_symbols_folded(cli, &symbols, &o);

	if (!path)
		path = "-";
	if (!ky_out_may_replace(path))
		return cli_fail(cli, "exists", "diff: %s is no regular file", path);
	if (!strcmp(path, "-"))
		cli->result = stderr;
	for (size_t i = 0; i < cli->args.n_pos && !r; i++)
		r = read_stacks(&f, cli, cli->args.pos[i], selection, &o,
			i < n_base ? SIDE_BASE : SIDE_NEW);
	if (!r && !f.stacks.n)
		r = cli_fail(cli, "not-found", "diff: %s", ky_folded_why_none(&f, o.stacks));
	if (!r)
		r = write_stacks(cli, &f, path);
	ky_folded_deinit(&f);
	cli_symbols_end(&symbols);
	return r;
}

/* --- the command --- */

static int report_differences(struct diff *d)
{
	int r = CLI_OK;

	for (size_t i = 0; i < d->n_conditions; i++)
		if (!check_condition(d, &d->conditions[i]))
			return cli_fail(d->cli, "not-found",
				"diff: no span or latency is on both sides: there is nothing to compare");
	if (d->cli->json)
		r = print_json(d);
	else
		print_text(d);
	if (r || !d->n_met)
		return r;
	if (d->n_met > 1)
		ky_buf_printf(&d->met, "; and %zu more", d->n_met - 1);
	return cli_fail(d->cli, "changed", "%s", d->met.data ? d->met.data : "changed");
}

static int check_latencies(struct cli *cli)
{
	struct ky_measures m = {0};
	const char *text, *why = "";
	size_t iter = 0;
	int r = 0;

	while (!r && (text = cli_args_next(&cli->args, "latency", &iter)))
		r = ky_measures_add_latency(&m, text, &why);
	ky_measures_deinit(&m);
	return r ? cli_usage(cli, "bad latency '%s': %s", text, why) : CLI_OK;
}

static int check_stacks(struct cli *cli)
{
	const char *to = cli_get(cli, "to");

	if (to && strcmp(to, "folded"))
		return cli_usage(cli, "unknown format '%s': use folded", to);
	if (to && (cli_has(cli, "fail-if") || cli_has(cli, "latency")))
		return cli_usage(cli, "--to=folded has neither --fail-if nor --latency");
	if (!to && (cli_has(cli, "output") || cli_has(cli, "stacks") || cli_has(cli, "symbols")))
		return cli_usage(cli, "--output, --stacks and --symbols need --to=folded");
	return CLI_OK;
}

static int run_diff(struct cli *cli)
{
	struct diff d = {.cli = cli};
	size_t n = cli->args.n_pos, n_base = cli->args.n_before;
	struct cli_selection selection;
	int r = parse_conditions(&d);

	if (!r && !n_base && n != 2)
		r = cli_usage(cli, "write BASE... -- NEW..., or two traces");
	if (!r && n_base == n)
		r = cli_usage(cli, "name the new traces behind --");
	if (!r)
		r = check_latencies(cli);
	if (!r)
		r = cli_select_parse(cli, &selection);
	if (!r)
		r = check_stacks(cli);
	if (!r && cli_has(cli, "to"))
		return compare_stacks(cli, &selection, n_base ? n_base : 1);
	if (r)
		return r;
	r = runs_read(&d.runs, cli, cli->args.pos, n, n_base ? n_base : 1);
	for (enum side side = SIDE_BASE; side < N_SIDES; side++)
		d.scratch[side] = calloc(n + 1, sizeof(double));
	if (!r && (!d.scratch[SIDE_BASE] || !d.scratch[SIDE_NEW]))
		r = cli_fail(cli, "failed", "diff: no memory");
	if (!r)
		r = report_differences(&d);
	free(d.scratch[SIDE_BASE]);
	free(d.scratch[SIDE_NEW]);
	ky_buf_deinit(&d.met);
	runs_deinit(&d.runs);
	return r;
}

const struct cli_command cmd_diff = {
	.name = "diff",
	.synopsis =
		"BASE... -- NEW... [--fail-if=COND] [--latency=A..B] [--to=folded] " CLI_SELECT_SYNOPSIS,
	.help = "compare runs of a program, for example before and after a change",
	.details =
		"BASE and NEW are traces, one for each run, or files with the output of 'kymo stat --json'.\n"
		"For each measure, the command shows the median over the runs of each side. With five runs or more on\n"
		"both sides, it shows a change only if it is significant (Mann-Whitney, p < 0.05), otherwise '~'.\n"
		"COND is MEASURE > +LIMIT or MEASURE < -LIMIT; LIMIT has %, ns, us, ms or s; MEASURE is count,\n"
		"total, mean, median, p90, p99 or max. COND holds if a span or latency changes by more than LIMIT. With\n"
		"five runs or more, the change must also be significant, corrected for the number of names (Holm).\n"
		"--to=folded adds up the stacks of all runs of a side: 'STACK BASE NEW'.\n"
		"--fail-if and --latency may be repeated.\n" CLI_SELECT_DETAILS,
	.exit_codes =
		"0 no COND holds, 1 one holds, or the runs could not be compared, 2 wrong usage",
	.options = options,
	.mode = CLI_PARSE_SIDES,
	.min_args = 2,
	.max_args = CLI_ANY_ARGS,
	.run = run_diff,
};
