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
	{"setns", (void **)&real.setns},
	{"unshare", (void **)&real.unshare},
};

/* Returns false if the C library lacks one of them. */
static bool has_namespace_functions(void)
{
	if (preload_find(symbols, sizeof(symbols) / sizeof(symbols[0])))
		return true;
	errno = ENOSYS;
	return false;
}

PRELOAD_EXPORT int setns(int fd, int type)
{
	int result = has_namespace_functions() ? real.setns(fd, type) : -1;

	if (result < 0 && kymo_app_threads_end()) {
		result = real.setns(fd, type);
		kymo_app_threads_start();
	}
	return preload_changed(result);
}

PRELOAD_EXPORT int unshare(int flags)
{
	int result = has_namespace_functions() ? real.unshare(flags) : -1;

	if (result < 0 && kymo_app_threads_end()) {
		result = real.unshare(flags);
		kymo_app_threads_start();
	}
	return preload_changed(result);
}
