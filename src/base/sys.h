/* SPDX-License-Identifier: MIT */
/*
 * The system calls of code that runs in other people's programs (base/system-call.h). Each function
 * takes and returns the same as the C library's function of its name, and makes the same system
 * call. None is a cancellation point. Also, each function of the C library that the tracer does not
 * call saves some 800 instructions at the start of each program, which look the function up.
 *
 * That is so in libkymo (KY_DIRECT_CALLS). Elsewhere, the same sources call the C library.
 */
#ifndef BASE_SYS_H
#define BASE_SYS_H

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/system-call.h"

#if defined(KY_DIRECT_CALLS) && defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__))
/* The C library's structures are the kernel's. */

static inline int ky_sys_open(const char *path, int flags)
{
	return (int)ky_call(SYS_openat, AT_FDCWD, path, flags);
}

static inline int ky_sys_openat(int dir, const char *path, int flags)
{
	return (int)ky_call(SYS_openat, dir, path, flags);
}

static inline int ky_sys_close(int fd)
{
	return (int)ky_call(SYS_close, fd);
}

static inline ssize_t ky_sys_read(int fd, void *buf, size_t size)
{
	return ky_call(SYS_read, fd, buf, size);
}

static inline ssize_t ky_sys_pread(int fd, void *buf, size_t size, off_t offset)
{
	return ky_call(SYS_pread64, fd, buf, size, offset);
}

static inline ssize_t ky_sys_write(int fd, const void *buf, size_t size)
{
	return ky_call(SYS_write, fd, buf, size);
}

static inline int ky_sys_access(const char *path, int mode)
{
#ifdef SYS_access
	return (int)ky_call(SYS_access, path, mode);
#else
	return (int)ky_call(SYS_faccessat, AT_FDCWD, path, mode);
#endif
}

static inline int ky_sys_stat(const char *path, struct stat *st)
{
	return (int)ky_call(SYS_newfstatat, AT_FDCWD, path, st, 0);
}

static inline int ky_sys_fstat(int fd, struct stat *st)
{
	return (int)ky_call(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH);
}

static inline int ky_sys_fcntl(int fd, int command, int arg)
{
	return (int)ky_call(SYS_fcntl, fd, command, arg);
}

static inline int ky_sys_ioctl(int fd, unsigned long request, void *arg)
{
	return (int)ky_call(SYS_ioctl, fd, request, arg);
}

static inline ssize_t ky_sys_readlink(const char *path, char *buf, size_t size)
{
#ifdef SYS_readlink
	return ky_call(SYS_readlink, path, buf, size);
#else
	return ky_call(SYS_readlinkat, AT_FDCWD, path, buf, size);
#endif
}

static inline int ky_sys_socket(int domain, int type, int protocol)
{
	return (int)ky_call(SYS_socket, domain, type, protocol);
}

static inline int ky_sys_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	return (int)ky_call(SYS_connect, fd, to, len);
}

static inline ssize_t ky_sys_send(int fd, const void *buf, size_t size, int flags)
{
	return ky_call(SYS_sendto, fd, buf, size, flags, 0, 0);
}

static inline ssize_t ky_sys_recvmsg(int fd, struct msghdr *msg, int flags)
{
	return ky_call(SYS_recvmsg, fd, msg, flags);
}

static inline int ky_sys_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	return (int)ky_call(SYS_getsockopt, fd, level, name, value, len);
}

static inline int ky_sys_shutdown(int fd, int how)
{
	return (int)ky_call(SYS_shutdown, fd, how);
}

static inline int ky_sys_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
#ifdef SYS_poll
	return (int)ky_call(SYS_poll, fds, n, timeout_ms);
#else
	struct timespec t = {timeout_ms / 1000, timeout_ms % 1000 * 1000000};

	return (int)ky_call(SYS_ppoll, fds, n, timeout_ms < 0 ? NULL : &t, NULL, 0);
#endif
}

static inline int ky_sys_getrlimit(int resource, struct rlimit *limit)
{
	return (int)ky_call(SYS_prlimit64, 0, resource, NULL, limit);
}

static inline int ky_sys_getresuid(uid_t *real, uid_t *effective, uid_t *saved)
{
	return (int)ky_call(SYS_getresuid, real, effective, saved);
}

static inline pid_t ky_sys_waitpid(pid_t pid, int *status, int options)
{
	return (pid_t)ky_call(SYS_wait4, pid, status, options, NULL);
}

static inline int ky_sys_nanosleep(const struct timespec *t)
{
	return (int)ky_call(SYS_clock_nanosleep, CLOCK_REALTIME, 0, t, NULL);
}

#define ky_sys_prctl(...)	       ky_call(SYS_prctl, __VA_ARGS__)
#define ky_sys_kill(pid, signal)       ky_call(SYS_kill, pid, signal)
#define ky_sys_execve(path, argv, env) ky_call(SYS_execve, path, argv, env)
#define ky_sys_sched_yield()	       ky_call(SYS_sched_yield)

#else
/* Not in libkymo, or on a machine on which the kernel's structures are others. */

#define ky_sys_open	    open
#define ky_sys_openat	    openat
#define ky_sys_close	    close
#define ky_sys_read	    read
#define ky_sys_pread	    pread
#define ky_sys_write	    write
#define ky_sys_access	    access
#define ky_sys_stat	    stat
#define ky_sys_fstat	    fstat
#define ky_sys_fcntl	    fcntl
#define ky_sys_ioctl	    ioctl
#define ky_sys_readlink	    readlink
#define ky_sys_socket	    socket
#define ky_sys_connect	    connect
#define ky_sys_send	    send
#define ky_sys_recvmsg	    recvmsg
#define ky_sys_getsockopt   getsockopt
#define ky_sys_shutdown	    shutdown
#define ky_sys_poll	    poll
#define ky_sys_getrlimit    getrlimit
#define ky_sys_getresuid    getresuid
#define ky_sys_waitpid	    waitpid
#define ky_sys_nanosleep(t) nanosleep(t, NULL)
#define ky_sys_prctl	    prctl
#define ky_sys_kill	    kill
#define ky_sys_execve	    execve
#define ky_sys_sched_yield  sched_yield

#endif

#endif
