/* SPDX-License-Identifier: MIT */
/*
 * Directories with all that is in them. Links are not followed, so nothing outside is touched, even
 * if others change the tree meanwhile.
 */
#ifndef SVC_TREE_H
#define SVC_TREE_H

#include <sys/stat.h>

#include "base/util.h"

/*
 * Removes it; others may be doing so too. Continues after errors. Returns 0, also if there is no
 * directory of this name, or the first -errno.
 */
int ky_tree_remove(int parent, const char *name);
/*
 * Returns the bytes that a file takes of the disk. Counts the size of a file for which the file
 * system reports no blocks, as some of FUSE do.
 */
uint64_t ky_tree_file_bytes(const struct stat *st);
/* Returns the bytes that its files take of the disk; 0 if there is none. */
uint64_t ky_tree_bytes(int parent, const char *name);

#endif
