/* SPDX-License-Identifier: MIT */
/*
 * Part of all preload libraries: calls that change the namespaces of a thread. They record no
 * event. Some of them fail in a process of several threads; the tracer's must not count.
 */
#include <errno.h>
#include <sched.h>

#include "preload/preload.h"

static struct {
	int (*setns)(int fd, int type);
	int (*unshare)(int flags);
} real;

static const struct preload_symbol symbols[] = {
	PRELOAD_SYMBOL(setns),
	PRELOAD_SYMBOL(unshare),
};

static struct preload_functions functions = PRELOAD_FUNCTIONS(symbols);
static PRELOAD_TLS bool searching;

static bool has_namespace_functions(void)
{
	if (preload_have(&functions, &searching))
		return true;
	errno = ENOSYS;
	return false;
}

PRELOAD_EXPORT int setns(int fd, int type)
{
	int result;

	if (!has_namespace_functions())
		return -1;
	result = real.setns(fd, type);
	if (result < 0 && kymo_app_threads_end()) {
		result = real.setns(fd, type);
		kymo_app_threads_start();
	}
	return preload_changed(result);
}

PRELOAD_EXPORT int unshare(int flags)
{
	int result;

	if (!has_namespace_functions())
		return -1;
	result = real.unshare(flags);
	if (result < 0 && kymo_app_threads_end()) {
		result = real.unshare(flags);
		kymo_app_threads_start();
	}
	return preload_changed(result);
}
