/* SPDX-License-Identifier: MIT */
#include "base/small-file.h"

#include "base/sys.h"
#include "base/util.h"

ssize_t ky_read_text(int dir, const char *path, char *text, size_t size)
{
	int fd = ky_sys_openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : ky_sys_read(fd, text, size - 1);

	ky_close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n;
}
