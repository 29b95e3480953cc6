/* SPDX-License-Identifier: MIT */
/*
 * sql: statements of SQL about traces. src/sql makes tables of them; SQLite does the rest. An
 * authorizer refuses all but reading.
 */
#include "base/text.h"
#include "cli/cli.h"

static const struct cli_option options[] = {
	{"csv", 0, NULL, "print comma-separated values, with a line of names first"},
	{0},
};

#ifdef KY_HAVE_SQLITE

#include <ctype.h>
#include <math.h>
#include <sys/stat.h>

#include "cli/grid.h"
#include "cli/opened.h"
#include "cli/symbols.h"
#include "sql/sql.h"

struct session {
	struct cli *cli;
	sqlite3 *db; /* owned */
	struct ky_tables tables;
	struct ky_sql_symbols symbols;
	bool is_prompted; /* a person types */
	bool ends;	  /* .quit was read */
};

/* --- what a statement may do --- */

static const char *const harmless_pragmas[] = {
	"table_info", "table_xinfo", "table_list", "function_list", NULL};

static bool is_harmless(const char *pragma)
{
	for (size_t i = 0; pragma && harmless_pragmas[i]; i++)
		if (!sqlite3_stricmp(pragma, harmless_pragmas[i]))
			return true;
	return false;
}

static int authorize(
	void *arg, int action, const char *a, const char *b, const char *db, const char *trigger)
{
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_FUNCTION:
		return sqlite3_stricmp(b, "load_extension") ? SQLITE_OK : SQLITE_DENY;
	case SQLITE_PRAGMA:
		return is_harmless(a) ? SQLITE_OK : SQLITE_DENY;
	default:
		return SQLITE_DENY;
	}
}

/* --- errors --- */

/* The name of a table that the trace has, near the one that SQLite does not find; or NULL. */
static const char *find_near(struct session *s, const char *message)
{
	static const char no_table[] = "no such table: ";
	const char **names, *near;

	if (strncmp(message, no_table, sizeof(no_table) - 1))
		return NULL;
	names = calloc(s->tables.n + 1, sizeof(*names));
	if (!names)
		return NULL;
	for (size_t i = 0; i < s->tables.n; i++)
		names[i] = s->tables.tables[i].name;
	near = cli_nearest(message + sizeof(no_table) - 1, names);
	free(names);
	return near;
}

static int fail_sql(struct session *s)
{
	const char *message = sqlite3_errmsg(s->db), *near;
	int code = sqlite3_extended_errcode(s->db);

	if (code == SQLITE_AUTH)
		return cli_fail(s->cli, "refused", "sql: traces are only read: write SELECT ...");
	near = find_near(s, message);
	if (near)
		return cli_fail(s->cli, "failed", "sql: %s: did you mean \"%s\"?", message, near);
	if (!strncmp(message, "no such column", strlen("no such column")))
		return cli_fail(
			s->cli, "failed", "sql: %s: 'kymo sql .schema' lists them", message);
	if (!strncmp(message, "no such table", strlen("no such table")))
		return cli_fail(
			s->cli, "failed", "sql: %s: 'kymo sql .tables' lists them", message);
	if (strstr(message, "near \":"))
		return cli_fail(s->cli, "failed",
			"sql: %s: write names with a colon in double quotes, as \"libc:malloc\"",
			message);
	return cli_fail(s->cli, "failed", "sql: %s", message);
}

/* --- results --- */

static enum cli_cell_kind kind_of(int type)
{
	switch (type) {
	case SQLITE_NULL:
		return CLI_CELL_NULL;
	case SQLITE_INTEGER:
	case SQLITE_FLOAT:
		return CLI_CELL_NUMBER;
	default:
		return CLI_CELL_TEXT;
	}
}

/*
 * SQLite's text of a real number has 15 digits: enough for people, but not to read it back. JSON
 * has no infinity, but numbers that programs read as one.
 */
static void put_real(struct cli_grid *g, double d)
{
	char number[KY_REAL_TEXT];

	if (isinf(d) && g->form == CLI_GRID_JSON)
		snprintf(number, sizeof(number), "%s1e999", d < 0 ? "-" : "");
	else if (g->form == CLI_GRID_TABLE)
		snprintf(number, sizeof(number), "%.15g", d);
	else
		ky_format_real(number, d, false);
	cli_grid_cell(g, CLI_CELL_NUMBER, number, strlen(number));
}

