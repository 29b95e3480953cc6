/* SPDX-License-Identifier: MIT */
/*
 * view: prints a trace's events as text or JSON, one line each. Output goes straight to the
 * descriptor in large pieces (cli/lines.h). If its reader closes it (`| head`), view ends without a
 * message; a full disk is an error.
 */
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "cli/follow.h"
#include "cli/lines.h"
#include "cli/pager.h"
#include "cli/params.h"
#include "cli/progress.h"
#include "cli/select.h"
#include "cli/slices.h"
#include "cli/symbols.h"
#include "cli/text.h"
#include "cli/trace.h"

#define MAX_FIELDS    64
#define N_TAIL_SLICES 256

static const struct cli_option options[] = {
	{"format", 0, "FORMAT", "text (default) or json: one object on each line"},
	CLI_SELECT_OPTIONS,
	{"fields", 0, "NAME,...",
		"show only these fields and contexts; leave out events that have none of them"},
	CLI_SYMBOLS_OPTION,
	{"time", 0, "FORM",
		"local (default), utc, date, seconds (since 1970), relative (to the first)"},
	{"tail", 0, "N", "only the last N events"},
	{"follow", 0, NULL, "print further events while the trace is recorded"},
	{"delay", 0, "TIME",
		"with --follow: print events this long after they were written (default: 2s)"},
	{"no-pager", 0, NULL, "do not start a pager on a terminal"},
	{0},
};

struct view {
	struct cli *cli;
	const struct ky_select *select; /* borrowed */
	struct cli_lines *lines;	/* NULL: none is printed yet */
	struct cli_selection selection;
	struct ky_query query;
	struct cli_symbols symbols;
	const struct ky_symbolizer *symbolizer; /* of symbols, or NULL */
	const char *names[MAX_FIELDS];		/* of --fields; parts of field_names */
	char *field_names;			/* owned */
	struct ky_shown_fields fields;
	size_t n_classes;   /* elements of fields.of_class */
	uint64_t n_skipped; /* events before those of --tail */
	struct cli_progress progress;
	uint64_t n_items;
	int64_t complete_ns; /* --follow: events before were due in earlier rounds */
	uint64_t n_late;
	bool is_terminal; /* the text is for one, perhaps through a pager */
	bool any;	  /* event was shown, or warning said */
	int error;	  /* of writing */
};

/* Returns -1 before, 0 within, 1 after the limits. An item without a time is always within. */
static int compare_to_limits(struct view *v, const struct ky_item *item)
{
	if (!item->has_time)
		return 0;
	if (item->ns < v->select->from_ns)
		return -1;
	return item->ns > v->select->to_ns;
}

/* --- output --- */

static void flush_lines(struct view *v)
{
	v->error = cli_lines_flush(v->lines);
}

/* Prints a warning at its place among the events. Some come before events are read. */
static void warn_in_place(void *arg, const char *text)
{
	struct view *v = arg;

	v->any = true;
	if (v->lines)
		flush_lines(v);
	cli_progress_erase(&v->progress);
	cli_warn(v->cli, "%s", text);
}

/* Warns that a snapshot's buffers reach back to different times. */
static void warn_cut(struct view *v, int64_t ns)
{
	struct ky_format format = {0};
	char text[64];

	*ky_put_time(&format, text, ns) = '\0';
	cli_warn(
		v->cli, "the trace is complete from %s: events before that time are missing", text);
}

static void show_lost(struct view *v, const struct ky_item *item)
{
	struct ky_format format = {.safe = true};
	struct ky_buf line = {0};

	flush_lines(v);
	cli_progress_erase(&v->progress);
	ky_format_lost(&format, &line, item);
	if (!line.error)
		fwrite(line.data, 1, line.len, stderr);
	ky_buf_deinit(&line);
}

/* Returns true if the item is one of the events before the last ones. */
static bool is_before_tail(struct view *v, const struct ky_item *item)
{
	bool skips = v->n_skipped;

	v->n_skipped -= skips && item->kind == KY_ITEM_EVENT;
	v->any |= skips;
	return skips;
}

static void show_item(struct view *v, const struct ky_item *item)
{
	v->any = true;
	if (item->kind == KY_ITEM_EVENT)
		v->error = cli_lines_add(v->lines);
	else if (item->kind != KY_ITEM_DAMAGED)
		show_lost(v, item);
}

