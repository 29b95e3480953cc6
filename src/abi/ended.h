/* SPDX-License-Identifier: MIT */
/*
 * Message from the session daemon to its child kymo-collectd, through a pipe: a program that was
 * connected has ended. Both are of one build.
 */
#ifndef ABI_ENDED_H
#define ABI_ENDED_H

#include <stdint.h>

#define KY_ENDED_UNKNOWN (-1) /* how it ended could not be seen */

struct ky_ended {
	int32_t pid; /* as the daemon sees it */
	uint32_t uid;
	int32_t status;	   /* as of wait(2), or KY_ENDED_UNKNOWN */
	uint32_t n_missed; /* messages before this one that did not fit into the pipe */
	char name[64];	   /* of the program, with a NUL */
};

#endif
