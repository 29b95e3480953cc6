/* SPDX-License-Identifier: MIT */
/*
 * One CTF trace below the trace directory (ust/uid/0/64-bit): its directory, and its metadata,
 * which is copied from the log that the session daemon appends to. Ring sets share it.
 *
 * Invariant (metadata before data): packets of a trace are written only after trace_update()
 * succeeded in the same round, and heads are fetched before it is called.
 */
#ifndef CONSUMERD_TRACE_H
#define CONSUMERD_TRACE_H

#include "base/list.h"
#include "consumerd/fault.h"

struct trace {
	struct ky_list node;		   /* in the consumer's list */
	char *dir;			   /* below the trace directory */
	int root_fd;			   /* borrowed; -1: nothing is written */
	int log_fd;			   /* owned */
	int dir_fd, index_fd, metadata_fd; /* owned; -1 until the first update */
	bool resume;			   /* files of an earlier consumer may be there */
	uint64_t n_copied;		   /* bytes of the log that are in the file */
	uint64_t direct_from_ns;	   /* for streams: stream_place */
	struct fault fault;
};

/* dir is copied. log_fd is taken also when this fails (NULL: no memory). */
struct trace *trace_new(const char *dir, int root_fd, bool resume, int log_fd);
struct trace *trace_free(struct trace *t);
/* Opens the directories, making them if asked. Harmless when they are open. */
int trace_open_dirs(struct trace *t, bool create);
/*
 * Brings the metadata file up to date with the log. On an error (-errno, also kept in `fault`) the
 * file stays as it was; until the time for another try has come, or with force, none is made.
 */
int trace_update(struct trace *t, bool force, uint64_t now_ns);

#endif
