/* SPDX-License-Identifier: MIT */
#ifndef BASE_SMALL_FILE_H
#define BASE_SMALL_FILE_H

#include <fcntl.h>
#include <sys/types.h>

/*
 * Reads the beginning of a file as text, by one read(2): a file of /proc is consistent then. path
 * is below dir, or AT_FDCWD. Stores at most size - 1 bytes and a NUL; "" if the file cannot be
 * read. Returns the number of bytes, or -1.
 */
ssize_t ky_read_text(int dir, const char *path, char *text, size_t size);

#endif
