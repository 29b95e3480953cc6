/* SPDX-License-Identifier: MIT */
#include "cli/private-daemon.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>

#include "base/small-file.h"
#include "cli/daemon.h"
#include "cli/locate.h"

#define CHANNEL		 "channel0"
#define START_TIMEOUT_MS 10000
#define END_TIMEOUT_MS	 5000
#define POLL_MS		 2

/* Standard descriptors of the daemon: the pipe, and twice a log in the run directory. */
static void set_files(posix_spawn_file_actions_t *files, const char *log, int life)
{
	posix_spawn_file_actions_adddup2(files, life, STDIN_FILENO);
	posix_spawn_file_actions_addopen(
		files, STDERR_FILENO, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	posix_spawn_file_actions_adddup2(files, STDERR_FILENO, STDOUT_FILENO);
}

/* Gives the daemon a session (setsid) of its own, and default signal dispositions. */
static void set_attributes(posix_spawnattr_t *attr)
{
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_setsigmask(attr, &none);
	posix_spawnattr_setsigdefault(attr, &all);
	posix_spawnattr_setflags(
		attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int spawn(
	struct private_daemon *d, char *path, const char *option, const char *log, int life)
{
	char *argv[] = {path, (char *)"--bound", (char *)"--no-collectd", (char *)option, NULL};
	_cleanup_free_ char **env = cli_daemon_environ();
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int r;

	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	set_files(&files, log, life);
	set_attributes(&attr);
	r = env ? posix_spawn(&d->pid, path, &files, &attr, argv, env) : ENOMEM;
	if (r)
		d->pid = -1;
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return -r;
}

static void log_path(const struct private_daemon *d, char *buf, size_t size)
{
	snprintf(buf, size, "%s/" PRIVATE_RUNDIR_LOG, d->rundir.path);
}

/* Reads the daemon's log, at least its beginning. */
static void read_log(const struct private_daemon *d, char *buf, size_t size)
{
	char path[PATH_MAX + 8];

	log_path(d, path, sizeof(path));
	ky_read_text(AT_FDCWD, path, buf, size);
}

static void sleep_a_little(void)
{
	struct timespec ts = {.tv_nsec = POLL_MS * 1000000L};

	nanosleep(&ts, NULL);
}

static bool has_ended(struct private_daemon *d)
{
	if (d->pid > 0 && waitpid(d->pid, NULL, WNOHANG) == d->pid)
		d->pid = -1;
	return d->pid < 0;
}

static int wait_ready(struct private_daemon *d, struct cli *cli, const struct child_signals *s)
{
	char said[4096];

	for (unsigned waited = 0; waited < START_TIMEOUT_MS; waited += POLL_MS) {
		if (kymo_ctl_open(d->rundir.path, &d->ctl) == 0)
			return CLI_OK;
		if (child_signals_pending(s))
			return cli_fail(cli, "failed", "interrupted before the command ran");
		if (has_ended(d)) {
			read_log(d, said, sizeof(said));
			if (!*said)
				return cli_fail(cli, "failed",
					"the session daemon did not start, and could not write the reason into %s: is that file system full?",
					d->rundir.path);
			return cli_fail(cli, "failed", "the session daemon did not start: %s",
				cli_last_line(said));
		}
		sleep_a_little();
	}
	return cli_fail(cli, "failed", "the session daemon does not answer");
}

int private_daemon_start(struct private_daemon *d, struct cli *cli, const struct child_signals *s,
	const char *option, bool agents)
{
	char path[PATH_MAX], log[PATH_MAX + 8];
	int life[2], r;

	*d = PRIVATE_DAEMON_NONE;
	if (cli_locate_sessiond(path, sizeof(path)) < 0)
		return cli_fail(cli, "failed",
			"kymo-sessiond was not found beside this program: is kymo installed completely?");
	r = private_rundir_make(&d->rundir);
	if (r < 0)
		return cli_fail(cli, "failed",
			"cannot make a run directory in $XDG_RUNTIME_DIR, $TMPDIR or /tmp: %s",
			strerror(-r));
	unsetenv("KYMO_STANDALONE");
	if (agents && setenv("LTTNG_HOME", d->rundir.path, 1) < 0)
		return cli_fail(cli, "failed", "no memory");
	if (setenv("KYMO_RUNDIR", d->rundir.path, 1) < 0 || pipe2(life, O_CLOEXEC) < 0)
		return cli_fail(
			cli, "failed", "cannot start the session daemon: %s", strerror(errno));
	d->life = life[1];
	log_path(d, log, sizeof(log));
	r = spawn(d, path, option, log, life[0]);
	close(life[0]);
	if (r < 0)
		return cli_fail(cli, "failed", "cannot start %s: %s", path, strerror(-r));
	return wait_ready(d, cli, s);
}

int private_daemon_ask(struct private_daemon *d, struct cli *cli, const char *command,
	const struct kymo_value *params)
{
	_cleanup_value_ struct kymo_value *reply = NULL;

	return cli_call(cli, d->ctl, command, params, &reply);
}

/*
 * Adds the process and thread of each event as contexts, unless the user chose others. The packets
 * of threads' buffers have these at no cost. In other buffers, two numbers take 8 bytes and 3 ns of
 * each event. (The name would take 16 bytes more, and nearly double a trace.)
 */
static void choose_contexts(struct kymo_value *contexts, const struct kymo_value *channel)
{
	const struct kymo_value *given = kymo_value_get(contexts, "contexts");

	if (!strcmp(kymo_value_string(kymo_value_at(given, 0)), "none"))
		kymo_value_set_list(contexts, "contexts");
	if (given || !strcmp(kymo_value_string(kymo_value_get(channel, "buffers")), "thread"))
		return;
	kymo_value_add_string(contexts, "contexts", "vpid");
	kymo_value_add_string(contexts, "contexts", "vtid");
}

int private_daemon_record(struct private_daemon *d, struct cli *cli,
	const struct kymo_value *session, struct kymo_value *channel, struct kymo_value *contexts,
	struct kymo_value *rules, struct kymo_value *state)
{
	int code;

	choose_contexts(contexts, channel);

	kymo_value_set_string(channel, "channel", CHANNEL);
	/* The trace has all events, also if applications of several versions are recorded. */
	if (!kymo_value_get(channel, "event_conflict"))
		kymo_value_set_string(channel, "event_conflict", "separate");
	kymo_value_set_string(rules, "channel", CHANNEL);
	code = private_daemon_ask(d, cli, "create", session);
	if (!code)
		code = private_daemon_ask(d, cli, "enable-channel", channel);
	if (!code && kymo_value_count(kymo_value_get(contexts, "contexts")))
		code = private_daemon_ask(d, cli, "add-context", contexts);
	if (!code)
		code = private_daemon_ask(d, cli, "enable-event", rules);
	if (!code && state && kymo_value_get(state, "patterns")) {
		kymo_value_set_string(state, "channel", CHANNEL);
		code = private_daemon_ask(d, cli, "enable-event", state);
	}
	return code ? code : private_daemon_ask(d, cli, "start", NULL);
}

void private_daemon_end(struct private_daemon *d)
{
	kymo_ctl_close(d->ctl);
	d->ctl = NULL;
	d->life = ky_close(d->life);
	for (unsigned waited = 0; waited < END_TIMEOUT_MS && !has_ended(d); waited += POLL_MS)
		sleep_a_little();
	if (d->pid > 0) {
		kill(d->pid, SIGKILL);
		waitpid(d->pid, NULL, 0);
		d->pid = -1;
	}
	private_rundir_remove(&d->rundir);
}
