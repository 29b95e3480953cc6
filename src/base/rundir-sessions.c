/* SPDX-License-Identifier: MIT */
#include "base/rundir.h"

#include <dirent.h>
#include <limits.h>

#include "abi/state.h"

bool ky_rundir_has_sessions(uid_t uid)
{
	char path[PATH_MAX];
	struct dirent *e;
	bool any = false;
	DIR *dir;

	if (ky_rundir(uid, path, sizeof(path) - sizeof("/" KY_RUN_SESSIONS)) < 0)
		return false;
	strcat(path, "/" KY_RUN_SESSIONS);
	dir = opendir(path);
	if (!dir)
		return false;
	while (!any && (e = readdir(dir)))
		any = e->d_name[0] != '.';
	closedir(dir);
	return any;
}