static void put_cell(struct cli_grid *g, sqlite3_stmt *st, int i)
{
	int type = sqlite3_column_type(st, i);

	if (type == SQLITE_FLOAT) {
		put_real(g, sqlite3_column_double(st, i));
		return;
	}
	cli_grid_cell(g, kind_of(type), (const char *)sqlite3_column_text(st, i),
		(size_t)sqlite3_column_bytes(st, i));
}

static int print_rows(struct session *s, sqlite3_stmt *st)
{
	struct cli_grid g;
	int n = sqlite3_column_count(st), r;

	cli_grid_begin(&g, s->cli, (size_t)n,
		s->cli->json		 ? CLI_GRID_JSON
		: cli_has(s->cli, "csv") ? CLI_GRID_CSV
					 : CLI_GRID_TABLE);
	for (int i = 0; i < n; i++)
		cli_grid_name(&g, sqlite3_column_name(st, i));
	while ((r = sqlite3_step(st)) == SQLITE_ROW && !ferror(stdout))
		for (int i = 0; i < n; i++)
			put_cell(&g, st, i);
	if (cli_grid_end(&g, r == SQLITE_DONE ? NULL : sqlite3_errmsg(s->db)) < 0)
		return cli_fail(s->cli, "failed", "sql: %s", strerror(ENOMEM));
	if (r == SQLITE_ROW)
		return CLI_FAILED; /* the output failed: finish_output() gives the reason */
	return r == SQLITE_DONE ? CLI_OK : fail_sql(s);
}

/* Runs all statements of a text. */
static int run_text(struct session *s, const char *text)
{
	sqlite3_stmt *st;
	int r = CLI_OK;

	while (!r && *text) {
		if (sqlite3_prepare_v2(s->db, text, -1, &st, &text) != SQLITE_OK)
			return fail_sql(s);
		if (!st)
			continue;
		if (s->cli->printed)
			r = cli_usage(s->cli, "--json takes one statement");
		else if (!sqlite3_column_count(st))
			r = sqlite3_step(st) == SQLITE_DONE ? CLI_OK : fail_sql(s);
		else
			r = print_rows(s, st);
		sqlite3_finalize(st);
	}
	return r;
}

/* --- the prompt --- */

static void print_tables(struct session *s)
{
	for (size_t i = 0; i < s->tables.n; i++)
		printf("%s\n", cli_safe(s->cli, s->tables.tables[i].name));
}

/* Prints the columns of the tables whose names match; NULL: of all. */
static void print_schema(struct session *s, const char *pattern)
{
	for (size_t i = 0; i < s->tables.n; i++) {
		const struct ky_table *t = &s->tables.tables[i];

		if (pattern && sqlite3_strglob(pattern, t->name))
			continue;
		printf("\"%s\"(", cli_safe(s->cli, t->name));
		for (size_t k = 0; k < t->n_columns; k++)
			printf("%s%s", k ? ", " : "", cli_safe(s->cli, t->columns[k].name));
		printf(")\n");
	}
}

/* ".tables", ".schema [NAME]", ".help", ".quit". */
static int run_dot(struct session *s, char *line)
{
	char *rest = line, *word = strsep(&rest, " \n"), *name = rest ? strsep(&rest, " \n") : NULL;

	s->ends = !strcmp(word, ".quit") || !strcmp(word, ".exit");
	if (s->ends)
		return CLI_OK;
	if (s->cli->json)
		return cli_usage(s->cli, "--json takes a statement of SQL, not %s", word);
	if (!strcmp(word, ".tables"))
		print_tables(s);
	else if (!strcmp(word, ".schema"))
		print_schema(s, name && *name ? name : NULL);
	else if (!strcmp(word, ".help"))
		printf(".tables        the names of the tables\n"
		       ".schema [NAME] their columns\n"
		       ".quit          the end, as ^D\n"
		       "SELECT ...;    a statement, which ';' ends\n");
	else
		return cli_usage(s->cli, "unknown command '%s': .help lists all", word);
	return CLI_OK;
}

static void show_prompt(const struct session *s, bool is_continued)
{
	if (s->is_prompted) {
		fputs(is_continued ? "  ...> " : "kymo> ", stdout);
		fflush(stdout);
	}
}

