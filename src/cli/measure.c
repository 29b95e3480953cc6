/* SPDX-License-Identifier: MIT */
#include "cli/measure.h"

#include "cli/progress.h"
#include "cli/select.h"

#include <inttypes.h>

#include "analysis/measure.h"
#include "reader/format.h"

#define BAR_WIDTH 32

static const unsigned permilles[] = {0, 500, 900, 990, 999, 1000};
static const char *const permille_names[] = {"min", "median", "p90", "p99", "p999", "max"};

bool measure_is_wanted(const struct cli *cli)
{
	return cli_has(cli, "latency") || cli_has(cli, "hist") || cli_has(cli, "top");
}

/* --- options --- */

static int add_latencies(struct cli *cli, struct ky_measures *m)
{
	const char *text, *why;
	size_t iter = 0;
	int r = 0;

	while (!r && (text = cli_args_next(&cli->args, "latency", &iter))) {
		r = ky_measures_add_latency(m, text, &why);
		if (r == -EINVAL)
			return cli_usage(cli, "bad latency '%s': %s%s", text, why,
				strstr(text, "..")
					? ""
					: "; without it, 'kymo stat TRACE' shows how long spans took");
	}
	return r ? cli_fail(cli, "failed", "no memory") : CLI_OK;
}

/* The fields of --hist, then those of --top. */
static int add_fields(struct cli *cli, struct ky_measures *m, const char *option)
{
	const char *field;
	size_t iter = 0;

	while ((field = cli_args_next(&cli->args, option, &iter))) {
		if (ky_measures_add_field(m, field) < 0)
			return cli_fail(cli, "failed", "no memory");
	}
	return CLI_OK;
}

int measure_check_options(struct cli *cli)
{
	struct ky_measures m = {0};
	int r;

	if (measure_is_wanted(cli) && cli_has(cli, "by"))
		return cli_usage(cli, "--by goes with neither --latency, --hist nor --top");
	r = add_latencies(cli, &m);
	ky_measures_deinit(&m);
	return r;
}

/* --- text --- */

void measure_print_duration(unsigned __int128 ns)
{
	double value = (double)ns;
	const char *unit = ky_scale_ns(&value, 999.95); /* as rounded to one digit */

	printf("  %5.*f %-2s", ns >= 1000, value, unit);
}

/* The command that shows what lies between two times; the traces are those of the command line. */
static void put_view(
	struct ky_buf *b, struct cli *cli, const char *path, int64_t from_ns, int64_t to_ns)
{
	char from[64], to[64];

	ky_buf_puts(b, "kymo view");
	for (size_t i = 0; i < cli->args.n_pos || !i; i++) {
		ky_buf_puts(b, " ");
		ky_buf_put_word(b, cli->args.n_pos ? cli_arg(cli, i) : path);
	}
	*ky_put_limit(from, from_ns) = *ky_put_limit(to, to_ns) = '\0';
	ky_buf_printf(b, " --begin=%s --end=%s", from, to);
}

void measure_print_view(struct cli *cli, const char *path, int64_t from_ns, int64_t to_ns)
{
	struct ky_buf b = {0};

	put_view(&b, cli, path, from_ns, to_ns);
	printf(": %s\n", b.error ? "?" : cli_safe(cli, b.data));
	ky_buf_deinit(&b);
}

const char *measure_put_sum(char to[40], unsigned __int128 sum)
{
	const uint64_t unit = 10000000000000000000u; /* 1 and 19 digits */

	if (sum < unit)
		snprintf(to, 40, "%" PRIu64, (uint64_t)sum);
	else
		snprintf(to, 40, "%" PRIu64 "%019" PRIu64, (uint64_t)(sum / unit),
			(uint64_t)(sum % unit));
	return to;
}

static void print_value(unsigned __int128 value)
{
	char text[40];

	printf("  %10s", measure_put_sum(text, value));
}

static void print_bar(uint64_t n, uint64_t most)
{
	printf("  ");
	for (size_t i = 0; i < BAR_WIDTH; i++)
		printf("%s", i < (n * BAR_WIDTH + most - 1) / most ? "▇" : " ");
	printf("  %" PRIu64 "\n", n);
}

/* The powers of two from the least to the greatest number: so many numbers each, and a bar. */
static void print_bars(const struct ky_histogram *h, void (*print)(unsigned __int128 value))
{
	uint64_t n[KY_HISTOGRAM_BARS], from[KY_HISTOGRAM_BARS], most = 1, passed = 0;

	for (unsigned i = 0; i < KY_HISTOGRAM_BARS; i++) {
		n[i] = ky_histogram_bar(h, i, &from[i]);
		most = KY_MAX(most, n[i]);
	}
	for (unsigned i = 0; i < KY_HISTOGRAM_BARS && passed < h->n; i++) {
		passed += n[i];
		if (!passed)
			continue;
		print(KY_MAX(from[i], h->min));
		print_bar(n[i], most);
	}
}

