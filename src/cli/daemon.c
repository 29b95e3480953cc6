/* SPDX-License-Identifier: MIT */
#include "cli/daemon.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/utf8.h"
#include "abi/state.h"
#include "base/rundir.h"
#include "cli/locate.h"

static bool none_runs(int r)
{
	return r == -ENOENT || r == -ECONNREFUSED || r == -ENOTDIR;
}

/* The system's daemon runs, and is not for us: who may use it. False when that is not so. */
static bool is_kept_out(char *who, size_t size)
{
	static const char path[] = KY_RUN_GLOBAL "/" KY_RUN_CONTROL;
	const struct group *gr;
	struct stat st;

	if (secure_getenv("KYMO_RUNDIR") || stat(path, &st) < 0 || !access(path, W_OK))
		return false;
	gr = st.st_gid ? getgrgid(st.st_gid) : NULL;
	if (!st.st_gid)
		snprintf(who, size, "root alone");
	else if (gr)
		snprintf(who, size, "root and members of group '%s'", gr->gr_name);
	else
		snprintf(who, size, "root and members of group %u", (unsigned)st.st_gid);
	return true;
}

const char *cli_no_daemon(void)
{
	static char text[512];
	char who[300];
	bool kept_out = is_kept_out(who, sizeof(who));

	snprintf(text, sizeof(text),
		"no session daemon%s is running (start one with 'kymo create' or 'kymo-sessiond -d')%s%s",
		kept_out ? " of this user" : "", kept_out ? "; the system's is for " : "",
		kept_out ? who : "");
	return text;
}

static int cannot_connect(struct cli *cli, int r)
{
	if (none_runs(r))
		return cli_fail(cli, "failed", "%s", cli_no_daemon());
	if (r == -EACCES)
		return cli_fail(cli, "permission",
			"permission denied: this user may not control the session daemon of that run directory "
			"(become a member of its socket's group, or set KYMO_RUNDIR)");
	if (r == -ENAMETOOLONG)
		return cli_fail(cli, "failed",
			"the run directory's path is too long for a socket: set KYMO_RUNDIR to a shorter one");
	return cli_fail(cli, "failed", "cannot connect to the session daemon: %s", strerror(-r));
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
 * Starts the launcher, which returns once the daemon answers, or has said on stderr why there is
 * none: what was said is in `said`. Returns its wait status, or -errno.
 */
static int launch(char *path, char *const *env, char *said, size_t size)
{
	char *argv[] = {path, (char *)"--daemonize", NULL};
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
	/* a daemon that runs may have the other end still: take what is there */
	fcntl(from, F_SETFL, O_NONBLOCK);
	n = read(from, said, size - 1);
	said[n > 0 ? n : 0] = '\0';
	return status;
}

static int start_daemon(struct cli *cli)
{
	char path[PATH_MAX], said[4096] = "";
	_cleanup_free_ char **env = cli_daemon_environ();
	int r = cli_locate_sessiond(path, sizeof(path));

	if (r < 0)
		return cli_fail(cli, "failed",
			"no session daemon is running, and kymo-sessiond was not found beside this "
			"program: is kymo installed completely?");
	r = env ? launch(path, env, said, sizeof(said)) : -ENOMEM;
	if (r < 0)
		return cli_fail(cli, "failed", "cannot start %s: %s", path, strerror(-r));
	if (r)
		return cli_fail(
			cli, "failed", "the session daemon did not start: %s", cli_last_line(said));
	cli_warn_log(cli, said); /* as what has become of a predecessor's sessions */
	return CLI_OK;
}

/* Has a daemon that was killed left sessions, which go on without it? */
static bool sessions_wait(void)
{
	char path[PATH_MAX];
	struct dirent *e;
	bool any = false;
	DIR *dir;

	if (ky_rundir(geteuid(), path, sizeof(path) - sizeof("/" KY_RUN_SESSIONS)) < 0)
		return false;
	strcat(path, "/" KY_RUN_SESSIONS);
	dir = opendir(path);
	if (!dir)
		return false;
	while (!any && (e = readdir(dir)))
		any = e->d_name[0] != '.';
	closedir(dir);
	return any;
}

int cli_connect(struct cli *cli, struct kymo_ctl **ret_ctl)
{
	int r = kymo_ctl_open(NULL, ret_ctl);

	if (none_runs(r) && sessions_wait()) {
		fprintf(stderr,
			"kymo: the session daemon was killed: starting another, which takes its sessions over\n");
		if (start_daemon(cli) != CLI_OK)
			return CLI_FAILED;
		r = kymo_ctl_open(NULL, ret_ctl);
	}
	return r < 0 ? cannot_connect(cli, r) : CLI_OK;
}

int cli_connect_if_running(struct cli *cli, struct kymo_ctl **ret_ctl)
{
	int r = kymo_ctl_open(NULL, ret_ctl);

	if (none_runs(r) && sessions_wait())
		return cli_connect(cli, ret_ctl);
	if (r < 0)
		*ret_ctl = NULL;
	return r < 0 && !none_runs(r) ? cannot_connect(cli, r) : CLI_OK;
}

int cli_connect_or_start(struct cli *cli, struct kymo_ctl **ret_ctl)
{
	int code = cli_connect_if_running(cli, ret_ctl);

	if (code || *ret_ctl)
		return code;
	code = start_daemon(cli);
	return code ? code : cli_connect(cli, ret_ctl);
}

static int no_answer(struct cli *cli, int r)
{
	if (r == -ETIMEDOUT)
		return cli_fail(
			cli, "failed", "the session daemon does not answer: is it stopped?");
	if (r == -EPIPE || r == -ECONNRESET)
		return cli_fail(cli, "failed", "the session daemon ended before it answered");
	return cli_fail(cli, "failed", "no answer from the session daemon: %s", strerror(-r));
}

static char slow[128];

static void on_alarm(int signal)
{
	if (write(STDERR_FILENO, slow, strlen(slow)) < 0)
		return;
}

void cli_tell_when_slow(const char *what)
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

/* At a terminal: the filter once more, and below it where it went wrong. */
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

int cli_call(struct cli *cli, struct kymo_ctl *ctl, const char *command,
	const struct kymo_value *params, struct kymo_value **ret_reply)
{
	_cleanup_value_ struct kymo_value *reply = NULL;
	const char *text = params ? kymo_value_json(params) : "";
	int r;

	if (!text)
		return no_answer(cli, -ENOMEM);
	if (!ky_utf8_valid(text, strlen(text)))
		return cli_fail(cli, "usage", "names, patterns and paths must be UTF-8");
	cli_tell_when_slow("waiting for the session daemon");
	r = kymo_ctl_call(ctl, command, params, &reply);
	cli_tell_when_slow(NULL);
	if (r < 0)
		return no_answer(cli, r);
	if (!kymo_reply_ok(reply)) {
		cli_fail(cli, kymo_reply_code(reply), "%s", kymo_reply_error(reply));
		point_at(cli, params, reply);
		return CLI_FAILED;
	}
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
