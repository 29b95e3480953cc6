/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/program.h"

#include <limits.h>
#include <sys/syscall.h>

#include "base/own-dir.h"
#include "base/paths.h"
#include "base/util.h"
#include "svc/loop.h"

static bool is_at(const char *dir, const char *below, const char *name, char *buf, size_t size)
{
	int n = snprintf(buf, size, "%s%s/kymo-%s", dir, below, name);

	return n > 0 && (size_t)n < size && !access(buf, X_OK);
}

int program_find(const char *name, char *buf, size_t size)
{
	const char *env = ky_env("KYMO_LIBEXECDIR");
	char own[PATH_MAX], built[64];

	if (env)
		return is_at(env, "", name, buf, size) ? 0 : -ENOENT;
	snprintf(built, sizeof(built), "/../%s", name);
	if (!ky_own_dir(own) &&
		(is_at(own, "", name, buf, size) || is_at(own, built, name, buf, size) ||
			is_at(own, "/../libexec/kymo", name, buf, size)))
		return 0;
	return is_at(KYMO_LIBEXECDIR, "", name, buf, size) ? 0 : -ENOENT;
}

static void __attribute__((noreturn))
exec_program(const char *path, char *const argv[], int input, const char *rundir)
{
	ky_signals_reset();
	setsid();
	if (dup2(input, STDIN_FILENO) < 0 || setenv("KYMO_RUNDIR", rundir, 1) < 0 ||
		setenv("KYMO_RUNDIR_ONLY", "1", 1) < 0 ||
		setenv("KYMO_REGISTER_TIMEOUT", "-1", 1) < 0)
		_exit(126);
	unsetenv("KYMO_OFF");
	unsetenv("KYMO_STANDALONE");
	syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
	execv(path, argv);
	_exit(127);
}

pid_t program_start(const char *path, char *const argv[], int input, const char *rundir)
{
	pid_t pid = fork();

	if (!pid)
		exec_program(path, argv, input, rundir);
	return pid < 0 ? -errno : pid;
}
