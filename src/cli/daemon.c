/* SPDX-License-Identifier: MIT */
#include "cli/daemon.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/utf8.h"
#include "abi/state.h"
#include "base/rundir.h"
#include "cli/locate.h"

#define START_TIMEOUT_MS 30000 /* as long as a call waits for its reply */
#define START_NAP_MS	 20
#define CALL_TRIES	 3 /* number of daemons that may end while they work on a request */

static bool none_runs(int r)
{
	return r == -ENOENT || r == -ECONNREFUSED || r == -ENOTDIR;
}

/* Returns true if a daemon has that socket and refuses this user; who: the users it accepts. */
static bool refuses(const char *socket, char *who, size_t size)
{
	const struct passwd *pw;
	const struct group *gr;
	char owner[128] = "root";
	struct stat st;

	if (stat(socket, &st) < 0 || !access(socket, W_OK))
		return false;
	pw = st.st_uid ? getpwuid(st.st_uid) : NULL;
	if (pw)
		snprintf(owner, sizeof(owner), "user '%s'", pw->pw_name);
	else if (st.st_uid)
		snprintf(owner, sizeof(owner), "user %u", (unsigned)st.st_uid);
	gr = st.st_gid ? getgrgid(st.st_gid) : NULL;
	if (!st.st_gid || !(st.st_mode & S_IWGRP))
		snprintf(who, size, "%s alone", owner);
	else if (gr)
		snprintf(who, size, "%s and members of group '%s'", owner, gr->gr_name);
	else
		snprintf(who, size, "%s and members of group %u", owner, (unsigned)st.st_gid);
	return true;
}

/* Returns true if the system's daemon runs but refuses this user; who: the users it accepts. */
static bool is_kept_out(char *who, size_t size)
{
	return !ky_env("KYMO_RUNDIR") && refuses(KY_RUN_GLOBAL "/" KY_RUN_CONTROL, who, size);
}

const char *cli_permission_denied(const char **ret_advice)
{
	char dir[PATH_MAX], socket[PATH_MAX + sizeof(KY_RUN_CONTROL)], who[300];
	static char text[PATH_MAX + 512];

	if (ky_rundir(geteuid(), dir, sizeof(dir)) < 0)
		strcpy(dir, "?");
	snprintf(socket, sizeof(socket), "%s/" KY_RUN_CONTROL, dir);
	if (refuses(socket, who, sizeof(who))) {
		snprintf(text, sizeof(text),
			"the session daemon in %s is for %s, and not for this user", dir, who);
		*ret_advice =
			"log in again if you are a new member of the group; KYMO_RUNDIR chooses another daemon";
		return text;
	}
	snprintf(text, sizeof(text), "this user may not enter %s", dir);
	*ret_advice = ky_env("KYMO_RUNDIR")
			      ? "set KYMO_RUNDIR to another directory"
			      : "set XDG_RUNTIME_DIR to this user's directory, as a login does";
	return text;
}

const char *cli_no_daemon(void)
{
	const char *dir = ky_env("KYMO_RUNDIR");
	static char text[PATH_MAX + 512];
	char who[300];
	bool kept_out = is_kept_out(who, sizeof(who));

	snprintf(text, sizeof(text),
		"no session daemon%s is running%s%s%s (start one with 'kymo create' or 'kymo-sessiond -d')%s%s",
		kept_out ? " of this user" : "", dir ? " in " : "", dir ?: "",
		dir ? ", the KYMO_RUNDIR" : "", kept_out ? "; the system's is for " : "",
		kept_out ? who : "");
	return text;
}

int cli_no_trace_or_session(struct cli *cli, const char *name)
{
	return cli_fail(cli, "not-found",
		"there is no trace '%s' here, and no session daemon runs that could have such a session",
		name);
}

static int cannot_connect(struct cli *cli, int r)
{
	const char *text, *advice;

	if (none_runs(r))
		return cli_fail(cli, "failed", "%s", cli_no_daemon());
	if (r == -EACCES) {
		text = cli_permission_denied(&advice);
		return cli_fail(cli, "permission", "permission denied: %s: %s", text, advice);
	}
	if (r == -ENAMETOOLONG)
		return cli_fail(cli, "failed", CLI_RUNDIR_TOO_LONG);
	return cli_fail(cli, "failed", "cannot connect to the session daemon: %s", strerror(-r));
}

