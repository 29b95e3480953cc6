/* SPDX-License-Identifier: MIT */
/*
 * view: a trace's events as text or JSON, one line each. Output goes straight to the descriptor in
 * large pieces (cli/lines.h): a reader that has seen enough (`| head`) ends it quietly, a full disk does not.
 */
#include <limits.h>
#include <signal.h>
#include <time.h>

#include "cli/lines.h"
#include "cli/trace.h"

#define NS_PER_S 1000000000

static const struct cli_option options[] = {
	{"format", 0, "FORMAT", "text (default) or json: one object on each line"},
	{"begin", 0, "TIME", "leave out what was before"},
	{"end", 0, "TIME", "leave out what was after"},
	{0},
};

/* A limit of time. Without a date it is of the day of the trace's first event. */
struct limit {
	bool given, has_date, is_absolute;
	struct tm tm;
	int64_t ns; /* is_absolute: since 1970; else the fraction of the second */
};

struct view {
	struct cli *cli;
	struct ky_select select;
	struct cli_lines *lines; /* owned */
	struct limit begin, end;
	bool any;  /* event was shown, or warning said */
	int error; /* of writing */
};

/* --- times --- */

/* ".nnn" at *p, which moves behind it, in nanoseconds; 0 when there is none. */
static int64_t parse_fraction(const char **p)
{
	int64_t ns = 0, digit = NS_PER_S / 10;

	if (**p != '.')
		return 0;
	for (++*p; **p >= '0' && **p <= '9'; ++*p, digit /= 10)
		ns += (**p - '0') * digit;
	return ns;
}

/* [YYYY-MM-DD ]HH:MM:SS[.N] or SECONDS[.N]; false when it is neither. */
static bool parse_limit(struct limit *l, const char *text)
{
	struct tm *tm = &l->tm;
	const char *p = text, *end;
	int64_t seconds;
	int n = 0;

	l->given = true;
	tm->tm_isdst = -1;
	if (sscanf(p, "%4d-%2d-%2d%n", &tm->tm_year, &tm->tm_mon, &tm->tm_mday, &n) == 3 && n &&
		(p[n] == ' ' || p[n] == 'T')) {
		l->has_date = true;
		tm->tm_year -= 1900;
		tm->tm_mon--;
		p += n + 1;
	}
	n = 0;
	if (sscanf(p, "%2d:%2d:%2d%n", &tm->tm_hour, &tm->tm_min, &tm->tm_sec, &n) == 3 && n) {
		p += n;
		l->ns = parse_fraction(&p);
		return !*p && tm->tm_hour >= 0 && tm->tm_min >= 0 && tm->tm_sec >= 0;
	}
	if (l->has_date)
		return false;
	errno = 0;
	seconds = strtoll(p, (char **)&end, 10);
	if (end == p || errno || seconds > INT64_MAX / NS_PER_S - 1 || seconds < 0)
		return false;
	l->is_absolute = true;
	l->ns = parse_fraction(&end) + seconds * NS_PER_S;
	return !*end;
}

static void resolve(struct limit *l, const struct ky_trace_reader *reader)
{
	int64_t first_ns = 0;
	time_t first;
	struct tm day;

	if (!l->given || l->is_absolute)
		return;
	ky_trace_reader_begin(reader, &first_ns);
	first = (time_t)(first_ns / NS_PER_S);
	if (!l->has_date && localtime_r(&first, &day)) {
		l->tm.tm_year = day.tm_year;
		l->tm.tm_mon = day.tm_mon;
		l->tm.tm_mday = day.tm_mday;
	}
	l->ns += (int64_t)mktime(&l->tm) * NS_PER_S;
	l->is_absolute = true;
}

/* -1 before, 0 within, 1 after the limits. What has no time is always within. */
static int position(struct view *v, const struct ky_item *item)
{
	if (!item->has_time)
		return 0;
	if (item->ns < v->select.from_ns)
		return -1;
	return item->ns > v->select.to_ns;
}

/* --- output --- */

static void flush(struct view *v)
{
	v->error = cli_lines_flush(v->lines);
}

/* Warnings stand where they belong among the events; some come before these are read. */
static void warn(void *arg, const char *text)
{
	struct view *v = arg;

	v->any = true;
	if (v->lines)
		flush(v);
	cli_warn(v->cli, "%s", text);
}

