/* SPDX-License-Identifier: MIT */
/*
 * An output file: written under another name, and renamed when it is complete. "-" is standard
 * output. The first error is kept; later calls do nothing.
 *
 * Names are repeated with each event and each element of an array, so a small hostile trace may
 * have any number of bytes of output. All files of an export share the room that there is for it.
 */
#ifndef EXPORT_OUT_H
#define EXPORT_OUT_H

#include "base/buf.h"
#include "export/export.h"

#define KY_OUT_MIN	((uint64_t)64 << 20)  /* bytes that any export may have */
#define KY_OUT_PER_BYTE KY_SCAN_TEXT_PER_BYTE /* and for each byte of the traces */

/* How many bytes an export may still write. */
struct ky_out_room {
	uint64_t left;
};

struct ky_out {
	char *path, *part; /* owned: its name, and that of the incomplete file; NULL: stdout */
	int fd;
	struct ky_buf buf;
	struct ky_out_room *room; /* borrowed; NULL: no limit */
	int error;		  /* -EFBIG: beyond the room */
};

/* Returns the room for an export of traces with so many bytes. */
static inline struct ky_out_room ky_out_room(double n_bytes)
{
	return (struct ky_out_room){
		KY_OUT_MIN + (uint64_t)KY_MIN(n_bytes * KY_OUT_PER_BYTE, 0x1p62)};
}

/* Returns whether a new file may take this name: false for a device, or a link. */
bool ky_out_may_replace(const char *path);
/*
 * Makes the file that has another name until it is complete. Removes a file that has this name, and
 * does not write into it: it may be a pipe, or another name of any file. Returns its descriptor, or
 * a negative errno.
 */
int ky_out_create(const char *part);
/* Opens the file. Returns 0 or a negative errno. The caller calls ky_out_close in any case. */
int ky_out_open(struct ky_out *o, const char *path, struct ky_out_room *room);
/* Writes what is in o->buf, if there is enough. Returns o->error. */
int ky_out_flush(struct ky_out *o);
/* Completes the file if is_whole and no error occurred; else removes it. Returns 0 or an error. */
int ky_out_close(struct ky_out *o, bool is_whole);

/*
 * Makes the directory in which the files of an output directory are written, until it is complete.
 * *ret_part: its name, for ky_out_dir_close. A directory that exists must be empty. Returns 0 or a
 * negative errno, with the reason in `why`.
 */
int ky_out_dir_open(char **ret_part, const char *path, char why[KY_EXPORT_WHY]);
/*
 * Gives it the name `path` if error >= 0; else removes it with all that is in it. Frees `part`.
 * Returns `error`, or a negative errno.
 */
int ky_out_dir_close(char *part, const char *path, int error);

#endif
