/* SPDX-License-Identifier: MIT */
#include "cli/runs.h"

#include <json-c/json.h>
#include <limits.h>
#include <math.h>
#include <sys/stat.h>

#include "analysis/count.h"
#include "cli/select.h"
#include "cli/trace.h"
#include "explain/stats.h"

const char *const measure_names[N_MEASURES] = {
	"count", "total", "mean", "median", "p90", "p99", "max"};

/* A run that is summed up. */
struct run {
	struct runs *runs;
	enum side side;
	size_t index; /* among those of its side */
};

/* --- series --- */

/* The index of the series of a name. */
struct place {
	struct ky_hnode node;
	size_t index;
};

static bool init_series(struct series *s, const struct runs *r, const char *name, size_t len)
{
	bool ok;

	s->name = strndup(name, len);
	ok = s->name;
	for (size_t side = 0; side < N_SIDES; side++)
		for (size_t m = 0; m < N_MEASURES; m++) {
			double *v = calloc(r->n[side] + 1, sizeof(*v));

			s->v[side][m] = v;
			ok = ok && v;
			for (size_t i = 0; v && m != MEASURE_COUNT && i < r->n[side]; i++)
				v[i] = NAN;
		}
	return ok;
}

static struct series *add_series(
	struct runs *r, enum series_kind kind, const char *name, size_t len, uint32_t hash)
{
	struct place *place = calloc(1, sizeof(*place));
	struct series *more = r->series;

	/* a power of two of them: when that many are there, it is doubled */
	if (!(r->n_series & (r->n_series - 1)))
		more = reallocarray(r->series, r->n_series ? 2 * r->n_series : 1, sizeof(*more));
	r->series = more ? more : r->series;
	if (!more || !place || ky_htab_add(&r->places, &place->node, hash) < 0) {
		free(place);
		return NULL;
	}
	place->index = r->n_series++;
	more[place->index] = (struct series){.kind = kind};
	return init_series(&more[place->index], r, name, len) ? &more[place->index] : NULL;
}

/* Returns the series of a name, which is made if there is none; NULL without memory. */
static struct series *find_series(
	struct runs *r, enum series_kind kind, const char *name, size_t len)
{
	uint32_t hash = ky_hash(name, len);

	for (struct ky_hnode *h = ky_htab_first(&r->places, hash); h; h = ky_htab_next(h)) {
		struct series *s = &r->series[ky_container_of(h, struct place, node)->index];

		if (s->kind == kind && strlen(s->name) == len && !memcmp(s->name, name, len))
			return s;
	}
	return add_series(r, kind, name, len, hash);
}

static int add_values(const struct run *run, enum series_kind kind, const char *name, size_t len,
	const double values[N_MEASURES])
{
	struct series *s = find_series(run->runs, kind, name, len);

	if (!s)
		return -ENOMEM;
	s->v[run->side][MEASURE_COUNT][run->index] += values[MEASURE_COUNT];
	for (size_t m = MEASURE_COUNT + 1; m < N_MEASURES; m++)
		if (kind != SERIES_EVENT && values[MEASURE_COUNT] > 0)
			s->v[run->side][m][run->index] = values[m];
	return 0;
}

static void add_losses(const struct run *run, uint64_t n)
{
	run->runs->n_lost[run->side] += n;
	run->runs->n_with_losses[run->side] += n > 0;
}

/* --- traces --- */

static void fill_values(double values[N_MEASURES], const struct ky_histogram *h)
{
	values[MEASURE_COUNT] = (double)h->n;
	values[MEASURE_TOTAL] = (double)h->sum;
	values[MEASURE_MEAN] = h->n ? (double)h->sum / (double)h->n : 0;
	values[MEASURE_MEDIAN] = (double)ky_histogram_permille(h, 500);
	values[MEASURE_P90] = (double)ky_histogram_permille(h, 900);
	values[MEASURE_P99] = (double)ky_histogram_permille(h, 990);
	values[MEASURE_MAX] = (double)h->max;
}

static int add_span_names(const struct run *run, struct ky_spans *spans)
{
	double values[N_MEASURES];
	int r = ky_spans_finish(spans);

	for (size_t i = 0; i < spans->names.n && !r; i++) {
		const struct ky_span_name *n = spans->by_total[i];

		fill_values(values, &n->ns);
		r = add_values(run, n->is_async ? SERIES_ASYNC : SERIES_SPAN, n->name, n->name_len,
			values);
	}
	return r;
}

