/* SPDX-License-Identifier: MIT */
/*
 * The root of the kernel's tracing files. The session daemon works below it; the command line finds
 * out in the same way whether a daemon could.
 */
#ifndef KERNEL_TRACEFS_ROOT_H
#define KERNEL_TRACEFS_ROOT_H

#define KY_TRACEFS_WHY_MAX 256

/*
 * Opens the directory, without a mount if the kernel and our rights allow it, and checks that its
 * files can be used. Returns the descriptor, or -errno with one line in why: what is missing and,
 * behind ": ", the remedy.
 */
int ky_tracefs_open(char why[KY_TRACEFS_WHY_MAX]);

#endif
