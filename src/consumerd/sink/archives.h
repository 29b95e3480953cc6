/* SPDX-License-Identifier: MIT */
/*
 * The archived chunks of a trace, TRACE/archives/BEGIN-END-N, and the removal of the oldest ones.
 * TRACE/archives/.removed counts what was removed, for readers, `status` and a later consumer.
 */
#ifndef CONSUMERD_SINK_ARCHIVES_H
#define CONSUMERD_SINK_ARCHIVES_H

#include "base/util.h"

/* Times are of CLOCK_BOOTTIME: the wall clock may be set while a session runs. */
struct archive {
	uint64_t number; /* N */
	uint64_t bytes;	 /* bytes that it takes on the disk */
	uint64_t seen_s; /* when it was first read */
	uint64_t age_s;	 /* then */
	char name[256];
};

struct archives {
	struct archive *list; /* owned; the oldest first */
	size_t n;
	uint64_t bytes;
	/* of all that were ever removed */
	uint64_t n_removed, removed_events, removed_bytes;
	char last_removed[256];
};

/* An archive is measured again until it was seen for so long. */
#define ARCHIVES_MEASURED_S 60

/*
 * Reads the directory, and the counts. a: as it was read before, or zeros; archives that it has for
 * some time are not measured again. If there are archives, makes the file that the next counts are
 * written to: the disk may be full then. Returns 0, also if there is no archive yet, or -errno.
 */
int archives_renew(struct archives *a, int root, uint64_t now_s);
void archives_deinit(struct archives *a);
/*
 * Counts the oldest archive as removed, and removes it. If a consumer dies meanwhile, the next one
 * completes the removal and counts nothing twice. Returns 0 or -errno.
 */
int archives_remove_oldest(struct archives *a, int root);
/* Returns the bytes that the present chunk takes of the disk. */
uint64_t archives_chunk_bytes(int root);

#endif
