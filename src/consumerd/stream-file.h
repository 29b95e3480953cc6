/* SPDX-License-Identifier: MIT */
/*
 * One stream file and its index: packets are appended whole or not at all, several at a time. Used
 * by streams, which may go on from file to file.
 *
 * A packet counts only once its index entry is written as well; whatever fails before, the files
 * are cut back to the packets they had. Hence the index is never ahead of the stream, and after a
 * crash it can be some entries behind, which resuming repairs.
 *
 * Whole blocks can go past the page cache (O_DIRECT), from the ring's memory to the disk: a third of
 * the CPU time. The system wants pages for that, in memory and in the file. So a packet that is the
 * last of its block is padded to a page's end, and a packet is written in three parts: its first
 * page, a copy that begins with the header; whole pages as they lie in the ring, whose blocks leave
 * room for that header; and a copy of the rest with the padding. What is not page on page, and every
 * file where the system refuses, goes through the page cache.
 *
 * There may be more files than the process may have open, as there may be a stream for each thread: when three quarters
 * of its descriptors are in use, those files are closed that were not written for longest, until they are written again.
 */
#ifndef CONSUMERD_STREAM_FILE_H
#define CONSUMERD_STREAM_FILE_H

#include "base/list.h"
#include "ctf/index.h"
#include "ctf/packet.h"

struct stream_file {
	struct ky_list node; /* among those that are open */
	int fd, index_fd;    /* owned; -1: there is no file yet, or it is closed for now */
	uint64_t number;     /* among those of the stream; in its name if they are limited */
	uint64_t size;	     /* bytes of whole packets */
	uint64_t n_packets;
	bool torn;	/* there may be bytes behind the packets */
	bool left;	/* and without a packet, something of ours that could not be removed */
	bool direct;	/* fd has O_DIRECT set */
	bool no_direct; /* the file system does not know it */
};

#define STREAM_FILE_BATCH 8

struct stream_packet {
	struct ky_ctf_packet header; /* finished */
	const uint8_t *data;	     /* records; borrowed, not NULL */
	uint32_t len;		     /* their bytes; without the padding */
};

/* Where the file lies: dirs and name are borrowed for the call. */
struct stream_place {
	int dir, index_dir;
	const char *base; /* the file is called BASE_N, or BASE_N_NUMBER if max_size */
	uint32_t n;
	uint64_t max_size;	  /* of a file, in bytes; 0: no limit */
	uint32_t max_files;	  /* of the stream; 0: no limit */
	uint64_t *direct_from_ns; /* the disk is slow: nothing past the page cache before */
};

void stream_file_init(struct stream_file *f);
/* Closes the file. What is appended opens it again. */
void stream_file_deinit(struct stream_file *f);
/* The file is complete: what is appended next begins file `number`. */
void stream_file_switch(struct stream_file *f, uint64_t number);
/* Removes another file of the stream, if it is there. */
void stream_file_remove(const struct stream_place *place, uint64_t number);
/*
 * Moves a file of the stream and its index into the directory "damaged" beside it, where no reader looks. Does nothing the
 * second time, even if another file has the name by then. 0 or -errno.
 */
int stream_file_set_apart(const struct stream_place *place, uint64_t number);
/* Events in another file of the stream, which is complete: those that its index counts; none when it has gone. 0 or -errno. */
int stream_file_count(const struct stream_place *place, uint64_t number, uint64_t *ret_n);
/* Bytes that a packet with len bytes of records needs to end with a page, when it begins at `at`. */
uint32_t stream_file_padding(uint64_t at, uint32_t len);
/* Could these packets go past the page cache, as they lie in memory and will lie in the file? */
bool stream_file_may_be_direct(
	const struct stream_file *f, const struct stream_packet *packets, unsigned int n);
/*
 * Appends up to STREAM_FILE_BATCH packets, making the files first if need be; direct: past the page
 * cache, if they may. On an error nothing was appended, and the same call may be repeated later.
 */
int stream_file_append(struct stream_file *f, const struct stream_place *place,
	const struct stream_packet *packets, unsigned int n, bool direct);
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