static void print_numbers(const struct ky_histogram *h, void (*print)(unsigned __int128 value))
{
	print(h->sum);
	print(h->n ? h->sum / h->n : 0);
	for (size_t i = 0; i < KY_ARRAY_SIZE(permilles); i++)
		print(ky_histogram_permille(h, permilles[i]));
	printf("\n");
}

static void print_latency(struct cli *cli, const struct ky_latency *l, const char *path)
{
	const struct ky_span_name *t = l->times;
	int64_t end_ns = t->longest_ns + (int64_t)t->ns.max;

	printf("%" PRIu64 " intervals %s", t->ns.n, cli_safe(cli, l->name));
	if (l->key)
		printf(", by %s", cli_safe(cli, l->key));
	printf("  (%" PRIu64 " begun and not ended, %" PRIu64 " ended and not begun", t->n_open,
		t->n_unbegun);
	if (t->n_cut)
		printf(", %" PRIu64 " cut by missing events", t->n_cut);
	if (l->n_unkeyed)
		printf(", %" PRIu64 " events without the key", l->n_unkeyed);
	printf(")\n");
	if (!t->ns.n)
		return;
	printf("  %8s  %8s  %8s  %8s  %8s  %8s  %8s  %8s\n", "total", "mean", "min", "median",
		"90 %", "99 %", "99.9 %", "max");
	print_numbers(&t->ns, measure_print_duration);
	print_bars(&t->ns, measure_print_duration);
	printf("longest:");
	measure_print_duration(t->ns.max);
	if (l->key)
		printf(", %s %s", cli_safe(cli, l->key), cli_safe(cli, t->longest_key));
	measure_print_view(cli, path, t->longest_ns, end_ns);
}

static void print_float(double value)
{
	printf("  %10.6g", value);
}

static double permille_of(const struct ky_field_values *f, unsigned permille)
{
	return KY_MIN(KY_MAX(ky_histogram_permille_float(&f->values, permille), f->min), f->max);
}

/* As print_numbers; sum, least and greatest are exact. */
static void print_floats(const struct ky_field_values *f)
{
	print_float(f->sum);
	print_float(f->sum / (double)f->values.n);
	print_float(f->min);
	for (size_t i = 1; i + 1 < KY_ARRAY_SIZE(permilles); i++)
		print_float(permille_of(f, permilles[i]));
	print_float(f->max);
	printf("\n");
}

/* As print_bars, but without the powers that have no number: they may be a thousand. */
static void print_float_bars(const struct ky_field_values *f)
{
	const struct ky_histogram *h = &f->values;
	uint64_t most = 1, n;
	double from;

	for (unsigned i = 0; i < h->n_powers; i++)
		most = KY_MAX(most, ky_histogram_bar_float(h, i, &from));
	for (unsigned i = 0; i < h->n_powers; i++) {
		n = ky_histogram_bar_float(h, i, &from);
		if (!n)
			continue;
		print_float(KY_MAX(from, f->min));
		print_bar(n, most);
	}
}

static void print_hist(struct cli *cli, const struct ky_field_values *f)
{
	printf("%" PRIu64 " values of %s", f->values.n, cli_safe(cli, f->field));
	if (f->n_negative)
		printf("  (without %" PRIu64 " below 0%s)", f->n_negative,
			f->is_float ? " or not a number" : "");
	printf("\n");
	if (!f->values.n)
		return;
	printf("  %10s  %10s  %10s  %10s  %10s  %10s  %10s  %10s\n", "sum", "mean", "min", "median",
		"90 %", "99 %", "99.9 %", "max");
	if (f->is_float) {
		print_floats(f);
		print_float_bars(f);
	} else {
		print_numbers(&f->values, print_value);
		print_bars(&f->values, print_value);
	}
}

/* "-7", "7" or "0.5". */
static const char *put_number(char to[24], const struct ky_field_values *f, uint64_t value)
{
	if (f->is_float)
		snprintf(to, 24, "%.12g", ky_float_of_order(value));
	else
		snprintf(to, 24, f->is_signed ? "%" PRId64 : "%" PRIu64, value);
	return to;
}

