/* SPDX-License-Identifier: MIT */
/* Which container a control group is of, by what container managers call theirs. Pure. */
#ifndef COLLECTD_CONTAINER_H
#define COLLECTD_CONTAINER_H

#include "base/util.h"

struct container {
	char id[128];	  /* number or name */
	char runtime[32]; /* who made it, "" where the name does not tell */
	size_t path_len;  /* of the path of its own control group, without those inside it */
};

/* The innermost container in the path of a control group. False: none. */
bool container_of_path(struct container *ret, const char *path);

#endif
