/* SPDX-License-Identifier: MIT */
#include "sessiond/preset.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/wait.h>

#include "base/own-dir.h"
#include "base/paths.h"
#include "base/util.h"
#include "sessiond/peers/program.h"
#include "sessiond/peers/rundir.h"
#include "svc/log.h"

static pid_t loader; /* 0: none */

/* Finds the command line: beside the daemon, in a build tree, or where it was installed. */
static int find_kymo(char *path, size_t size)
{
	static const char *const places[] = {"kymo", "../cli/kymo"};
	char own[PATH_MAX];
	int ret = ky_own_dir(own);

	for (size_t i = 0; !ret && i < KY_ARRAY_SIZE(places); i++)
		if (snprintf(path, size, "%s/%s", own, places[i]) < (int)size &&
			!access(path, X_OK))
			return 0;
	snprintf(path, size, "%s/kymo", KYMO_BINDIR);
	return access(path, X_OK) < 0 ? -errno : 0;
}

static int start_load(const struct env *e, const char *dir)
{
	/* -n: if this daemon ends meanwhile, the sessions are its successor's to load */
	char *argv[] = {(char *)"kymo", (char *)"-q", (char *)"-n", (char *)"load",
		(char *)"--missing", (char *)dir, NULL};
	_cleanup_close_ int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char path[PATH_MAX];
	int ret = null < 0 ? -errno : find_kymo(path, sizeof(path));

	return ret < 0 ? ret : program_start(path, argv, null, e->run->path);
}

void preset_load(const struct env *e, const char *dir)
{
	int ret;

	if (!dir)
		dir = e->all_users && !access(PRESET_DIRECTORY, F_OK) ? PRESET_DIRECTORY : "";
	if (!*dir)
		return;
	ret = start_load(e, dir);
	if (ret < 0)
		ky_error("cannot load the sessions of %s: %s", dir, strerror(-ret));
	else
		loader = ret;
}

void preset_reap(void)
{
	if (loader && waitpid(loader, NULL, WNOHANG))
		loader = 0;
}