static void print_top(struct cli *cli, const struct ky_field_values *f, const char *path)
{
	char number[24];

	printf("greatest values of %s\n", cli_safe(cli, f->field));
	for (size_t i = 0; i < f->n_top; i++) {
		const struct ky_top_event *e = &f->top[i];

		printf("%20s  %s", put_number(number, f, e->value), cli_safe(cli, e->name));
		measure_print_view(cli, path, e->ns, e->ns);
	}
}

static void print_text(struct cli *cli, const struct ky_measures *m, size_t n_unreadable,
	const char *path, size_t n_hists)
{
	const struct ky_totals *t = &m->totals;

	if (t->n_discarded || t->n_packets_lost || t->n_corrupt || t->n_truncated || n_unreadable)
		printf("missing: %" PRIu64 " discarded events, %" PRIu64 " packets, %" PRIu64
		       " damaged places, %zu streams cut off, %zu unreadable files or directories\n",
			t->n_discarded, t->n_packets_lost, t->n_corrupt, t->n_truncated,
			n_unreadable);
	for (size_t i = 0; i < m->n_latencies; i++)
		print_latency(cli, &m->latencies[i], path);
	for (size_t i = 0; i < n_hists; i++)
		print_hist(cli, &m->fields[i]);
	for (size_t i = n_hists; i < m->n_fields; i++)
		print_top(cli, &m->fields[i], path);
}

/* --- JSON --- */

/* unit: "_ns", or "" of plain numbers. */
static void put_histogram(struct ky_buf *b, const struct ky_histogram *h, const char *unit)
{
	const char *comma = "";
	char sum[40];

	ky_buf_printf(b, "\"count\": %" PRIu64 ", \"total%s\": %s, ", h->n, unit,
		measure_put_sum(sum, h->sum));
	for (size_t i = 0; i < KY_ARRAY_SIZE(permille_names); i++)
		ky_buf_printf(b, "\"%s%s\": %" PRIu64 ", ", permille_names[i], unit,
			ky_histogram_permille(h, permilles[i]));
	ky_buf_puts(b, "\"histogram\": [");
	for (unsigned i = 0; i < KY_HISTOGRAM_BARS; i++) {
		uint64_t from, n = ky_histogram_bar(h, i, &from);

		if (!n)
			continue;
		ky_buf_printf(
			b, "%s{\"from\": %" PRIu64 ", \"count\": %" PRIu64 "}", comma, from, n);
		comma = ", ";
	}
	ky_buf_puts(b, "]");
}

static void put_view_member(
	struct ky_buf *b, struct cli *cli, const char *path, int64_t from_ns, int64_t to_ns)
{
	struct ky_buf view = {0};

	put_view(&view, cli, path, from_ns, to_ns);
	ky_buf_puts(b, "\"view\": ");
	ky_format_json_string(b, view.data ? view.data : "", view.len);
	ky_buf_deinit(&view);
}

static void put_latency(
	struct ky_buf *b, struct cli *cli, const struct ky_latency *l, const char *path)
{
	const struct ky_span_name *t = l->times;

	ky_buf_puts(b, "{");
	cli_put_member(b, "begin", l->begin);
	cli_put_member(b, "end", l->end);
	cli_put_member(b, "key", l->key ? l->key : "");
	put_histogram(b, &t->ns, "_ns");
	ky_buf_printf(b,
		", \"unfinished\": %" PRIu64 ", \"unbegun\": %" PRIu64 ", \"cut\": %" PRIu64
		", \"without_key\": %" PRIu64,
		t->n_open, t->n_unbegun, t->n_cut, l->n_unkeyed);
	if (t->ns.n) {
		ky_buf_puts(b, ", \"longest\": {");
		cli_put_member(b, "key", t->longest_key);
		ky_buf_printf(b, "\"begin_ns\": %" PRId64 ", ", t->longest_ns);
		put_view_member(b, cli, path, t->longest_ns, t->longest_ns + (int64_t)t->ns.max);
		ky_buf_puts(b, "}");
	}
	ky_buf_puts(b, "}");
}

/* JSON has no infinite numbers. */
static void put_float(struct ky_buf *b, const char *name, double value)
{
	if (value - value == 0)
		ky_buf_printf(b, "\"%s\": %.12g, ", name, value);
	else
		ky_buf_printf(b, "\"%s\": null, ", name);
}

