/* SPDX-License-Identifier: MIT */
#ifndef CLI_KERNEL_ACCESS_H
#define CLI_KERNEL_ACCESS_H

struct cli_kernel_access {
	const char *place;	  /* of tracefs; NULL: this process cannot record the kernel */
	const char *why, *advice; /* then: lines without an end */
};

/* Returns whether a daemon of this process's user, in this place, can record the kernel. */
struct cli_kernel_access cli_kernel_access(void);

#endif
