/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/program.h"

#include <limits.h>
#include <sys/syscall.h>

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
	char exe[PATH_MAX], built[64], *slash;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (env)
		return is_at(env, "", name, buf, size) ? 0 : -ENOENT;
	exe[n > 0 ? n : 0] = '\0';
	slash = strrchr(exe, '/');
	if (slash)
		*slash = '\0';
	snprintf(built, sizeof(built), "/../%s", name);
	if (slash && (is_at(exe, "", name, buf, size) || is_at(exe, built, name, buf, size) ||
			     is_at(exe, "/../libexec/kymo", name, buf, size)))
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