static int add_event_names(
	const struct run *run, const struct ky_trace_reader *reader, const uint64_t *counts)
{
	int r = 0;

	for (size_t i = 0; i < reader->n_classes && !r; i++) {
		const char *name = reader->classes[i]->name;
		const double values[N_MEASURES] = {[MEASURE_COUNT] = (double)counts[i]};

		if (counts[i])
			r = add_values(run, SERIES_EVENT, name, strlen(name), values);
	}
	return r;
}

static int count_trace(
	const struct run *run, struct ky_query *q, const struct ky_trace_reader_options *options)
{
	struct ky_spans spans = {0};
	struct ky_counts counts = {0};
	int r = ky_counts_collect(&counts, q, &spans, options, 0);

	if (!r)
		r = add_event_names(run, q->reader, counts.of_class);
	if (!r)
		r = add_span_names(run, &spans);
	if (!r)
		add_losses(run, counts.totals.n_discarded + counts.totals.n_packets_lost +
					counts.totals.n_corrupt + counts.totals.n_truncated +
					q->reader->n_unreadable);
	ky_counts_deinit(&counts);
	ky_spans_deinit(&spans);
	return r;
}

static int measure_latencies(struct cli *cli, const struct run *run, const struct ky_query *q,
	const struct ky_trace_reader_options *options)
{
	struct ky_measures m = {0};
	const char *text, *bad;
	double values[N_MEASURES];
	char why[256] = "";
	size_t iter = 0;
	int r = 0;

	while (!r && (text = cli_args_next(&cli->args, "latency", &iter)))
		r = ky_measures_add_latency(&m, text, &bad);
	if (!r && m.n_latencies)
		r = ky_measures_collect(&m, q, options, why, sizeof(why));
	for (size_t i = 0; i < m.n_latencies && !r; i++) {
		fill_values(values, &m.latencies[i].times->ns);
		r = add_values(run, SERIES_LATENCY, m.latencies[i].name,
			strlen(m.latencies[i].name), values);
	}
	ky_measures_deinit(&m);
	if (r == -ENOENT)
		return cli_fail(cli, "not-found", "diff: %s", why);
	return r ? cli_fail(cli, "failed", "diff: %s", strerror(-r)) : CLI_OK;
}

static int read_trace(struct cli *cli, const struct run *run, const char *path)
{
	const struct ky_trace_reader_options options = {.warn = cli_warn_text, .arg = cli};
	_cleanup_reader_ struct ky_trace_reader *reader = NULL;
	_cleanup_traces_ struct cli_traces t = {0};
	struct cli_selection selection = {0};
	struct ky_query query = {0};
	char why[PATH_MAX + 256];
	int r = cli_select_parse(cli, &selection), e;

	r = r ? r : cli_traces_find(cli, &path, 1, &t);
	if (r)
		return r;
	e = ky_trace_reader_open(
		&reader, (const char *const *)t.paths, 1, &options, why, sizeof(why));
	if (e < 0)
		return cli_fail(cli, cli_trace_code(e), "%s", why);
	r = cli_select_apply(cli, &selection, reader, &query);
	if (!r) {
		e = count_trace(run, &query, &options);
		r = e < 0 ? cli_fail(cli, "failed", "diff: cannot read %s: %s", path, strerror(-e))
			  : CLI_OK;
	}
	if (!r)
		r = measure_latencies(cli, run, &query, &options);
	ky_query_deinit(&query);
	return r;
}

/* --- outputs of `kymo stat --json` --- */

static double get_number(json_object *o, const char *name)
{
	return json_object_get_double(json_object_object_get(o, name));
}

static const char *get_string(json_object *o, const char *name)
{
	const char *text = json_object_get_string(json_object_object_get(o, name));

	return text ? text : "";
}

static void fill_from_json(double values[N_MEASURES], json_object *o)
{
	double n = get_number(o, "count"), total = get_number(o, "total_ns");

	values[MEASURE_COUNT] = n;
	values[MEASURE_TOTAL] = total;
	values[MEASURE_MEAN] = n > 0 ? total / n : 0;
	values[MEASURE_MEDIAN] = get_number(o, "median_ns");
	values[MEASURE_P90] = get_number(o, "p90_ns");
	values[MEASURE_P99] = get_number(o, "p99_ns");
	values[MEASURE_MAX] = get_number(o, "max_ns");
}

