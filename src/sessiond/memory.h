/* SPDX-License-Identifier: MIT */
/*
 * Memory that the daemon makes for others: ring sets and metadata logs, as memfds that only their
 * holders reach (mode 0600) and nobody can shrink.
 */
#ifndef SESSIOND_MEMORY_H
#define SESSIOND_MEMORY_H

#include "abi/resume.h"
#include "ring/geometry.h"

struct ring_memory {
	int rings_fd;	    /* read-write: programs and the daemon */
	int rings_ro_fd;    /* for the consumer */
	int consumed_fd;    /* read-write: the consumer */
	int consumed_ro_fd; /* for programs */
};

/* Makes the memfds of a set, its header filled in. 0 or -errno; nothing is open after an error. */
int ring_memory_make(struct ring_memory *m, const struct ky_geometry *g);
void ring_memory_close(struct ring_memory *m);
/* Bytes that its rings take of the machine's memory. */
uint64_t ring_memory_in_use(const struct ring_memory *m);
/* What the slots of a set of threads' rings tell. */
struct slot_counts {
	uint32_t claimed;    /* slots that threads have had */
	uint32_t in_use;     /* have now */
	uint64_t unprepared; /* claims that had to wait for memory */
};
int ring_memory_count_slots(
	const struct ring_memory *m, const struct ky_geometry *g, struct slot_counts *ret_counts);
/* Frees the slots of a process that is no more, in a set of threads' rings. Returns how many, or -errno. */
int ring_memory_free_slots(
	const struct ring_memory *m, const struct ky_geometry *g, uint32_t process);

/* What consumers of one session leave for each other (abi/resume.h): the descriptor, or -errno. */
int session_memory_make(void);
/* Likewise as another process has kept it (ring_memory_adopt), and what is in it now. 0 or -errno. */
int session_memory_adopt(int fd, uint64_t file, int *ret_fd, struct ky_resume_session *ret_memory);

/*
 * The set's memory as another process has kept it: rings and consumed, which must be files of ours of these inode
 * numbers. Takes neither descriptor. 0 or -errno; nothing is open after an error.
 */
int ring_memory_adopt(struct ring_memory *m, const int fds[2], const uint64_t files[2]);
/* Likewise a log; *ret_size its length. */
int log_memory_adopt(int fd, uint64_t file, int *ret_fd, int *ret_ro_fd, uint64_t *ret_size);

/* A log: *ret_fd to append to, *ret_ro_fd to give away. 0 or -errno. */
int log_memory_make(int *ret_fd, int *ret_ro_fd);

/*
 * Number of CPUs that can ever have events: highest possible number + 1. The kernel's own mask size
 * bounds what /sys says, because a container may show another /sys.
 */
uint32_t possible_cpus(void);

#endif
