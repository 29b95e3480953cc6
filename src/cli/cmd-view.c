/* SPDX-License-Identifier: MIT */
/*
 * view: prints a trace's events as text or JSON, one line each. Output goes straight to the
 * descriptor in large pieces (cli/lines.h). If its reader closes it (`| head`), view ends without a
 * message; a full disk is an error.
 */
#include <limits.h>
#include <signal.h>
#include <time.h>

#include "cli/lines.h"
#include "cli/select.h"
#include "cli/text.h"
#include "cli/trace.h"

#define MAX_FIELDS    64
#define N_TAIL_SLICES 256

static const struct cli_option options[] = {
	{"format", 0, "FORMAT", "text (default) or json: one object on each line"},
	CLI_SELECT_OPTIONS,
	{"fields", 0, "NAME,...",
		"show these fields and contexts only; events without any are left out"},
	{"time", 0, "FORM",
		"local (default), utc, date, seconds (since 1970), relative (to the first)"},
	{"tail", 0, "N", "only the last N events"},
	{0},
};

struct view {
	struct cli *cli;
	const struct ky_select *select; /* borrowed */
	struct cli_lines *lines;	/* owned */
	struct cli_selection selection;
	struct ky_query query;
	const char *names[MAX_FIELDS]; /* of --fields; parts of field_names */
	char *field_names;	       /* owned */
	struct ky_shown_fields fields;
	uint64_t n_skipped; /* events before those of --tail */
	bool any;	    /* event was shown, or warning said */
	int error;	    /* of writing */
};

/* Returns -1 before, 0 within, 1 after the limits. An item without a time is always within. */
static int position(struct view *v, const struct ky_item *item)
{
	if (!item->has_time)
		return 0;
	if (item->ns < v->select->from_ns)
		return -1;
	return item->ns > v->select->to_ns;
}

/* --- output --- */

static void flush(struct view *v)
{
	v->error = cli_lines_flush(v->lines);
}

/* Prints a warning at its place among the events. Some come before events are read. */
static void warn(void *arg, const char *text)
{
	struct view *v = arg;

	v->any = true;
	if (v->lines)
		flush(v);
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
	struct ky_format format = {.safe = isatty(STDERR_FILENO)};
	struct ky_buf line = {0};

	flush(v);
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
	return skips;
}

static void show(struct view *v, const struct ky_item *item)
{
	v->any = true;
	if (item->kind == KY_ITEM_EVENT)
		v->error = cli_lines_add(v->lines);
	else if (item->kind != KY_ITEM_DAMAGED)
		show_lost(v, item);
}

/* Prints all items. Returns 0 at the end, or an error of reading. */
static int show_all(struct view *v, struct ky_cursor *cursor)
{
	int r = 1, where = 0;

	while (r > 0 && !v->error) {
		struct ky_values *values;
		struct ky_item *item = cli_lines_item(v->lines, &values);
		size_t n_before = values->n;

		r = ky_cursor_next(cursor, item, values);
		where = r > 0 ? position(v, item) : 0;
		if (r > 0 && !where && !is_before_tail(v, item))
			show(v, item);
		else
			values->n = n_before;
	}
	flush(v);
	return KY_MIN(r, 0);
}

/* Ends the output. r: of show_all. Reports if there was nothing to print. */
static int finish(struct view *v, int r, const char *path)
{
	if (v->error == -EPIPE)
		return CLI_OK;
	if (v->error)
		return cli_fail(
			v->cli, "failed", "cannot write the events: %s", strerror(-v->error));
	if (r < 0)
		return cli_fail(v->cli, "failed", "cannot read the trace: %s", strerror(-r));
	if (!v->any)
		cli_warn(v->cli, "no event in %s%s", path,
			cli_select_is_given(&v->selection) ? " is selected" : "");
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

/* Finds the fields of each class; classes that have none of them are not wanted. 0 or -ENOMEM. */
static int bind_fields(struct view *v, const struct ky_trace_reader *reader, uint8_t *want)
{
	struct ky_field_ref **of_class = calloc(reader->n_classes + 1, sizeof(*of_class));

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
			any |= ky_field_find(&f[k], reader->classes[i], v->names[k]);
			/* Lines are made when the record may be out of reach. */
			f[k].place = KY_FIELD_ANYWHERE;
		}
		want[i] = any ? KY_WANT_EVENT | KY_WANT_VALUES : 0;
	}
	return 0;
}