static int add_json_span(const struct run *run, json_object *o)
{
	bool is_async = json_object_get_boolean(json_object_object_get(o, "async"));
	const char *name = get_string(o, "name");
	double values[N_MEASURES];

	fill_from_json(values, o);
	return add_values(run, is_async ? SERIES_ASYNC : SERIES_SPAN, name, strlen(name), values);
}

static int add_json_latency(const struct run *run, json_object *o)
{
	_cleanup_free_ char *name = NULL;
	double values[N_MEASURES];

	if (asprintf(&name, "%s..%s", get_string(o, "begin"), get_string(o, "end")) < 0)
		return -ENOMEM;
	fill_from_json(values, o);
	return add_values(run, SERIES_LATENCY, name, strlen(name), values);
}

static int add_json_list(const struct run *run, json_object *root, const char *name,
	int (*add)(const struct run *run, json_object *o))
{
	json_object *list = json_object_object_get(root, name);
	int r = 0;

	if (!json_object_is_type(list, json_type_array))
		return 0;
	for (size_t i = 0; i < json_object_array_length(list) && !r; i++) {
		json_object *o = json_object_array_get_idx(list, i);

		if (json_object_is_type(o, json_type_object))
			r = add(run, o);
	}
	return r;
}

static int add_json(const struct run *run, json_object *root)
{
	json_object *by_name = json_object_object_get(root, "by_name");
	int r = add_json_list(run, root, "spans", add_json_span);

	if (!r)
		r = add_json_list(run, root, "latency", add_json_latency);
	add_losses(run, (uint64_t)(get_number(root, "discarded") + get_number(root, "damaged") +
				   get_number(root, "packets_discarded") +
				   get_number(root, "truncated") + get_number(root, "unreadable")));
	if (r || !json_object_is_type(by_name, json_type_object))
		return r;
	json_object_object_foreach(by_name, name, n)
	{
		const double values[N_MEASURES] = {[MEASURE_COUNT] = json_object_get_double(n)};

		r = r ? r : add_values(run, SERIES_EVENT, name, strlen(name), values);
	}
	return r;
}

static int read_json(struct cli *cli, const struct run *run, const char *path)
{
	json_object *root = json_object_from_file(path);
	bool is_stat = json_object_is_type(root, json_type_object) &&
		       (json_object_object_get(root, "by_name") ||
			       json_object_object_get(root, "latency"));
	int r = is_stat ? add_json(run, root) : -EINVAL;

	json_object_put(root);
	if (!r)
		return CLI_OK;
	if (r == -EINVAL)
		return cli_fail(cli, "failed",
			"diff: %s is neither a trace nor the output of 'kymo stat --json'", path);
	return cli_fail(cli, "failed", "diff: cannot read %s: %s", path, strerror(-r));
}

/* --- runs --- */

static int read_run(struct cli *cli, const struct run *run, const char *path)
{
	struct stat st;

	if (!stat(path, &st) && S_ISREG(st.st_mode))
		return read_json(cli, run, path);
	return read_trace(cli, run, path);
}

int runs_read(struct runs *r, struct cli *cli, char **paths, size_t n, size_t n_base)
{
	int code = CLI_OK;

	*r = (struct runs){.n = {[SIDE_BASE] = n_base, [SIDE_NEW] = n - n_base}};
	for (size_t i = 0; i < n && !code; i++) {
		bool is_new = i >= n_base;
		const struct run run = {r, is_new ? SIDE_NEW : SIDE_BASE, is_new ? i - n_base : i};

		code = read_run(cli, &run, paths[i]);
	}
	return code;
}

void runs_deinit(struct runs *r)
{
	for (size_t i = 0; i < r->n_series; i++) {
		free(r->series[i].name);
		for (size_t side = 0; side < N_SIDES; side++)
			for (size_t m = 0; m < N_MEASURES; m++)
				free(r->series[i].v[side][m]);
	}
	free(r->series);
	ky_htab_free_all(&r->places, struct place, node);
	*r = (struct runs){0};
}

size_t runs_values(const struct runs *r, const struct series *s, enum side side,
	enum measure measure, double *to)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n[side]; i++)
		if (!isnan(s->v[side][measure][i]))
			to[n++] = s->v[side][measure][i];
	ky_stats_sort(to, n);
	return n;
}