static void put_floats(struct ky_buf *b, const struct ky_field_values *f)
{
	const struct ky_histogram *h = &f->values;
	const char *comma = "";

	ky_buf_printf(b, "\"count\": %" PRIu64 ", ", h->n);
	put_float(b, "total", f->sum);
	put_float(b, "min", f->min);
	for (size_t i = 1; i + 1 < KY_ARRAY_SIZE(permilles); i++)
		put_float(b, permille_names[i], permille_of(f, permilles[i]));
	put_float(b, "max", f->max);
	ky_buf_puts(b, "\"histogram\": [");
	for (unsigned i = 0; i < h->n_powers; i++) {
		double from;
		uint64_t n = ky_histogram_bar_float(h, i, &from);

		if (!n)
			continue;
		ky_buf_printf(b, "%s{", comma);
		put_float(b, "from", from);
		ky_buf_printf(b, "\"count\": %" PRIu64 "}", n);
		comma = ", ";
	}
	ky_buf_puts(b, "]");
}

static void put_hist(struct ky_buf *b, const struct ky_field_values *f)
{
	ky_buf_puts(b, "{");
	cli_put_member(b, "field", f->field);
	if (f->is_float)
		put_floats(b, f);
	else
		put_histogram(b, &f->values, "");
	ky_buf_printf(b, ", \"negative\": %" PRIu64 "}", f->n_negative);
}

static const char *put_json_number(char to[24], const struct ky_field_values *f, uint64_t value)
{
	double v = f->is_float ? ky_float_of_order(value) : 0;

	return v - v == 0 ? put_number(to, f, value) : "null";
}

static void put_top(
	struct ky_buf *b, struct cli *cli, const struct ky_field_values *f, const char *path)
{
	char number[24];

	ky_buf_puts(b, "{");
	cli_put_member(b, "field", f->field);
	ky_buf_puts(b, "\"events\": [");
	for (size_t i = 0; i < f->n_top; i++) {
		const struct ky_top_event *e = &f->top[i];

		ky_buf_puts(b, i ? ", {" : "{");
		cli_put_member(b, "name", e->name);
		ky_buf_printf(b, "\"value\": %s, \"ns\": %" PRId64 ", ",
			put_json_number(number, f, e->value), e->ns);
		put_view_member(b, cli, path, e->ns, e->ns);
		ky_buf_puts(b, "}");
	}
	ky_buf_puts(b, "]}");
}

static int print_json(struct cli *cli, const struct ky_measures *m, size_t n_unreadable,
	const char *path, size_t n_hists)
{
	const struct ky_totals *t = &m->totals;
	struct ky_buf b = {0};

	ky_buf_printf(&b,
		"{\"ok\": true, \"discarded\": %" PRIu64 ", \"packets_discarded\": %" PRIu64
		", \"damaged\": %" PRIu64
		", \"truncated\": %zu, \"unreadable\": %zu, \"latency\": [",
		t->n_discarded, t->n_packets_lost, t->n_corrupt, t->n_truncated, n_unreadable);
	for (size_t i = 0; i < m->n_latencies; i++) {
		ky_buf_puts(&b, i ? ", " : "");
		put_latency(&b, cli, &m->latencies[i], path);
	}
	ky_buf_puts(&b, "], \"hist\": [");
	for (size_t i = 0; i < n_hists; i++) {
		ky_buf_puts(&b, i ? ", " : "");
		put_hist(&b, &m->fields[i]);
	}
	ky_buf_puts(&b, "], \"top\": [");
	for (size_t i = n_hists; i < m->n_fields; i++) {
		ky_buf_puts(&b, i > n_hists ? ", " : "");
		put_top(&b, cli, &m->fields[i], path);
	}
	ky_buf_puts(&b, "]}");
	return cli_print_json_buf(cli, &b);
}

/* --- the command --- */

int measure_run(struct cli *cli, const struct ky_query *query,
	const struct ky_trace_reader_options *options, const char *path)
{
	struct ky_measures m = {0};
	char why[256] = "";
	const char *near = NULL;
	size_t n_hists;
	int r = add_latencies(cli, &m);

	if (!r)
		r = add_fields(cli, &m, "hist");
	n_hists = m.n_fields;
	if (!r)
		r = add_fields(cli, &m, "top");
	if (!r) {
		r = ky_measures_collect(&m, query, options, why, sizeof(why));
		cli_progress_end(&cli->progress);
		if (m.unknown)
			near = cli_near_field(
				query->reader, m.unknown, cli_near_event(query->reader, m.unknown));
		if (r < 0)
			r = cli_fail(cli, "failed", "%s%s%s%s", why[0] ? why : strerror(-r),
				near ? ": did you mean '" : "", near ?: "", near ? "'?" : "");
		else if (cli->json)
			r = print_json(cli, &m, query->reader->n_unreadable, path, n_hists);
		else
			print_text(cli, &m, query->reader->n_unreadable, path, n_hists);
	}
	ky_measures_deinit(&m);
	return r;
}
