/* SPDX-License-Identifier: MIT */
/*
 * KYMO_STANDALONE=DIR: applications are traced into DIR without a session daemon. The first one
 * starts a companion (`kymo standalone DIR`), which is a private daemon and outlives it. All find
 * the companion's run directory by a link in DIR. This code runs once in each application, before
 * the listener, under the lock and with signals blocked.
 *
 * The application gets no child that it could notice. The launcher, which ends when the companion
 * is ready, is a grandchild, and its parent ends without SIGCHLD. If the request fails, one line on
 * stderr reports it: the only output of the library.
 *
 * Children inherit the variable. They may start in another directory, or find DIR useless. So the
 * application's own entry in the environment is replaced in place, by one with an absolute path, or
 * by an empty one. That changes one pointer: other threads that read the environment see it as it
 * was or as it is.
 */
#include <limits.h>
#include <link.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "abi/state.h"
#include "base/paths.h"
#include "base/sys.h"
#include "tracer/tracer.h"

#define VARIABLE "KYMO_STANDALONE"
#define ENTRY	 VARIABLE "="
#define READY_MS 5000 /* the launcher times out earlier */
#define MAX_ARGS 6

/*
 * Exit status of the launcher and its parent. For any other status, the launcher has reported why.
 */
#define READY	    0
#define NOT_READY   126
#define CANNOT_EXEC 127

/* Static: threads that load objects may have small stacks. */
static char entry[sizeof(ENTRY) + PATH_MAX];
static char program[PATH_MAX];

struct launcher {
	char *const *argv, *const *envp;
	char stack[8 << 10] __attribute__((aligned(16)));
	char parent_stack[8 << 10] __attribute__((aligned(16)));
};

/*
 * Writes the message. stderr may have no reader: the application neither waits for one nor ends by
 * the signal, which is sent to this thread and blocked.
 */
static void report_untraced(const char *dir, const char *why)
{
	static char line[PIPE_BUF]; /* a longer write may block even if poll() reports room */
	struct pollfd to = {.fd = STDERR_FILENO, .events = POLLOUT};
	static const struct timespec now;
	sigset_t raised;
	int n = snprintf(
		line, sizeof(line), "kymo: not traced into %.3500s (" VARIABLE "): %s\n", dir, why);

	if (ky_sys_poll(&to, 1, 0) <= 0 || !(to.revents & POLLOUT) ||
		ky_sys_write(STDERR_FILENO, line, (size_t)n) >= 0 ||
		(errno != EPIPE && errno != EFBIG))
		return;
	sigemptyset(&raised);
	sigaddset(&raised, errno == EPIPE ? SIGPIPE : SIGXFSZ);
	sigtimedwait(&raised, NULL, &now);
}

/* Puts our entry into the environment. */
static void publish_entry(void)
{
	for (char **e = environ; e && *e; e++)
		if (!strncmp(*e, ENTRY, strlen(ENTRY)))
			__atomic_store_n(e, entry, __ATOMIC_RELEASE);
}

/*
 * Writes the absolute path of dir into `entry`. Returns NULL, with errno, if it is too long, or the
 * current directory has none.
 */
static const char *make_absolute(const char *dir)
{
	char *path = entry + strlen(ENTRY);
	size_t room = sizeof(entry) - strlen(ENTRY), n = 0;

	if (*dir != '/') {
		if (!getcwd(path, room))
			return NULL;
		n = strlen(path);
		path[n++] = '/';
	}
	if (n + strlen(dir) >= room) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	strcpy(path + n, dir);
	return path;
}

/* Finds the run directory of this trace's companion, if one lives. */
static bool find_companion(const char *trace, struct tracer_conn *conn)
{
	static char link[PATH_MAX + sizeof("/" KY_RUN_LINK)];
	struct ky_state state;
	ssize_t n;

	snprintf(link, sizeof(link), "%s/" KY_RUN_LINK, trace);
	tracer_conn_init(conn, "");
	n = ky_sys_readlink(link, conn->dir, sizeof(conn->dir));
	if (n > 0 && (size_t)n < sizeof(conn->dir) && conn->dir[0] == '/') {
		conn->dir[n] = '\0';
		if (tracer_conn_state(conn, &state) && state.n_active)
			return true;
	}
	conn->dir[0] = '\0';
	return false;
}

/* Finds the path of this library; "" in a program that is linked statically. */
static int find_self(struct dl_phdr_info *info, size_t size, void *ret_path)
{
	(void)size;
	if (!tracer_is_within(info, &tracer))
		return 0;
	*(const char **)ret_path = info->dlpi_name;
	return 1;
}

/*
 * Finds the command line program: beside this library, in a build tree too; else at the install
 * path.
 */
