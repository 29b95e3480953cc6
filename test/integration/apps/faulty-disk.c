/* SPDX-License-Identifier: MIT */
/*
 * For LD_PRELOAD: below a directory, calls that create, write or truncate files fail, from some
 * call on, until the fault is removed.
 *
 *   DISK_UNDER=DIR    the directory
 *   DISK_FAULT=FILE   describes the fault, which lasts as long as the file exists: "ERROR FROM
 *   SHORT".
 *                     ERROR: the error number. FROM: the first of the process's calls that fails,
 *                     from 1, without counting the writes of watermarks, which depend on time.
 *                     SHORT: 1 if a write writes a part before it fails.
 *   DISK_SAY=FILE     the file for the names of the calls that failed, one in a line
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "unconfined.h"

#define EXPORT	   __attribute__((visibility("default")))
#define REAL(name) ((__typeof__(&name))(dlsym(RTLD_NEXT, #name)))

struct fault {
	int error, is_short;
	unsigned long from;
};

static unsigned long n_calls;
static int say_fd;

/* Opens the file now: a consumer cannot open it after it has confined itself. */
__attribute__((constructor)) static void begin(void)
{
	const char *file = getenv("DISK_SAY");

	say_fd = file ? (int)syscall(SYS_openat, AT_FDCWD, file,
				O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)
		      : -1;
}

static bool read_fault(struct fault *ret_fault)
{
	const char *file = getenv("DISK_FAULT");
	char text[64] = "";
	int fd = file ? (int)syscall(SYS_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0 || syscall(SYS_read, fd, text, sizeof(text) - 1) <= 0)
		text[0] = '\0';
	if (fd >= 0)
		syscall(SYS_close, fd);
	return sscanf(text, "%d %lu %d", &ret_fault->error, &ret_fault->from,
		       &ret_fault->is_short) == 3;
}

/*
 * Finds the path below DISK_UNDER of a descriptor: a file, or the directory in which a name is
 * looked up. Returns false if it lies elsewhere.
 */
static bool find_path(int fd, char path[4096])
{
	const char *dir = getenv("DISK_UNDER");
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = dir && fd >= 0 ? readlinkat(AT_FDCWD, link, path, 4095) : -1;
	path[n > 0 ? n : 0] = '\0';
	return n > 0 && !strncmp(path, dir, strlen(dir));
}

static bool is_watermark(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && !strcmp(name, "/.watermark");
}

static void say(const char *name)
{
	syscall(SYS_write, say_fd, name, strlen(name));
	syscall(SYS_write, say_fd, "\n", 1);
}

/* Returns true and sets errno if the call must fail. Sets *ret_short if it writes a part before. */
static bool fails(const char *name, int fd, bool *ret_short)
{
	char path[4096];
	struct fault f;

	if (!find_path(fd, path))
		return false;
	n_calls += !is_watermark(path);
	if (!read_fault(&f) || n_calls < f.from)
		return false;
	say(name);
	*ret_short = f.is_short && n_calls == f.from;
	errno = f.error;
	return true;
}

EXPORT ssize_t pwritev(int fd, const struct iovec *v, int n, off_t at)
{
	bool in_part = false;

	if (!fails("pwritev", fd, &in_part))
		return REAL(pwritev)(fd, v, n, at);
	return in_part ? REAL(pwrite)(fd, v[0].iov_base, v[0].iov_len - 1, at) : -1;
}

EXPORT ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	bool in_part = false;

	if (!fails("pwrite", fd, &in_part))
		return REAL(pwrite)(fd, p, n, at);
	return in_part ? REAL(pwrite)(fd, p, n / 2, at) : -1;
}

EXPORT ssize_t write(int fd, const void *p, size_t n)
{
	bool in_part = false;

	if (!fails("write", fd, &in_part))
		return syscall(SYS_write, fd, p, n);
	return in_part ? syscall(SYS_write, fd, p, n / 2) : -1;
}

EXPORT ssize_t writev(int fd, const struct iovec *v, int n)
{
	bool in_part = false;

	if (!fails("writev", fd, &in_part))
		return syscall(SYS_writev, fd, v, n);
	return in_part ? syscall(SYS_write, fd, v[0].iov_base, v[0].iov_len - 1) : -1;
}

EXPORT int ftruncate(int fd, off_t size)
{
	struct fault f;
	bool in_part;

	/* Truncating a file to a smaller size never lacks space. */
	if (!read_fault(&f) || f.error != EIO || !fails("ftruncate", fd, &in_part))
		return REAL(ftruncate)(fd, size);
	return -1;
}

EXPORT int mkdirat(int dir, const char *path, mode_t mode)
{
	bool in_part;

	return fails("mkdirat", dir, &in_part) ? -1 : REAL(mkdirat)(dir, path, mode);
}

EXPORT int openat(int dir, const char *path, int flags, ...)
{
	bool in_part;
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (flags & O_CREAT && fails("openat", dir, &in_part))
		return -1;
	return (int)syscall(SYS_openat, dir, path, flags, mode);
}
