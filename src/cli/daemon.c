/* SPDX-License-Identifier: MIT */
#include "cli/daemon.h"

#include <limits.h>
#include <spawn.h>
#include <sys/wait.h>

#include "cli/locate.h"

static bool none_runs(int r)
{
	return r == -ENOENT || r == -ECONNREFUSED || r == -ENOTDIR;
}

static int cannot_connect(struct cli *cli, int r)
{
	if (none_runs(r))
		return cli_fail(cli, "failed",
			"no session daemon is running (start one with 'kymo create' or 'kymo-sessiond -d')");
	if (r == -EACCES)
		return cli_fail(cli, "permission",
			"permission denied: this user may not control the session daemon (join its "
			"group, or set KYMO_RUNDIR)");
	if (r == -ENAMETOOLONG)
		return cli_fail(cli, "failed",
			"the run directory's path is too long for a socket: set KYMO_RUNDIR to a shorter one");
	return cli_fail(cli, "failed", "cannot connect to the session daemon: %s", strerror(-r));
}

int cli_connect(struct cli *cli, struct kymo_ctl **ret_ctl)
{
	int r = kymo_ctl_open(NULL, ret_ctl);

	return r < 0 ? cannot_connect(cli, r) : CLI_OK;
}

int cli_connect_if_running(struct cli *cli, struct kymo_ctl **ret_ctl)
{
	int r = kymo_ctl_open(NULL, ret_ctl);

	if (r < 0)
		*ret_ctl = NULL;
	return r < 0 && !none_runs(r) ? cannot_connect(cli, r) : CLI_OK;
}

static bool is_for_others(const char *entry)
{
	static const char *const names[] = {"LD_PRELOAD=", "NOTIFY_SOCKET="};

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

/* The launcher returns once the daemon answers, or has said on stderr why there is none. */
static int start_daemon(struct cli *cli)
{
	char path[PATH_MAX];
	char *argv[] = {path, (char *)"--daemonize", NULL};
	_cleanup_free_ char **env = cli_daemon_environ();
	int r = cli_locate_sessiond(path, sizeof(path)), status;
	pid_t pid;

	if (r < 0)
		return cli_fail(cli, "failed",
			"no session daemon is running, and kymo-sessiond was not found beside this "
			"program: is kymo installed completely?");
	r = env ? posix_spawn(&pid, path, NULL, NULL, argv, env) : ENOMEM;
	if (r)
		return cli_fail(cli, "failed", "cannot start %s: %s", path, strerror(r));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return cli_fail(cli, "failed",
			"the session daemon did not start: 'kymo-sessiond -v' in the foreground shows why");
	return CLI_OK;
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

int cli_call(struct cli *cli, struct kymo_ctl *ctl, const char *command,
	const struct kymo_value *params, struct kymo_value **ret_reply)
{
	_cleanup_value_ struct kymo_value *reply = NULL;
	int r;

	if (params && !cli_is_utf8(kymo_value_json(params)))
		return cli_fail(cli, "usage", "names, patterns and paths must be UTF-8");
	r = kymo_ctl_call(ctl, command, params, &reply);
	if (r < 0)
		return no_answer(cli, r);
	if (!kymo_reply_ok(reply))
		return cli_fail(cli, kymo_reply_code(reply), "%s", kymo_reply_error(reply));
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
