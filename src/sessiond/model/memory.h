/* SPDX-License-Identifier: MIT */
/*
 * Memory that the daemon makes for others: ring sets and metadata logs. They are memfds that only
 * their holders reach (mode 0600) and nobody can shrink. If a session is to outlive all processes,
 * they are files in a directory that only the daemon's user reaches (svc/shm-dir.h). A process with
 * a writable descriptor can make such a file shorter.
 *
 * dir, below: that directory, or -1: memfds.
 */
#ifndef SESSIOND_MODEL_MEMORY_H
#define SESSIOND_MODEL_MEMORY_H

#include "abi/resume.h"
#include "ring/geometry.h"

/*
 * Peers that may only read get a descriptor from memory_open_read_only(). The daemon keeps it only
 * for the programs that share a set: each of them would open it again while it starts.
 */
struct ring_memory {
	int rings_fd;	 /* read-write: programs and the daemon */
	int consumed_fd; /* read-write: the consumer */
	int shared_fd;	 /* the same, read-only; -1 before ring_memory_share() */
};
#define RING_MEMORY_NONE ((struct ring_memory){-1, -1, -1})

/* Returns the read-only descriptor of `consumed`, which remains the memory's; or -errno. */
int ring_memory_share(struct ring_memory *m);

/*
 * Opens the same memory once more, read-only, for another process. Its holder cannot get more
 * access. Returns the descriptor, or -errno.
 */
int memory_open_read_only(int fd);

/*
 * Returns true if all memory is taken when it is made: a program that touches it must not find that
 * there is none. So it is with files, and on a machine that promises no more memory than it has
 * (vm.overcommit_memory 2).
 */
bool memory_is_reserved(int dir);
/*
 * Makes the memory of set `number`, of the trace with this UUID, and fills in its header. Returns 0
 * or -errno: -EMFILE also if only reserved descriptors are free (svc/unix.h), because the daemon
 * needs some to send the set to a consumer. After an error nothing is left.
 */
int ring_memory_make(struct ring_memory *m, const struct ky_geometry *g, int dir, uint32_t number,
	const uint64_t uuid[2]);
/* Removes its files, if it has any. Existing descriptors stay valid. */
void ring_memory_remove(int dir, uint32_t number);
void ring_memory_close(struct ring_memory *m);
/* Returns the bytes that its rings take of the machine's memory. */
uint64_t ring_memory_in_use(const struct ring_memory *m);
/* Counts of the slots of a set of threads' rings. */
struct slot_counts {
	uint32_t claimed;    /* slots that threads have had */
	uint32_t in_use;     /* have now */
	uint64_t unprepared; /* claims that had to wait for memory */
};
int ring_memory_count_slots(
	const struct ring_memory *m, const struct ky_geometry *g, struct slot_counts *ret_counts);
/* Counts that the rings have of themselves. */
struct ring_counts {
	uint64_t recorded, lost; /* events, ever */
	uint64_t used;		 /* bytes that no consumer has taken */
};
/* Counts the events and bytes. Sets all to 0 if it cannot read the rings. */
void ring_memory_count(
	const struct ring_memory *m, const struct ky_geometry *g, struct ring_counts *ret_counts);
/* Clocks of the oldest records that rings in overwrite mode hold. */
struct ring_reach {
	unsigned n; /* rings that have overwritten something; 0: the rest means nothing */
	uint64_t earliest, latest;
};
/* Adds the rings of this set. */
void ring_memory_reach(
	const struct ring_memory *m, const struct ky_geometry *g, struct ring_reach *reach);
/* Returns the fill of the fullest ring in discard mode, in per cent; 0 if it cannot be read. */
uint64_t ring_memory_fill(const struct ring_memory *m, const struct ky_geometry *g);
/*
 * Frees the slots of a process that has exited, in a set of threads' rings. Returns their number,
 * or -errno.
 */
int ring_memory_free_slots(
	const struct ring_memory *m, const struct ky_geometry *g, uint32_t process);

/* Says whether the set's session records, to programs without a daemon (KY_SET_STOPPED). */
void ring_memory_set_stopped(const struct ring_memory *m, bool stopped);
/*
 * Maps the words of triggers in the set's first page, with the page present. Returns NULL on
 * failure. The caller unmaps them.
 */
struct ky_set_freeze *ring_memory_map_freeze(const struct ring_memory *m);
void ring_memory_unmap_freeze(struct ky_set_freeze *f);

/*
 * Makes the memory that consumers of one session leave for each other (abi/resume.h). Returns the
 * descriptor, or -errno.
 */
int session_memory_make(int dir);
/*
 * Adopts such memory from another process (ring_memory_adopt), and copies its present contents.
 * Returns 0 or -errno.
 */
int session_memory_adopt(
	int dir, int fd, uint64_t file, int *ret_fd, struct ky_resume_session *ret_memory);

/*
 * Adopts the set's memory from another process: rings and consumed, which must be files of ours
 * with these inode numbers. Takes ownership of neither descriptor. Returns 0 or -errno. After an
 * error nothing is open.
 */
int ring_memory_adopt(struct ring_memory *m, int dir, const int fds[2], const uint64_t files[2]);
/* Makes a log. Returns the descriptor, or -errno. */
int log_memory_make(int dir, const uint64_t uuid[2]);
/* Adopts a log from another process. Returns the descriptor, or -errno. */
int log_memory_adopt(int dir, int fd, uint64_t file);

/*
 * Returns the number of CPUs that can ever have events: highest possible number + 1. The kernel's
 * own mask size bounds the value of /sys, because a container may show another /sys.
 */
uint32_t possible_cpus(void);

#endif