#define CHECK_EACH 4096 /* items */

static void show_progress(struct view *v, const struct ky_cursor *cursor)
{
	uint64_t total, done;

	if (v->n_items++ % CHECK_EACH || !cli_progress_is_due(&v->progress))
		return;
	done = ky_cursor_progress(cursor, &total);
	cli_progress_draw(&v->progress, done, total);
}

/* Prints all items. Returns 0 at the end, or an error of reading. */
static int show_all(struct view *v, struct ky_cursor *cursor)
{
	int r = 1, where = 0;

	while (r > 0 && !v->error) {
		struct ky_item *item = &v->lines->item;

		v->lines->values.n = 0;
		r = ky_cursor_next(cursor, item, &v->lines->values);
		show_progress(v, cursor);
		where = r > 0 ? compare_to_limits(v, item) : 0;
		v->n_late += r > 0 && item->has_time && item->ns < v->complete_ns;
		if (r > 0 && !where && !is_before_tail(v, item))
			show_item(v, item);
	}
	flush_lines(v);
	cli_progress_erase(&v->progress);
	return KY_MIN(r, 0);
}

/* Ends the output. r: of show_all. Reports if there was nothing to print. */
static int end_output(struct view *v, int r, const char *path)
{
	if (v->error == -EPIPE)
		return CLI_OK;
	if (v->error)
		return cli_fail(v->cli, "failed", "cannot write the events: %s",
			v->error == -EMSGSIZE ? "one has more than 64 MiB of text"
					      : strerror(-v->error));
	if (r < 0)
		return cli_fail(v->cli, "failed", "cannot read the trace: %s", strerror(-r));
	if (!v->any)
		cli_warn(v->cli, "no event in %s%s", path,
			cli_select_is_given(&v->selection) || v->fields.n ? " is selected" : "");
	/* The events were the objects; none follows. */
	v->cli->printed = true;
	return CLI_OK;
}

/* --- options --- */

static int parse_time_form(struct cli *cli, enum ky_time_form *ret)
{
	static const char *const names[] = {[KY_TIME_LOCAL] = "local",
		[KY_TIME_UTC] = "utc",
		[KY_TIME_DATE] = "date",
		[KY_TIME_SECONDS] = "seconds",
		[KY_TIME_RELATIVE] = "relative"};
	const char *given = cli_get(cli, "time");

	*ret = KY_TIME_LOCAL;
	if (!given)
		return CLI_OK;
	for (size_t i = 0; i < KY_ARRAY_SIZE(names); i++) {
		if (!strcmp(names[i], given)) {
			*ret = (enum ky_time_form)i;
			return CLI_OK;
		}
	}
	return cli_usage(cli,
		"unknown form of time '%s': choose local, utc, date, seconds or relative", given);
}

static int parse_fields(struct view *v, struct cli *cli)
{
	const char *given = cli_get(cli, "fields");
	char *rest, *name;

	if (!given)
		return CLI_OK;
	rest = v->field_names = strdup(given);
	while (rest && (name = strsep(&rest, ","))) {
		if (!*name)
			return cli_usage(cli, "a name is missing in '%s'", given);
		if (v->fields.n == MAX_FIELDS)
			return cli_usage(cli, "more than %d fields", MAX_FIELDS);
		v->names[v->fields.n++] = name;
	}
	v->fields.names = v->names;
	return CLI_OK;
}

/* Warns of names that no event has: they are probably mistyped. More may come later. */
static void warn_missing(struct view *v, const struct ky_trace_reader *reader, const bool *is_found)
{
	for (size_t k = 0; k < v->fields.n; k++) {
		const char *near;

		if (is_found[k] || cli_has(v->cli, "follow"))
			continue;
		near = cli_near_field(reader, v->names[k], NULL);
		cli_warn(v->cli, "no event of the trace has a field or context '%s'%s%s%s",
			v->names[k], near ? ": did you mean '" : "", near ? near : "",
			near ? "'?" : "");
	}
}

