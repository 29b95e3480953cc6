/* SPDX-License-Identifier: MIT */
#include "base/rundir.h"

#include "abi/state.h"

static int join_path(char *buf, size_t size, const char *dir, const char *rest)
{
	size_t n = strlen(dir), m = strlen(rest);

	if (n + m + 1 > size)
		return -ENAMETOOLONG;
	memcpy(buf, dir, n);
	memcpy(buf + n, rest, m + 1);
	return 0;
}

int ky_rundir(uid_t uid, char *buf, size_t size)
{
	const char *dir;

	if ((dir = ky_env("KYMO_RUNDIR")))
		return join_path(buf, size, dir, "");
	if (uid == 0)
		return join_path(buf, size, KY_RUN_GLOBAL, "");
	if ((dir = ky_env("XDG_RUNTIME_DIR")))
		return join_path(buf, size, dir, "/kymo");
	if ((dir = ky_env("HOME")))
		return join_path(buf, size, dir, "/.kymo");
	return -ENOENT;
}
