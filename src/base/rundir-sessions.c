/* SPDX-License-Identifier: MIT */
#include "base/rundir.h"

#include <dirent.h>
#include <limits.h>

#include "abi/state.h"

/* Writes the path of a file in the run directory. Returns false if there is none. */
static bool find_file(uid_t uid, const char *name, char path[PATH_MAX])
{
	if (ky_rundir(uid, path, PATH_MAX - strlen(name) - 1) < 0)
		return false;
	strcat(path, "/");
	strcat(path, name);
	return true;
}

bool ky_rundir_is_managed(uid_t uid)
{
	char path[PATH_MAX];

	return find_file(uid, KY_RUN_MANAGED, path) && !access(path, F_OK);
}

bool ky_rundir_has_sessions(uid_t uid)
{
	char path[PATH_MAX];
	struct dirent *e;
	bool any = false;
	DIR *dir;

	if (!find_file(uid, KY_RUN_SESSIONS, path))
		return false;
	dir = opendir(path);
	if (!dir)
		return false;
	while (!any && (e = readdir(dir)))
		any = e->d_name[0] != '.';
	closedir(dir);
	return any;
}