/* Finds the fields of each class; classes that have none of them are not wanted. 0 or -ENOMEM. */
static int bind_fields(struct view *v, const struct ky_trace_reader *reader, uint8_t *want)
{
	struct ky_field_ref **of_class = calloc(reader->n_classes + 1, sizeof(*of_class));
	bool is_found[MAX_FIELDS] = {false};

	if (!of_class)
		return -ENOMEM;
	v->fields.of_class = of_class;
	for (size_t i = 0; i < reader->n_classes; i++) {
		struct ky_field_ref *f = calloc(v->fields.n, sizeof(*f));
		bool any = false;

		if (!f)
			return -ENOMEM;
		of_class[i] = f;
		for (size_t k = 0; k < v->fields.n; k++) {
			bool is_there = ky_field_find_whole(&f[k], reader->classes[i], v->names[k]);

			any |= is_there;
			is_found[k] |= is_there;
			/* Lines are made when the record may be out of reach. */
			f[k].place = KY_FIELD_ANYWHERE;
		}
		want[i] = any ? KY_WANT_EVENT | KY_WANT_VALUES : 0;
	}
	warn_missing(v, reader, is_found);
	return 0;
}

static void free_fields(struct view *v)
{
	for (size_t i = 0; v->fields.of_class && i < v->n_classes; i++)
		free(v->fields.of_class[i]);
	free((void *)v->fields.of_class);
	v->fields.of_class = NULL;
}

/* Chooses what is decoded of each class. The caller frees *ret_want. */
static int choose_wanted(struct view *v, const struct ky_trace_reader *reader, uint8_t **ret_want)
{
	uint8_t *want = malloc(reader->n_classes + 1);

	free_fields(v);
	*ret_want = want;
	if (!want)
		return -ENOMEM;
	v->n_classes = reader->n_classes;
	v->query.shown = v->fields.n ? &v->fields : NULL;
	/* Symbols are found by values of other scopes. */
	memset(want, KY_WANT_EVENT | KY_WANT_VALUES | (v->symbolizer ? 0 : KY_WANT_LINE),
		reader->n_classes);
	return v->fields.n ? bind_fields(v, reader, want) : 0;
}

/* --- the last events --- */

/* Returns the number of a slice's selected events, or a negative errno. */
static int64_t count_slice(const struct view *v, const uint8_t *want, const struct ky_select *slice)
{
	struct ky_reading reading;
	struct ky_item item;
	int64_t n = 0;
	int r = ky_reading_init(&reading, &v->query, want, slice, NULL);

	while (!r && (r = ky_cursor_next(reading.cursor, &item, NULL)) > 0) {
		n += item.kind == KY_ITEM_EVENT;
		r = 0;
	}
	ky_reading_deinit(&reading);
	return r < 0 ? r : n;
}

/*
 * Selects the slices at the end that have the last n_wanted events, and computes how many events in
 * them come before these. Returns 0 or -ENOMEM.
 */
static int select_tail(struct view *v, const uint8_t *want, uint64_t n_wanted)
{
	struct ky_select *slices;
	size_t n_slices;
	uint64_t n = 0;
	int64_t more = 0;

	if (ky_query_slices(&v->query, N_TAIL_SLICES, 0, 0, &slices, &n_slices) < 0)
		return -ENOMEM;
	for (size_t i = n_slices; i-- > 0 && n < KY_MAX(n_wanted, (uint64_t)1) && more >= 0;) {
		more = count_slice(v, want, &slices[i]);
		n += more > 0 ? (uint64_t)more : 0;
		v->query.select.has_slice_begin = slices[i].has_slice_begin;
		v->query.select.slice_begin_ns = slices[i].slice_begin_ns;
	}
	v->n_skipped = n > n_wanted ? n - n_wanted : 0;
	free(slices);
	return more < 0 ? (int)more : 0;
}

/* --- the command --- */

struct view_options {
	bool json;
	enum ky_time_form time_form;
	bool has_tail, follows;
	uint64_t tail;
	int64_t delay_ns; /* of --follow */
};

#define DEFAULT_DELAY_NS 2000000000

