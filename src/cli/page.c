/* SPDX-License-Identifier: MIT */
#include "cli/page.h"

#include <limits.h>
#include <sys/stat.h>

#include "cli/symbols.h"
#include "cli/trace.h"
#include "export/out.h"

#define MARK_WITHIN 1024 /* bytes in which the mark of a report stands */

/* The page that is written: under the name `part` until it is complete. "-" is standard output. */
struct output {
	const char *path;
	char part[PATH_MAX];
	FILE *file; /* owned */
};

/* Returns true if there is no such file, or a report, which is replaced. Links are not. */
static bool may_replace(const char *path)
{
	char begin[MARK_WITHIN + 1] = "";
	struct stat st;
	FILE *f;

	if (lstat(path, &st) < 0 || (S_ISREG(st.st_mode) && !st.st_size))
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

	if (!strcmp(out->path, "-")) {
		out->file = stdout;
		return CLI_OK;
	}
	if (!may_replace(out->path))
		return cli_fail(cli, "exists",
			"%s exists and is not a report: choose another file with -o", out->path);
	if (snprintf(out->part, sizeof(out->part), "%s.part", out->path) >= PATH_MAX)
		return cli_fail(cli, "failed", "the name of the page is too long: %s", out->path);
	fd = ky_out_create(out->part);
	if (fd < 0)
		return cli_fail(cli, "failed", "cannot write %s: %s", out->path, strerror(-fd));
	out->file = fdopen(fd, "w");
	if (!out->file) {
		ky_close(fd);
		unlink(out->part);
		return cli_fail(cli, "failed", "cannot write %s: %s", out->path, strerror(ENOMEM));
	}
	return CLI_OK;
}

/* Gives the page its name. Returns 0 or -errno. */
static int publish_page(struct output *out)
{
	if (out->file == stdout)
		return 0;
	if (rename(out->part, out->path) < 0)
		return -errno;
	out->part[0] = '\0';
	return 0;
}

static void close_output(struct output *out)
{
	if (!out->file || out->file == stdout)
		return;
	fclose(out->file);
	if (out->part[0])
		unlink(out->part);
}

int cli_page_write(struct cli *cli, const char *path, const struct ky_report_options *o,
	struct ky_report_summary *ret_summary)
{
	struct output out = {.path = path};
	int r, code = open_output(cli, &out);

	if (code)
		return code;
	r = ky_report_write(out.file, o, ret_summary);
	if (!r)
		r = publish_page(&out);
	close_output(&out);
	if (r == -ENODATA)
		return cli_fail(
			cli, "not-found", "no event with a time is selected in %s", o->title);
	return r < 0 ? cli_fail(cli, "failed", "cannot write %s: %s", path, strerror(-r)) : CLI_OK;
}

int cli_page_of_trace(struct cli *cli, const char *path, const char *trace)
{
	struct ky_trace_reader_options reader_options = {0};
	_cleanup_reader_ struct ky_trace_reader *reader = NULL;
	struct cli_symbols symbols = {.is_wanted = true};
	struct ky_buf command = {0};
	struct ky_report_summary summary;
	struct ky_report_options o = {
		.title = trace, .reader = &reader_options, .max_events = CLI_PAGE_EVENTS};
	char why[PATH_MAX + 256];
	struct ky_query query;
	int code;

	cli_symbols_prepare(&symbols, &reader_options);
	if (ky_trace_reader_open(&reader, &trace, 1, &reader_options, why, sizeof(why)) < 0)
		return cli_fail(cli, "failed", "%s", why);
	ky_query_init(&query, reader);
	ky_buf_puts(&command, "kymo report ");
	ky_buf_put_word(&command, trace);
	o.query = &query;
	o.command = command.error ? "kymo report" : command.data;
	code = cli_symbols_open(cli, &symbols, reader, &o.symbols);
	if (!code)
		code = cli_page_write(cli, path, &o, &summary);
	cli_symbols_end(&symbols);
	ky_buf_deinit(&command);
	ky_query_deinit(&query);
	return code;
}
