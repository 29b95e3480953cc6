/* SPDX-License-Identifier: MIT */
/*
 * The archived chunks of a trace, TRACE/archives/BEGIN-END-N, and the removal of the oldest ones.
 * TRACE/archives/.removed counts what was removed, for readers, `status` and a later consumer.
 */
#ifndef CONSUMERD_SINK_ARCHIVES_H
#define CONSUMERD_SINK_ARCHIVES_H

#include <time.h>

#include "base/util.h"

struct archive {
	uint64_t number; /* N */
	uint64_t bytes;	 /* that it takes of the disk */
	time_t made;
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

/*
 * Reads the directory, and the counts. a: as it was read before, or zeros; archives that it has are
 * not measured again. Returns 0, also if there is no archive yet, or -errno.
 */
int archives_renew(struct archives *a, int root);
void archives_deinit(struct archives *a);
/*
 * Counts the oldest archive as removed, and removes it. If a consumer dies meanwhile, the next one
 * completes the removal and counts nothing twice. Returns 0 or -errno.
 */
int archives_remove_oldest(struct archives *a, int root);
/* Returns the bytes that the present chunk takes of the disk. */
uint64_t archives_chunk_bytes(int root);

#endif
