/* SPDX-License-Identifier: MIT */
/*
 * standalone: the companion of programs that are traced where no daemon runs. libkymo
 * (tracer/standalone.c) starts it in the first program that has KYMO_STANDALONE=DIR; there is one
 * companion for each DIR.
 *
 * The program starts the launcher. The launcher starts the companion, waits until it is ready or
 * has reported an error, and exits. The companion is `kymo record` without a command: a private
 * daemon in a session of its own, which ends when no program uses it any more. It shares nothing
 * with the program: no descriptor, terminal or directory.
 *
 * Programs find the companion through a link in DIR. A new companion holds a lock, which has DIR's
 * number in its name, while it looks for another one. If there is none, it writes the link. So of
 * two that start at once, the second finds the first. The lock of DIR itself is the consumer's.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "abi/state.h"
#include "cli/daemon.h"
#include "cli/locate.h"
#include "cli/params.h"
#include "cli/private-daemon.h"

#define READY "ready"
/* The program waits a little longer. In looks, of which a machine's standstill makes one. */
#define READY_LOOKS 40
#define LOOK_MS	    100

static const struct cli_option options[] = {
	CLI_OPTION_EVENT,
	{0},
};

struct companion {
	struct cli *cli;
	struct private_daemon daemon;
	struct child_signals signals;
	char output[PATH_MAX];
	int dir;  /* of the output; -1 */
	int lock; /* while it is found out whether there is another companion; -1 */
	char lock_name[64];
	bool is_new; /* we made it: remove it if it stays empty */
};

static int not_traced(struct cli *cli, const char *why)
{
	return cli_fail(cli, "failed", "not traced (KYMO_STANDALONE): %s", why);
}

static void renounce(int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(null, fd);
	ky_close(null);
}

static int make_output(struct companion *c)
{
	char *slash = strrchr(c->output, '/');
	int r = 0;

	if (slash > c->output) {
		*slash = '\0';
		r = cli_make_dirs(c->output);
		*slash = '/';
	}
	c->is_new = !r && mkdir(c->output, 0750) == 0;
	return r || c->is_new || errno == EEXIST ? r : -errno;
}

