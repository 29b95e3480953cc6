/* SPDX-License-Identifier: MIT */
/*
 * The small files and directories by which the kernel tells what there is (/proc, /sys). What they say is true when it is
 * read, and may be gone before the next one is.
 */
#ifndef COLLECTD_TEXT_H
#define COLLECTD_TEXT_H

#include "base/util.h"

/* What the file of this name (fmt) says, at most size - 1 bytes, and a NUL. Their number; -errno, and "". */
ssize_t text_read(char *buf, size_t size, const char *fmt, ...) KY_PRINTF(3, 4);
/* The same, only its first line without the end. */
ssize_t text_read_line(char *buf, size_t size, const char *fmt, ...) KY_PRINTF(3, 4);
/*
 * The whole file, which may be large. The caller frees it; NULL and errno.
 */
char *text_read_all(const char *path);
/* What stands behind the key at the beginning of a line, and blanks, to the line's end: "\nTgid:" in a status. NULL: no such line. */
const char *text_value(const char *text, const char *key);
/* Calls fn for each entry of the directory whose name is a number: processes, threads. 0, or -errno: it cannot be read. */
int text_each_number(const char *dir, void (*fn)(pid_t number, void *data), void *data);

#endif