/* Returns true if another daemon will serve the sessions of one that has ended. */
static bool has_successor(void)
{
	return ky_rundir_has_sessions(geteuid()) || ky_rundir_is_managed(geteuid());
}

static bool is_for_others(const char *entry)
{
	static const char *const names[] = {"LD_PRELOAD=", "NOTIFY_SOCKET=", "KYMO_STANDALONE="};

	for (size_t i = 0; i < KY_ARRAY_SIZE(names); i++) {
		if (!strncmp(entry, names[i], strlen(names[i])))
			return true;
	}
	return false;
}

char **cli_daemon_environ(void)
{
	size_t n = 0, kept = 0;
	char **copy;

	while (environ[n])
		n++;
	copy = calloc(n + 1, sizeof(*copy));
	for (size_t i = 0; i < n && copy; i++) {
		if (!is_for_others(environ[i]))
			copy[kept++] = environ[i];
	}
	return copy;
}

/*
 * Starts the launcher, which returns once the daemon replies or has reported on stderr why it
 * cannot run. Copies this text to `said`. Returns the launcher's wait status, or -errno.
 */
static int spawn_launcher(char *path, bool verbose, char *const *env, char *said, size_t size)
{
	char *argv[] = {path, (char *)"--daemonize", verbose ? (char *)"--verbose" : NULL, NULL};
	_cleanup_close_ int from = -1, to = -1;
	posix_spawn_file_actions_t files;
	int fds[2], r, status = 0;
	ssize_t n;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	from = fds[0];
	to = fds[1];
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, to, STDERR_FILENO);
	r = posix_spawn(&pid, path, &files, NULL, argv, env);
	posix_spawn_file_actions_destroy(&files);
	if (r)
		return -r;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	/* a running daemon may still have the other end open: do not wait */
	fcntl(from, F_SETFL, O_NONBLOCK);
	n = read(from, said, size - 1);
	said[n > 0 ? n : 0] = '\0';
	return status;
}

/* Starts a daemon. Returns CLI_OK also if another daemon has the run directory. */
static int start_daemon(struct cli *cli)
{
	char path[PATH_MAX], said[4096] = "";
	_cleanup_free_ char **env = cli_daemon_environ();
	int r = cli_locate_sessiond(path, sizeof(path));
	bool is_successor = ky_rundir_has_sessions(geteuid());

	if (r < 0)
		return cli_fail(cli, "failed",
			"no session daemon is running, and kymo-sessiond was not found beside this "
			"program: is kymo installed completely?");
	r = env ? spawn_launcher(path, cli->verbose, env, said, sizeof(said)) : -ENOMEM;
	if (r < 0)
		return cli_fail(cli, "failed", "cannot start %s: %s", path, strerror(-r));
	if (WIFEXITED(r) && WEXITSTATUS(r) == KY_RUN_BUSY)
		return CLI_OK;
	if (r)
		return cli_fail(
			cli, "failed", "the session daemon did not start: %s", cli_last_line(said));
	if (is_successor)
		cli_warn(cli, "the session daemon was killed: another one takes over its sessions");
	cli_warn_log(cli, said); /* such as the state of a predecessor's sessions */
	return CLI_OK;
}

static int open_or_reopen(struct kymo_ctl **ctl)
{
	return *ctl ? kymo_ctl_reopen(*ctl) : kymo_ctl_open(NULL, ctl);
}

/*
 * Starts daemons until one replies: ours, or one that another process starts at the same time. A
 * previous daemon may still be ending, or a successor may be taking over sessions. If a service
 * manager runs the daemon, only waits until it has restarted it.
 */
