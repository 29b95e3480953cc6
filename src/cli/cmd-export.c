/* SPDX-License-Identifier: MIT */
/* export: traces in the formats of other programs. The work is in src/export. */
#include <sys/stat.h>

#include "cli/opened.h"
#include "cli/symbols.h"
#include "cli/trace.h"
#include "export/out.h"

static const struct cli_option options[] = {
	{"to", 0, "chrome|perfetto|otlp|clickhouse|sqlite|csv|folded|ctf", "the format"},
	{"output", 'o', "FILE",
		"the file, which is replaced if it exists, or the directory for csv and ctf; -: standard output"},
	CLI_FOLDED_OPTIONS,
	CLI_SELECT_OPTIONS,
	{0},
};

#ifdef KY_HAVE_SQLITE
#define export_sqlite ky_export_sqlite
#else
static int export_sqlite(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY])
{
	snprintf(why, KY_EXPORT_WHY,
		"this build of kymo has no SQLite (libsqlite3 was missing when it was built)");
	return -EOPNOTSUPP;
}
#endif

static const struct format {
	const char *name;
	/* NULL: ky_export_folded */
	int (*write)(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY]);
	bool is_stream; /* may go to standard output */
} formats[] = {
	{"chrome", ky_export_chrome, true},
	{"perfetto", ky_export_perfetto, true},
	{"otlp", ky_export_otlp, true},
	{"clickhouse", ky_export_clickhouse, true},
	{"sqlite", export_sqlite, false},
	{"csv", ky_export_csv, true},
	{"folded", NULL, true},
	{"ctf", ky_export_ctf, false},
};

static const struct format *find_format(const char *name)
{
	for (size_t i = 0; name && i < KY_ARRAY_SIZE(formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

/* Tables that are written among the files of a trace would be read as such. */
static bool is_trace(const struct cli *cli, const char *path)
{
	struct stat to, st;

	for (size_t i = 0; i < cli->args.n_pos && !stat(path, &to); i++) {
		if (!stat(cli->args.pos[i], &st) && st.st_dev == to.st_dev &&
			st.st_ino == to.st_ino)
			return true;
	}
	return false;
}

static int refuse_format(struct cli *cli, const char *to)
{
	const size_t n = KY_ARRAY_SIZE(formats);
	struct ky_buf names = {0};
	int r;

	for (size_t i = 0; i < n; i++)
		ky_buf_printf(&names, "%s%s", !i ? "" : i + 1 < n ? ", " : " or ", formats[i].name);
	if (to)
		r = cli_usage(cli, "unknown format '%s': use %s", to, names.data ? names.data : "");
	else
		r = cli_usage(
			cli, "the format is missing: --to=%s", names.data ? names.data : "FORMAT");
	ky_buf_deinit(&names);
	return r;
}

static int check_options(struct cli *cli, const struct format **ret_format, const char **ret_path)
{
	const char *to = cli_get(cli, "to"), *path = cli_get(cli, "output");
	const struct format *f = find_format(to);

	if (!f)
		return refuse_format(cli, to);
	if (!path)
		return cli_usage(cli, "the output is missing: -o FILE");
	if (f->write && (cli_has(cli, "stacks") || cli_has(cli, "symbols")))
		return cli_usage(cli, "--stacks and --symbols need --to=folded");
	if (!strcmp(path, "-") && !f->is_stream)
		return cli_usage(cli, "a database or a trace needs a name: -o FILE");
	if (!ky_out_may_replace(path))
		return cli_fail(cli, "exists", "export: %s is no regular file%s", path,
			f->is_stream ? ": -o - writes to the standard output" : "");
	if (is_trace(cli, path))
		return cli_usage(cli, "%s is the trace itself: give -o another name", path);
	if (f->write == ky_export_ctf && cli_trace_has(cli, path))
		return cli_usage(cli, "%s is in one of the traces: give -o another name", path);
	if (!strcmp(path, "-"))
		cli->result = stderr;
	*ret_format = f;
	*ret_path = path;
	return CLI_OK;
}

static int write_format(struct cli *cli, const struct format *f, const struct ky_tables *t,
	const struct ky_folded_options *folded, const char *path)
{
	char why[KY_EXPORT_WHY], size[64];
	int r = f->write ? f->write(t, path, why) : ky_export_folded(t, path, folded, why);

	if (r == -EFBIG && !*why)
		snprintf(why, sizeof(why),
			"the output would have more than %s, which is %d bytes for each byte of the trace: its names are too long, or repeated too often; select a part",
			cli_format_size(size, sizeof(size), ky_out_room(t->n_bytes).left),
			KY_OUT_PER_BYTE);
	if (r < 0 && !*why)
		snprintf(why, sizeof(why), "cannot write %s: %s",
			!strcmp(path, "-") ? "standard output" : path, strerror(-r));
	if (r < 0)
		return cli_fail(
			cli, r == -EOPNOTSUPP ? "unsupported" : "failed", "export: %s", why);
	if (*why)
		cli_warn(cli, "export: %s", why);
	return cli_result_output(cli, path);
}

static int run_export(struct cli *cli)
{
	_cleanup_opened_ struct cli_opened opened = {0};
	struct cli_selection selection;
	struct ky_tables_part part;
	struct ky_tables tables = {0};
	const struct format *f = NULL;
	struct ky_folded_options folded;
	struct cli_symbols symbols = {0};
	const char *path = NULL;
	int r = check_options(cli, &f, &path);

	if (!r)
		r = cli_symbols_folded(cli, &symbols, &folded);
	if (!r)
		r = cli_select_parse(cli, &selection);
	if (!r)
		r = cli_opened_open(&opened, cli, cli->args.pos, cli->args.n_pos);
	if (!r)
		r = cli_opened_part(&opened, &selection, &part);
	if (!r && ky_tables_init(&tables, opened.reader, &part) < 0)
		r = cli_fail(cli, "failed", "export: %s", strerror(ENOMEM));
	if (!r)
		r = write_format(cli, f, &tables, &folded, path);
	ky_tables_deinit(&tables);
	cli_symbols_end(&symbols);
	return r;
}

const struct cli_command cmd_export = {
	.name = "export",
	.synopsis = "[TRACE]... --to=FORMAT -o FILE " CLI_SELECT_SYNOPSIS,
	.help = "write traces in the formats of other programs",
	.details =
		"FORMAT is chrome (JSON for Chrome, Perfetto and others), perfetto (protobuf),\n"
		"otlp (protobuf for OpenTelemetry: spans with W3C identifiers, and spans inside them),\n"
		"clickhouse (rows of JSON for ClickHouse: share/doc/kymo/export.md has the table),\n"
		"sqlite (the tables of 'kymo sql'), csv (a directory with a file for each name of events;\n"
		"with -e and one name, one file), folded (stacks of spans, or call stacks, for\n"
		"flame graphs), or ctf (the selected events as a trace: a new directory).\n"
		"TRACE as for 'kymo view'; several are read as one trace.\n" CLI_SELECT_DETAILS,
	.options = options,
	.max_args = CLI_ANY_ARGS,
	.run = run_export,
};
