/* SPDX-License-Identifier: MIT */
#ifndef CLI_KERNEL_ACCESS_H
#define CLI_KERNEL_ACCESS_H

struct cli_kernel_access {
	const char *place;	  /* of tracefs; NULL: this process cannot record the kernel */
	const char *why, *advice; /* then: lines without an end */
};

struct cli_kernel_access cli_kernel_access(void);

#endif
