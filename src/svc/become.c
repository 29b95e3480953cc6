/* SPDX-License-Identifier: MIT */
#include "svc/become.h"

#include <grp.h>
#include <pwd.h>
#include <stddef.h>
#include <unistd.h>

int ky_become(uid_t uid, gid_t gid)
{
	struct passwd *pw;

	if (uid == geteuid())
		return 0;
	pw = getpwuid(uid);
	if (pw ? initgroups(pw->pw_name, gid) < 0 : setgroups(0, NULL) < 0)
		return -1;
	return setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0 ? -1 : 0;
}
