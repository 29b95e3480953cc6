/* SPDX-License-Identifier: MIT */
#include "cli/pager.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns true if the program of a command, which is its first word, is in PATH. */
static bool is_installed(const char *command)
{
	size_t word = strcspn(command, " \t");
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t len = strcspn(path, ":");
		char file[PATH_MAX];
		int n = snprintf(
			file, sizeof(file), "%.*s/%.*s", (int)len, path, (int)word, command);

		if (n > 0 && n < (int)sizeof(file) && !access(file, X_OK))
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

/* Returns whether a command is the name of a program, maybe with options: no path, no script. */
static bool is_name(const char *command)
{
	size_t word = strcspn(command, " \t");

	return word &&
	       word == strspn(command, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789._+-");
}

/* Returns the command of the pager, or NULL if none is wanted. */
static const char *find_pager(struct cli *cli)
{
	const char *pager = getenv("PAGER");

	if (!pager)
		return is_installed("less") ? "less" : NULL;
	if (!*pager || !strcmp(pager, "cat"))
		return NULL;
	if (!is_name(pager) || is_installed(pager))
		return pager;
	cli_warn(cli, "PAGER is '%s', which is not installed: set it to another pager", pager);
	return NULL;
}

static void run_pager(const char *pager, const int *pipe_fds)
{
	/* Colours pass, and output that fits on the screen stays there. */
	setenv("LESS", "FRX", 0);
	dup2(pipe_fds[0], STDIN_FILENO);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	execl("/bin/sh", "sh", "-c", pager, NULL);
	_exit(127);
}

/* Standard error, while the pager has taken its place; otherwise -1. */
static int kept_stderr = -1;

pid_t cli_pager_begin(struct cli *cli)
{
	const char *pager = isatty(STDOUT_FILENO) ? find_pager(cli) : NULL;
	int fds[2];
	pid_t pid;

	if (!pager || pipe2(fds, O_CLOEXEC) < 0)
		return 0;
	fflush(stdout);
	pid = fork();
	if (!pid)
		run_pager(pager, fds);
	if (pid > 0) {
		dup2(fds[1], STDOUT_FILENO);
		if (isatty(STDERR_FILENO))
			kept_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
		if (kept_stderr >= 0)
			dup2(fds[1], STDERR_FILENO);
		/* ^C is for the pager; when it ends, writing fails. */
		signal(SIGINT, SIG_IGN);
	} else {
		cli_warn(cli, "cannot start the pager '%s': %s", pager, strerror(errno));
	}
	close(fds[0]);
	close(fds[1]);
	return KY_MAX(pid, 0);
}

void cli_pager_end(pid_t pager)
{
	if (!pager)
		return;
	close(STDOUT_FILENO);
	if (kept_stderr >= 0) {
		dup2(kept_stderr, STDERR_FILENO);
		ky_close(kept_stderr);
		kept_stderr = -1;
	}
	while (waitpid(pager, NULL, 0) < 0 && errno == EINTR)
		;
}
