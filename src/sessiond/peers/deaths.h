/* SPDX-License-Identifier: MIT */
/* Programs of a session that a signal ended. ended.h adds them. */
#ifndef SESSIOND_PEERS_DEATHS_H
#define SESSIOND_PEERS_DEATHS_H

#include "sessiond/model/contents.h"

#define DEATHS_MAX 8u /* deaths that a session remembers: the last ones */

/* A program that a signal ended. */
struct death {
	pid_t pid;
	uint32_t vpid; /* in its own PID namespace, as contexts have it */
	int signal;
	bool dumped; /* core */
	uint64_t ns; /* since 1970 */
	char name[sizeof(((struct definer *)0)->name)];
};

struct deaths {
	uint64_t n; /* since the session was created */
	struct death last[DEATHS_MAX];
};

#endif
