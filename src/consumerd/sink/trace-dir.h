/* SPDX-License-Identifier: MIT */
/*
 * Directories and files of a trace. The owner chooses the place of the trace directory itself.
 * Everything below is reached from its descriptor only, one component at a time. No component may
 * be a symbolic link or "..", so a user who can write there cannot lead the consumer elsewhere.
 */
#ifndef CONSUMERD_SINK_TRACE_DIR_H
#define CONSUMERD_SINK_TRACE_DIR_H

#include "base/util.h"

/*
 * Makes the trace directory (mode 0750) and its parents and opens it. It must not exist, or be
 * empty and belong to this user; resume: it may hold the trace so far. path is absolute. Errors:
 * -EINVAL, -ENOTEMPTY, -EXDEV if it is another user's, the system's.
 */
int trace_dir_make(const char *path, bool resume, int *ret_fd);
/*
 * Locks the open trace directory against other consumers until fd is closed. Returns false if
 * another consumer has locked it, of this or of another session daemon. The lock (flock) belongs to
 * the open file: it holds for all names of the directory, and ends with the process.
 */
bool trace_dir_claim(int fd);
/*
 * Opens the directory `path` ("a/b/c") below root, and makes missing components if `create`.
 * -EINVAL: the path leads anywhere else.
 */
int trace_dir_open_below(int root, const char *path, bool create, int *ret_fd);
/* Opens file `name` in dir for reading and writing; flags: O_CREAT, O_EXCL. New files get mode
 * 0640. */
int trace_dir_open_file(int dir, const char *name, int flags, int *ret_fd);
/*
 * Moves the present chunk, which is "ust" and "kernel" below root, to "archives/ARCHIVE" in one
 * step. trace_dir_set_aside moves it to a place from which trace_dir_discard removes it. Both
 * return -ENOENT if there is no chunk.
 */
int trace_dir_archive(int root, const char *archive);
int trace_dir_set_aside(int root);
/* Removes chunks that were moved to be discarded. After an error, another call removes the rest. */
int trace_dir_discard(int root);
bool trace_dir_has_chunk(int root);
/*
 * Puts back what an earlier call, or a consumer that died, began to move. Until it returns 0,
 * nothing may be opened below the directories of the chunk.
 */
int trace_dir_undo_move(int root);
/* Returns true if this path leads into a directory that is moved. */
bool trace_dir_in_chunk(const char *path);
/* Returns true for a name of one component: not empty, hidden, too long, or with a slash. */
bool trace_dir_name_valid(const char *name);

#endif