static bool find_program(void)
{
	static const char *const beside[] = {"../cli", "../bin", "../../bin"};
	const char *self = "", *slash;

	dl_iterate_phdr(find_self, &self);
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < KY_ARRAY_SIZE(beside); i++) {
		snprintf(program, sizeof(program), "%.*s/%s/kymo", (int)(slash - self), self,
			beside[i]);
		if (ky_sys_access(program, X_OK) == 0)
			return true;
	}
	strcpy(program, KYMO_BINDIR "/kymo");
	return ky_sys_access(program, X_OK) == 0;
}

static bool is_for_programs(const char *variable)
{
	static const char *const names[] = {VARIABLE "=", "LD_PRELOAD="};

	for (size_t i = 0; i < KY_ARRAY_SIZE(names); i++)
		if (!strncmp(variable, names[i], strlen(names[i])))
			return true;
	return false;
}

/*
 * Returns the environment without the variables that would get the companion traced. Returns NULL
 * if allocation fails.
 */
static char **launcher_environ(void)
{
	size_t n = 0, kept = 0;
	char **copy;

	while (environ[n])
		n++;
	copy = tracer_alloc((n + 1) * sizeof(*copy), false);
	for (size_t i = 0; copy && i < n; i++)
		if (!is_for_programs(environ[i]))
			copy[kept++] = environ[i];
	return copy;
}

static int become_launcher(void *arg)
{
	const struct launcher *l = arg;

	ky_sys_execve(l->argv[0], l->argv, l->envp);
	return CANNOT_EXEC;
}

/* Starts the launcher and waits until it ends, or kills it. */
static int run_launcher(void *arg)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	struct launcher *l = arg;
	int status;
	pid_t pid = tracer_clone(become_launcher, l->stack + sizeof(l->stack),
		CLONE_VM | CLONE_VFORK | SIGCHLD, l, NULL);

	for (int waited = 0; pid > 0 && waited < READY_MS; waited++) {
		if (ky_sys_waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : NOT_READY;
		ky_sys_nanosleep(&ms);
	}
	if (pid > 0 && ky_sys_kill(pid, SIGKILL) == 0) /* it waits for a reader of its message */
		ky_sys_waitpid(pid, &status, 0);
	return NOT_READY;
}

/*
 * Starts the companion. Returns true when it is ready. A process that ends without a signal is the
 * launcher's parent: it runs in our memory, on its own stacks, and this thread stands still
 * meanwhile.
 */
static bool spawn_companion(const char *trace, char *const *argv)
{
	struct launcher *l = tracer_alloc(sizeof(*l), false);
	int status = NOT_READY;
	pid_t pid = -1;

	if (l) {
		l->argv = argv;
		l->envp = launcher_environ();
	}
	if (l && l->envp)
		pid = tracer_clone(run_launcher, l->parent_stack + sizeof(l->parent_stack),
			CLONE_VM | CLONE_VFORK, l, NULL);
	if (pid > 0 && ky_sys_waitpid(pid, &status, __WALL) == pid)
		status = WIFEXITED(status) ? WEXITSTATUS(status) : NOT_READY;
	if (status == NOT_READY)
		report_untraced(
			trace, "its companion process cannot be started, or does not get ready");
	else if (status == CANNOT_EXEC)
		report_untraced(trace, "its companion, the command 'kymo', cannot be executed");
	return status == READY;
}

static bool start_companion(const char *trace)
{
	const char *rules = ky_env("KYMO_STANDALONE_EVENTS");
	char *argv[MAX_ARGS] = {program, (char *)"standalone"};
	size_t n = 2;

	if (!find_program()) {
		report_untraced(trace, "the command 'kymo' is not installed");
		return false;
	}
	if (rules) {
		argv[n++] = (char *)"-e";
		argv[n++] = (char *)rules;
	}
	argv[n] = (char *)trace;
	return spawn_companion(trace, argv);
}

bool tracer_standalone(struct tracer_conn *conn)
{
	const char *given = ky_env(VARIABLE), *trace;
	bool found = false;

	if (!given)
		return false;
	memcpy(entry, ENTRY, sizeof(ENTRY));
	trace = make_absolute(given);
	if (!trace) {
		report_untraced(given, errno == ENOENT ? "the current directory was removed"
						       : "its path is too long");
	} else {
		found = find_companion(trace, conn);
		if (!found && start_companion(trace)) {
			found = find_companion(trace, conn);
			if (!found)
				report_untraced(trace,
					"the recording there is another user's, or just ending");
		}
	}
	if (!found)
		entry[strlen(ENTRY)] = '\0';
	publish_entry();
	return found;
}
