/* SPDX-License-Identifier: MIT */
#include "base/standard-files.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/util.h"

void ky_occupy_standard_files(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	ky_close(fd);
}

const char *ky_missing_file(const char **ret_advice)
{
	if (access("/proc/self/fd", X_OK) < 0) {
		*ret_advice = "mount it, 'mount -t proc proc /proc'";
		return "/proc is not mounted";
	}
	if (access("/dev/null", R_OK | W_OK) < 0) {
		*ret_advice = "make it, 'mknod -m 666 /dev/null c 1 3'";
		return "/dev/null cannot be used";
	}
	return NULL;
}
