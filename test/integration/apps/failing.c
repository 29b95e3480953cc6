/* SPDX-License-Identifier: MIT */
/*
 * For LD_PRELOAD: makes the N-th call of the C library fail that requests memory, descriptors,
 * files, sockets, threads or processes.
 *
 *   FAIL_AT=N        number of the call that fails, from 1
 *   FAIL_IN=NAME     count the calls from objects whose path contains NAME, in all processes
 *   FAIL_CALL=NAME   count the calls of this function
 *   FAIL_PROGRAM=P   only in processes of this name
 *   FAIL_REST=1      all calls after the N-th fail too
 *   FAIL_SAY=FILE    the file for the name of the call that failed
 *
 * Programs that start when FAIL_SAY's file has a name already run without failures.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unconfined.h"

#define EXPORT __attribute__((visibility("default")))

static unsigned long n_calls, fail_at;
static int armed, rest, say_fd = -1;
static const char *within, *call;
static __thread int inside __attribute__((tls_model("initial-exec")));

static int open_to_say(const char *file)
{
	return (int)syscall(
		SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

__attribute__((constructor)) static void begin(void)
{
	struct stat st;
	const char *at = getenv("FAIL_AT"), *program = getenv("FAIL_PROGRAM");
	const char *file = getenv("FAIL_SAY");

	within = getenv("FAIL_IN");
	call = getenv("FAIL_CALL");
	rest = getenv("FAIL_REST") != NULL;
	fail_at = at ? strtoul(at, NULL, 10) : 0;
	armed = fail_at && (!file || stat(file, &st) || !st.st_size) &&
		(!program || !strcmp(program, program_invocation_short_name));
	/* Opens the file now: a consumer cannot open it after it has confined itself. */
	if (armed && program && file)
		say_fd = open_to_say(file);
}

static void say(const char *name)
{
	const char *file = getenv("FAIL_SAY");
	int fd = say_fd < 0 && file ? open_to_say(file) : say_fd;

	syscall(SYS_write, fd, name, strlen(name));
	syscall(SYS_write, fd, "\n", 1);
	if (fd != say_fd)
		syscall(SYS_close, fd);
}

/*
 * Ignores calls that the C library makes for itself: it ends programs that have no memory when it
 * looks up users. Also ignores strdup() in json-c's parser, which does not check the result. Only
 * the session daemon checks it instead of the parser, so there the call is counted.
 */
static int is_counted(const char *name, const void *caller)
{
	Dl_info info;

	if (call && strcmp(call, name))
		return 0;
	if (!dladdr(caller, &info) || !info.dli_fname || strstr(info.dli_fname, "libc.so"))
		return 0;
	if (!strcmp(name, "strdup") && strstr(info.dli_fname, "libjson-c") &&
		strcmp(program_invocation_short_name, "kymo-sessiond"))
		return 0;
	return !within || strstr(info.dli_fname, within);
}

static int fails(const char *name, const void *caller, int error)
{
	unsigned long n;

	if (!armed || inside)
		return 0;
	inside = 1;
	n = is_counted(name, caller) ? __atomic_add_fetch(&n_calls, 1, __ATOMIC_RELAXED) : 0;
	if (n && n == fail_at)
		say(name);
	inside = 0;
	if (!n || n < fail_at || (n > fail_at && !rest))
		return 0;
	errno = error;
	return 1;
}

/* The C library's own function of that name. */
#define REAL(name) ((__typeof__(&name))(dlsym(RTLD_NEXT, #name)))
#define ARGS(...)  __VA_ARGS__
#define FAILING(type, name, parameters, arguments, error, failed)                                  \
	EXPORT type name parameters                                                                \
	{                                                                                          \
		static __typeof__(&name) real;                                                     \
                                                                                                   \
		if (fails(#name, __builtin_return_address(0), error))                              \
			return failed;                                                             \
		if (!real)                                                                         \
			real = REAL(name);                                                         \
		return real arguments;                                                             \
	}

/* dlsym() may allocate: do not call it from here. */
EXPORT void *malloc(size_t size)
{
	extern void *__libc_malloc(size_t);

	return fails("malloc", __builtin_return_address(0), ENOMEM) ? NULL : __libc_malloc(size);
}

EXPORT void *calloc(size_t n, size_t size)
{
	extern void *__libc_calloc(size_t, size_t);

	return fails("calloc", __builtin_return_address(0), ENOMEM) ? NULL : __libc_calloc(n, size);
}

EXPORT void *realloc(void *p, size_t size)
{
	extern void *__libc_realloc(void *, size_t);

	return fails("realloc", __builtin_return_address(0), ENOMEM) ? NULL
								     : __libc_realloc(p, size);
}

FAILING(char *, strdup, (const char *s), (s), ENOMEM, NULL)
FAILING(FILE *, fopen, (const char *path, const char *mode), (path, mode), EMFILE, NULL)
FAILING(void *, mmap, (void *at, size_t size, int prot, int flags, int fd, off_t offset),
	(at, size, prot, flags, fd, offset), ENOMEM, MAP_FAILED)
FAILING(int, madvise, (void *at, size_t size, int advice), (at, size, advice), EINVAL, -1)
FAILING(int, memfd_create, (const char *name, unsigned int flags), (name, flags), EMFILE, -1)
FAILING(int, ftruncate, (int fd, off_t size), (fd, size), EIO, -1)
FAILING(int, fstat, (int fd, struct stat *st), (fd, st), EIO, -1)
FAILING(int, fchmod, (int fd, mode_t mode), (fd, mode), EPERM, -1)
FAILING(int, mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode), ENOSPC, -1)
FAILING(int, mkdir, (const char *path, mode_t mode), (path, mode), ENOSPC, -1)
FAILING(int, socket, (int domain, int type, int protocol), (domain, type, protocol), EMFILE, -1)
FAILING(int, socketpair, (int domain, int type, int protocol, int fds[2]),
	(domain, type, protocol, fds), EMFILE, -1)
FAILING(int, connect, (int fd, const struct sockaddr *to, socklen_t len), (fd, to, len),
	ECONNREFUSED, -1)
FAILING(int, bind, (int fd, const struct sockaddr *to, socklen_t len), (fd, to, len), EADDRINUSE,
	-1)
FAILING(int, listen, (int fd, int n), (fd, n), EADDRINUSE, -1)
FAILING(int, accept4, (int fd, struct sockaddr *from, socklen_t *len, int flags),
	(fd, from, len, flags), EMFILE, -1)
FAILING(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *len),
	(fd, level, name, value, len), ENOBUFS, -1)
