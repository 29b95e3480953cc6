/* SPDX-License-Identifier: MIT */
/* watch: prints what triggers do, one line or JSON object each, until the session ends. */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "cli/daemon.h"
#include "cli/params.h"
#include "cli/text.h"

#define RETRY_MS       200
#define TAKEOVER_TRIES 100 /* after a successor has started */

static const struct cli_option options[] = {
	{"all", 'a', NULL, "print earlier messages, too: the last 256 of each user"},
	{"count", 'n', "N", "end after N messages"},
	{"session", 's', "SESSION", "messages of this session; without it, of all sessions"},
	{0},
};

static void print_message(struct cli *cli, const struct kymo_value *m)
{
	uint64_t ns = kymo_value_u64(kymo_value_get(m, "time_ns"));
	uint64_t left_out = kymo_value_u64(kymo_value_get(m, "left_out"));
	time_t s = (time_t)(ns / 1000000000);
	struct tm tm;
	char date[32];

	if (cli->json) {
		puts(kymo_value_json(m));
		return;
	}
	strftime(date, sizeof(date), "%H:%M:%S", localtime_r(&s, &tm));
	printf("%s.%03u %s: %s: %s", date, (unsigned)(ns / 1000000 % 1000),
		kymo_value_string(kymo_value_get(m, "session")),
		kymo_value_string(kymo_value_get(m, "trigger")),
		cli_safe(cli, kymo_value_string(kymo_value_get(m, "text"))));
	if (left_out)
		printf(" (%" PRIu64 " left out before)", left_out);
	printf("\n");
}

/* Waits for a message. Returns false if nobody reads our output any more. */
static bool wait_message(const struct kymo_ctl *ctl)
{
	struct pollfd p[] = {{.fd = kymo_ctl_fd(ctl), .events = POLLIN}, {.fd = STDOUT_FILENO}};

	poll(p, 2, -1);
	return !(p[1].revents & (POLLERR | POLLHUP));
}

/* Returns false if nobody reads our output any more. */
static bool wait_retry(void)
{
	struct pollfd p = {.fd = STDOUT_FILENO};

	return poll(&p, 1, RETRY_MS) <= 0 || !(p.revents & (POLLERR | POLLHUP));
}

/*
 * Returns CLI_OK, or another exit code after a report. With missing, it does not report that there
 * is no such session, but stores whether there is.
 */
static int begin_watch(
	struct cli *cli, struct kymo_ctl *ctl, const char *session, bool all, bool *missing)
{
	_cleanup_value_ struct kymo_value *reply = NULL;
	int r = kymo_ctl_watch(ctl, session, all, &reply);

	if (missing)
		*missing = r >= 0 && !strcmp(kymo_reply_code(reply), "not-found");
	if (r < 0)
		return cli_fail(cli, "failed", "cannot watch: %s", strerror(-r));
	if (!kymo_reply_ok(reply) && !(missing && *missing))
		return cli_fail(cli, kymo_reply_code(reply), "%s", kymo_reply_error(reply));
	return CLI_OK;
}

/*
 * Waits for a successor of the session daemon, which takes the session over: its messages all come
 * later than those of its predecessor. Returns CLI_OK when it is watched; *ret_ended: nobody reads
 * our output any more.
 */
static int reconnect(struct cli *cli, struct kymo_ctl *ctl, const char *session, bool *ret_ended)
{
	int code = CLI_OK, tries = 0;
	bool missing = true;

	cli_warn(cli, "the session daemon ended: waiting for its successor");
	while (!code && missing && tries < TAKEOVER_TRIES) {
		*ret_ended = !wait_retry();
		if (*ret_ended)
			return CLI_OK;
		if (kymo_ctl_reopen(ctl) < 0)
			continue;
		tries++;
		code = begin_watch(cli, ctl, session, true, &missing);
	}
	if (code || !missing)
		return code;
	return cli_fail(cli, "not-found",
		"the session daemon has started again without session '%s'", session);
}

/* Prints messages until the connection ends. Returns 0 if nobody reads them, or -errno. */
static int show_messages(struct cli *cli, struct kymo_ctl *ctl, uint64_t *count)
{
	int r;

	while (*count) {
		_cleanup_value_ struct kymo_value *m = NULL;

		r = kymo_ctl_message(ctl, &m);
		if (r < 0)
			return r;
		if (r) {
			print_message(cli, m);
			--*count;
			if (fflush(stdout) == EOF)
				return 0;
		} else if (!wait_message(ctl)) {
			return 0;
		}
	}
	return 0;
}

static int watch_session(struct cli *cli, struct kymo_ctl *ctl, const char *session, uint64_t count)
{
	bool ended = false;
	int code = CLI_OK, r = 0;

	while (!code && !ended) {
		r = show_messages(cli, ctl, &count);
		cli->printed = true;
		if (r >= 0 || r == -ESHUTDOWN)
			return CLI_OK;
		if (r != -EPIPE && r != -ECONNRESET)
			return cli_fail(cli, "failed", "no more messages: %s", strerror(-r));
		code = reconnect(cli, ctl, session, &ended);
	}
	return code;
}

static int run_watch(struct cli *cli)
{
	const char *session = cli_arg(cli, 0) ? cli_arg(cli, 0) : cli_get(cli, "session");
	_cleanup_ctl_ struct kymo_ctl *ctl = NULL;
	uint64_t count = UINT64_MAX;
	int code;

	if (cli_arg(cli, 0) && cli_has(cli, "session"))
		return cli_usage(cli, "either NAME or --session=NAME, not both");
	code = cli_read_amount(cli, "count", CLI_NUMBER, 1, INT64_MAX, &count);
	if (!code)
		code = cli_connect(cli, &ctl);
	if (!code)
		code = begin_watch(cli, ctl, session, cli_has(cli, "all"), NULL);
	if (code)
		return code;
	signal(SIGPIPE, SIG_IGN);
	return watch_session(cli, ctl, session, count);
}

const struct cli_command cmd_watch = {
	.name = "watch",
	.synopsis = "[[-s] SESSION] [-a] [-n N]",
	.help = "print the actions of triggers as they happen",
	.details =
		"Prints one line, or with --json one object, for each message: a trigger fired, a snapshot was written,\n"
		"an action failed. Ends when the session is destroyed, or when the session daemon ends. If the daemon is\n"
		"killed, waits for its successor and continues.\n",
	.options = options,
	.max_args = 1,
	.run = run_watch,
};
