/* SPDX-License-Identifier: MIT */
#include "svc/check.h"

#include "svc/log.h"

void ky_check_failed(const char *what, const char *file, int line)
{
	const char *name = strrchr(file, '/');

	ky_error("this is a bug in kymo, please report it: '%s' does not hold (%s:%d)", what,
		name ? name + 1 : file, line);
	abort();
}