static int start_and_connect(struct cli *cli, struct kymo_ctl **ctl)
{
	const struct timespec nap = {0, START_NAP_MS * 1000000L};
	bool managed = ky_rundir_is_managed(geteuid());
	int code = CLI_OK, r = -ENOENT;

	cli_report_slow("waiting for a session daemon to be ready");
	for (unsigned waited = 0; none_runs(r) && waited < START_TIMEOUT_MS;
		waited += START_NAP_MS) {
		if (waited)
			nanosleep(&nap, NULL);
		code = managed ? CLI_OK : start_daemon(cli);
		if (code)
			break;
		r = open_or_reopen(ctl);
	}
	cli_report_slow(NULL);
	if (code || !r)
		return code;
	if (none_runs(r) && managed)
		return cli_fail(cli, "failed",
			"the service of the session daemon does not run: 'systemctl status kymo-sessiond' says why");
	return none_runs(r)
		       ? cli_fail(cli, "failed",
				 "a session daemon was started, but does not become ready: 'kymo doctor' says what to do")
		       : cannot_connect(cli, r);
}

int cli_connect_if_running(struct cli *cli, struct kymo_ctl **ret_ctl)
{
	int r;

	*ret_ctl = NULL;
	r = kymo_ctl_open(NULL, ret_ctl);
	if (!none_runs(r))
		return r < 0 ? cannot_connect(cli, r) : CLI_OK;
	return !cli->no_sessiond && has_successor() ? start_and_connect(cli, ret_ctl) : CLI_OK;
}

int cli_connect(struct cli *cli, struct kymo_ctl **ret_ctl)
{
	int code = cli_connect_if_running(cli, ret_ctl);

	return code || *ret_ctl ? code : cli_fail(cli, "failed", "%s", cli_no_daemon());
}

int cli_connect_or_start(struct cli *cli, struct kymo_ctl **ret_ctl)
{
	int code = cli_connect_if_running(cli, ret_ctl);

	cli->starts_daemon = !cli->no_sessiond;
	if (code || *ret_ctl)
		return code;
	return cli->starts_daemon ? start_and_connect(cli, ret_ctl)
				  : cli_fail(cli, "failed", "%s", cli_no_daemon());
}

static int no_answer(struct cli *cli, int r)
{
	if (r == -ETIMEDOUT)
		return cli_fail(cli, "failed", CLI_NO_ANSWER);
	if (r == -ECONNRESET)
		return cli_fail(cli, "failed",
			"the session daemon ended before it read the request: nothing was done");
	if (r == -EPIPE)
		return cli_fail(cli, "failed",
			"the session daemon ended before it answered: 'kymo status' shows what was done");
	return cli_fail(cli, "failed", "no answer from the session daemon: %s", strerror(-r));
}

static char slow[128];

static void on_alarm(int signal)
{
	if (write(STDERR_FILENO, slow, strlen(slow)) < 0)
		return;
}

void cli_report_slow(const char *what)
{
	struct sigaction tell = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};

	if (!isatty(STDERR_FILENO))
		return;
	if (what) {
		snprintf(slow, sizeof(slow), "kymo: %s ...\n", what);
		sigaction(SIGALRM, &tell, NULL);
	}
	alarm(what ? 1 : 0);
}

/* At a terminal, prints the filter again and marks the error below it. */
static void point_at(
	struct cli *cli, const struct kymo_value *params, const struct kymo_value *reply)
{
	const char *filter = kymo_value_string(kymo_value_get(params, "filter"));
	uint64_t position = kymo_value_u64(kymo_value_get(reply, "position"));
	int column = 0;

	if (cli->json || !position || position > strlen(filter) + 1 || !isatty(STDERR_FILENO) ||
		strcmp(filter, cli_safe(cli, filter)))
		return;
	for (uint64_t i = 0; i + 1 < position; i++)
		column += (filter[i] & 0xc0) != 0x80; /* UTF-8 */
	fprintf(stderr, "  %s\n  %*s^\n", filter, column, "");
}

static bool only_reads(const char *command)
{
	static const char *const commands[] = {"hello", "list", "status"};

	for (size_t i = 0; i < KY_ARRAY_SIZE(commands); i++)
		if (!strcmp(command, commands[i]))
			return true;
	return false;
}

static bool is_ending(const struct kymo_value *reply)
{
	return !kymo_reply_ok(reply) && !strcmp(kymo_reply_code(reply), "ending");
}

