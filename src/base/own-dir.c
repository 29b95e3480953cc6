/* SPDX-License-Identifier: MIT */
#include "base/own-dir.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

int ky_own_dir(char *buf)
{
	ssize_t n = readlink("/proc/self/exe", buf, PATH_MAX);
	char *slash;

	if (n == PATH_MAX)
		return -ENAMETOOLONG;
	if (n >= 0)
		buf[n] = '\0';
	else if (!realpath((const char *)getauxval(AT_EXECFN) ?: "", buf))
		return -errno;
	slash = strrchr(buf, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	return 0;
}
