/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"
#include "base/children.h"
#include "base/standard-files.h"
#include "cli/progress.h"
#include "reader/format.h"

#include <stdarg.h>
#include <sys/stat.h>

const struct cli_command *const cli_commands[] = {
	&cmd_record,
	&cmd_create,
	&cmd_destroy,
	&cmd_start,
	&cmd_stop,
	&cmd_pause,
	&cmd_resume,
	&cmd_enable_channel,
	&cmd_disable_channel,
	&cmd_set,
	&cmd_enable_event,
	&cmd_disable_event,
	&cmd_add_context,
	&cmd_snapshot,
	&cmd_recover,
	&cmd_regenerate,
	&cmd_rotate,
	&cmd_enable_rotation,
	&cmd_disable_rotation,
	&cmd_clear,
	&cmd_track,
	&cmd_untrack,
	&cmd_add_trigger,
	&cmd_list_triggers,
	&cmd_remove_trigger,
	&cmd_watch,
	&cmd_list,
	&cmd_status,
	&cmd_doctor,
	&cmd_set_session,
	&cmd_save,
	&cmd_load,
	&cmd_view,
	&cmd_stat,
	&cmd_explain,
	&cmd_report,
	&cmd_web,
	&cmd_sql,
	&cmd_export,
	&cmd_merge,
	&cmd_diff,
	&cmd_top,
	&cmd_live,
	&cmd_ship,
	&cmd_receive,
	&cmd_fleet,
	&cmd_standalone,
	&cmd_version,
	&cmd_help,
	NULL,
};

/*
 * Commands of lttng(1) and of other tools that are refused: why, or what to use instead. args.c has
 * such options.
 */
static const char *const refused[][2] = {
	{"attach", "a session records programs that run: 'kymo create', 'kymo track --vpid=PID'"},
	{"crash", "'kymo recover' completes the trace of a session that was killed"},
	{"exec", "'kymo record COMMAND' runs a command, and records it"},
	{"lock", "'kymo stat --locks' shows waits for locks"},
	{"mem", "'kymo stat --memory' shows allocations"},
	{"metadata",
		"a trace's metadata is always complete; of applications' state, 'kymo regenerate'"},
	{"probe", "'kymo enable-event -k' has --probe, --function and --userspace-probe"},
	{"run", "'kymo record COMMAND' runs a command, and records it"},
	{"script", "'kymo view' prints the events of a trace"},
	{"trace", "'kymo record COMMAND' runs a command, and records it"},
};

/* Options before the command. */
static const struct cli_option global_options[] = {
	{"version", 'V', NULL, "print the version"},
	{"quiet", 'q', NULL, "print errors only"},
	{"verbose", 'v', NULL, "if a session daemon is started, let it log more"},
	{"no-sessiond", 'n', NULL, "start no session daemon"},
	{0},
};

static const struct cli_command *find_command(const char *name)
{
	for (size_t i = 0; cli_commands[i]; i++) {
		if (!strcmp(cli_commands[i]->name, name))
			return cli_commands[i];
	}
	return NULL;
}

bool cli_has(const struct cli *cli, const char *option)
{
	return cli_args_has(&cli->args, option);
}

const char *cli_get(const struct cli *cli, const char *option)
{
	return cli_args_get(&cli->args, option);
}

const char *cli_arg(const struct cli *cli, size_t i)
{
	return i < cli->args.n_pos ? cli->args.pos[i] : NULL;
}

/* Keeps the text of a buffer as long as cli. Takes the buffer. Returns "?" without memory. */
static const char *keep_string(struct cli *cli, struct ky_buf *b)
{
	char **strings = realloc(cli->strings, (cli->n_strings + 1) * sizeof(*strings));

	if (strings)
		cli->strings = strings;
	if (!strings || b->error) {
		ky_buf_deinit(b);
		return "?";
	}
	return cli->strings[cli->n_strings++] = b->data;
}

const char *cli_safe(struct cli *cli, const char *text)
{
	struct ky_buf b = {0};

	cli_escape(&b, text);
	if (b.len && strcmp(b.data, text))
		return keep_string(cli, &b);
	ky_buf_deinit(&b);
	return text;
}

const char *cli_safe_word(struct cli *cli, const char *text)
{
	struct ky_buf word = {0};

	ky_buf_put_word(&word, text);
	return cli_safe(cli, keep_string(cli, &word));
}

const char *cli_style(const struct cli *cli, enum cli_style style)
{
	static const char *const sequences[] = {"\033[0m", "\033[1m", "\033[2m", "\033[31m"};

	return cli->colour ? sequences[style] : "";
}

#define NO_MEMORY "{ \"ok\": false, \"code\": \"failed\", \"error\": \"no memory for the result\" }"

void cli_print_json(struct cli *cli, const char *text)
{
	struct ky_buf safe = {0};

	if (cli->printed)
		return;
	cli_escape_json(&safe, text);
	fprintf(cli->result, "%s\n", safe.error || !safe.data ? NO_MEMORY : safe.data);
	ky_buf_deinit(&safe);
	cli->printed = true;
}

