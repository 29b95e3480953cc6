/* SPDX-License-Identifier: MIT */
#include "base/glob.h"

#include <stddef.h>
#include <string.h>

/*
 * Greedy, with one point of return: on a mismatch, the last star takes one more character. An
 * earlier star need not be tried again, because the later one can take the same text.
 */
bool ky_glob_match(const char *p, const char *t)
{
	const char *star = NULL, *mark = NULL;

	while (*t) {
		if (*p == '*') {
			star = ++p;
			mark = t;
			continue;
		}
		if (*p == '\\' && p[1] ? p[1] == *t : (*p && *p == *t)) {
			p += *p == '\\' && p[1] ? 2 : 1;
			t++;
			continue;
		}
		if (!star)
			return false;
		p = star;
		t = ++mark;
	}
	while (*p == '*')
		p++;
	return !*p;
}

static bool begins_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

bool ky_glob_match_event(const char *pattern, const char *name)
{
	/* No pointers: they would cost each application a page. */
	static const char own[][12] = {"statedump:", "lib:", "vm:", "process:", "cgroup:", "block:",
		"net:", "cpu:", "mount:"};
	bool hidden = false;

	if (begins_with(name, "kymo_") && !begins_with(pattern, "kymo_"))
		for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
			hidden |= begins_with(name + strlen("kymo_"), own[i]);
	return !hidden && ky_glob_match(pattern, name);
}

bool ky_glob_valid(const char *p)
{
	if (!*p)
		return false;
	for (; *p; p++)
		if (*p == '\\' && !*++p)
			return false;
	return true;
}
