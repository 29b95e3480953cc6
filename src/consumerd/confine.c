/* SPDX-License-Identifier: MIT */
#include "consumerd/confine.h"

#include "confine/confine.h"
#include "svc/log.h"

void confine(const int *dirs, size_t n)
{
	const struct ky_confinement c = {
		.dirs = dirs, .n_dirs = n, .writes = true, .connects = true};
	int ret = ky_confine_files(&c);

	if (ret < 0)
		ky_debug("writing is not limited to directories: %s", strerror(-ret));
	ret = ky_confine_calls(&c);
	if (ret < 0)
		ky_debug("system calls are not limited: %s", strerror(-ret));
}
