/* SPDX-License-Identifier: MIT */
/*
 * For LD_PRELOAD: simulates a kernel before Linux 6.16, which cannot refuse descriptors
 * (SO_PASSRIGHTS).
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PASSRIGHTS 83

__attribute__((visibility("default"))) int setsockopt(
	int fd, int level, int name, const void *value, socklen_t len)
{
	if (level != SOL_SOCKET || name != PASSRIGHTS)
		return (int)syscall(SYS_setsockopt, fd, level, name, value, len);
	errno = ENOPROTOOPT;
	return -1;
}