FAILING(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t len),
	(fd, level, name, value, len), ENOBUFS, -1)
FAILING(ssize_t, send, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags), ENOBUFS, -1)
FAILING(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags), ENOBUFS, -1)
FAILING(ssize_t, recv, (int fd, void *p, size_t n, int flags), (fd, p, n, flags), ENOMEM, -1)
FAILING(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags), ENOMEM, -1)
FAILING(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n), EIO, -1)
FAILING(ssize_t, pread, (int fd, void *p, size_t n, off_t at), (fd, p, n, at), EIO, -1)
FAILING(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n), EIO, -1)
FAILING(ssize_t, pwrite, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at), EIO, -1)
FAILING(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n), EIO, -1)
FAILING(ssize_t, pwritev, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at), EIO, -1)
FAILING(int, pipe2, (int fds[2], int flags), (fds, flags), EMFILE, -1)
FAILING(int, epoll_create1, (int flags), (flags), EMFILE, -1)
FAILING(int, epoll_ctl, (int fd, int op, int other, struct epoll_event *e), (fd, op, other, e),
	ENOMEM, -1)
FAILING(int, timerfd_create, (int clock, int flags), (clock, flags), EMFILE, -1)
FAILING(int, signalfd, (int fd, const sigset_t *set, int flags), (fd, set, flags), EMFILE, -1)
FAILING(int, eventfd, (unsigned int n, int flags), (n, flags), EMFILE, -1)
FAILING(int, poll, (struct pollfd * p, nfds_t n, int timeout), (p, n, timeout), ENOMEM, -1)
FAILING(pid_t, fork, (void), (), EAGAIN, -1)
FAILING(int, execve, (const char *path, char *const argv[], char *const env[]), (path, argv, env),
	EACCES, -1)
FAILING(pid_t, waitpid, (pid_t pid, int *status, int options), (pid, status, options), ECHILD, -1)
FAILING(ssize_t, readlink, (const char *path, char *to, size_t size), (path, to, size), EACCES, -1)
/* These functions return their error number. */
FAILING(int, pthread_create,
	(pthread_t * t, const pthread_attr_t *attr, void *(*run)(void *), void *arg),
	(t, attr, run, arg), EAGAIN, EAGAIN)
FAILING(int, posix_spawn,
	(pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions,
		const posix_spawnattr_t *attr, char *const argv[], char *const env[]),
	(pid, path, actions, attr, argv, env), EAGAIN, EAGAIN)

/* Both names of the function. Its last three arguments are of pointers' size. */
#define CLONE(name)                                                                                \
	EXPORT int name(int (*run)(void *), void *stack, int flags, void *arg, ...);               \
	EXPORT int name(int (*run)(void *), void *stack, int flags, void *arg, ...)                \
	{                                                                                          \
		static __typeof__(&clone) real;                                                    \
		void *a[3];                                                                        \
		va_list ap;                                                                        \
                                                                                                   \
		va_start(ap, arg);                                                                 \
		for (int i = 0; i < 3; i++)                                                        \
			a[i] = va_arg(ap, void *);                                                 \
		va_end(ap);                                                                        \
		if (fails("clone", __builtin_return_address(0), EAGAIN))                           \
			return -1;                                                                 \
		if (!real)                                                                         \
			real = REAL(clone);                                                        \
		return real(run, stack, flags, arg, a[0], a[1], a[2]);                             \
	}
CLONE(clone)
CLONE(__clone)

EXPORT int open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (fails("open", __builtin_return_address(0), EMFILE))
		return -1;
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

EXPORT int openat(int dir, const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (fails("openat", __builtin_return_address(0), EMFILE))
		return -1;
	return (int)syscall(SYS_openat, dir, path, flags, mode);
}

EXPORT long syscall(long number, ...)
{
	static __typeof__(&syscall) real;
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (number != SYS_futex && number != SYS_gettid &&
		fails("syscall", __builtin_return_address(0), EPERM))
		return -1;
	if (!real)
		real = REAL(syscall);
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