static int parse_options(struct view *v, struct view_options *o)
{
	struct cli *cli = v->cli;
	const char *format = cli_get(cli, "format"), *tail = cli_get(cli, "tail");
	const char *delay = cli_get(cli, "delay");
	int r = cli_select_parse(cli, &v->selection);

	o->json = format ? !strcmp(format, "json") : cli->json;
	o->has_tail = tail;
	o->follows = v->selection.may_grow = cli_has(cli, "follow");
	o->delay_ns = DEFAULT_DELAY_NS;
	if (delay && !o->follows)
		return cli_usage(cli, "--delay needs --follow");
	if (delay && !cli_select_duration(delay, &o->delay_ns))
		return cli_usage(cli, "bad time '%s': write 500ms or 2s", delay);
	if (format && strcmp(format, "text") && strcmp(format, "json"))
		return cli_usage(cli, "unknown format '%s': choose text or json", format);
	if (!r)
		r = cli_read_amount(cli, "tail", CLI_NUMBER, 0, INT64_MAX, &o->tail);
	if (!r)
		r = parse_time_form(cli, &o->time_form);
	if (!r)
		r = cli_symbols_parse(cli, &v->symbols);
	return r ? r : parse_fields(v, cli);
}

static void like_format(struct view *v, struct ky_format *f, const struct view_options *o,
	struct ky_trace_reader *reader)
{
	*f = (struct ky_format){.safe = v->is_terminal,
		.colour = v->cli->colour,
		.time_form = o->time_form,
		.fields = v->fields.n ? &v->fields : NULL,
		.symbols = v->symbolizer};
	f->is_cut = ky_trace_reader_complete_from(reader, &f->complete_ns);
	if (o->time_form == KY_TIME_RELATIVE)
		cli_first_event(reader, &f->origin_ns);
}

/* --- a trace that grows --- */

/* Waits for the time. Returns false if nobody reads our output any more. */
static bool wait_for_more(uint64_t ns)
{
	struct pollfd out = {.fd = STDOUT_FILENO};
	struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	return ppoll(&out, 1, &time, NULL) <= 0 || !(out.revents & POLLERR);
}

/*
 * The end of the last packet in the files; INT64_MIN if there is none. Events without a clock are
 * at 0.
 */
static int64_t end_of_trace(struct ky_trace_reader *reader)
{
	struct ky_reader_sums sums = {0};

	if (ky_trace_reader_sums(reader, &sums) < 0 || !sums.n_packets)
		return INT64_MIN;
	return sums.has_times ? sums.end_ns : 0;
}

static int refresh_reading(
	struct view *v, struct ky_trace_reader *reader, struct ky_reading *reading)
{
	uint8_t *want = NULL;
	int r = ky_trace_reader_refresh(reader);

	if (r <= 0)
		return r;
	r = choose_wanted(v, reader, &want);
	if (!r)
		r = cli_symbols_refresh(&v->symbols);
	if (!r)
		r = ky_reading_refresh(reading, want);
	free(want);
	return r;
}

static void warn_late(struct view *v)
{
	if (v->n_late)
		cli_warn(v->cli, "%llu event%s came late and out of order: enlarge --delay",
			(unsigned long long)v->n_late, v->n_late == 1 ? "" : "s");
	v->n_late = 0;
}

/*
 * Prints what is recorded, until Kymo no longer records the trace, the end of the selection comes,
 * or nobody reads our output. A trace of another tracer never ends. The search for more takes a
 * tenth of the time at most.
 */
static int follow_trace(struct view *v, int64_t delay_ns, struct ky_trace_reader *reader,
	struct ky_reading *reading)
{
	bool was_recorded = true, is_recorded = true;
	struct cli_follow f;
	int r = 0;

	cli_follow_init(&f, (uint64_t)delay_ns);
	while (!r && !v->error) {
		uint64_t begin = cli_now_ns();
		bool is_last;

		was_recorded = is_recorded;
		is_recorded = ky_trace_reader_is_recorded(reader);
		is_last = !is_recorded && !was_recorded;
		r = refresh_reading(v, reader, reading);
		cli_follow_update(&f, cli_now_ns(), end_of_trace(reader));
		is_last |= f.horizon_ns > v->query.select.to_ns;
		ky_cursor_until(reading->cursor, is_last ? INT64_MAX : f.horizon_ns);
		if (!r)
			r = show_all(v, reading->cursor);
		v->complete_ns = f.horizon_ns;
		warn_late(v);
		if (is_last || !wait_for_more(KY_MAX(
				       cli_follow_interval_ns(&f), 10 * (cli_now_ns() - begin))))
			break;
	}
	return r;
}

/* --- output --- */

