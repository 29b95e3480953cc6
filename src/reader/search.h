/* SPDX-License-Identifier: MIT */
/*
 * Finds the traces below a directory, and their stream files. The files wait in the reader until
 * reader/join.h assigns them to streams.
 */
#ifndef READER_SEARCH_H
#define READER_SEARCH_H

#include "reader/state.h"

/*
 * Adds the traces below a directory and their files, without those that an earlier call has added
 * under any path. Traces that cannot be read do not hide the others. Returns whether there is a
 * trace below the directory, or a negative errno with the failure stored in the reader.
 */
int ky_search(struct ky_trace_reader *r, const char *root);
/* Forgets which directories were searched. Call it after the last call of ky_search(). */
void ky_search_end(struct ky_trace_reader *r);
/*
 * Searches all directories again, for new traces, metadata and files, and sets how long the known
 * files are now. Returns 0 or -ENOMEM.
 */
int ky_search_again(struct ky_trace_reader *r);
/*
 * Fills in the properties of a file whose first head is damaged from its first packet, if there is
 * one near its beginning.
 */
void ky_search_packet(struct ky_file *f);
/* Frees the files that wait, from number `first` on. */
void ky_search_drop_files(struct ky_trace_reader *r, size_t first);

#endif
