/* SPDX-License-Identifier: MIT */
/*
 * For LD_PRELOAD. A consumer cannot reach the next session daemon for the first REFUSE_CALLS=N
 * attempts, as if it got a CPU too seldom. The daemon itself connects to no such socket.
 * A relative path REFUSE_FILE cannot be opened, as if the kernel had been locked down.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

__attribute__((visibility("default"))) int connect(
	int fd, const struct sockaddr *address, socklen_t len)
{
	static int n_calls;
	const struct sockaddr_un *sun = (const struct sockaddr_un *)address;
	const char *name = strrchr(sun->sun_path, '/'), *n = getenv("REFUSE_CALLS");

	if (n && name && !strcmp(name, "/drain.sock") && n_calls++ < atoi(n)) {
		errno = ECONNREFUSED;
		return -1;
	}
	return ((__typeof__(&connect))dlsym(RTLD_NEXT, "connect"))(fd, address, len);
}

__attribute__((visibility("default"))) int openat(int dir, const char *path, int flags, ...)
{
	const char *refused = getenv("REFUSE_FILE");
	va_list ap;
	unsigned mode;

	va_start(ap, flags);
	mode = va_arg(ap, unsigned);
	va_end(ap);
	if (refused && !strcmp(path, refused)) {
		errno = EPERM;
		return -1;
	}
	return ((__typeof__(&openat))dlsym(RTLD_NEXT, "openat64"))(dir, path, flags, mode);
}
