/* SPDX-License-Identifier: MIT */
/*
 * Directories and files of a trace. The trace directory itself may lie anywhere its owner says;
 * what is below is reached from its descriptor only, one component at a time, and no component may
 * be a symbolic link or "..": nobody who can write there can lead us elsewhere.
 */
#ifndef CONSUMERD_TRACE_DIR_H
#define CONSUMERD_TRACE_DIR_H

#include "base/util.h"

/*
 * Makes the trace directory (mode 0750) and its parents and opens it. It must not exist, or be
 * empty; resume: it may hold the trace so far. path is absolute. Errors: -EINVAL, -ENOTEMPTY, the
 * system's.
 */
int trace_dir_make(const char *path, bool resume, int *ret_fd);
/*
 * Opens the directory `path` ("a/b/c") below root, making what is missing if asked. -EINVAL for a
 * path that leads anywhere else.
 */
int trace_dir_open_below(int root, const char *path, bool create, int *ret_fd);
/* Opens file `name` in dir for reading and writing; flags: O_CREAT, O_EXCL. New files get mode
 * 0640. */
int trace_dir_open_file(int dir, const char *name, int flags, int *ret_fd);
/*
 * The present chunk is what lies in "ust" below root. It is moved, at once or not at all, to "archives/ARCHIVE/ust", or set
 * aside to be discarded. -ENOENT: there is none.
 */
int trace_dir_archive(int root, const char *archive);
int trace_dir_set_aside(int root);
/* Removes what was set aside, if anything. What is left after an error goes when it is called again. */
int trace_dir_discard(int root);
bool trace_dir_has_chunk(int root);
/* Does this path lead into the directory that is moved? */
bool trace_dir_in_chunk(const char *path);
/* A name of one component: not empty, hidden, too long, or with a slash in it. */
bool trace_dir_name_valid(const char *name);

#endif
