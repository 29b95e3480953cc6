/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "cli/monitor.h"
#include "cli/params.h"
#include "cli/report.h"

enum check_state {
	CHECK_OK,
	CHECK_WARNING,
	CHECK_CRITICAL,
	CHECK_UNKNOWN,
};

static const char *const state_names[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};

#define WITHIN_DEFAULT_US (600u * 1000000) /* an event that was lost before does not count */

struct check {
	struct cli *cli;
	uint64_t within_us;
	enum check_state state;
	struct ky_buf problems[CHECK_UNKNOWN + 1];
	uint64_t recorded, discarded;
};

static void add_problem(struct check *c, enum check_state state, const struct kymo_value *session,
	const char *fmt, ...) KY_PRINTF(4, 5);

static void add_problem(struct check *c, enum check_state state, const struct kymo_value *session,
	const char *fmt, ...)
{
	struct ky_buf *b = &c->problems[state];
	va_list ap;

	c->state = KY_MAX(c->state, state);
	if (b->len)
		ky_buf_puts(b, "; ");
	if (session)
		ky_buf_printf(
			b, "session '%s': ", kymo_value_string(kymo_value_get(session, "name")));
	va_start(ap, fmt);
	ky_buf_vprintf(b, fmt, ap);
	va_end(ap);
}

static void check_losses(struct check *c, const struct kymo_value *s)
{
	const struct kymo_value *ago = kymo_value_get(s, "lost_ms_ago");
	uint64_t discarded = cli_number(s, "discarded"), damaged = cli_number(s, "given_up");
	char text[32];

	if (ago && kymo_value_u64(ago) * 1000 <= c->within_us)
		add_problem(c, CHECK_WARNING, s,
			"%" PRIu64 " event%s discarded and %" PRIu64
			" not written so far; the last loss was seen %s ago",
			discarded, discarded == 1 ? "" : "s", cli_number(s, "unwritten"),
			cli_format_usec(text, sizeof(text),
				(kymo_value_u64(ago) / 1000 + 1) * 1000000, " "));
	if (damaged)
		add_problem(c, CHECK_WARNING, s, "%" PRIu64 " damaged buffer%s given up", damaged,
			damaged == 1 ? " was" : "s were");
}

static void check_session(struct check *c, const struct kymo_value *s)
{
	const char *error = kymo_value_string(kymo_value_get(s, "error"));
	const char *state = kymo_value_string(kymo_value_get(s, "state"));

	c->recorded += cli_number(s, "recorded");
	c->discarded += cli_number(s, "discarded");
	if (*error)
		add_problem(c, CHECK_CRITICAL, s, "%s", error);
	if (cli_number(s, "silent_ms"))
		add_problem(c, CHECK_CRITICAL, s, "its consumer has not worked for %" PRIu64 " s",
			cli_number(s, "silent_ms") / 1000);
	check_losses(c, s);
	if (kymo_value_bool(kymo_value_get(s, "no_journal")))
		add_problem(c, CHECK_WARNING, s,
			"would not survive the session daemon, as its journal cannot be written: 'kymo status' shows why");
	if (cli_arg(c->cli, 0) && strcmp(state, "started") != 0)
		add_problem(c, CHECK_WARNING, s, "is %s", state);
}

static void check_sessions(struct check *c, const struct monitored *m)
{
	const struct kymo_value *sessions = kymo_value_get(m->sessions, "sessions");
	const struct kymo_value *lost = kymo_value_get(m->listed, "notes");
	size_t n = kymo_value_count(sessions);

	for (size_t i = 0; i < kymo_value_count(lost); i++)
		add_problem(
			c, CHECK_CRITICAL, NULL, "%s", kymo_value_string(kymo_value_at(lost, i)));
	for (size_t i = 0; i < n; i++)
		check_session(c, kymo_value_at(sessions, i));
	if (c->state == CHECK_OK)
		ky_buf_printf(&c->problems[CHECK_OK],
			"%zu session%s, %" PRIu64 " event%s recorded, %" PRIu64 " discarded", n,
			n == 1 ? "" : "s", c->recorded, c->recorded == 1 ? "" : "s", c->discarded);
}

/* The line has the worst problems first. */
static char *check_line(struct check *c)
{
	struct ky_buf line = {0};

	for (int state = CHECK_UNKNOWN; state >= CHECK_OK; state--)
		if (c->problems[state].len)
			ky_buf_printf(&line, "%s%s", line.len ? "; " : "", c->problems[state].data);
	ky_buf_append(&line, "", 1);
	return line.data;
}

static void print_check(struct check *c)
{
	_cleanup_free_ char *line = check_line(c);
	struct kymo_value *v;

	if (!c->cli->json) {
		printf("KYMO %s: %s\n", state_names[c->state],
			cli_safe(c->cli, line ? line : "no memory"));
		return;
	}
	v = kymo_value_new();
	kymo_value_set_u64(v, "exit", c->state);
	kymo_value_set_string(v, "state", state_names[c->state]);
	kymo_value_set_string(v, "text", line ? line : "no memory");
	cli_result(c->cli, v);
	kymo_value_free(v);
}

/* Returns true if there can be no daemon, or this user may not ask it. */
static bool is_unknown(int error)
{
	return error == -ENOENT || error == -EACCES || error == -ENAMETOOLONG;
}

int monitor_check(struct cli *cli)
{
	struct check c = {.cli = cli, .within_us = WITHIN_DEFAULT_US};
	struct monitored m;

	int code = cli_read_amount(cli, "within", CLI_SECONDS, 0, UINT64_MAX, &c.within_us);

	if (code)
		return code;
	monitor_read(cli, &m);
	if (!m.error && !m.refusal)
		check_sessions(&c, &m);
	else
		add_problem(&c, is_unknown(m.error) ? CHECK_UNKNOWN : CHECK_CRITICAL, NULL, "%s",
			monitor_why(&m));
	print_check(&c);
	if (fflush(stdout) || ferror(stdout))
		c.state = CHECK_UNKNOWN; /* the line is the answer; cli_main() reports the error */
	monitor_free(&m);
	for (int i = 0; i <= CHECK_UNKNOWN; i++)
		ky_buf_deinit(&c.problems[i]);
	return (int)c.state;
}
