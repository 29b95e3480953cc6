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