/* Buffers of a snapshot reach back differently. */
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

static void show(struct view *v, const struct ky_item *item)
{
	v->any = true;
	if (item->kind == KY_ITEM_EVENT)
		v->error = cli_lines_add(v->lines);
	else if (item->kind != KY_ITEM_DAMAGED)
		show_lost(v, item);
}

/* 0 at the end, or an error of reading. */
static int show_all(struct view *v, struct ky_cursor *cursor)
{
	int r = 1, where = 0;

	while (r > 0 && !v->error) {
		struct ky_values *values;
		struct ky_item *item = cli_lines_item(v->lines, &values);
		size_t n_before = values->n;

		r = ky_cursor_next(cursor, item, values);
		where = r > 0 ? position(v, item) : 0;
		if (r > 0 && !where)
			show(v, item);
		else
			values->n = n_before;
	}
	flush(v);
	return KY_MIN(r, 0);
}

/* r: of show_all. Nothing to see is said. */
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
			v->begin.given || v->end.given ? " between --begin and --end" : "");
	/* The events were the objects; none follows. */
	v->cli->printed = true;
	return CLI_OK;
}

/* The limits of time. 0 or -ENOMEM. */
static int select_times(struct view *v, struct ky_trace_reader *reader)
{
	resolve(&v->begin, reader);
	resolve(&v->end, reader);
	v->select = KY_SELECT_ALL;
	if (v->begin.given)
		v->select.from_ns = v->begin.ns;
	if (v->end.given)
		v->select.to_ns = v->end.ns;
	return v->begin.given ? ky_trace_reader_index(reader) : 0;
}

static int run(struct cli *cli)
{
	const char *format = cli_get(cli, "format"), *begin = cli_get(cli, "begin");
	const char *end = cli_get(cli, "end");
	char path[PATH_MAX];
	struct view v = {.cli = cli};
	struct ky_format format_like = {0};
	const struct ky_trace_reader_options reader_options = {.warn = warn, .arg = &v};
	_cleanup_reader_ struct ky_trace_reader *reader = NULL;
	_cleanup_cursor_ struct ky_cursor *cursor = NULL;
	bool json = format ? !strcmp(format, "json") : cli->json;
	int r;

	if (format && strcmp(format, "text") && strcmp(format, "json"))
		return cli_usage(cli, "unknown format '%s': choose text or json", format);
	if ((begin && !parse_limit(&v.begin, begin)) || (end && !parse_limit(&v.end, end)))
		return cli_usage(cli,
			"bad time '%s': write [YYYY-MM-DD ]HH:MM:SS[.N], or seconds since 1970",
			begin && !parse_limit(&(struct limit){0}, begin) ? begin : end);
	r = cli_trace_open(cli, &reader_options, path, &reader);
	if (r)
		return r;
	signal(SIGPIPE, SIG_IGN);
	fflush(stdout);
	format_like.safe = isatty(STDOUT_FILENO);
	format_like.is_cut = ky_trace_reader_complete_from(reader, &format_like.complete_ns);
	if (format_like.is_cut)
		warn_cut(&v, format_like.complete_ns);
	r = select_times(&v, reader);
	if (!r)
		r = ky_cursor_open(&cursor, reader, &v.select, &reader_options);
	v.lines = r ? NULL : cli_lines_new(cursor, &format_like, json);
	r = v.lines ? show_all(&v, cursor) : -ENOMEM;
	cli_lines_free(v.lines);
	return finish(&v, r, path);
}

const struct cli_command cmd_view = {
	.name = "view",
	.synopsis = "[TRACE] [--format=text|json] [--begin=TIME] [--end=TIME]",
	.help = "print the events of a trace",
	.details =
		"TRACE is a directory of CTF traces, of Kymo or any tracer; without it, the most recent trace\n"
		"below $KYMO_HOME or $HOME/kymo-traces is taken. The text is that of babeltrace2. What was\n"
		"discarded, and what is damaged, is told on the standard error output.\n"
		"TIME is [YYYY-MM-DD ]HH:MM:SS[.N] in local time (without a date, of the first event's day),\n"
		"or seconds since 1970.\n",
	.options = options,
	.max_args = 1,
	.run = run,
};
