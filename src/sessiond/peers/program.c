/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/program.h"

#include <limits.h>

#include "base/util.h"

static bool is_at(const char *dir, const char *below, const char *name, char *buf, size_t size)
{
	int n = snprintf(buf, size, "%s%s/kymo-%s", dir, below, name);

	return n > 0 && (size_t)n < size && !access(buf, X_OK);
}

int program_find(const char *name, char *buf, size_t size)
{
	const char *env = secure_getenv("KYMO_LIBEXECDIR");
	char exe[PATH_MAX], built[64], *slash;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (env)
		return is_at(env, "", name, buf, size) ? 0 : -ENOENT;
	exe[n > 0 ? n : 0] = '\0';
	slash = strrchr(exe, '/');
	if (slash)
		*slash = '\0';
	snprintf(built, sizeof(built), "/../%s", name);
	if (slash && (is_at(exe, "", name, buf, size) || is_at(exe, built, name, buf, size) ||
			     is_at(exe, "/../libexec/kymo", name, buf, size)))
		return 0;
	return is_at(KYMO_LIBEXECDIR, "", name, buf, size) ? 0 : -ENOENT;
}
