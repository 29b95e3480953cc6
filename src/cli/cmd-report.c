/* SPDX-License-Identifier: MIT */
/* report: writes a trace as one HTML page. The work is in src/report. */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "cli/select.h"
#include "cli/trace.h"
#include "report/report.h"

#define DEFAULT_FILE   "kymo-report.html"
#define DEFAULT_EVENTS 5000000
#define MARK_WITHIN    1024 /* bytes in which the mark of a report stands */

static const struct cli_option options[] = {
	{"output", 'o', "FILE", "the page; default: " DEFAULT_FILE " in the current directory"},
	{"detail", 0, "N",
		"list at most N events with their fields, the first half and the last (default 5000000)"},
	CLI_SELECT_OPTIONS,
	{0},
};

/* The page that is written: under another name until it is complete. */
struct output {
	const char *path;
	char temporary[PATH_MAX];
	FILE *file; /* owned */
};

/* Returns true if there is no such file, or a report, which is replaced. */
static bool may_replace(const char *path)
{
	char begin[MARK_WITHIN + 1] = "";
	struct stat st;
	FILE *f;

	if (stat(path, &st) < 0 || (S_ISREG(st.st_mode) && !st.st_size))
		return true;
	f = S_ISREG(st.st_mode) ? fopen(path, "re") : NULL;
	if (!f)
		return false;
	begin[fread(begin, 1, MARK_WITHIN, f)] = '\0';
	fclose(f);
	return strstr(begin, KY_REPORT_MARK);
}

static int open_output(struct cli *cli, struct output *out)
{
	int fd;

	if (!may_replace(out->path))
		return cli_fail(cli, "exists",
			"%s exists and is not a report: choose another file with -o", out->path);
	if (snprintf(out->temporary, sizeof(out->temporary), "%s.XXXXXX", out->path) >= PATH_MAX)
		return cli_fail(cli, "failed", "the name of the page is too long: %s", out->path);
	fd = mkostemp(out->temporary, O_CLOEXEC);
	if (fd >= 0)
		out->file = fdopen(fd, "w");
	if (!out->file) {
		ky_close(fd);
		return cli_fail(cli, "failed", "cannot write %s: %s", out->path, strerror(errno));
	}
	return CLI_OK;
}

/* Gives the page its name, with the mode of any new file. Returns 0 or -errno. */
static int publish(struct output *out)
{
	mode_t mask = umask(0);

	umask(mask);
	if (fchmod(fileno(out->file), 0666 & ~mask) < 0 || rename(out->temporary, out->path) < 0)
		return -errno;
	out->temporary[0] = '\0';
	return 0;
}

static void close_output(struct output *out)
{
	if (out->file)
		fclose(out->file);
	if (out->file && out->temporary[0])
		unlink(out->temporary);
}

/* Writes an absolute path, so that the page opens from anywhere. */
static int print(struct cli *cli, const char *path, const struct ky_report_summary *s)
{
	struct stat st = {0};
	struct kymo_value *v;

	stat(path, &st);
	if (cli->json) {
		v = kymo_value_new();
		kymo_value_set_string(v, "path", path);
		kymo_value_set_u64(v, "size", (uint64_t)st.st_size);
		kymo_value_set_u64(v, "events", s->n_events);
		kymo_value_set_u64(v, "listed", s->n_listed);
		kymo_value_set_u64(v, "slices", s->n_slices);
		kymo_value_set_u64(v, "discarded", s->totals.n_discarded);
		cli_result(cli, v);
		kymo_value_free(v);
		return CLI_OK;
	}
	printf("%s: %llu events, %llu slices, %.1f MB\n", cli_safe(cli, path),
		(unsigned long long)s->n_events, (unsigned long long)s->n_slices,
		(double)st.st_size / 1e6);
	if (s->n_listed < s->n_events)
		printf("%llu events are listed with their fields, the first half and the last; all are drawn\n",
			(unsigned long long)s->n_listed);
	if (s->totals.n_discarded)
		cli_warn(cli, "%llu events were discarded",
			(unsigned long long)s->totals.n_discarded);
	return CLI_OK;
}

static int write_page(struct cli *cli, struct output *out, const struct ky_report_options *o)
{
	struct ky_report_summary summary;
	int r = ky_report_write(out->file, o, &summary);

	if (r == -ENODATA)
		return cli_fail(
			cli, "not-found", "no event with a time is selected in %s", o->title);
	if (!r)
		r = publish(out);
	if (r < 0)
		return cli_fail(cli, "failed", "cannot write %s: %s", out->path, strerror(-r));
	return print(cli, out->path, &summary);
}

/* Makes the command line of a page of a part of these traces, without the limits of time. */
static void put_command(struct cli *cli, struct ky_buf *b, const char *newest)
{
	static const char *const kept[] = {"event", "filter"};

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

static void warn(void *arg, const char *text)
{
	cli_warn(arg, "%s", text);
}

static int run_report(struct cli *cli, struct ky_report_options *o, const char *path)
{
	struct output out = {.path = cli_get(cli, "output")};
	struct ky_buf command = {0};
	int r;

	out.path = out.path ? out.path : DEFAULT_FILE;
	put_command(cli, &command, path);
	o->command = command.error ? "kymo report" : command.data;
	o->title = path;
	r = open_output(cli, &out);
	if (!r)
		r = write_page(cli, &out, o);
	close_output(&out);
	ky_buf_deinit(&command);
	return r;
}

static int run(struct cli *cli)
{
	const struct ky_trace_reader_options reader_options = {.warn = warn, .arg = cli};
	struct ky_report_options o = {.reader = &reader_options, .max_events = DEFAULT_EVENTS};
	_cleanup_reader_ struct ky_trace_reader *reader = NULL;
	const char *detail = cli_get(cli, "detail");
	struct cli_selection selection = {0};
	struct ky_query query = {0};
	char path[PATH_MAX];
	int r;

	if (detail && ky_parse_number(detail, INT64_MAX, &o.max_events) < 0)
		return cli_usage(cli, "bad number of events '%s'", detail);
	r = cli_select_parse(cli, &selection);
	if (!r)
		r = cli_trace_open(cli, &reader_options, path, &reader);
	if (r)
		return r;
	r = cli_select_apply(cli, &selection, reader, &query);
	o.query = &query;
	if (!r)
		r = run_report(cli, &o, path);
	ky_query_deinit(&query);
	return r;
}

const struct cli_command cmd_report = {
	.name = "report",
	.synopsis = "[TRACE]... [-o FILE] [--detail=N] " CLI_SELECT_SYNOPSIS,
	.help = "write a trace as one HTML page: a timeline, statistics, all events",
	.details =
		"The page needs no network and nothing installed but a browser: send it to anybody. It shows threads,\n"
		"spans, system calls, counters and losses over time; 'kymo stat' has the same figures. Press ? in the\n"
		"page for its keys. Without TRACE, the most recent trace is taken.\n" CLI_SELECT_DETAILS,
	.options = options,
	.max_args = CLI_ANY_ARGS,
	.run = run,
};
