/* SPDX-License-Identifier: MIT */
/* The files of a trace directory that are shipped, and what counts of them. */
#ifndef SHIP_FILES_H
#define SHIP_FILES_H

#include <stdbool.h>

#include "base/util.h"

#define FILES_SPOOL ".spool" /* in a trace directory that is a spool: the address */

/* Returns whether files_walk() visits a file of that path, of n bytes, if there is one. */
bool files_is_walked(const char *path, size_t n);
/*
 * Calls visit for each regular file below the directory, with its path from there; not for names
 * that begin with a dot, nor for directories "archives" and "damaged". Calls enter, if not NULL,
 * with each directory before that is read. Returns what visit returned if that is not 0; else 0 or
 * -errno.
 */
int files_walk(int dir, int (*visit)(void *context, const char *path),
	void (*enter)(void *context, int dir), void *context);

/* Writes all n bytes at this offset. Returns 0 or -errno: then some may have been written. */
int files_write(int fd, const void *bytes, size_t n, uint64_t at);

/* Is it the index of a stream: .../index/NAME.kyx? */
bool files_is_index(const char *path);
/* Stores the path of the stream that belongs to an index. */
void files_stream_of(const char *index, char *buf, size_t size);
/*
 * Stores the path of the index that belongs to a stream. Returns false if the file is none, but
 * metadata or in a directory "index".
 */
bool files_index_of(const char *path, char *buf, size_t size);

/*
 * Returns how many bytes of a stream with `size` bytes count by its index: up to the end of the
 * last packet that has an entry; or -errno if the index cannot be read. *ret_index (may be NULL):
 * how many bytes of the index count.
 */
int64_t files_indexed(int index, uint64_t size, uint64_t *ret_index);

/*
 * Returns how many bytes of metadata can be read on their own: up to the end of a declaration. The
 * first `from` bytes can.
 */
uint64_t files_readable(int metadata, uint64_t from, uint64_t size);

#endif