/* Prints what one thread prints: all, or what slices have left. Returns as show_all. */
static int show_rest(struct view *v, const struct view_options *o, const struct ky_format *format,
	const uint8_t *want, const struct ky_trace_reader_options *reader_options)
{
	struct ky_reading reading;
	struct cli_lines lines;
	int r = ky_reading_init(&reading, &v->query, want, NULL, reader_options);

	cli_lines_init(&lines, format, o->json);
	v->lines = &lines;
	if (!r && o->follows)
		r = follow_trace(v, o->delay_ns, v->query.reader, &reading);
	else if (!r)
		r = show_all(v, reading.cursor);
	v->lines = NULL;
	cli_lines_deinit(&lines);
	ky_reading_deinit(&reading);
	return r;
}

/* Prints with all processors. Returns 1 if there is a rest, which the query then selects. */
static int show_slices(
	struct view *v, const struct view_options *o, struct ky_format *format, const uint8_t *want)
{
	const struct cli_slices slices = {.query = &v->query,
		.want = want,
		.like = format,
		.json = o->json,
		.progress = &v->progress};
	struct cli_slices_result result;
	int r = cli_slices_print(&slices, &result);

	cli_progress_erase(&v->progress);
	v->any |= result.any;
	v->error = result.error;
	format->had_time = result.had_time;
	format->last_ns = result.last_ns;
	v->query.select.has_slice_begin = result.has_begin;
	v->query.select.slice_begin_ns = result.begin_ns;
	return r || result.all || result.error ? r : 1;
}

/* Prints the selected items. Returns 0 at the end, or an error of reading. */
static int show_selected(struct view *v, const struct view_options *o,
	struct ky_trace_reader *reader, const struct ky_trace_reader_options *reader_options)
{
	struct ky_format format;
	uint8_t *want = NULL;
	int r = choose_wanted(v, reader, &want);

	if (!r && o->has_tail)
		r = select_tail(v, want, o->tail);
	like_format(v, &format, o, reader);
	if (format.is_cut)
		warn_cut(v, format.complete_ns);
	v->select = &v->query.select;
	if (!r)
		r = o->has_tail || o->follows ? 1 : show_slices(v, o, &format, want);
	if (r > 0)
		r = show_rest(v, o, &format, want, reader_options);
	free(want);
	free_fields(v);
	return r;
}

static int run_view(struct cli *cli)
{
	struct view v = {.cli = cli, .complete_ns = INT64_MIN};
	struct view_options o = {0};
	struct ky_trace_reader_options reader_options = {.warn = warn_in_place, .arg = &v};
	_cleanup_reader_ struct ky_trace_reader *reader = NULL;
	char path[PATH_MAX];
	int r = parse_options(&v, &o);
	pid_t pager = 0;

	reader_options.is_growing = o.follows;
	cli_symbols_prepare(&v.symbols, &reader_options);
	v.is_terminal = isatty(STDOUT_FILENO);
	cli_progress_init(&v.progress);
	v.progress.is_wanted = v.progress.is_wanted && !o.follows;
	if (!r)
		r = cli_trace_open(cli, &reader_options, path, &reader);
	if (!r) {
		signal(SIGPIPE, SIG_IGN);
		fflush(stdout);
		r = cli_select_apply(cli, &v.selection, reader, &v.query);
		if (!r)
			r = cli_symbols_open(cli, &v.symbols, reader, &v.symbolizer);
		if (!r && !o.follows && !cli_has(cli, "no-pager"))
			pager = cli_pager_begin(cli);
		if (!r)
			r = end_output(&v, show_selected(&v, &o, reader, &reader_options), path);
		cli_symbols_report(cli, &v.symbols);
		cli_pager_end(pager);
		ky_query_deinit(&v.query);
	}
	cli_symbols_end(&v.symbols);
	free(v.field_names);
	return r;
}

const struct cli_command cmd_view = {
	.name = "view",
	.synopsis =
		"[TRACE]... [--format=text|json] [--fields=NAME,...] [--symbols] [--time=FORM] [--tail=N] [--follow] " CLI_SELECT_SYNOPSIS,
	.help = "print the events of a trace",
	.details =
		"TRACE is a directory of CTF traces, of Kymo or another tracer; the events of several are printed in the\n"
		"order of time. It may also be the name of a session. Default: the newest trace below $KYMO_HOME or\n"
		"$HOME/kymo-traces. The text is that of babeltrace2. Discarded events and damage are reported on\n"
		"standard error.\n" CLI_SELECT_DETAILS,
	.options = options,
	.max_args = CLI_ANY_ARGS,
	.run = run_view,
};
