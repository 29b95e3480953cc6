/* SPDX-License-Identifier: MIT */
/*
 * The root of the kernel's tracing files. The session daemon works below it; the command line finds
 * out in the same way whether a daemon could.
 */
#ifndef KERNEL_TRACEFS_ROOT_H
#define KERNEL_TRACEFS_ROOT_H

struct ky_tracefs_refusal {
	char problem[128];  /* what is missing */
	const char *advice; /* what to do; static */
};

/*
 * Opens the directory, without a mount if the kernel and our rights allow it, and checks that its
 * files can be used, and that the ring has the layout that Kymo reads. Returns the descriptor, or
 * -errno with the reason in *ret_refusal.
 */
int ky_tracefs_open(struct ky_tracefs_refusal *ret_refusal);

#endif
