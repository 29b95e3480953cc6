/* SPDX-License-Identifier: MIT */
/*
 * For LD_PRELOAD: a consumer cannot reach the next session daemon for the first REFUSE_CALLS=N
 * attempts, as if it got a CPU too seldom. The daemon itself connects to no such socket.
 */
#include <dlfcn.h>
#include <errno.h>
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
