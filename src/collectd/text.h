/* SPDX-License-Identifier: MIT */
/*
 * The small files and directories in which the kernel shows its state (/proc, /sys). Their content
 * is true when it is read, and may be removed before the next file is read.
 */
#ifndef COLLECTD_TEXT_H
#define COLLECTD_TEXT_H

#include "base/util.h"

/*
 * Reads the file of this name (fmt): at most size - 1 bytes, and a NUL. Returns their number; or
 * -errno, and "".
 */
ssize_t text_read(char *buf, size_t size, const char *fmt, ...) KY_PRINTF(3, 4);
/* Reads only its first line, without the newline. */
ssize_t text_read_line(char *buf, size_t size, const char *fmt, ...) KY_PRINTF(3, 4);
/*
 * Reads the whole file, which may be large. The caller frees it. Returns NULL and sets errno on
 * failure.
 */
char *text_read_all(const char *path);
/*
 * Returns the text after the key at the begin of a line and blanks, up to the line's end: "\nTgid:"
 * in a status. Returns NULL if there is no such line.
 */
const char *text_value(const char *text, const char *key);
/*
 * Calls fn for each entry of the directory whose name is a number: processes, threads. Returns 0,
 * or -errno if it cannot be read.
 */
int text_each_number(const char *dir, void (*fn)(pid_t number, void *data), void *data);

#endif
