/* SPDX-License-Identifier: MIT */
#include "sessiond/program.h"

#include <limits.h>

#include "base/util.h"

int program_find(const char *name, char *buf, size_t size)
{
	const char *env = secure_getenv("KYMO_LIBEXECDIR");
	char exe[PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (env) {
		snprintf(buf, size, "%s/kymo-%s", env, name);
		return access(buf, X_OK) ? -ENOENT : 0;
	}
	exe[n > 0 ? n : 0] = '\0';
	slash = strrchr(exe, '/');
	if (slash) {
		*slash = '\0';
		snprintf(buf, size, "%s/kymo-%s", exe, name);
		if (!access(buf, X_OK))
			return 0;
		snprintf(buf, size, "%s/../%s/kymo-%s", exe, name, name);
		if (!access(buf, X_OK))
			return 0;
		snprintf(buf, size, "%s/../libexec/kymo/kymo-%s", exe, name);
		if (!access(buf, X_OK))
			return 0;
	}
	snprintf(buf, size, KYMO_LIBEXECDIR "/kymo-%s", name);
	return access(buf, X_OK) ? -ENOENT : 0;
}
