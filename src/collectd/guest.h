/* SPDX-License-Identifier: MIT */
/* What /proc tells of a process that runs virtual machines. */
#ifndef COLLECTD_GUEST_H
#define COLLECTD_GUEST_H

#include "base/util.h"

#define GUEST_NAME_MAX	128
#define GUEST_VCPUS_MAX 1024u

struct guest {
	pid_t pid;
	char process[32];	   /* name of the process; "": it has gone */
	char uuid[40];		   /* of the guest, "" where its command line does not say */
	char name[GUEST_NAME_MAX]; /* likewise */
	uint32_t n_vms;		   /* that it has */
	uint32_t n_vcpus;
	uint32_t n_threads; /* entries in threads */
	int32_t threads
		[GUEST_VCPUS_MAX]; /* those that run virtual CPUs, as far as their names say so */
};

/* The process that this thread belongs to; the thread's own number when it has gone. */
pid_t guest_process_of(pid_t thread);
/* What the process is called, and what its command line says of its guest. */
void guest_identify(struct guest *g, pid_t pid);
/* Its machines and virtual CPUs. 0; -EACCES: they are not for us to see; -ESRCH: it has gone. */
int guest_count(struct guest *g);
/* Calls fn with the number of each process that has a machine, as far as we may see; returns how many we may not look into. */
unsigned guests_scan(void (*fn)(pid_t pid));

#endif