void cli_put_member(struct ky_buf *b, const char *name, const char *value)
{
	ky_buf_printf(b, "\"%s\": ", name);
	ky_format_json_string(b, value, strlen(value));
	ky_buf_puts(b, ", ");
}

int cli_print_json_buf(struct cli *cli, struct ky_buf *text)
{
	const int code = text->error ? cli_fail(cli, "failed", "no memory") : CLI_OK;

	if (!code)
		cli_print_json(cli, text->data);
	ky_buf_deinit(text);
	return code;
}

void cli_result(struct cli *cli, struct kymo_value *v)
{
	const char *text;

	if (!kymo_value_get(v, "ok"))
		kymo_value_set_bool(v, "ok", true);
	text = kymo_value_json(v);
	cli_print_json(cli, text ? text : NO_MEMORY);
}

int cli_result_output(struct cli *cli, const char *path)
{
	struct kymo_value *v;

	if (!cli->json)
		return CLI_OK;
	v = kymo_value_new();
	kymo_value_set_string(v, "output", path);
	cli_result(cli, v);
	kymo_value_free(v);
	return CLI_OK;
}

/* Prints the text on stderr, unless the JSON object, which contains it, goes there. */
static void print_line(const struct cli *cli, const char *text)
{
	struct ky_buf safe = {0};

	if (cli->json && cli->result == stderr)
		return;
	cli_escape(&safe, text);
	fflush(stdout);
	fprintf(stderr, "kymo: %s\n", safe.data ? safe.data : "");
	ky_buf_deinit(&safe);
}

static void report_error(struct cli *cli, const char *code, const char *text)
{
	struct kymo_value *v = NULL;

	print_line(cli, text);
	if (!cli->json || cli->printed)
		return;
	v = kymo_value_new();
	kymo_value_set_bool(v, "ok", false);
	kymo_value_set_string(v, "code", code);
	kymo_value_set_string(v, "error", text);
	cli_result(cli, v);
	kymo_value_free(v);
}

int cli_fail(struct cli *cli, const char *code, const char *fmt, ...)
{
	struct ky_buf text = {0};
	va_list ap;

	va_start(ap, fmt);
	ky_buf_vprintf(&text, fmt, ap);
	va_end(ap);
	report_error(cli, code, text.data ? text.data : "no memory");
	ky_buf_deinit(&text);
	return strcmp(code, "usage") ? CLI_FAILED : CLI_USAGE;
}

int cli_usage(struct cli *cli, const char *fmt, ...)
{
	struct ky_buf text = {0};
	va_list ap;

	if (cli->command)
		ky_buf_printf(&text, "%s: ", cli->command->name);
	va_start(ap, fmt);
	ky_buf_vprintf(&text, fmt, ap);
	va_end(ap);
	ky_buf_printf(&text, " (see 'kymo %s%s--help')", cli->command ? cli->command->name : "",
		cli->command ? " " : "");
	report_error(cli, "usage", text.data ? text.data : "no memory");
	ky_buf_deinit(&text);
	return CLI_USAGE;
}

void cli_warn(const struct cli *cli, const char *fmt, ...)
{
	struct ky_buf text = {0};
	va_list ap;

	va_start(ap, fmt);
	ky_buf_vprintf(&text, fmt, ap);
	va_end(ap);
	if (cli->progress)
		cli_progress_erase(cli->progress);
	print_line(cli, text.data ? text.data : "no memory");
	ky_buf_deinit(&text);
}

void cli_warn_text(void *arg, const char *text)
{
	cli_warn(arg, "%s", text);
}

void cli_warn_log(const struct cli *cli, char *said)
{
	char *line;

	while ((line = strsep(&said, "\n")))
		if (*line)
			cli_warn(cli, "%s", cli_log_text(line));
}

/* Finds --json anywhere, for errors that occur before the whole line was parsed. */
static bool json_in(int argc, char **argv)
{
	for (int i = 0; i < argc && strcmp(argv[i], "--"); i++) {
		if (!strcmp(argv[i], "--json"))
			return true;
	}
	return false;
}

static int bad_line(struct cli *cli, int r, int argc, char **argv)
{
	bool other_program = cli->command && cli->command->mode == CLI_PARSE_UNTIL_ARG;

	cli->json = cli->json || cli_has(cli, "json") || (!other_program && json_in(argc, argv));
	if (r == -EOPNOTSUPP)
		return cli_fail(cli, "unsupported", "%s%s%s",
			cli->command ? cli->command->name : "", cli->command ? ": " : "",
			cli->args.why);
	if (r == -ENOMEM)
		return cli_fail(cli, "failed", "%s", cli->args.why);
	return cli_usage(cli, "%s%s", cli->args.why,
		cli->command || strncmp(cli->args.why, "unknown option", 14) ||
				strchr(cli->args.why, ':')
			? ""
			: ": write the options of a command behind its name");
}

