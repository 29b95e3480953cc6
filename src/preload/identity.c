/* SPDX-License-Identifier: MIT */
/*
 * Part of libkymo-libc.so: calls that change the contexts of a thread (its name and credentials;
 * namespaces.c has its namespaces, system-calls.c prctl()). It records no event. It informs the
 * tracer of the change at once; otherwise the tracer would notice it somewhat later.
 */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "preload/preload.h"

static struct {
	int (*setuid)(uid_t uid);
	int (*setgid)(gid_t gid);
	int (*seteuid)(uid_t uid);
	int (*setegid)(gid_t gid);
	int (*setreuid)(uid_t real, uid_t effective);
	int (*setregid)(gid_t real, gid_t effective);
	int (*setresuid)(uid_t real, uid_t effective, uid_t saved);
	int (*setresgid)(gid_t real, gid_t effective, gid_t saved);
	int (*pthread_setname_np)(pthread_t thread, const char *name);
} real;

static const struct preload_symbol symbols[] = {
	PRELOAD_SYMBOL(setuid),
	PRELOAD_SYMBOL(setgid),
	PRELOAD_SYMBOL(seteuid),
	PRELOAD_SYMBOL(setegid),
	PRELOAD_SYMBOL(setreuid),
	PRELOAD_SYMBOL(setregid),
	PRELOAD_SYMBOL(setresuid),
	PRELOAD_SYMBOL(setresgid),
	PRELOAD_SYMBOL(pthread_setname_np),
};

static struct preload_functions functions = PRELOAD_FUNCTIONS(symbols);
static PRELOAD_TLS bool searching;

static bool has_identity_functions(void)
{
	return preload_have(&functions, &searching);
}

static int absent(void)
{
	errno = ENOSYS;
	return -1;
}

PRELOAD_EXPORT int setuid(uid_t uid)
{
	return has_identity_functions() ? preload_changed(real.setuid(uid)) : absent();
}

PRELOAD_EXPORT int setgid(gid_t gid)
{
	return has_identity_functions() ? preload_changed(real.setgid(gid)) : absent();
}

PRELOAD_EXPORT int seteuid(uid_t uid)
{
	return has_identity_functions() ? preload_changed(real.seteuid(uid)) : absent();
}

PRELOAD_EXPORT int setegid(gid_t gid)
{
	return has_identity_functions() ? preload_changed(real.setegid(gid)) : absent();
}

PRELOAD_EXPORT int setreuid(uid_t ruid, uid_t euid)
{
	return has_identity_functions() ? preload_changed(real.setreuid(ruid, euid)) : absent();
}

PRELOAD_EXPORT int setregid(gid_t rgid, gid_t egid)
{
	return has_identity_functions() ? preload_changed(real.setregid(rgid, egid)) : absent();
}

PRELOAD_EXPORT int setresuid(uid_t ruid, uid_t euid, uid_t suid)
{
	return has_identity_functions() ? preload_changed(real.setresuid(ruid, euid, suid))
					: absent();
}

PRELOAD_EXPORT int setresgid(gid_t rgid, gid_t egid, gid_t sgid)
{
	return has_identity_functions() ? preload_changed(real.setresgid(rgid, egid, sgid))
					: absent();
}

PRELOAD_EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
	return has_identity_functions() ? preload_changed(real.pthread_setname_np(thread, name))
					: ENOSYS;
}
