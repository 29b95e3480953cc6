/* SPDX-License-Identifier: MIT */
/*
 * The initial PID namespace: the kernel's events and lists of processes have its numbers. In
 * others, processes have other numbers for us.
 */
#ifndef KERNEL_PID_NS_H
#define KERNEL_PID_NS_H

#include <stdbool.h>
#include <sys/stat.h>

/* The kernel has given it this number since Linux 3.8. */
#define KY_INITIAL_PID_NS 0xeffffffcu

static inline bool ky_is_in_initial_pid_ns(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == KY_INITIAL_PID_NS;
}

#endif
