/* SPDX-License-Identifier: MIT */
/*
 * Stream files, read by place (pread), and the buffers that packets are read into.
 *
 * A reader has one pool of descriptors for all of its files, whatever their number: a file is
 * opened when it is read, and at most KY_FILES_OPEN_MAX stay open, those that were used last.
 * Threads may read the same files at the same time.
 *
 * Buffers belong to one thread each time: a cursor has a pool of them. A buffer is used again once
 * nothing refers to it.
 */
#ifndef READER_FILE_H
#define READER_FILE_H

#include <pthread.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/util.h"

#define KY_FILES_OPEN_MAX 512

struct ky_files {
	pthread_mutex_t lock; /* protects all below, and the same of each file */
	struct ky_list
		recent; /* open files that nobody reads now; the last one used is at the end */
	size_t n_open;
	/* Called with the bytes that were read, by any thread. May be NULL. */
	void (*read)(void *read_arg, size_t n);
	void *read_arg;
};

/* The place of a file in its pool. */
struct ky_handle {
	struct ky_list link; /* in `recent` while fd >= 0 and n_users is 0 */
	int fd;		     /* -1: closed */
	unsigned n_users;    /* threads that read it now */
};

void ky_files_init(struct ky_files *f);
void ky_files_deinit(struct ky_files *f);
void ky_handle_init(struct ky_handle *h);
/* Closes the file, which nobody reads. */
void ky_handle_deinit(struct ky_handle *h, struct ky_files *f);
/*
 * Reads n bytes at offset of the file at path, which h stands for. Returns how many there are, less
 * than n at the end of the file only, or a negative errno.
 */
ssize_t ky_handle_read(struct ky_handle *h, struct ky_files *f, const char *path, void *to,
	size_t n, uint64_t offset);
/*
 * Returns the first place from the offset on that is in no hole of the file; UINT64_MAX if there is
 * none. Returns the offset if that is not known.
 */
uint64_t ky_handle_skip_hole(
	struct ky_handle *h, struct ky_files *f, const char *path, uint64_t offset);
/*
 * Opens a regular file, or a symbolic link to one, for reading. Returns the descriptor, -ENODATA if
 * the file is of another type, or another negative errno. Never waits for a FIFO's writer.
 */
int ky_file_open_at(int dirfd, const char *name);

/* --- buffers --- */

struct ky_packet {
	struct ky_packet *next; /* in its pool */
	struct ky_packet
		*head; /* the buffer with the packet's head, which this one uses, or NULL */
	uint32_t n_users;
	uint64_t at, len; /* data holds so many bytes of the file, from this one on */
	size_t cap;
	uint8_t *data; /* owned, unless is_borrowed; cap bytes */
	bool is_borrowed;
};

/* Zeroed at first. */
struct ky_packets {
	struct ky_packet *unused;
	size_t n_unused_bytes;
};

/* A buffer for n bytes with one user; NULL without memory. */
struct ky_packet *ky_packet_new(struct ky_packets *pool, size_t n);
/* The same of bytes that stay the caller's. */
struct ky_packet *ky_packet_borrow(const uint8_t *data);
/* NULL is fine: a walk has no packet at its end. */
static inline struct ky_packet *ky_packet_ref(struct ky_packet *p)
{
	if (p)
		p->n_users++;
	return p;
}
void ky_packet_release(struct ky_packet *p, struct ky_packets *pool);
/* NULL is fine. Returns NULL. */
static inline struct ky_packet *ky_packet_unref(struct ky_packet *p, struct ky_packets *pool)
{
	if (p && !--p->n_users)
		ky_packet_release(p, pool);
	return NULL;
}
/* Frees the buffers that nobody uses. */
void ky_packets_deinit(struct ky_packets *pool);

#endif