/* Reads statements from stdin. A person's mistake does not end it. */
static int run_input(struct session *s)
{
	_cleanup_free_ char *line = NULL;
	struct ky_buf text = {0};
	size_t size = 0;
	int r = CLI_OK;

	s->is_prompted = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	if (s->is_prompted)
		printf("Tables of the trace: .tables, .schema; .help\n");
	show_prompt(s, false);
	while ((!r || s->is_prompted) && getline(&line, &size, stdin) >= 0) {
		if (!text.len && *line == '.') {
			r = run_dot(s, line);
			if (s->ends)
				break;
		} else {
			ky_buf_puts(&text, line);
		}
		if (text.len && sqlite3_complete(text.data)) {
			r = run_text(s, text.data);
			text.len = 0;
		}
		show_prompt(s, text.len);
	}
	if (ferror(stdin) && !r)
		r = cli_fail(s->cli, "failed", "cannot read standard input: %s", strerror(errno));
	if (text.len && !text.error && (!r || s->is_prompted))
		r = run_text(s, text.data);
	if (s->is_prompted)
		printf("\n");
	ky_buf_deinit(&text);
	return s->is_prompted ? CLI_OK : r;
}

/* --- the command --- */

/* A statement has a blank or a parenthesis, or is ".tables" or the like, and is no path. */
static bool is_statement(const char *text)
{
	struct stat st;

	return (strpbrk(text, " \t\n(") || (*text == '.' && isalpha((unsigned char)text[1]))) &&
	       stat(text, &st) < 0;
}

static int open_database(struct session *s)
{
	int r = sqlite3_open(":memory:", &s->db);

	if (r == SQLITE_OK)
		r = ky_sql_add_functions(s->db);
	if (r == SQLITE_OK)
		r = ky_sql_add_tables(s->db, "main", &s->tables);
	if (r == SQLITE_OK)
		r = ky_sql_add_symbol(s->db, &s->symbols);
	if (r == SQLITE_OK)
		r = sqlite3_set_authorizer(s->db, authorize, NULL);
	return r == SQLITE_OK ? CLI_OK : fail_sql(s);
}

static int run_sql(struct cli *cli)
{
	const struct ky_tables_part all = KY_TABLES_ALL;
	struct session s = {.cli = cli};
	_cleanup_opened_ struct cli_opened opened = {0};
	size_t n = cli->args.n_pos;
	char *text = n && is_statement(cli->args.pos[n - 1]) ? cli->args.pos[--n] : NULL;
	char left_out[KY_TABLES_TEXT];
	const char *missing;
	int r;

	for (size_t i = 0; i < n; i++)
		if (is_statement(cli->args.pos[i]))
			return cli_usage(cli,
				"the statement comes last, as one argument: kymo sql TRACE 'SELECT ...'");
	r = cli_opened_open(&opened, cli, cli->args.pos, n);
	if (r)
		return r;
	missing = ky_sqlite_load();
	if (missing)
		return cli_fail(cli, "failed", "sql: %s", missing);
	s.symbols.reader = opened.reader;
	if (ky_tables_init(&s.tables, opened.reader, &all) < 0)
		r = cli_fail(cli, "failed", "sql: %s", strerror(ENOMEM));
	if (!r && ky_tables_left_out(&s.tables, left_out))
		cli_warn(cli, "sql: %s: 'events' has all", left_out);
	if (!r)
		r = open_database(&s);
	if (!r && text && *text == '.')
		r = run_dot(&s, text);
	else if (!r)
		r = text ? run_text(&s, text) : run_input(&s);
	if (!r && cli->json && !cli->printed)
		r = cli_usage(cli, "--json takes one statement: none is given");
	sqlite3_close(s.db);
	if (s.symbols.symbols)
		ky_symbols_report(s.symbols.symbols, cli_symbols_warn, cli);
	ky_symbols_free(s.symbols.symbols);
	ky_tables_deinit(&s.tables);
	return r;
}

#else

static int run_sql(struct cli *cli)
{
	return cli_fail(cli, "unsupported",
		"sql: this build of kymo has no SQLite (libsqlite3 was missing when it was built)");
}

#endif

const struct cli_command cmd_sql = {
	.name = "sql",
	.synopsis = "[TRACE]... ['SELECT ...'] [--csv]",
	.help = "query traces with SQL",
	.details =
		"Nothing is imported: SQLite reads only the parts of the trace that the statement needs.\n"
		"Each name of events is a table, as \"libc:malloc\", with the columns ts, cpu, pid, tid, procname,\n"
		"stream, the fields and the contexts. Further tables: events, spans, lost, packets, streams, classes.\n"
		"Times are nanoseconds since 1970. Functions in addition to SQLite's: percentile(x, p), hist(x),\n"
		"text_time(ts), symbol(addr[, pid[, ts]]).\n"
		"Without a statement, statements are read from standard input; .tables and .schema (also as the\n"
		"statement) list tables and columns. TRACE as for 'kymo view'; several are read as one trace.\n",
	.options = options,
	.max_args = CLI_ANY_ARGS,
	.run = run_sql,
};