/* Without /dev/shm, two that start at once may both become companions: one is refused then. */
static void lock_start(struct companion *c)
{
	struct stat st;

	if (fstat(c->dir, &st) < 0)
		return;
	snprintf(c->lock_name, sizeof(c->lock_name), "/kymo-standalone-%u-%llx-%llx",
		(unsigned)geteuid(), (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	for (;; ky_close(c->lock)) {
		c->lock = shm_open(c->lock_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (c->lock < 0 || fstat(c->lock, &st) < 0 || st.st_uid != geteuid())
			return;
		flock(c->lock, LOCK_EX);
		if (!fstat(c->lock, &st) && st.st_nlink)
			return;
	}
}

static void unlock_start(struct companion *c)
{
	if (c->lock >= 0)
		shm_unlink(c->lock_name);
	ky_close(c->lock);
	c->lock = -1;
}

static int open_output(struct companion *c)
{
	int r = make_output(c);

	if (!r) {
		c->dir = open(c->output, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = c->dir < 0 ? -errno : 0;
	}
	if (r)
		return cli_fail(
			c->cli, "failed", "cannot make a trace in %s: %s", c->output, strerror(-r));
	lock_start(c);
	return CLI_OK;
}

static bool has_companion(const struct companion *c)
{
	char rundir[PATH_MAX];
	struct kymo_ctl *ctl;
	ssize_t n = readlinkat(c->dir, KY_RUN_LINK, rundir, sizeof(rundir) - 1);

	if (n <= 0)
		return false;
	rundir[n] = '\0';
	if (kymo_ctl_open(rundir, &ctl) < 0)
		return false;
	kymo_ctl_close(ctl);
	return true;
}

/* Parses options of the channel, as those of 'kymo set': "subbuf-size=1M,num-subbuf=16". */
static int take_options(struct companion *c, struct kymo_value *channel)
{
	const char *given = ky_env("KYMO_STANDALONE_CHANNEL");
	_cleanup_value_ struct kymo_value *list = cli_params_new(c->cli);
	const struct kymo_value *all;
	int code = list ? CLI_OK : CLI_FAILED;

	if (!code && given)
		code = cli_params_list(c->cli, list, "all", given);
	all = kymo_value_get(list, "all");
	for (size_t i = 0; !code && i < kymo_value_count(all); i++)
		code = cli_params_pair(c->cli, channel, kymo_value_string(kymo_value_at(all, i)));
	return code;
}

static int start_recording(struct companion *c)
{
	_cleanup_value_ struct kymo_value *session = cli_params_new(c->cli);
	_cleanup_value_ struct kymo_value *channel = cli_params_new(c->cli);
	_cleanup_value_ struct kymo_value *rules = cli_params_new(c->cli);
	_cleanup_value_ struct kymo_value *contexts = cli_params_new(c->cli);
	int code = session && channel && rules && contexts ? cli_params_rules(c->cli, rules)
							   : CLI_FAILED;

	if (!code)
		code = take_options(c, channel);
	if (!code)
		code = private_daemon_start(&c->daemon, c->cli, &c->signals, "--while-used", false);
	if (code)
		return code;
	kymo_value_set_string(session, "session", "standalone");
	kymo_value_set_string(session, "output", c->output);
	code = private_daemon_record(&c->daemon, c->cli, session, channel, contexts, rules, NULL);
	if (!code && symlinkat(c->daemon.rundir.path, c->dir, KY_RUN_LINK) < 0)
		code = cli_fail(c->cli, "failed", "cannot make a link in %s: %s", c->output,
			strerror(errno));
	return code;
}

static void report_ready(void)
{
	fputs(READY, stderr);
	renounce(STDERR_FILENO);
}

/*
 * Waits until the last program has exited. Signals are blocked: none ends us earlier. Returns true
 * if the daemon exited in good order: the trace is complete then. Otherwise the consumer may still
 * write it.
 */
static bool wait_unused(struct companion *c)
{
	int status = -1;

	kymo_ctl_close(c->daemon.ctl);
	c->daemon.ctl = NULL;
	while (waitpid(c->daemon.pid, &status, 0) < 0 && errno == EINTR)
		;
	c->daemon.pid = -1;
	unlinkat(c->dir, KY_RUN_LINK, 0);
	return status == 0;
}

/* Returns false if the directory was moved, removed or replaced meanwhile. */
static bool is_in_place(const struct companion *c)
{
	struct stat there, ours;

	return stat(c->output, &there) == 0 && fstat(c->dir, &ours) == 0 &&
	       there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
}

static int record_until_unused(struct companion *c)
{
	int code = start_recording(c);
	bool is_complete = true;

	unlock_start(c);
	if (!code) {
		report_ready();
		is_complete = wait_unused(c);
	}
	private_daemon_end(&c->daemon);
	if (c->is_new && is_complete && is_in_place(c))
		rmdir(c->output); /* if nothing was recorded */
	return code;
}

static int accompany(struct companion *c)
{
	int code;

	setsid();
	renounce(STDIN_FILENO);
	renounce(STDOUT_FILENO);
	child_signals_hold(&c->signals);
	code = open_output(c);
	if (!code && has_companion(c))
		report_ready();
	else if (!code)
		code = record_until_unused(c);
	unlock_start(c);
	ky_close(c->dir);
	return code;
}

/* Reads the companion's messages until it is ready or exits. */
static int hear(struct cli *cli, int from)
{
	struct pollfd p = {.fd = from, .events = POLLIN};
	char said[4096];
	const char *why;
	unsigned n_looks = 0;
	size_t n = 0;
	ssize_t r = 1;

	while (r > 0 && n < sizeof(said) - 1 && n_looks < READY_LOOKS) {
		if (poll(&p, 1, LOOK_MS) <= 0) {
			n_looks++;
			continue;
		}
		r = read(from, said + n, sizeof(said) - 1 - n);
		n += r > 0 ? (size_t)r : 0;
	}
	said[n] = '\0';
	if (!strcmp(said, READY))
		return CLI_OK;
	why = n ? cli_last_line(said) : "its companion does not become ready";
	if (!strncmp(why, "kymo: ", 6))
		why += 6;
	return not_traced(cli, why);
}

static int launch_companion(struct companion *c)
{
	int report[2], code;
	pid_t pid;

	if (pipe2(report, O_CLOEXEC) < 0)
		return not_traced(c->cli, strerror(errno));
	pid = fork();
	if (pid < 0)
		return not_traced(c->cli, strerror(errno));
	if (!pid) {
		dup2(report[1], STDERR_FILENO);
		close(report[0]);
		close(report[1]);
		return accompany(c);
	}
	close(report[1]);
	code = hear(c->cli, report[0]);
	close(report[0]);
	return code;
}

static int run_standalone(struct cli *cli)
{
	struct companion c = {.cli = cli, .daemon = PRIVATE_DAEMON_NONE, .dir = -1, .lock = -1};
	sigset_t none;
	int r;

	syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	r = cli_absolute_path(c.output, sizeof(c.output), cli_arg(cli, 0));
	if (!r && chdir("/") < 0)
		r = -errno;
	return r < 0 ? not_traced(cli, strerror(-r)) : launch_companion(&c);
}

const struct cli_command cmd_standalone = {
	.name = "standalone",
	.synopsis = "[-e PATTERN]... DIR",
	.help = "record into DIR until no program does (started by KYMO_STANDALONE=DIR)",
	.details =
		"A program that is started with KYMO_STANDALONE=DIR in its environment starts this by itself.\n"
		"It returns when programs can be recorded, and goes on in the background until they have ended.\n",
	.options = options,
	.internal = true,
	.min_args = 1,
	.max_args = 1,
	.run = run_standalone,
};
