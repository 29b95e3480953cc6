/* SPDX-License-Identifier: MIT */
/*
 * An output file: written under another name, and renamed when it is complete. "-" is standard
 * output. The first error is kept; later calls do nothing.
 */
#ifndef EXPORT_OUT_H
#define EXPORT_OUT_H

#include "base/buf.h"

struct ky_out {
	char *path, *part; /* owned: its name, and that of the incomplete file; NULL: stdout */
	int fd;
	struct ky_buf buf;
	uint64_t n_written, max; /* max: bytes; 0: no limit */
	int error;		 /* -EFBIG: beyond max */
};

/* Opens the file. Returns 0 or a negative errno. The caller calls ky_out_close in any case. */
int ky_out_open(struct ky_out *o, const char *path);
/* Writes what is in o->buf, if there is enough. Returns o->error. */
int ky_out_flush(struct ky_out *o);
/* Completes the file if is_whole and no error occurred; else removes it. Returns 0 or an error. */
int ky_out_close(struct ky_out *o, bool is_whole);

#endif
