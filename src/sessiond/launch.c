/* SPDX-License-Identifier: MIT */
#include "sessiond/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "abi/state.h"
#include "base/rundir.h"
#include "svc/log.h"

#define NAME	       "kymo-sessiond"
#define GUARD	       "kymo-guard"
#define SIGNALED       128 /* plus the signal: a guard's exit status if its daemon was killed */
#define RESTART_MS     5L  /* the first delay before a successor; doubled with each */
#define RESTART_MAX_MS 900L

/*
 * Waits in the launcher. One byte means ready. The end of the pipe without it means that the daemon
 * died.
 */
static void __attribute__((noreturn)) await_ready(pid_t guard, int fd)
{
	char byte;
	ssize_t n;
	int status, code;

	do {
		n = read(fd, &byte, 1);
	} while (n < 0 && errno == EINTR);
	if (n == 1)
		_exit(EXIT_SUCCESS);
	waitpid(guard, &status, 0);
	code = WIFEXITED(status) ? WEXITSTATUS(status) : SIGNALED + WTERMSIG(status);
	if (code > SIGNALED)
		ky_error("the session daemon was killed by signal %d before it was ready",
			code - SIGNALED);
	else if (!code)
		ky_error("the session daemon ended before it was ready");
	_exit(code && code < SIGNALED ? code : EXIT_FAILURE);
}

/*
 * Detaches the guard from the command that started it. The guard lives as long as the daemon.
 * With -b it keeps the terminal.
 */
static void let_go_of_command(struct launch *l)
{
	int null = l->detach ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;

	l->ready_fd = ky_close(l->ready_fd);
	prctl(PR_SET_NAME, GUARD);
	if (null < 0)
		return;
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	ky_close(null);
	if (chdir("/") < 0)
		ky_warning("cannot leave the working directory: %s", strerror(errno));
}

/*
 * Waits in the guard until the daemon dies. Returns the signal that killed it after it was ready;
 * else exits with the daemon's status.
 */
static int await_death(const struct launch *l, pid_t daemon)
{
	int status = 0;
	pid_t pid;

	do {
		pid = waitpid(daemon, &status, 0);
	} while (pid < 0 && errno == EINTR);
	if (WIFEXITED(status))
		_exit(WEXITSTATUS(status));
	if (!*l->ready)
		_exit(SIGNALED + WTERMSIG(status));
	return WTERMSIG(status);
}

/* Becomes the guard, and returns in the daemon and in each of its successors. */
static void fork_guarded(struct launch *l)
{
	struct timespec delay = {0, RESTART_MS * 1000000L};
	pid_t daemon = fork();
	int killed_by;

	if (!daemon)
		return;
	let_go_of_command(l);
	while (daemon > 0) {
		killed_by = await_death(l, daemon);
		nanosleep(&delay, NULL);
		/* A command may have started a successor meanwhile, and ended the sessions. */
		if (!ky_rundir_has_sessions(geteuid()))
			_exit(SIGNALED + killed_by);
		delay.tv_nsec = KY_MIN(2 * delay.tv_nsec, RESTART_MAX_MS * 1000000L);
		*l->ready = false;
		daemon = fork();
		if (daemon)
			continue;
		prctl(PR_SET_NAME, NAME);
		l->restarted = true;
		l->sig_parent = false;
		return;
	}
	_exit(EXIT_FAILURE);
}

int launch_begin(struct launch *l)
{
	int fds[2];
	pid_t pid;

	l->parent = getppid();
	l->ready_fd = l->log_fd = -1;
	if (!l->background)
		return 0;
	l->ready = mmap(
		NULL, sizeof(*l->ready), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (l->ready == MAP_FAILED || pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid) {
		close(fds[1]);
		await_ready(pid, fds[0]);
	}
	close(fds[0]);
	setsid();
	l->ready_fd = fds[1];
	fork_guarded(l);
	return 0;
}

void launch_log(struct launch *l, const char *log_path)
{

	if (!l->detach)
		return;
	l->log_fd = open(
		log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, KY_RUN_PRIVATE);
	if (l->log_fd < 0)
		ky_warning("cannot log to %s: %s", log_path, strerror(errno));
	ky_log_to_file(l->log_fd, true);
}

/* The consumers' stderr goes into the same log. */
static void detach_from_terminal(struct launch *l)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(l->log_fd >= 0 ? l->log_fd : null, STDERR_FILENO);
	ky_log_to_file(STDERR_FILENO, false);
	ky_close(null);
	l->log_fd = ky_close(l->log_fd);
	if (chdir("/") < 0)
		ky_warning("cannot leave the working directory: %s", strerror(errno));
}

/* The protocol of sd_notify(3). */
static void notify_manager(void)
{
	const char *path = secure_getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	size_t len = path ? strlen(path) : 0;
	char text[64];
	int fd, n;

	if (!len || len >= sizeof(addr.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(addr.sun_path, path, len);
	if (path[0] == '@')
		addr.sun_path[0] = '\0';
	n = snprintf(text, sizeof(text), "READY=1\nMAINPID=%d\n", (int)getpid());
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || sendto(fd, text, (size_t)n, MSG_NOSIGNAL, (struct sockaddr *)&addr,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
		ky_warning("cannot notify the service manager at %s: %s", path, strerror(errno));
	ky_close(fd);
}

void launch_ready(struct launch *l)
{
	if (l->detach)
		detach_from_terminal(l);
	notify_manager();
	if (l->sig_parent)
		kill(l->parent, SIGUSR1);
	if (l->ready)
		*l->ready = true;
	if (l->ready_fd >= 0 && write(l->ready_fd, "", 1) < 0)
		ky_warning("cannot report to the launcher that the daemon is ready: %s",
			strerror(errno));
	l->ready_fd = ky_close(l->ready_fd);
}
