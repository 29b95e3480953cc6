/* SPDX-License-Identifier: MIT */
/* Data in /proc about a process that runs virtual machines. */
#ifndef COLLECTD_GUEST_H
#define COLLECTD_GUEST_H

#include "base/util.h"

#define GUEST_NAME_MAX	128
#define GUEST_VCPUS_MAX 1024u

struct guest {
	pid_t pid;
	char process[32];	   /* name of the process; "": it has exited */
	char uuid[40];		   /* of the guest; "" if its command line does not contain it */
	char name[GUEST_NAME_MAX]; /* the same for its name */
	uint32_t n_vms;		   /* virtual machines of the process */
	uint32_t n_vcpus;
	uint32_t n_threads; /* entries in threads */
	int32_t threads
		/* threads that run virtual CPUs, as far as their names show it */
		[GUEST_VCPUS_MAX];
};

/* Returns the process of this thread, or the thread's own number if it has exited. */
pid_t guest_process_of(pid_t thread);
/* Reads the process's name, and the guest's data in its command line. */
void guest_identify(struct guest *g, pid_t pid);
/*
 * Counts its machines and virtual CPUs. Returns 0; -EACCES if this user may not see them; -ESRCH if
 * it has exited.
 */
int guest_count(struct guest *g);
/*
 * Calls fn with the number of each visible process that has a machine. Returns the number of
 * processes that this user may not examine.
 */
unsigned guests_scan(void (*fn)(pid_t pid));

#endif