static int check_count(struct cli *cli)
{
	const struct cli_command *c = cli->command;

	if (cli->args.n_pos < c->min_args)
		return cli_usage(
			cli, "an argument is missing: usage: kymo %s %s", c->name, c->synopsis);
	if (cli->args.n_pos > c->max_args)
		return cli_usage(cli, "unexpected argument '%s': usage: kymo %s%s%s",
			cli->args.pos[c->max_args], c->name, *c->synopsis ? " " : "", c->synopsis);
	return CLI_OK;
}

/*
 * An empty argument names nothing, or even the working directory. Behind the first argument of
 * `kymo record`, it belongs to another program.
 */
static int check_empty(struct cli *cli)
{
	const bool other_program = cli->command->mode == CLI_PARSE_UNTIL_ARG;

	for (size_t i = 0; i < cli->args.n_pos && !(i && other_program); i++)
		if (!*cli->args.pos[i])
			return cli_usage(cli,
				"argument %zu is empty: is a variable of the shell not set?",
				i + 1);
	return CLI_OK;
}

/* Runs cli->command with the arguments behind its name. */
static int run_command(struct cli *cli, int argc, char **argv)
{
	const struct cli_command *c = cli->command;
	int r;

	/* The standard output of such a command belongs to the program that it runs. */
	if (c->mode == CLI_PARSE_UNTIL_ARG)
		cli->result = stderr;
	else if (cli->quiet && !cli->json && !freopen("/dev/null", "w", stdout))
		return cli_fail(cli, "failed", "/dev/null: %s", strerror(errno));
	r = cli_args_parse(&cli->args, c->options, c->mode, argc, argv);
	if (r < 0)
		return bad_line(cli, r, argc, argv);
	cli->json = cli->json || cli_has(cli, "json");
	if (cli_has(cli, "help"))
		return cli_help(cli, c);
	r = check_count(cli);
	if (!r)
		r = check_empty(cli);
	return r ? r : c->run(cli);
}

int cli_no_command(struct cli *cli, const char *name)
{
	const char *names[64] = {NULL}, *near;
	struct stat st;

	for (size_t i = 0; i < KY_ARRAY_SIZE(refused); i++)
		if (!strcmp(name, refused[i][0]))
			return cli_fail(cli, "unsupported", "command '%s' is not supported: %s",
				name, refused[i][1]);
	for (size_t i = 0; cli_commands[i] && i + 1 < KY_ARRAY_SIZE(names); i++)
		names[i] = cli_commands[i]->name;
	near = cli_nearest(name, names);
	if (near)
		return cli_usage(cli, "unknown command '%s': did you mean '%s'?", name, near);
	/* A trace, or a program: its command was left out. */
	if (!stat(name, &st))
		return cli_usage(cli, "unknown command '%s': did you mean 'kymo %s %s'?", name,
			S_ISDIR(st.st_mode) ? "view" : "record", name);
	return cli_usage(cli, "unknown command '%s'", name);
}

static int run_line(struct cli *cli, int argc, char **argv)
{
	struct cli_args front;
	int r, rest;

	r = cli_args_parse(&cli->args, global_options, CLI_PARSE_UNTIL_ARG, argc, argv);
	if (r < 0)
		return bad_line(cli, r, argc, argv);
	cli->json = cli_has(cli, "json");
	cli->verbose = cli_has(cli, "verbose");
	cli->no_sessiond = cli_has(cli, "no-sessiond");
	cli->quiet = cli_has(cli, "quiet");
	if (cli_has(cli, "version"))
		return cmd_version.run(cli);
	if (cli_has(cli, "help"))
		return cmd_help.run(cli);
	if (!cli->args.n_pos && !cli->json) {
		cli_help_all(stderr);
		return CLI_USAGE;
	}
	if (!cli->args.n_pos)
		return cli_usage(cli, "no command is given");
	front = cli->args;
	cli->command = find_command(front.pos[0]);
	if (!cli->command) {
		cli->json = cli->json || json_in(argc, argv);
		return cli_no_command(cli, front.pos[0]);
	}
	rest = argc - (int)front.n_pos + 1;
	cli_args_deinit(&cli->args);
	return run_command(cli, argc - rest, argv + rest);
}

/* Returns a failure if the output could not be written; else code. */
static int finish_output(struct cli *cli, int code)
{
	char text[128];

	errno = 0;
	if (fflush(stdout) || ferror(stdout)) {
		snprintf(text, sizeof(text), "cannot write the output: %s",
			errno == EBADF ? "standard output is closed"
			: errno	       ? strerror(errno)
				       : "is the disk full?");
		print_line(cli, text);
		return code ? code : CLI_FAILED;
	}
	return code;
}

bool cli_is_screen(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb");
}

static bool may_colour(void)
{
	return cli_is_screen() && !ky_env("NO_COLOR");
}

int cli_main(int argc, char **argv)
{
	struct cli cli = {.result = stdout, .colour = may_colour()};
	int code;

	ky_occupy_standard_files();
	ky_heed_children();
	code = run_line(&cli, argc > 0 ? argc - 1 : 0, argv + 1);

	code = finish_output(&cli, code);
	for (size_t i = 0; i < cli.n_strings; i++)
		free(cli.strings[i]);
	free(cli.strings);
	cli_args_deinit(&cli.args);
	return code;
}
