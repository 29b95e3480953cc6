/* SPDX-License-Identifier: MIT */
/*
 * One stream file and its index: packets are appended whole or not at all. Used by streams.
 *
 * A packet counts only once its index entry is written as well; whatever fails before, the files
 * are cut back to the packets they had. Hence the index is never ahead of the stream, and after a
 * crash it can be one entry behind, which resuming repairs.
 */
#ifndef CONSUMERD_STREAM_FILE_H
#define CONSUMERD_STREAM_FILE_H

#include "ctf/index.h"

struct stream_file {
	int fd, index_fd; /* owned; -1: there is no file yet */
	uint64_t size;	  /* bytes of whole packets */
	uint64_t n_packets;
	bool torn; /* there may be bytes behind the packets */
};

/* Where the file lies: dirs and name are borrowed for the call. */
struct stream_place {
	int dir, index_dir;
	const char *base; /* the file is called BASE_N */
	uint32_t n;
};

void stream_file_init(struct stream_file *f);
void stream_file_deinit(struct stream_file *f);
/*
 * Appends a packet of n bytes of records behind the finished header p, making the files first if
 * need be. On an error nothing was appended, and the same call may be repeated later.
 */
int stream_file_append(struct stream_file *f, const struct stream_place *place,
	const struct ky_ctf_packet *p, const void *data, uint32_t n);
/*
 * Opens what an earlier consumer left, cuts it off behind the last whole packet of the stream that
 * `like` belongs to, and brings the index up to date. visit is called for each packet that stays.
 * Without files this does nothing and returns 0. -EBADMSG, and nothing is changed, when the file
 * does not begin as one of this stream.
 */
int stream_file_resume(struct stream_file *f, const struct stream_place *place,
	const struct ky_ctf_packet *like,
	void (*visit)(void *context, const struct ky_ctf_packet *p), void *context);

#endif
