/* SPDX-License-Identifier: MIT */
/* Finds the container of a control group, by the naming of container managers. No side effects. */
#ifndef COLLECTD_CONTAINER_H
#define COLLECTD_CONTAINER_H

#include "base/util.h"

struct container {
	char id[128];	  /* number or name */
	char runtime[32]; /* its container manager; "" if the name does not show it */
	size_t path_len;  /* length of its own control group's path, without groups inside */
};

/* Finds the innermost container in the path of a control group. Returns false if there is none. */
bool container_of_path(struct container *ret, const char *path);

#endif
