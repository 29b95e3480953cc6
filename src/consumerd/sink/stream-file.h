/* SPDX-License-Identifier: MIT */
/*
 * One stream file and its index. Packets are appended whole or not at all, several at a time.
 * Streams use it, and may continue from file to file.
 *
 * A packet counts only after its index entry was written as well. After an earlier failure, the
 * files are truncated to the packets that they had. So the index is never ahead of the stream.
 * After a crash it can be some entries behind, which a resume repairs.
 *
 * Whole blocks can bypass the page cache (O_DIRECT), from the ring's memory to the disk, for a
 * third of the CPU time. The system requires pages for that, in memory and in the file. So a packet
 * that is the last of its block is padded to the end of a page, and a packet is written in three
 * parts: its first page, a copy that begins with the header; whole pages as they are in the ring,
 * whose blocks leave room for that header; and a copy of the rest with the padding. Other data, not
 * aligned to pages, goes through the page cache; so does every file if the system refuses.
 *
 * There may be more files than the process may open, because there may be a stream for each thread.
 * When three quarters of its descriptors are in use, it closes the files that were not written for
 * the longest time. It opens them again when they are written.
 */
#ifndef CONSUMERD_SINK_STREAM_FILE_H
#define CONSUMERD_SINK_STREAM_FILE_H

#include "base/list.h"
#include "consumerd/sink/sink.h"
#include "ctf/index.h"

struct stream_file {
	struct ky_list node; /* among those that are open */
	int fd, index_fd;    /* owned; -1: there is no file yet, or it is closed for now */
	uint64_t number;     /* among the stream's files; in its name if their size is limited */
	uint64_t size;	     /* bytes of whole packets */
	uint64_t n_packets;
	bool torn;	/* there may be bytes behind the packets */
	bool left;	/* and, without a packet, a file of ours that could not be removed */
	bool direct;	/* fd has O_DIRECT set */
	bool no_direct; /* the file system does not know it */
};

/* The place of the file. The call borrows dirs and name. */
struct stream_place {
	int dir, index_dir;
	const char *base; /* the file is called BASE_N, or BASE_N_NUMBER if `numbered` */
	uint32_t n;
	bool numbered;
};

void stream_file_init(struct stream_file *f);
/* Closes the file. The next append opens it again. */
void stream_file_deinit(struct stream_file *f);
/* Completes the file. The next append begins file `number`. */
void stream_file_switch(struct stream_file *f, uint64_t number);
/* Removes another file of the stream, if it exists. */
void stream_file_remove(const struct stream_place *place, uint64_t number);
/*
 * Moves a file of the stream and its index into the directory "damaged" beside it, where no reader
 * searches. A second call does nothing, even if another file has the name by then. Returns 0 or
 * -errno.
 */
int stream_file_set_apart(const struct stream_place *place, uint64_t number);
/*
 * Counts the events in another, complete file of the stream, by its index. A file that does not
 * exist has none. Returns 0 or -errno.
 */
int stream_file_count(const struct stream_place *place, uint64_t number, uint64_t *ret_n);
/* Returns true if these packets, as they are in memory and in the file, could bypass the cache. */
bool stream_file_may_be_direct(
	const struct stream_file *f, const struct sink_packet *packets, unsigned int n);
/*
 * Appends up to SINK_BATCH packets, and makes the files first if necessary. direct: bypasses
 * the page cache if possible. After an error nothing was appended, and the caller may repeat the
 * call later.
 */
int stream_file_append(struct stream_file *f, const struct stream_place *place,
	const struct sink_packet *packets, unsigned int n, bool direct);
/*
 * Opens the files of an earlier consumer, truncates them behind the last whole packet of the stream
 * that `like` belongs to, and brings the index up to date. Calls visit for each packet that stays.
 * Without files, does nothing and returns 0. Returns -EBADMSG, and changes nothing, if the file
 * does not begin as one of this stream.
 */
int stream_file_resume(struct stream_file *f, const struct stream_place *place,
	const struct ky_ctf_packet *like, sink_visit_fn *visit, void *context);

#endif