static void free_fields(struct view *v, const struct ky_trace_reader *reader)
{
	for (size_t i = 0; v->fields.of_class && i < reader->n_classes; i++)
		free(v->fields.of_class[i]);
	free((void *)v->fields.of_class);
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

	if (ky_query_slices(&v->query, N_TAIL_SLICES, &slices, &n_slices) < 0)
		return -ENOMEM;
	for (size_t i = n_slices; i-- > 0 && n < n_wanted && more >= 0;) {
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
	bool has_tail;
	uint64_t tail;
};

static int parse_options(struct view *v, struct view_options *o)
{
	struct cli *cli = v->cli;
	const char *format = cli_get(cli, "format"), *tail = cli_get(cli, "tail");
	int r = cli_select_parse(cli, &v->selection);

	o->json = format ? !strcmp(format, "json") : cli->json;
	o->has_tail = tail;
	if (format && strcmp(format, "text") && strcmp(format, "json"))
		return cli_usage(cli, "unknown format '%s': choose text or json", format);
	if (tail && ky_parse_number(tail, INT64_MAX, &o->tail) < 0)
		return cli_usage(cli, "bad number of events '%s'", tail);
	if (!r)
		r = parse_time_form(cli, &o->time_form);
	return r ? r : parse_fields(v, cli);
}

static void like_format(struct view *v, struct ky_format *f, const struct view_options *o,
	struct ky_trace_reader *reader)
{
	*f = (struct ky_format){.safe = isatty(STDOUT_FILENO),
		.colour = v->cli->colour,
		.time_form = o->time_form,
		.fields = v->fields.n ? &v->fields : NULL};
	f->is_cut = ky_trace_reader_complete_from(reader, &f->complete_ns);
	if (o->time_form == KY_TIME_RELATIVE)
		cli_first_event(reader, &f->origin_ns);
}

/* Prints the selected items. Returns 0 at the end, or an error of reading. */
static int show_selected(struct view *v, const struct view_options *o,
	struct ky_trace_reader *reader, const struct ky_trace_reader_options *reader_options)
{
	_cleanup_free_ uint8_t *want = malloc(reader->n_classes + 1);
	struct ky_reading reading = {0};
	struct ky_format format;
	int r = want ? 0 : -ENOMEM;

	if (want)
		memset(want, KY_WANT_EVENT | KY_WANT_VALUES, reader->n_classes);
	if (!r && v->fields.n)
		r = bind_fields(v, reader, want);
	if (!r && o->has_tail)
		r = select_tail(v, want, o->tail);
	like_format(v, &format, o, reader);
	if (format.is_cut)
		warn_cut(v, format.complete_ns);
	if (!r)
		r = ky_reading_init(&reading, &v->query, want, NULL, reader_options);
	v->select = &v->query.select;
	v->lines = r ? NULL : cli_lines_new(reading.cursor, &format, o->json);
	r = v->lines ? show_all(v, reading.cursor) : -ENOMEM;
	cli_lines_free(v->lines);
	ky_reading_deinit(&reading);
	free_fields(v, reader);
	return r;
}

static int run(struct cli *cli)
{
	struct view v = {.cli = cli};
	struct view_options o = {0};
	const struct ky_trace_reader_options reader_options = {.warn = warn, .arg = &v};
	_cleanup_reader_ struct ky_trace_reader *reader = NULL;
	char path[PATH_MAX];
	int r = parse_options(&v, &o);

	if (!r)
		r = cli_trace_open(cli, &reader_options, path, &reader);
	if (!r) {
		signal(SIGPIPE, SIG_IGN);
		fflush(stdout);
		r = cli_select_apply(cli, &v.selection, reader, &v.query);
		if (!r)
			r = finish(&v, show_selected(&v, &o, reader, &reader_options), path);
		ky_query_deinit(&v.query);
	}
	free(v.field_names);
	return r;
}

const struct cli_command cmd_view = {
	.name = "view",
	.synopsis =
		"[TRACE]... [--format=text|json] [--fields=NAME,...] [--time=FORM] [--tail=N] " CLI_SELECT_SYNOPSIS,
	.help = "print the events of a trace",
	.details =
		"TRACE is a directory of CTF traces, of Kymo or any tracer; several are one sequence; without it, the\n"
		"most recent trace below $KYMO_HOME or $HOME/kymo-traces is taken. The text is that of\n"
		"babeltrace2. What was discarded, and what is damaged, is reported on the standard error output.\n" CLI_SELECT_DETAILS,
	.options = options,
	.max_args = CLI_ANY_ARGS,
	.run = run,
};