/* Connects to the next daemon after one ended or is ending. False if there can be none. */
static bool reach_successor(struct cli *cli, struct kymo_ctl *ctl)
{
	int r = kymo_ctl_reopen(ctl);

	if (none_runs(r) && !cli->no_sessiond && (cli->starts_daemon || has_successor()))
		return start_and_connect(cli, &ctl) == CLI_OK;
	return !r;
}

/* Returns true if a repeated request does no harm: nothing was done, or it changes nothing. */
static bool can_repeat(
	int r, const char *command, const struct kymo_value *reply, unsigned n_unanswered)
{
	if (r == -EPIPE)
		return only_reads(command) && n_unanswered < CALL_TRIES;
	return r == -ECONNRESET || (!r && is_ending(reply));
}

/* Sends a request, again if a daemon ends and it does no harm. Returns as kymo_ctl_call. */
static int call_until_answered(struct cli *cli, struct kymo_ctl *ctl, const char *command,
	const struct kymo_value *params, struct kymo_value **ret_reply)
{
	const struct timespec nap = {0, START_NAP_MS * 1000000L};
	unsigned waited = 0, n_unanswered = 0;
	int r;

	for (;;) {
		r = kymo_ctl_call(ctl, command, params, ret_reply);
		n_unanswered += r == -EPIPE;
		if (!can_repeat(r, command, *ret_reply, n_unanswered) ||
			waited > START_TIMEOUT_MS || !reach_successor(cli, ctl))
			return r;
		kymo_value_free(*ret_reply);
		*ret_reply = NULL;
		nanosleep(&nap, NULL);
		waited += START_NAP_MS;
	}
}

static bool is_utf8(const char *text)
{
	return !text || ky_utf8_valid(text, strlen(text));
}

/* Refuses a request that is not UTF-8, and names the argument that is the reason. */
static int refuse_bytes(struct cli *cli)
{
	const struct cli_args *a = &cli->args;

	for (size_t i = 0; i < a->n_given; i++)
		if (!is_utf8(a->given[i].value))
			return cli_fail(cli, "usage",
				"--%s=%s: names, patterns and paths must be UTF-8",
				a->given[i].opt->name, a->given[i].value);
	/* Those of `kymo record` belong to another program. */
	for (size_t i = 0; i < a->n_pos && cli->command->mode != CLI_PARSE_UNTIL_ARG; i++)
		if (!is_utf8(a->pos[i]))
			return cli_fail(cli, "usage",
				"argument '%s': names, patterns and paths must be UTF-8",
				a->pos[i]);
	return cli_fail(cli, "usage",
		"the working directory, KYMO_HOME or HOME is not UTF-8: paths must be");
}

int cli_try(struct cli *cli, struct kymo_ctl *ctl, const char *command,
	const struct kymo_value *params, struct kymo_value **ret_reply)
{
	const char *text = params ? kymo_value_json(params) : "";
	int r;

	if (!text)
		return no_answer(cli, -ENOMEM);
	if (!is_utf8(text))
		return refuse_bytes(cli);
	cli_report_slow("waiting for the session daemon");
	r = call_until_answered(cli, ctl, command, params, ret_reply);
	cli_report_slow(NULL);
	return r < 0 ? no_answer(cli, r) : CLI_OK;
}

int cli_refused(struct cli *cli, const struct kymo_value *params, const struct kymo_value *reply)
{
	int code = cli_fail(cli, kymo_reply_code(reply), "%s", kymo_reply_error(reply));

	point_at(cli, params, reply);
	return code;
}

int cli_call(struct cli *cli, struct kymo_ctl *ctl, const char *command,
	const struct kymo_value *params, struct kymo_value **ret_reply)
{
	_cleanup_value_ struct kymo_value *reply = NULL;
	int code = cli_try(cli, ctl, command, params, &reply);

	if (code)
		return code;
	if (!kymo_reply_ok(reply))
		return cli_refused(cli, params, reply);
	*ret_reply = reply;
	reply = NULL;
	return CLI_OK;
}

int cli_request(struct cli *cli, const char *command, const struct kymo_value *params,
	struct kymo_value **ret_reply)
{
	_cleanup_ctl_ struct kymo_ctl *ctl = NULL;
	int code = cli_connect(cli, &ctl);

	return code ? code : cli_call(cli, ctl, command, params, ret_reply);
}
